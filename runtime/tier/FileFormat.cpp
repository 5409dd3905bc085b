// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sealing and checking of headers.
#include "tier/FileFormat.h"

#include "core/Checksum.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace quire::runtime {

static constexpr char fileMagic[8] = {'Q', 'U', 'I', 'R', 'E', 'K', 'V', '\n'};
static constexpr uint32_t slotMagic = 0x51a7c0de;

uint64_t FileGeometry::slotBytes() const {
  return (sizeof(SlotHeader) + pageBytes + sectorBytes - 1) / sectorBytes * sectorBytes;
}

bool FileGeometry::valid() const {
  constexpr uint64_t largest = uint64_t(1) << 40;
  uint64_t bytes;
  return pageBytes > 0 && pageBytes <= largest && slots > 0 &&
         !__builtin_mul_overflow(slotBytes(), uint64_t(slots), &bytes) && bytes <= INT64_MAX - sectorBytes;
}

void encodeFileHeader(const FileGeometry &geometry, char *sector) {
  FileHeader header = {};
  std::memcpy(header.magic, fileMagic, sizeof(fileMagic));
  header.version = fileFormatVersion;
  header.slots = geometry.slots;
  header.pageBytes = geometry.pageBytes;
  header.geometry = geometry.geometry;
  header.checksum = checksumOf(&header, sizeof(header));
  std::memset(sector, 0, sectorBytes);
  std::memcpy(sector, &header, sizeof(header));
}

Status decodeFileHeader(const std::string &path, const char *sector, FileGeometry &out) {
  FileHeader header;
  std::memcpy(&header, sector, sizeof(header));
  if (std::memcmp(header.magic, fileMagic, sizeof(fileMagic)) != 0)
    return failure(QUIRE_INVALID_ARGUMENT, "%s: expected a file of a slow tier or none, but got another file", path.c_str());
  if (header.version != fileFormatVersion)
    return failure(QUIRE_WRONG_VERSION, "%s: expected version %" PRIu32 " of the slow tier's file, but got %" PRIu32, path.c_str(), fileFormatVersion, header.version);
  uint64_t checksum = header.checksum;
  header.checksum = 0;
  FileGeometry geometry = {header.pageBytes, header.geometry, header.slots};
  if (checksumOf(&header, sizeof(header)) != checksum || !geometry.valid())
    return failure(QUIRE_BAD_ARTEFACT, "%s: the header of the slow tier's file is damaged", path.c_str());
  out = geometry;
  return success();
}

/// With 0 as the header's checksum.
static uint64_t checksumOfSlot(const FileGeometry &geometry, const SlotHeader &header, const char *page) {
  uint64_t offset = geometry.pageOffset();
  uint64_t inFirstSector = offset < sectorBytes ? std::min(geometry.pageBytes, sectorBytes - offset) : 0;
  return checksumOf(page, header.flags & SlotHeader::WholePage ? geometry.pageBytes : inFirstSector,
                    checksumOf(&header, sizeof(header)));
}

SlotHeader sealSlot(const FileGeometry &geometry, uint32_t slot, uint64_t tag, const char *page, bool wholePage) {
  SlotHeader header = {};
  header.magic = slotMagic;
  header.version = fileFormatVersion;
  header.flags = wholePage ? SlotHeader::WholePage : 0;
  header.geometry = geometry.geometry;
  header.tag = tag;
  header.length = geometry.pageBytes;
  header.slot = slot;
  header.checksum = checksumOfSlot(geometry, header, page);
  return header;
}

Status checkSlot(const FileGeometry &geometry, uint32_t slot, const uint64_t *tag, const SlotHeader &header,
                 const char *page) {
  auto lost = [slot](const char *what, uint64_t expected, uint64_t got) {
    return failure(QUIRE_PAGE_LOST, "slot %" PRIu32 ": expected %s %" PRIx64 ", but got %" PRIx64, slot, what, expected, got);
  };
  if (header.magic != slotMagic)
    return lost("mark", slotMagic, header.magic);
  if (header.version != fileFormatVersion)
    return lost("version", fileFormatVersion, header.version);
  if (header.geometry != geometry.geometry)
    return lost("geometry", geometry.geometry, header.geometry);
  if (header.slot != slot)
    return lost("the content of slot", slot, header.slot);
  if (header.length != geometry.pageBytes)
    return lost("length", geometry.pageBytes, header.length);
  if (tag && header.tag != *tag)
    return lost("tag", *tag, header.tag);
  SlotHeader open = header;
  open.checksum = 0;
  uint64_t checksum = checksumOfSlot(geometry, open, page);
  return checksum == header.checksum ? success() : lost("checksum", header.checksum, checksum);
}

} // namespace quire::runtime
