// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory from the system: zeroed, given back on destruction; private, or a file in memory for other processes.
#ifndef QUIRE_RUNTIME_CORE_MAPPEDMEMORY_H
#define QUIRE_RUNTIME_CORE_MAPPEDMEMORY_H

#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace quire::runtime {

/// Bytes of memory that this process may have, of the machine's and of its control groups' the least; UINT64_MAX if unknown. `root` is put
/// before the paths of control groups.
uint64_t physicalMemory(const std::string &root = "");

/// Bytes that the process can take now without making the system swap, or reaching the limit of a control group; UINT64_MAX if unknown. `root` is
/// put before all paths.
uint64_t availableMemory(const std::string &root = "");

class MappedMemory {
public:
  enum class Pages {
    /// 4 KiB pages: for tables of which a small part is used.
    Small,
    /// Asks for 2 MiB pages and aligns to them: for data that is streamed.
    Huge,
    /// 4 KiB pages, whatever the system's habit is: touching one of them commits no other.
    Single,
  };

  MappedMemory() = default;
  MappedMemory(MappedMemory &&other) noexcept;
  MappedMemory &operator=(MappedMemory &&other) noexcept;
  ~MappedMemory();

  /// Of the system: what it commits and takes back.
  static size_t systemPage();
  static constexpr size_t hugePage = size_t(2) << 20;

  /// Replaces the contents by `bytes` zero bytes. 0 bytes give a valid, empty
  /// memory with a non-null address.
  Status map(size_t bytes, Pages pages);

  /// The same as a file in memory that other processes can map, but not resize
  /// or write: this mapping is the only writable one there can be.
  Status mapShared(size_t bytes);

  bool isShared() const { return file_ >= 0; }

  /// Opens the file of mapShared() for reading; the caller closes it.
  Status openShared(int &descriptor) const;

  /// Commits all pages now, with several threads where there is much, so that no
  /// step waits for one. Without it, pages are committed on first touch.
  Status populate() { return populate(0, mapped_); }
  /// Of a part of it, in whole pages of the system.
  Status populate(size_t offset, size_t bytes);

  /// Gives the system's pages inside of these bytes back: what they held is lost. They
  /// read as zeros, and are committed again on first touch or by commit(). False: the
  /// system keeps them, as it does with memory that is locked.
  bool giveBack(size_t offset, size_t bytes);
  /// So many of them.
  static size_t wholePages(size_t offset, size_t bytes);
  Status commit(size_t offset, size_t bytes);

  char *data() const { return data_; }
  size_t size() const { return size_; }

private:
  void unmap();

  char *data_ = nullptr;
  size_t size_ = 0;   // as asked for
  size_t mapped_ = 0; // from data_, in whole pages
  int file_ = -1;     // of mapShared
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_MAPPEDMEMORY_H
