// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads whole files and computes the checksum of artefacts while doing so.
#ifndef QUIRE_RUNTIME_MODEL_FILEREADER_H
#define QUIRE_RUNTIME_MODEL_FILEREADER_H

#include "core/Status.h"

#include <cstdint>
#include <string>

namespace quire::runtime {

/// An open regular file; every failure names its path.
class FileReader {
public:
  FileReader() = default;
  FileReader(const FileReader &) = delete;
  FileReader &operator=(const FileReader &) = delete;
  ~FileReader();

  Status open(const std::string &path);
  uint64_t size() const { return size_; }

  /// Reads all size() bytes into `into`; a file that shrinks meanwhile fails.
  Status read(char *into);

  /// The same, with XXH3 (64 bits, seed 0) of the bytes. `into` may be null.
  Status readAndHash(char *into, uint64_t &hash);

private:
  Status readPiece(char *into, uint64_t offset, uint64_t bytes);

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_FILEREADER_H
