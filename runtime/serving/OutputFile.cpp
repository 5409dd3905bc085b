// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Temporary name, then rename.
#include "serving/OutputFile.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace quire::serving {

OutputFile::~OutputFile() {
  if (file_ && file_ != stdout)
    std::fclose(file_);
  if (file_ && !partial_.empty())
    ::unlink(partial_.c_str());
}

bool OutputFile::fail() {
  if (error_.empty())
    error_ = path_ + ": " + std::strerror(errno);
  return false;
}

/// The partial file, empty and locked. One that a killed process left is taken over; one that is still written to is not.
bool OutputFile::openPartial() {
  for (;;) {
    int descriptor = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
      return fail();
    struct stat mine, named;
    bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    // Between the two calls its writer may have finished, and given the file the name of its results.
    bool isStill = locked && ::fstat(descriptor, &mine) == 0 && ::stat(partial_.c_str(), &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
    if (isStill && ::ftruncate(descriptor, 0) == 0 && (file_ = ::fdopen(descriptor, "wb")))
      return true;
    int why = errno;
    ::close(descriptor);
    if (locked && !isStill)
      continue;
    errno = why;
    if (!locked && why == EWOULDBLOCK)
      error_ = path_ + ": another process is writing it, into '" + partial_ + "'";
    return fail();
  }
}

bool OutputFile::open(const std::string &path, Keep keep) {
  path_ = path;
  keep_ = keep;
  if (path == "-") {
    file_ = stdout;
    return true;
  }
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  bool direct = exists && !S_ISREG(info.st_mode);
  // /dev/stdout may lead to a file, and must not be replaced by one.
  char resolved[PATH_MAX];
  target_ = exists && ::realpath(path.c_str(), resolved) ? resolved : path;
  if (!direct) {
    partial_ = target_ + ".partial";
    return openPartial();
  }
  file_ = std::fopen(path.c_str(), "wb");
  return file_ || fail();
}

bool OutputFile::write(const void *data, size_t bytes) { return std::fwrite(data, 1, bytes, file_) == bytes || fail(); }

bool OutputFile::flush() {
  if (std::fflush(file_) != 0)
    return fail();
  flushed_ = ::ftello(file_);
  return true;
}

/// After an error: leaves what the last flush handed over.
bool OutputFile::cutToFlushed() {
  __fpurge(file_);
  return ::ftruncate(::fileno(file_), flushed_) == 0;
}

bool OutputFile::rewrite(uint64_t offset, const void *data, size_t bytes) {
  if (::fseeko(file_, static_cast<off_t>(offset), SEEK_SET) != 0 || !write(data, bytes))
    return fail();
  return ::fseeko(file_, 0, SEEK_END) == 0 || fail();
}

bool OutputFile::finish() {
  std::FILE *file = file_;
  bool written = error_.empty() && flush();
  bool kept = !written && keep_ == Keep::Flushed && flushed_ > 0 && !partial_.empty() && cutToFlushed();
  file_ = nullptr;
  if (file != stdout && std::fclose(file) != 0 && written)
    written = fail();
  if (!written && !kept) {
    if (!partial_.empty())
      ::unlink(partial_.c_str());
    return false;
  }
  if (!partial_.empty() && ::rename(partial_.c_str(), target_.c_str()) != 0)
    return fail();
  return written;
}

} // namespace quire::serving
