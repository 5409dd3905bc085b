// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A slow tier in one file, which survives the process and proves every page that it returns.
#ifndef QUIRE_RUNTIME_TIER_FILETIER_H
#define QUIRE_RUNTIME_TIER_FILETIER_H

#include "core/MappedMemory.h"
#include "tier/FileFormat.h"
#include "tier/FileIo.h"
#include "tier/SlotFile.h"
#include "tier/StoredSlots.h"
#include "tier/Tier.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace quire::runtime {

struct FileTierOptions {
  std::string path;
  uint32_t slots = 0;
  uint64_t pageBytes = 0;
  uint64_t geometry = 0; // names what pages mean; content of another geometry is refused
  SlotFile::Mode mode = SlotFile::Mode::Create;
  bool keep = false;     // the file stays at the end
  bool checksum = true;  // of whole pages; else of headers only
  bool direct = true;    // O_DIRECT where the file system takes it
  FileIoKind io = FileIoKind::Auto;
  unsigned depth = 32;   // slots under way at once
  /// For tests: replaces the device.
  std::function<std::unique_ptr<FileIo>(std::unique_ptr<FileIo>)> wrapIo;
};

/// Repeats what the device may cure by itself: short transfers go on where they
/// ended; EIO, EAGAIN and EINTR are repeated `maxAttempts` times in a row, then the
/// transfer fails with QUIRE_IO_ERROR. A load that fails so leaves the slot as it
/// was. One that finds a page other than asked for, or not as it was written, fails
/// with QUIRE_PAGE_LOST, and the slot's content is never returned after that; a new
/// store makes the slot good again.
///
/// After the end of the process at any moment, each slot holds a whole page or
/// none: with checksums since a mixture does not match, without them since the
/// first sector, which has the header, is zeroed before the rest is overwritten and
/// written last. Nothing is flushed to the device, so after a failure of the
/// system only checksums tell.
class FileTier final : public Tier, public StoredSlots {
public:
  static constexpr int maxAttempts = 4;

  struct Entry {
    uint32_t slot;
    uint64_t tag;
  };

  /// Null with a status, for which see SlotFile::open and createFileIo.
  static std::unique_ptr<FileTier> open(const FileTierOptions &options, Status &status);

  /// Beside what TierSlots takes.
  static constexpr uint64_t tableBytesPerSlot() { return sizeof(Held); }

  void run(Transfer *const *transfers, size_t count) override;

  /// Before the first transfer: reads the whole file and lists what is whole, by
  /// slot. Gives the number of slots that could not be read; they stay as they are.
  /// slots() knows nothing of content: the owner takes the listed ones from it.
  uint32_t recover(std::vector<Entry> &out);

  uint64_t slotBytes() const { return geometry_.slotBytes(); }
  bool direct() const { return direct_; }
  /// "uring" or "pread".
  const char *ioName() const { return io_->name(); }
  /// Any thread. Requests that were repeated, and slots whose content was refused.
  uint64_t repeated() const { return repeated_.load(std::memory_order_relaxed); }
  uint64_t quarantined() const { return quarantined_.load(std::memory_order_relaxed); }

  uint64_t storedHeaderBytes() const override { return sizeof(SlotHeader); }
  uint64_t storedBytes() const override { return slotBytes(); }
  Status readStored(uint32_t slot, char *out) override;
  Status writeStored(uint32_t slot, const char *bytes) override;

private:
  enum class Held : uint8_t {
    Zeros,   // nothing, and all bytes are zero
    Content, // perhaps; loads find out
    Lost     // nothing that may be returned
  };

  /// One slot under way: its header, and its page either behind that or where the
  /// owner has it.
  struct Work {
    Transfer *transfer = nullptr; // null: recover
    uint32_t slot = 0;
    char *staging = nullptr;      // slotBytes, aligned to sectors
    char *page = nullptr;         // null: the page lies in `staging`
    bool zeroSector = false;      // writes zeros instead
    bool punched = true;          // no: must be zeroed by writing
    uint64_t begin = 0, end = 0;  // bytes of the slot to move; none: idle
    int attempts = 0;
    Status status;
    IoRequest request;
  };

  FileTier(const FileTierOptions &options, const FileGeometry &geometry);
  Status start(const FileTierOptions &options);

  void runSome(Transfer *const *transfers, size_t count);
  void prepare(Work &work, Transfer &transfer);
  void zeroFirstSectors(size_t count);
  void moveBodies(size_t count);
  void finishWriting(size_t count);
  void settle(Work &work);
  Status settleLoad(Work &work);

  void aim(Work &work, IoRequest::Kind kind, uint64_t begin, uint64_t end);
  void perform(size_t count);
  void gather(Work &work) const;
  void conclude(Work &work);
  Status explain(const Work &work) const;
  void invalidate(Work &work);
  uint32_t recoverSome(uint32_t first, uint32_t count, std::vector<Entry> &out);
  Status moveStored(uint32_t slot, IoRequest::Kind kind);

  FileGeometry geometry_;
  bool checksum_;
  bool direct_ = false;
  bool punches_ = true; // until the file system says no
  SlotFile file_;
  std::unique_ptr<FileIo> io_; // ends before the file
  MappedMemory staging_; // of the works, and a sector of zeros
  std::vector<Work> works_;
  std::vector<IoRequest *> requests_; // of one round
  std::vector<Work *> active_;        // their works
  std::vector<Held> held_; // by slot
  std::atomic<uint64_t> repeated_{0};
  std::atomic<uint64_t> quarantined_{0};
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_FILETIER_H
