// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any damage to the file of a slow tier: never a crash, and what is listed is what was stored.
#include "tier/FileTier.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace quire::runtime;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static constexpr uint32_t slots = 4;
static constexpr uint64_t pageBytes = 4032; // with its header one sector: small inputs reach everything

static const std::string &path() {
  static const std::string name = [] {
    std::string made = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/quire-fuzz-XXXXXX");
    int descriptor = ::mkstemp(made.data());
    require(descriptor >= 0);
    ::close(descriptor);
    std::atexit([] { ::unlink(path().c_str()); });
    return made;
  }();
  return name;
}

/// Of slot 0 to 2 in the undamaged file; 3 has none.
static void fillPage(uint32_t slot, char *page) { std::memset(page, static_cast<int>('a' + slot), pageBytes); }
static uint64_t tagOf(uint32_t slot) { return 0x1000 + slot; }

static std::vector<char> undamaged(const FileGeometry &geometry, bool wholePage) {
  std::vector<char> file(geometry.fileBytes());
  encodeFileHeader(geometry, file.data());
  for (uint32_t slot = 0; slot < 3; ++slot) {
    char *place = file.data() + geometry.slotOffset(slot), *page = place + geometry.pageOffset();
    fillPage(slot, page);
    SlotHeader header = sealSlot(geometry, slot, tagOf(slot), page, wholePage);
    std::memcpy(place, &header, sizeof(header));
  }
  return file;
}

/// Pieces of {offset, length, bytes} over the file, or a shorter file.
static void damage(std::vector<char> &file, const uint8_t *data, size_t size) {
  while (size >= 3) {
    size_t offset = static_cast<size_t>(data[0] | data[1] << 8) % file.size(), length = data[2];
    data += 3;
    size -= 3;
    if (length == 255) {
      file.resize(std::max<size_t>(1, offset));
      continue;
    }
    length = std::min({length, size, file.size() - offset});
    std::memcpy(file.data() + offset, data, length);
    data += length;
    size -= length;
  }
}

static void writeAll(const std::vector<char> &bytes) {
  int descriptor = ::open(path().c_str(), O_WRONLY | O_TRUNC);
  require(descriptor >= 0 && ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(descriptor);
}

/// Opens, lists and loads. `known`: the file is an undamaged one with damage, so that
/// what is listed must be what it had.
static void openAndLoad(const FileTierOptions &options, bool known) {
  Status status;
  std::unique_ptr<FileTier> tier = FileTier::open(options, status);
  if (!tier) {
    require(!status.ok() && !status.text().empty());
    return;
  }
  std::vector<FileTier::Entry> entries;
  require(tier->recover(entries) == 0 && entries.size() <= slots);
  std::vector<char> page(pageBytes), expected(pageBytes);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    auto found = std::find_if(entries.begin(), entries.end(), [&](const FileTier::Entry &entry) { return entry.slot == slot; });
    Transfer transfer, *one = &transfer;
    transfer.slot = slot;
    transfer.page = page.data();
    transfer.tag = found == entries.end() ? tagOf(slot) : found->tag;
    tier->run(&one, 1);
    require(transfer.status.code() == (found == entries.end() ? QUIRE_PAGE_LOST : QUIRE_OK));
    if (found == entries.end() || !known)
      continue;
    fillPage(slot, expected.data());
    require(slot < 3 && found->tag == tagOf(slot) && page == expected);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FileTierOptions options;
  options.path = path();
  options.slots = slots;
  options.pageBytes = pageBytes;
  options.mode = SlotFile::Mode::Existing;
  options.io = FileIoKind::Pread;
  options.depth = 2;
  bool raw = size && data[0] & 1, wholePage = !(size && data[0] & 2);
  std::vector<char> file;
  if (raw) {
    file.assign(data, data + size);
  } else {
    file = undamaged({pageBytes, 0, slots}, wholePage);
    if (size)
      damage(file, data + 1, size - 1);
  }
  writeAll(file);
  openAndLoad(options, !raw);
  return 0;
}
