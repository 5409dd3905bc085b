// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that appears under its name only when it is whole.
#ifndef QUIRE_RUNTIME_SERVING_OUTPUTFILE_H
#define QUIRE_RUNTIME_SERVING_OUTPUTFILE_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <sys/types.h>

namespace quire::serving {

/// Written as `path`.partial, renamed to `path` by finish(). What is not
/// finished is removed, unless it was opened to keep what was flushed; a second writer of the same file is refused. A link to a file stays, the file is replaced. "-" and existing files that are not regular (a
/// terminal, /dev/null) are written directly.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  ~OutputFile();

  /// What finish() leaves after a failed write: nothing, or what the last successful flush() handed over.
  enum class Keep { Whole, Flushed };

  // Each returns false on failure, with the reason in error().
  bool open(const std::string &path, Keep keep = Keep::Whole);
  bool write(const void *data, size_t bytes);
  /// Hands what is written to the system, so that others can read along.
  bool flush();
  /// Overwrites bytes written before; later writes continue at the end.
  bool rewrite(uint64_t offset, const void *data, size_t bytes);
  bool finish();

  bool isOpen() const { return file_ != nullptr; }
  const std::string &error() const { return error_; }

private:
  bool fail();
  bool openPartial();
  bool cutToFlushed();

  std::string path_;    // as given, for errors
  std::string target_;  // what partial_ becomes
  std::string partial_; // empty: written directly
  std::FILE *file_ = nullptr;
  Keep keep_ = Keep::Whole;
  off_t flushed_ = 0;
  std::string error_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_OUTPUTFILE_H
