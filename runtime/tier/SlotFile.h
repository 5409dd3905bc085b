// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file of a file tier: created or opened, recognised, and locked against a second writer.
#ifndef QUIRE_RUNTIME_TIER_SLOTFILE_H
#define QUIRE_RUNTIME_TIER_SLOTFILE_H

#include "tier/FileFormat.h"

#include <string>

namespace quire::runtime {

class SlotFile {
public:
  enum class Mode : uint8_t {
    /// A new file, or one that an earlier run left: its content is discarded.
    Create,
    /// A file of the same geometry, with its content.
    Existing
  };

  SlotFile() = default;
  SlotFile(const SlotFile &) = delete;
  SlotFile &operator=(const SlotFile &) = delete;
  /// Removes the file unless keep() was called or the path names another one by now; the lock ends with it.
  ~SlotFile();

  /// `geometry` is valid. Refuses, and leaves as it was: what is no regular file or
  /// no file of a slow tier (QUIRE_INVALID_ARGUMENT), one that somebody uses
  /// (QUIRE_IO_ERROR), and in mode Existing one of another geometry
  /// (QUIRE_INVALID_ARGUMENT). An empty file is nobody's and may be used. The lock is
  /// advisory (flock) and ends with the process.
  Status open(const std::string &path, Mode mode, const FileGeometry &geometry);

  /// Switches to direct I/O. False: the file system does not take it.
  bool setDirect();

  void keep() { remove_ = false; }
  int descriptor() const { return descriptor_; }

private:
  Status openOnce(Mode mode, bool &again);
  Status lock(bool &again);
  bool isNamed() const;
  Status initialise(const FileGeometry &geometry);
  Status adopt(Mode mode, const FileGeometry &geometry, uint64_t size);
  Status system(quire_status code, const char *what) const;

  std::string path_;
  int descriptor_ = -1;
  bool created_ = false; // here, by this object
  bool remove_ = false;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_SLOTFILE_H
