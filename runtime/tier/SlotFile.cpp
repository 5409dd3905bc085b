// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opening in an order that leaves no moment in which two writers hold one file.
#include "tier/SlotFile.h"

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace quire::runtime {

SlotFile::~SlotFile() {
  if (descriptor_ < 0)
    return;
  if (remove_ && isNamed())
    ::unlink(path_.c_str());
  ::close(descriptor_);
}

/// Somebody may have put another file there meanwhile, which is theirs.
bool SlotFile::isNamed() const {
  struct stat opened, named;
  return ::fstat(descriptor_, &opened) == 0 && ::lstat(path_.c_str(), &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

Status SlotFile::system(quire_status code, const char *what) const {
  return failure(code, "%s: cannot %s: %s", path_.c_str(), what, std::strerror(errno));
}

/// A process that was killed keeps its lock until the kernel has ended its transfers, for a moment after it is gone.
static bool lockSoon(int descriptor) {
  constexpr std::chrono::milliseconds patience(500), pause(2);
  auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until)
      return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

/// Locks the opened file. `again`: the path names another file by now.
Status SlotFile::lock(bool &again) {
  struct stat opened;
  if (::fstat(descriptor_, &opened) != 0)
    return system(QUIRE_IO_ERROR, "examine the file");
  if (!S_ISREG(opened.st_mode))
    return failure(QUIRE_INVALID_ARGUMENT, "%s: expected a regular file", path_.c_str());
  if (!lockSoon(descriptor_))
    return errno == EWOULDBLOCK ? failure(QUIRE_IO_ERROR, "%s: another pool uses this file as its slow tier", path_.c_str())
                                : system(QUIRE_IO_ERROR, "lock the file");
  again = !isNamed();
  return success();
}

Status SlotFile::openOnce(Mode mode, bool &again) {
  // Non-blocking: opening a pipe must not wait for its other end.
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  created_ = false;
  descriptor_ = ::open(path_.c_str(), flags);
  if (descriptor_ < 0 && errno == ENOENT && mode == Mode::Create) {
    descriptor_ = ::open(path_.c_str(), flags | O_CREAT | O_EXCL, 0600);
    created_ = descriptor_ >= 0;
    again = descriptor_ < 0 && errno == EEXIST;
    if (again)
      return success();
  }
  if (descriptor_ < 0)
    return errno == ELOOP || errno == EISDIR || errno == ENXIO ? failure(QUIRE_INVALID_ARGUMENT, "%s: expected a regular file", path_.c_str())
                                                              : system(QUIRE_IO_ERROR, "open the file");
  Status status = lock(again);
  created_ = created_ && status.ok();
  return status;
}

Status SlotFile::open(const std::string &path, Mode mode, const FileGeometry &geometry) {
  path_ = path;
  Status status;
  bool again = true;
  for (int attempt = 0; again && attempt < 16; ++attempt) {
    if (descriptor_ >= 0)
      ::close(descriptor_);
    again = false;
    status = openOnce(mode, again);
  }
  if (status.ok() && again)
    status = failure(QUIRE_IO_ERROR, "%s: somebody keeps replacing this file", path.c_str());
  struct stat info;
  if (status.ok() && ::fstat(descriptor_, &info) != 0)
    status = system(QUIRE_IO_ERROR, "examine the file");
  if (status.ok())
    status = info.st_size == 0 && mode == Mode::Create ? initialise(geometry) : adopt(mode, geometry, static_cast<uint64_t>(info.st_size));
  remove_ = status.ok() || created_;
  return status;
}

Status SlotFile::initialise(const FileGeometry &geometry) {
  char sector[sectorBytes];
  encodeFileHeader(geometry, sector);
  ssize_t written = ::pwrite(descriptor_, sector, sectorBytes, 0);
  if (written != static_cast<ssize_t>(sectorBytes)) {
    if (written >= 0)
      errno = ENOSPC;
    return system(errno == ENOSPC || errno == EDQUOT ? QUIRE_NO_SPACE : QUIRE_IO_ERROR, "write the file");
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(geometry.fileBytes())) != 0)
    return system(errno == EFBIG ? QUIRE_NO_SPACE : QUIRE_IO_ERROR, "extend the file");
  return success();
}

Status SlotFile::adopt(Mode mode, const FileGeometry &geometry, uint64_t size) {
  char sector[sectorBytes] = {};
  if (::pread(descriptor_, sector, sectorBytes, 0) < 0)
    return system(QUIRE_IO_ERROR, "read the file");
  FileGeometry found;
  Status status = decodeFileHeader(path_, sector, found);
  if (mode == Mode::Create) {
    // Of another version or damaged, but a slow tier's: the content is not wanted.
    if (status.code() == QUIRE_INVALID_ARGUMENT)
      return status;
    if (::ftruncate(descriptor_, 0) != 0)
      return system(QUIRE_IO_ERROR, "empty the file");
    return initialise(geometry);
  }
  if (!status.ok())
    return status;
  if (!(found == geometry))
    return failure(QUIRE_INVALID_ARGUMENT, "%s: expected %" PRIu32 " slots with pages of %" PRIu64 " bytes and geometry %" PRIx64 ", but got %" PRIu32 ", %" PRIu64 " and %" PRIx64, path_.c_str(), geometry.slots, geometry.pageBytes, geometry.geometry, found.slots, found.pageBytes, found.geometry);
  // What a shortened file lacks reads as slots without content.
  if (size < geometry.fileBytes() && ::ftruncate(descriptor_, static_cast<off_t>(geometry.fileBytes())) != 0)
    return system(QUIRE_IO_ERROR, "extend the file");
  return success();
}

bool SlotFile::setDirect() {
  int flags = ::fcntl(descriptor_, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor_, F_SETFL, flags | O_DIRECT) != 0)
    return false;
  // Some file systems take the flag and refuse the reads.
  std::unique_ptr<void, decltype(&std::free)> sector(::aligned_alloc(sectorBytes, sectorBytes), &std::free);
  if (sector && ::pread(descriptor_, sector.get(), sectorBytes, 0) == static_cast<ssize_t>(sectorBytes))
    return true;
  ::fcntl(descriptor_, F_SETFL, flags);
  return false;
}

} // namespace quire::runtime
