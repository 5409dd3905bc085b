// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Temporary name, then rename.
#include "serving/OutputFile.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

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

bool OutputFile::open(const std::string &path) {
  path_ = path;
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
  if (!direct)
    partial_ = target_ + ".partial";
  file_ = std::fopen(direct ? path.c_str() : partial_.c_str(), "wb");
  return file_ || fail();
}

bool OutputFile::write(const void *data, size_t bytes) { return std::fwrite(data, 1, bytes, file_) == bytes || fail(); }

bool OutputFile::flush() { return std::fflush(file_) == 0 || fail(); }

bool OutputFile::rewrite(uint64_t offset, const void *data, size_t bytes) {
  if (::fseeko(file_, static_cast<off_t>(offset), SEEK_SET) != 0 || !write(data, bytes))
    return fail();
  return ::fseeko(file_, 0, SEEK_END) == 0 || fail();
}

bool OutputFile::finish() {
  std::FILE *file = file_;
  bool written = flush() && error_.empty();
  file_ = nullptr;
  if (file != stdout && std::fclose(file) != 0 && written)
    written = fail();
  if (!written) {
    if (!partial_.empty())
      ::unlink(partial_.c_str());
    return false;
  }
  if (!partial_.empty() && ::rename(partial_.c_str(), target_.c_str()) != 0)
    return fail();
  return true;
}

} // namespace quire::serving
