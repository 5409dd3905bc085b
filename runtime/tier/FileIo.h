// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches of reads and writes at offsets of one file: through io_uring, or one after the other.
#ifndef QUIRE_RUNTIME_TIER_FILEIO_H
#define QUIRE_RUNTIME_TIER_FILEIO_H

#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <sys/uio.h>

namespace quire::runtime {

struct IoRequest {
  enum class Kind : uint8_t { Read, Write, Punch }; // Punch: makes the range zero by giving its space back
  Kind kind = Kind::Read;
  int partCount = 0; // Punch: none
  iovec parts[2] = {};
  uint64_t offset = 0; // in the file
  uint64_t bytes = 0;  // of the parts together, or the range
  int64_t result = 0;  // bytes moved (Punch: 0), or -errno; fewer bytes than asked for are no error here
};

/// Used by one thread at a time. The file is the caller's.
class FileIo {
public:
  virtual ~FileIo() = default;
  virtual const char *name() const = 0;
  /// Runs all, in any order and together if it can, and sets their results. Returns
  /// when all have ended. Allocates nothing.
  virtual void run(IoRequest *const *requests, size_t count) = 0;
};

/// Auto: io_uring where the kernel allows it.
enum class FileIoKind : uint8_t { Auto, Uring, Pread };

/// "auto", "uring" or "pread".
bool parseFileIoKind(std::string_view text, FileIoKind &out);

/// `depth`: requests under way at once, 1 to 4096. Null with QUIRE_IO_ERROR:
/// io_uring was asked for and is not to be had.
std::unique_ptr<FileIo> createFileIo(FileIoKind kind, int descriptor, unsigned depth, Status &status);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_FILEIO_H
