// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layout of a file tier's file: a first sector that names it, then equally large slots of header and page.
#ifndef QUIRE_RUNTIME_TIER_FILEFORMAT_H
#define QUIRE_RUNTIME_TIER_FILEFORMAT_H

#include "core/Status.h"

#include <cstdint>
#include <string>

namespace quire::runtime {

/// Unit of the layout, and alignment of direct I/O. Numbers are in the machine's
/// byte order: files do not travel.
constexpr uint64_t sectorBytes = 4096;

constexpr uint32_t fileFormatVersion = 1;

struct FileGeometry {
  uint64_t pageBytes = 0;
  uint64_t geometry = 0; // names what pages mean, such as a checksum of the model's shape
  uint32_t slots = 0;

  /// Header and page, padded to whole sectors. The page ends where the slot ends.
  uint64_t slotBytes() const;
  uint64_t pageOffset() const { return slotBytes() - pageBytes; }
  uint64_t slotOffset(uint32_t slot) const { return sectorBytes + slot * slotBytes(); }
  uint64_t fileBytes() const { return sectorBytes + slots * slotBytes(); }
  /// Sizes that the functions above compute without overflow.
  bool valid() const;
  bool operator==(const FileGeometry &other) const {
    return pageBytes == other.pageBytes && geometry == other.geometry && slots == other.slots;
  }
};

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t slots;
  uint64_t pageBytes;
  uint64_t geometry;
  uint64_t checksum; // XXH3 of the header with 0 here
};

struct SlotHeader {
  enum Flags : uint16_t { WholePage = 1 }; // the checksum covers all of the page, not only the first sector
  uint32_t magic;
  uint16_t version;
  uint16_t flags;
  uint64_t geometry;
  uint64_t tag;
  uint64_t length;   // of the page
  uint64_t checksum; // XXH3 of the page, its seed XXH3 of the header with 0 here
  uint32_t slot;
  uint32_t zero[5];
};
static_assert(sizeof(FileHeader) == 40 && sizeof(SlotHeader) == 64, "headers have no holes");

/// `sector`: sectorBytes, all of them written.
void encodeFileHeader(const FileGeometry &geometry, char *sector);

/// QUIRE_INVALID_ARGUMENT: not such a file at all; QUIRE_WRONG_VERSION;
/// QUIRE_BAD_ARTEFACT: damaged. `path` is for the text.
Status decodeFileHeader(const std::string &path, const char *sector, FileGeometry &out);

/// A header that fits `page`.
SlotHeader sealSlot(const FileGeometry &geometry, uint32_t slot, uint64_t tag, const char *page, bool wholePage);

/// QUIRE_PAGE_LOST unless header and page are whole and belong to this slot.
/// `tag`: what the content is expected to be; null: anything.
Status checkSlot(const FileGeometry &geometry, uint32_t slot, const uint64_t *tag, const SlotHeader &header,
                 const char *page);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_FILEFORMAT_H
