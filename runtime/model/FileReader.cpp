// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading in pieces, so that a piece is hashed while it is in cache and no page of the file is mapped.
#include "model/FileReader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire::runtime {

static constexpr uint64_t pieceBytes = uint64_t(1) << 20;

FileReader::~FileReader() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Status FileReader::open(const std::string &path) {
  path_ = path;
  // Non-blocking: opening a pipe must not wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    return failure(QUIRE_IO_ERROR, "%s: %s", path.c_str(), std::strerror(errno));
  struct stat info;
  if (::fstat(descriptor_, &info) != 0)
    return failure(QUIRE_IO_ERROR, "%s: %s", path.c_str(), std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return failure(QUIRE_IO_ERROR, "%s: not a regular file", path.c_str());
  size_ = static_cast<uint64_t>(info.st_size);
  return success();
}

Status FileReader::readPiece(char *into, uint64_t offset, uint64_t bytes) {
  while (bytes > 0) {
    ssize_t got = ::pread(descriptor_, into, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return failure(QUIRE_IO_ERROR, "%s: %s", path_.c_str(), std::strerror(errno));
    if (got == 0)
      return failure(QUIRE_IO_ERROR, "%s: file became shorter while it was read", path_.c_str());
    into += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return success();
}

Status FileReader::read(char *into) { return readPiece(into, 0, size_); }

Status FileReader::readAndHash(char *into, uint64_t &hash) {
  std::vector<char> piece(into ? 0 : static_cast<size_t>(std::min(size_, pieceBytes)));
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (uint64_t offset = 0; offset < size_; offset += pieceBytes) {
    uint64_t bytes = std::min(pieceBytes, size_ - offset);
    char *place = into ? into + offset : piece.data();
    QUIRE_TRY(readPiece(place, offset, bytes));
    XXH3_64bits_update(&state, place, static_cast<size_t>(bytes));
  }
  hash = XXH3_64bits_digest(&state);
  return success();
}

} // namespace quire::runtime
