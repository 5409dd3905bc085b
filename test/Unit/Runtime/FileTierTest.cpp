// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tier in a file: what it keeps, what it refuses, and what it does with damage.
#include "TestTier.h"
#include "ToyFolder.h"

#include "tier/FaultTier.h"
#include "tier/FileTier.h"

#include <cstddef>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace quire::runtime;
using namespace quire::test;

namespace {

class FileTierBase {
protected:
  std::string path() const { return (folder / "kv").string(); }
  FileTierOptions options(uint32_t slots = 4, uint64_t pageBytes = 4096) const {
    FileTierOptions made;
    made.path = path();
    made.slots = slots;
    made.pageBytes = pageBytes;
    made.geometry = 0xabc;
    return made;
  }
  static std::unique_ptr<FileTier> open(const FileTierOptions &options) {
    Status status;
    std::unique_ptr<FileTier> tier = FileTier::open(options, status);
    EXPECT_TRUE(status.ok()) << status.text();
    return tier;
  }
  void expectRefused(const FileTierOptions &options, quire_status code, const std::string &text) {
    Status status;
    EXPECT_EQ(FileTier::open(options, status), nullptr);
    EXPECT_EQ(status.code(), code) << status.text();
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  }
  std::vector<FileTier::Entry> recovered(FileTier &tier) {
    std::vector<FileTier::Entry> entries;
    EXPECT_EQ(tier.recover(entries), 0u);
    return entries;
  }
  TemporaryFolder folder;
};

struct Variant {
  FileIoKind io;
  bool direct;
  bool checksum;
  uint64_t pageBytes;
};

class FileVariants : public FileTierBase, public ::testing::TestWithParam<Variant> {
protected:
  FileTierOptions variant(uint32_t slots) const {
    FileTierOptions made = options(slots, GetParam().pageBytes);
    made.io = GetParam().io;
    made.direct = GetParam().direct;
    made.checksum = GetParam().checksum;
    made.depth = 3; // batches of several rounds
    return made;
  }
};

TEST_P(FileVariants, KeepsPages) {
  auto tier = open(variant(10));
  EXPECT_STREQ(tier->ioName(), GetParam().io == FileIoKind::Pread ? "pread" : "uring");
  EXPECT_FALSE(tier->direct() && !GetParam().direct);
  for (uint32_t slot = 0; slot < 10; ++slot)
    ASSERT_TRUE(store(*tier, slot, 100 + slot, slot % 2).ok());
  for (uint32_t slot = 0; slot < 10; ++slot)
    EXPECT_TRUE(load(*tier, slot, 100 + slot, slot % 3).ok());
  EXPECT_EQ(load(*tier, 3, 104).code(), QUIRE_PAGE_LOST);
  EXPECT_EQ(load(*tier, 3, 103).code(), QUIRE_PAGE_LOST) << "refused content must not come back";
  EXPECT_EQ(tier->quarantined(), 1u);
  ASSERT_TRUE(store(*tier, 3, 203).ok());
  EXPECT_TRUE(load(*tier, 3, 203).ok());
  ASSERT_TRUE(erase(*tier, 5).ok());
  EXPECT_EQ(load(*tier, 5, 105).code(), QUIRE_PAGE_LOST);
  ASSERT_TRUE(store(*tier, 5, 205).ok());
  EXPECT_TRUE(load(*tier, 5, 205).ok());
  EXPECT_EQ(load(*tier, 10, 1).code(), QUIRE_INVALID_ARGUMENT);
}

TEST_P(FileVariants, RunsMixedBatches) {
  auto tier = open(variant(20));
  std::vector<TestPage> pages;
  std::vector<Transfer> transfers;
  std::vector<Transfer *> pointers;
  for (uint32_t slot = 0; slot < 10; ++slot)
    ASSERT_TRUE(store(*tier, slot, slot).ok());
  for (uint32_t i = 0; i < 20; ++i) {
    pages.emplace_back(GetParam().pageBytes, i % 4 != 3);
    pages.back().fill(i);
  }
  for (uint32_t i = 0; i < 20; ++i)
    transfers.push_back(i >= 10 ? transferOf(Transfer::Kind::Store, i, pages[i].data(), i)
                        : i % 2 ? transferOf(Transfer::Kind::Load, i, pages[i].data(), i)
                                : transferOf(Transfer::Kind::Erase, i, nullptr, 0));
  for (uint32_t i = 0; i < 20; ++i)
    pointers.push_back(&transfers[i * 7 % 20]);
  tier->run(pointers.data(), pointers.size());
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(transfers[i].status.ok()) << i << transfers[i].status.text();
    EXPECT_TRUE(pages[i].holds(i));
    EXPECT_EQ(load(*tier, i, i).ok(), i >= 10 || i % 2) << i;
  }
}

TEST_P(FileVariants, ErasedBytesAreGone) {
  auto tier = open(variant(6));
  std::string canary = "a canary of 32 bytes, never else";
  for (uint32_t slot = 0; slot < 6; ++slot) {
    TestPage page(GetParam().pageBytes);
    std::memcpy(page.data() + (GetParam().pageBytes - canary.size()) * slot / 5, canary.data(), canary.size());
    ASSERT_TRUE(runOne(*tier, transferOf(Transfer::Kind::Store, slot, page.data(), 0x1122334455667788)).ok());
  }
  EXPECT_NE(readFile(path()).find(canary), std::string::npos);
  for (uint32_t slot = 0; slot < 6; ++slot)
    ASSERT_TRUE(erase(*tier, slot).ok());
  std::string left = readFile(path());
  EXPECT_EQ(left.find(canary), std::string::npos);
  EXPECT_EQ(left.find_first_not_of('\0', sectorBytes), std::string::npos) << "all of the slots must be zero";
}

TEST_P(FileVariants, ComesBack) {
  FileTierOptions made = variant(9);
  made.keep = true;
  {
    auto tier = open(made);
    for (uint32_t slot : {1u, 2u, 4u, 7u})
      ASSERT_TRUE(store(*tier, slot, 1000 + slot).ok());
    ASSERT_TRUE(erase(*tier, 2).ok());
  }
  made.mode = SlotFile::Mode::Existing;
  {
    auto tier = open(made);
    std::vector<FileTier::Entry> entries = recovered(*tier);
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].slot, 1u);
    EXPECT_EQ(entries[1].slot, 4u);
    EXPECT_EQ(entries[2].slot, 7u);
    for (const FileTier::Entry &entry : entries) {
      EXPECT_EQ(entry.tag, 1000 + entry.slot);
      EXPECT_TRUE(load(*tier, entry.slot, entry.tag).ok());
    }
    EXPECT_EQ(load(*tier, 2, 1002).code(), QUIRE_PAGE_LOST);
    EXPECT_EQ(tier->quarantined(), 0u);
  }
  made.mode = SlotFile::Mode::Create; // starts anew
  made.keep = false;
  {
    auto tier = open(made);
    EXPECT_EQ(readFile(path()).find_first_not_of('\0', sectorBytes), std::string::npos);
    EXPECT_EQ(load(*tier, 1, 1001).code(), QUIRE_PAGE_LOST);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (FileIoKind io : {FileIoKind::Uring, FileIoKind::Pread})
    for (bool direct : {true, false})
      for (bool checksum : {true, false})
        for (uint64_t pageBytes : {100, 4032, 4096, 5000, 65536})
          all.push_back({io, direct, checksum, pageBytes});
  return all;
}

/// The kernel may forbid io_uring; then the fallback alone is tested.
bool uringAllowed() {
  Status status;
  return createFileIo(FileIoKind::Uring, -1, 1, status) != nullptr;
}

std::vector<Variant> possibleVariants() {
  std::vector<Variant> all = variants();
  if (!uringAllowed())
    all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FileVariants, ::testing::ValuesIn(possibleVariants()), [](const auto &info) {
  const Variant &v = info.param;
  return std::string(v.io == FileIoKind::Uring ? "uring" : "pread") + (v.direct ? "Direct" : "Buffered") + (v.checksum ? "Checked" : "Unchecked") + std::to_string(v.pageBytes);
});

class FileTierTest : public FileTierBase, public ::testing::Test {
protected:
  /// One byte of the file.
  void flip(uint64_t offset, char mask = 1) {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ mask));
  }
};

TEST_F(FileTierTest, DirectWhereTheFileSystemTakesIt) {
  // The folder for tests may be on any file system; this only holds the two together.
  FileTierOptions made = options();
  auto tier = open(made);
  int descriptor = ::open(path().c_str(), O_RDWR | O_DIRECT);
  EXPECT_EQ(tier->direct(), descriptor >= 0);
  if (descriptor >= 0)
    ::close(descriptor);
}

TEST_F(FileTierTest, EveryFlippedHeaderBitIsFound) {
  for (bool checksum : {true, false}) {
    FileTierOptions made = options(3, 8192);
    made.checksum = checksum;
    auto tier = open(made);
    for (uint32_t slot : {0u, 2u})
      ASSERT_TRUE(store(*tier, slot, 30 + slot).ok());
    for (uint64_t byte = 0; byte < sizeof(SlotHeader); ++byte)
      for (int bit = 0; bit < 8; ++bit) {
        ASSERT_TRUE(store(*tier, 1, 5).ok());
        flip(4096 + tier->slotBytes() + byte, static_cast<char>(1 << bit));
        Status status = load(*tier, 1, 5);
        ASSERT_EQ(status.code(), QUIRE_PAGE_LOST) << byte << " " << status.text();
        // The stored bytes are put right: what was refused stays refused.
        flip(4096 + tier->slotBytes() + byte, static_cast<char>(1 << bit));
        ASSERT_EQ(load(*tier, 1, 5).code(), QUIRE_PAGE_LOST);
      }
    EXPECT_TRUE(load(*tier, 0, 30).ok()) << "another slot is not concerned";
    EXPECT_TRUE(load(*tier, 2, 32).ok());
  }
}

TEST_F(FileTierTest, MismatchNamesTheField) {
  auto tier = open(options(2, 4096));
  struct Case {
    uint64_t offset;
    const char *text;
  };
  for (const Case &c : {Case{offsetof(SlotHeader, magic), "expected mark"}, Case{offsetof(SlotHeader, version), "expected version 1, but got 0"},
                        Case{offsetof(SlotHeader, geometry), "expected geometry abc, but got abd"}, Case{offsetof(SlotHeader, tag), "expected tag 5, but got 4"},
                        Case{offsetof(SlotHeader, length), "expected length 1000, but got 1001"}, Case{offsetof(SlotHeader, slot), "expected the content of slot 0, but got 1"},
                        Case{offsetof(SlotHeader, checksum), "expected checksum"}, Case{4096 + 77, "expected checksum"}}) {
    ASSERT_TRUE(store(*tier, 0, 5).ok());
    flip(4096 + c.offset);
    EXPECT_NE(load(*tier, 0, 5).text().find(c.text), std::string::npos) << c.text;
  }
}

TEST_F(FileTierTest, PageDamageIsFoundWithChecksumsOnly) {
  FileTierOptions made = options(2, 8192);
  {
    auto tier = open(made);
    for (uint64_t at = 4096; at < tier->slotBytes(); at += 511) {
      ASSERT_TRUE(store(*tier, 0, 5).ok());
      flip(4096 + at);
      ASSERT_EQ(load(*tier, 0, 5).code(), QUIRE_PAGE_LOST) << at;
    }
  }
  made.checksum = false;
  auto tier = open(made);
  ASSERT_TRUE(store(*tier, 0, 5).ok());
  flip(4096 + 4096 + 10);
  EXPECT_EQ(load(*tier, 0, 5).code(), QUIRE_INVARIANT_BROKEN) << "who switches checksums off gets what the device gives";
}

TEST_F(FileTierTest, SwappedSlotsAreLost) {
  auto tier = open(options());
  for (uint32_t slot = 0; slot < 4; ++slot)
    ASSERT_TRUE(store(*tier, slot, 7).ok()); // the same tag, so that only the slot tells
  std::vector<char> one(tier->storedBytes()), two(tier->storedBytes());
  ASSERT_TRUE(tier->readStored(1, one.data()).ok());
  ASSERT_TRUE(tier->readStored(2, two.data()).ok());
  ASSERT_TRUE(tier->writeStored(1, two.data()).ok());
  ASSERT_TRUE(tier->writeStored(2, one.data()).ok());
  EXPECT_TRUE(load(*tier, 0, 7).ok());
  EXPECT_EQ(load(*tier, 1, 7).code(), QUIRE_PAGE_LOST);
  EXPECT_EQ(load(*tier, 2, 7).code(), QUIRE_PAGE_LOST);
  EXPECT_TRUE(load(*tier, 3, 7).ok());
}

TEST_F(FileTierTest, TruncatedFileLosesItsEnd) {
  for (bool direct : {true, false})
    for (uint64_t cut : {uint64_t(1), uint64_t(5000), uint64_t(8192), uint64_t(20000)}) {
      FileTierOptions made = options();
      made.direct = direct;
      made.keep = true;
      {
        auto tier = open(made);
        for (uint32_t slot = 0; slot < 4; ++slot)
          ASSERT_TRUE(store(*tier, slot, slot).ok());
        uint64_t size = std::filesystem::file_size(path());
        std::filesystem::resize_file(path(), size - cut);
        uint32_t whole = static_cast<uint32_t>((size - cut - 4096) / tier->slotBytes());
        for (uint32_t slot = 0; slot < 4; ++slot)
          EXPECT_EQ(load(*tier, slot, slot).code(), slot < whole ? QUIRE_OK : QUIRE_PAGE_LOST) << cut << " " << slot;
        EXPECT_TRUE(store(*tier, 3, 50).ok());
        EXPECT_TRUE(load(*tier, 3, 50).ok());
        std::filesystem::resize_file(path(), size - cut);
      }
      made.mode = SlotFile::Mode::Existing;
      auto tier = open(made);
      EXPECT_EQ(recovered(*tier).size(), (4096 + 4 * tier->slotBytes() - cut - 4096) / tier->slotBytes());
      EXPECT_EQ(std::filesystem::file_size(path()), 4096 + 4 * tier->slotBytes());
      std::filesystem::remove(path());
    }
}

TEST_F(FileTierTest, ForeignFilesStayAsTheyAre) {
  for (const std::string &text : {std::string("x"), std::string(100000, 'y'), std::string("QUIREKV") + std::string(9000, '\0')}) {
    writeFile(path(), text);
    for (SlotFile::Mode mode : {SlotFile::Mode::Create, SlotFile::Mode::Existing}) {
      FileTierOptions made = options();
      made.mode = mode;
      expectRefused(made, QUIRE_INVALID_ARGUMENT, path() + ": expected a file of a slow tier or none, but got another file");
      EXPECT_EQ(readFile(path()), text);
    }
  }
}

/// Somebody who moves a file of their own to the path of a slow tier finds it there when the pool has ended.
TEST_F(FileTierTest, AFileThatTookItsPlaceStays) {
  for (const char *content : {"precious", ""}) {
    auto tier = open(options());
    ASSERT_TRUE(store(*tier, 0, 1).ok());
    writeFile(folder / "other", content);
    std::filesystem::rename(folder / "other", path());
    EXPECT_TRUE(load(*tier, 0, 1).ok()) << "the tier has its own file still";
    tier.reset();
    ASSERT_TRUE(std::filesystem::exists(path()));
    EXPECT_EQ(readFile(path()), content);
    std::filesystem::remove(path());
  }
  auto tier = open(options());
  std::filesystem::remove(path());
  std::filesystem::create_symlink(folder / "none", path());
  tier.reset();
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
}

TEST_F(FileTierTest, OnlyRegularFiles) {
  std::filesystem::create_directory(folder / "kv");
  expectRefused(options(), QUIRE_INVALID_ARGUMENT, "expected a regular file");
  std::filesystem::remove(folder / "kv");
  writeFile(folder / "target", "");
  std::filesystem::create_symlink(folder / "target", folder / "kv");
  expectRefused(options(), QUIRE_INVALID_ARGUMENT, "expected a regular file");
  std::filesystem::remove(folder / "kv");
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expectRefused(options(), QUIRE_INVALID_ARGUMENT, "expected a regular file");
  FileTierOptions made = options();
  made.path = (folder / "none" / "kv").string();
  expectRefused(made, QUIRE_IO_ERROR, "cannot open the file: No such file or directory");
  made = options();
  made.path = (folder / "absent").string();
  made.mode = SlotFile::Mode::Existing;
  expectRefused(made, QUIRE_IO_ERROR, "No such file");
  EXPECT_FALSE(std::filesystem::exists(folder / "absent"));
}

TEST_F(FileTierTest, EmptyFileIsTaken) {
  writeFile(path(), "");
  auto tier = open(options());
  EXPECT_TRUE(store(*tier, 0, 1).ok());
}

/// The kernel may hold a file of a process that was killed for a moment longer than the process.
TEST_F(FileTierTest, AMomentOfAnotherWriterIsWaitedFor) {
  writeFile(path(), "");
  int descriptor = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(descriptor, LOCK_EX | LOCK_NB), 0);
  std::thread other([descriptor] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(descriptor);
  });
  auto tier = open(options());
  EXPECT_TRUE(store(*tier, 0, 1).ok());
  other.join();
}

TEST_F(FileTierTest, OneWriter) {
  auto tier = open(options());
  ASSERT_TRUE(store(*tier, 0, 1).ok());
  for (SlotFile::Mode mode : {SlotFile::Mode::Create, SlotFile::Mode::Existing}) {
    FileTierOptions second = options();
    second.mode = mode;
    expectRefused(second, QUIRE_IO_ERROR, path() + ": another pool uses this file as its slow tier");
  }
  // From another process as well.
  pid_t child = ::fork();
  if (child == 0) {
    Status status;
    FileTier::open(options(), status);
    ::_exit(status.code() == QUIRE_IO_ERROR ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(load(*tier, 0, 1).ok()) << "those that were refused change nothing";
  EXPECT_TRUE(std::filesystem::exists(path()));
  tier.reset();
  EXPECT_TRUE(open(options())) << "the lock ends with the tier";
}

TEST_F(FileTierTest, FilesOfOtherShapes) {
  FileTierOptions made = options();
  made.keep = true;
  open(made);
  made.mode = SlotFile::Mode::Existing;
  made.slots = 5;
  expectRefused(made, QUIRE_INVALID_ARGUMENT, "expected 5 slots with pages of 4096 bytes and geometry abc, but got 4, 4096 and abc");
  made.slots = 4;
  made.geometry = 1;
  expectRefused(made, QUIRE_INVALID_ARGUMENT, "geometry 1, but got");
  made.geometry = 0xabc;
  made.pageBytes = 4097;
  expectRefused(made, QUIRE_INVALID_ARGUMENT, "pages of 4097 bytes");
  made.pageBytes = 4096;
  flip(8);
  expectRefused(made, QUIRE_WRONG_VERSION, "expected version 1 of the slow tier's file, but got 0");
  flip(8);
  flip(20);
  expectRefused(made, QUIRE_BAD_ARTEFACT, "the header of the slow tier's file is damaged");
  made.mode = SlotFile::Mode::Create;
  EXPECT_TRUE(open(made)) << "a damaged one is a slow tier's all the same, and starts anew";
  made.slots = 0;
  expectRefused(made, QUIRE_INVALID_ARGUMENT, "expected slots of a size that a file can have");
  made.slots = 1u << 24;
  made.pageBytes = uint64_t(1) << 40;
  expectRefused(made, QUIRE_INVALID_ARGUMENT, "expected slots of a size that a file can have");
  made.pageBytes = 4096;
  made.slots = UINT32_MAX;
  if (physicalMemory() < uint64_t(64) << 30)
    expectRefused(made, QUIRE_OUT_OF_MEMORY, "expected a slow tier whose tables fit into memory");
}

TEST_F(FileTierTest, OtherGeometryIsLost) {
  FileTierOptions made = options();
  made.keep = true;
  {
    auto tier = open(made);
    ASSERT_TRUE(store(*tier, 0, 1).ok());
  }
  // The same slots under a first sector of another geometry.
  FileGeometry other = {4096, 0xdef, 4};
  std::string bytes = readFile(path());
  encodeFileHeader(other, bytes.data());
  writeFile(path(), bytes);
  made.mode = SlotFile::Mode::Existing;
  made.geometry = 0xdef;
  auto tier = open(made);
  EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_PAGE_LOST);
  EXPECT_TRUE(recovered(*tier).empty());
}

TEST_F(FileTierTest, FaultsOverAFile) {
  VirtualClock clock;
  for (Fault::Kind kind : {Fault::Kind::FlipPage, Fault::Kind::FlipHeader, Fault::Kind::TornStore, Fault::Kind::SwapSlots})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Fault fault;
      fault.kind = kind;
      fault.on = Transfer::Kind::Store;
      fault.first = 4;
      FaultTier tier(open(options()), FaultPlan{seed, {fault}}, clock);
      for (uint32_t slot = 0; slot < 4; ++slot)
        ASSERT_TRUE(store(tier, slot, slot).ok());
      ASSERT_TRUE(store(tier, 2, 50).ok());
      EXPECT_EQ(load(tier, 2, 50).code(), QUIRE_PAGE_LOST) << int(kind) << " " << seed;
    }
}

TEST_F(FileTierTest, IoKindsByName) {
  FileIoKind kind = FileIoKind::Auto;
  EXPECT_TRUE(parseFileIoKind("pread", kind));
  EXPECT_EQ(kind, FileIoKind::Pread);
  EXPECT_TRUE(parseFileIoKind("uring", kind));
  EXPECT_EQ(kind, FileIoKind::Uring);
  EXPECT_TRUE(parseFileIoKind("auto", kind));
  EXPECT_EQ(kind, FileIoKind::Auto);
  EXPECT_FALSE(parseFileIoKind("aio", kind));
}

/// Uring where the kernel refuses it: a depth that no ring has stands for that.
TEST_F(FileTierTest, FallsBackWithoutUring) {
  Status status;
  EXPECT_EQ(createFileIo(FileIoKind::Uring, 0, 1u << 30, status), nullptr);
  EXPECT_EQ(status.code(), QUIRE_IO_ERROR);
  EXPECT_NE(status.text().find("the system gives no io_uring"), std::string::npos);
  auto io = createFileIo(FileIoKind::Auto, 0, 1u << 30, status);
  ASSERT_TRUE(io);
  EXPECT_TRUE(status.ok());
  EXPECT_STREQ(io->name(), "pread");
}

} // namespace
