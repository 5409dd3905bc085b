// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tier in a file under devices that fail at every operation, and processes that die at every write.
#include "TestTier.h"
#include "ToyFolder.h"

#include "tier/FileTier.h"

#include <cerrno>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace quire::runtime;
using namespace quire::test;

namespace {

/// A device that does something else at some of its operations.
class HookedIo final : public FileIo {
public:
  /// `hook` runs a request and sets its result; it is told the request's number.
  using Hook = std::function<void(FileIo &, IoRequest &, uint64_t)>;
  HookedIo(std::unique_ptr<FileIo> inner, Hook hook) : inner_(std::move(inner)), hook_(std::move(hook)) {}
  const char *name() const override { return inner_->name(); }
  void run(IoRequest *const *requests, size_t count) override {
    for (size_t i = 0; i < count; ++i)
      hook_(*inner_, *requests[i], number_++);
  }

private:
  std::unique_ptr<FileIo> inner_;
  Hook hook_;
  uint64_t number_ = 0;
};

void runWhole(FileIo &io, IoRequest &request) {
  IoRequest *one = &request;
  io.run(&one, 1);
}

/// Its first `bytes` only.
void runBeginning(FileIo &io, const IoRequest &request, uint64_t bytes, int64_t &result) {
  IoRequest part = request;
  part.bytes = bytes;
  part.partCount = 0;
  uint64_t left = bytes;
  for (int i = 0; i < request.partCount && left; ++i) {
    part.parts[i] = request.parts[i];
    part.parts[i].iov_len = std::min<size_t>(part.parts[i].iov_len, left);
    left -= part.parts[i].iov_len;
    ++part.partCount;
  }
  result = 0;
  if (bytes) {
    runWhole(io, part);
    result = part.result;
  }
}

struct Shape {
  bool checksum;
  bool direct;
  uint64_t pageBytes;
};

/// Every value of each with and without checksums.
std::vector<Shape> shapes() {
  return {{true, true, 8192}, {true, true, 100}, {true, false, 9000}, {false, true, 9000}, {false, false, 8192}, {false, false, 100}};
}

constexpr uint32_t slots = 4;

class Devices : public ::testing::TestWithParam<Shape> {
protected:
  FileTierOptions options() const {
    FileTierOptions made;
    made.path = (folder / "kv").string();
    made.slots = slots;
    made.pageBytes = GetParam().pageBytes;
    made.checksum = GetParam().checksum;
    made.direct = GetParam().direct;
    made.keep = true;
    made.depth = 2;
    return made;
  }
  TemporaryFolder folder;
};

//===----------------------------------------------------------------------===//
// Failing devices
//===----------------------------------------------------------------------===//

enum class Failure { EioOnce, EioAlways, Eintr, Eagain, ShortOnce, ShortAlways, NoSpace, ReadFlip, NoPunch };

HookedIo::Hook failing(Failure failure, uint64_t at, bool &hit) {
  return [=, &hit](FileIo &io, IoRequest &request, uint64_t number) {
    bool always = failure == Failure::EioAlways || failure == Failure::ShortAlways || failure == Failure::NoPunch;
    bool now = always ? number >= at : number == at;
    bool write = request.kind == IoRequest::Kind::Write, read = request.kind == IoRequest::Kind::Read;
    runWhole(io, request);
    if (!now)
      return;
    hit = true;
    switch (failure) {
    case Failure::EioOnce:
    case Failure::EioAlways:
      request.result = -EIO;
      break;
    case Failure::Eintr:
      request.result = -EINTR;
      break;
    case Failure::Eagain:
      request.result = -EAGAIN;
      break;
    case Failure::ShortOnce:
    case Failure::ShortAlways:
      if (request.result > 0)
        request.result = request.result > 4096 ? 4096 : 100;
      break;
    case Failure::NoSpace:
      request.result = write ? -ENOSPC : request.result;
      break;
    case Failure::ReadFlip:
      if (read) // the page's last byte: the slot ends with it
        static_cast<char *>(request.parts[request.partCount - 1].iov_base)[request.parts[request.partCount - 1].iov_len - 1] ^= 1;
      break;
    case Failure::NoPunch:
      request.result = request.kind == IoRequest::Kind::Punch ? -EOPNOTSUPP : request.result;
      break;
    }
  };
}

/// Stores, loads and erases; every load gives the right bytes or says that it does not.
/// Counts what failed.
void runAgainstReference(FileTier &tier, std::map<quire_status, int> &codes) {
  std::map<uint32_t, uint64_t> content;
  uint64_t random = 9;
  for (uint64_t tag = 1; tag < 14; ++tag) {
    auto slot = static_cast<uint32_t>(splitMix(random) % slots);
    Status status;
    if (splitMix(random) % 4) {
      status = store(tier, slot, tag);
      content.erase(slot);
      if (status.ok())
        content[slot] = tag;
    } else {
      status = erase(tier, slot);
      content.erase(slot);
    }
    ++codes[status.code()];
    for (uint32_t i = 0; i < slots; ++i) {
      Status loaded = load(tier, i, content.count(i) ? content[i] : tag);
      ASSERT_NE(loaded.code(), QUIRE_INVARIANT_BROKEN);
      if (!content.count(i)) {
        ASSERT_EQ(loaded.code(), QUIRE_PAGE_LOST) << "content that nobody stored";
        continue;
      }
      ++codes[loaded.code()];
      if (loaded.code() == QUIRE_PAGE_LOST)
        content.erase(i);
    }
  }
}

TEST_P(Devices, FailAtEveryOperation) {
  for (Failure failure : {Failure::EioOnce, Failure::EioAlways, Failure::Eintr, Failure::Eagain, Failure::ShortOnce, Failure::ShortAlways, Failure::NoSpace, Failure::ReadFlip, Failure::NoPunch}) {
    if (failure == Failure::ReadFlip && !GetParam().checksum)
      continue;
    bool hit = true;
    for (uint64_t at = 0; hit; ++at) {
      hit = false;
      FileTierOptions made = options();
      made.wrapIo = [&](std::unique_ptr<FileIo> io) { return std::make_unique<HookedIo>(std::move(io), failing(failure, at, hit)); };
      Status status;
      auto tier = FileTier::open(made, status);
      ASSERT_TRUE(tier) << status.text();
      std::map<quire_status, int> codes;
      ASSERT_NO_FATAL_FAILURE(runAgainstReference(*tier, codes)) << int(failure) << " at " << at;
      // What passes costs a repetition and nothing else; what does not is told as what it is.
      bool passes = failure != Failure::EioAlways && failure != Failure::ShortAlways && failure != Failure::NoSpace && failure != Failure::ReadFlip;
      EXPECT_EQ(codes.count(QUIRE_PAGE_LOST), failure == Failure::ReadFlip && tier->quarantined() ? 1u : 0u) << int(failure) << " at " << at;
      if (passes)
        EXPECT_EQ(codes.size(), 1u) << int(failure) << " at " << at;
      if (failure == Failure::NoSpace)
        EXPECT_EQ(codes.count(QUIRE_IO_ERROR), 0u);
      if (failure == Failure::EioOnce && hit)
        EXPECT_EQ(tier->repeated(), 1u);
    }
  }
}

TEST_P(Devices, EioForLongLeavesTheSlotAsItWas) {
  bool broken = false;
  FileTierOptions made = options();
  made.wrapIo = [&](std::unique_ptr<FileIo> io) {
    return std::make_unique<HookedIo>(std::move(io), [&](FileIo &inner, IoRequest &request, uint64_t) {
      runWhole(inner, request);
      if (broken)
        request.result = -EIO;
    });
  };
  Status status;
  auto tier = FileTier::open(made, status);
  ASSERT_TRUE(tier) << status.text();
  ASSERT_TRUE(store(*tier, 1, 5).ok());
  broken = true;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(load(*tier, 1, 5).code(), QUIRE_IO_ERROR);
  EXPECT_EQ(tier->repeated(), 3u * (FileTier::maxAttempts - 1));
  EXPECT_EQ(erase(*tier, 2).code(), QUIRE_OK) << "nothing to erase, nothing to do";
  broken = false;
  EXPECT_TRUE(load(*tier, 1, 5).ok());
  broken = true;
  EXPECT_EQ(store(*tier, 1, 6).code(), QUIRE_IO_ERROR);
  broken = false;
  EXPECT_EQ(load(*tier, 1, 5).code(), QUIRE_PAGE_LOST) << "a store that failed leaves no content";
  EXPECT_EQ(load(*tier, 1, 6).code(), QUIRE_PAGE_LOST);
}

/// Neither the page nor the mark that it is void has reached the file, which still holds the old page.
TEST_P(Devices, AStoreThatReachedNothingLeavesNoContent) {
  bool broken = false;
  FileTierOptions made = options();
  made.wrapIo = [&](std::unique_ptr<FileIo> io) {
    return std::make_unique<HookedIo>(std::move(io), [&](FileIo &inner, IoRequest &request, uint64_t) {
      if (broken)
        request.result = -EIO;
      else
        runWhole(inner, request);
    });
  };
  Status status;
  auto tier = FileTier::open(made, status);
  ASSERT_TRUE(tier) << status.text();
  ASSERT_TRUE(store(*tier, 1, 5).ok());
  broken = true;
  EXPECT_EQ(store(*tier, 1, 6).code(), QUIRE_IO_ERROR);
  broken = false;
  EXPECT_EQ(load(*tier, 1, 5).code(), QUIRE_PAGE_LOST);
  EXPECT_TRUE(store(*tier, 1, 7).ok());
  EXPECT_TRUE(load(*tier, 1, 7).ok());
}

//===----------------------------------------------------------------------===//
// Dying processes
//===----------------------------------------------------------------------===//

/// What a child has done, told by a pipe: whole records arrive or none.
struct Record {
  uint32_t slot;
  uint32_t ended; // 0: about to begin
  uint64_t tag;   // 0: erased
};

/// The life of a child: it dies at write `at`, of which `share` / 8 have reached the file.
[[noreturn]] void liveAndDie(FileTierOptions options, uint64_t at, uint64_t share, int pipe) {
  options.wrapIo = [=](std::unique_ptr<FileIo> io) {
    auto writes = std::make_shared<uint64_t>(0);
    return std::make_unique<HookedIo>(std::move(io), [=](FileIo &inner, IoRequest &request, uint64_t) {
      if (request.kind == IoRequest::Kind::Read || (*writes)++ != at)
        return runWhole(inner, request);
      int64_t ignored;
      if (request.kind == IoRequest::Kind::Punch) {
        if (share)
          runWhole(inner, request);
      } else {
        runBeginning(inner, request, request.bytes * share / 8 / 512 * 512, ignored);
      }
      ::raise(SIGKILL);
    });
  };
  Status status;
  auto tier = FileTier::open(options, status);
  if (!tier)
    ::_exit(3);
  auto tell = [pipe](Record record) {
    if (::write(pipe, &record, sizeof(record)) != static_cast<ssize_t>(sizeof(record)))
      ::_exit(4);
  };
  for (uint64_t round = 1; round <= 3; ++round)
    for (uint32_t slot = 0; slot < slots; ++slot) {
      bool erases = round == 2 && slot % 2;
      uint64_t tag = erases ? 0 : round * 100 + slot;
      tell({slot, 0, tag});
      if (!(erases ? erase(*tier, slot) : store(*tier, slot, tag)).ok())
        ::_exit(5);
      tell({slot, 1, tag});
    }
  ::_exit(0);
}

TEST_P(Devices, DeathAtEveryWriteLeavesEntriesWholeOrAbsent) {
  for (uint64_t share : {0, 1, 4, 7, 8}) {
    bool died = true;
    for (uint64_t at = 0; died; ++at) {
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      pid_t child = ::fork();
      if (child == 0)
        liveAndDie(options(), at, share, ends[1]);
      ::close(ends[1]);
      std::map<uint32_t, Record> last;
      std::map<uint32_t, uint64_t> before; // the tag before the last record
      Record record;
      while (::read(ends[0], &record, sizeof(record)) == static_cast<ssize_t>(sizeof(record))) {
        if (!record.ended)
          before[record.slot] = last.count(record.slot) ? last[record.slot].tag : 0;
        last[record.slot] = record;
      }
      ::close(ends[0]);
      int result = 0;
      ASSERT_EQ(::waitpid(child, &result, 0), child);
      died = WIFSIGNALED(result);
      ASSERT_TRUE(died ? WTERMSIG(result) == SIGKILL : WEXITSTATUS(result) == 0) << result;

      FileTierOptions made = options();
      made.mode = SlotFile::Mode::Existing;
      Status status;
      auto tier = FileTier::open(made, status);
      ASSERT_TRUE(tier) << status.text();
      std::vector<FileTier::Entry> entries;
      ASSERT_EQ(tier->recover(entries), 0u);
      std::map<uint32_t, uint64_t> found;
      for (const FileTier::Entry &entry : entries)
        found[entry.slot] = entry.tag;
      EXPECT_EQ(found.size(), entries.size());
      for (auto &[slot, tag] : found)
        EXPECT_TRUE(load(*tier, slot, tag).ok()) << "listed, but not whole: at " << at << ", share " << share;
      for (auto &[slot, ended] : last) {
        uint64_t tag = found.count(slot) ? found[slot] : 0;
        if (ended.ended)
          EXPECT_EQ(tag, ended.tag) << "what was finished must be there: at " << at << ", slot " << slot;
        else
          EXPECT_TRUE(tag == 0 || tag == ended.tag || tag == before[slot]) << "at " << at << ", slot " << slot << ", tag " << tag;
      }
      for (auto &[slot, tag] : found)
        EXPECT_TRUE(last.count(slot)) << "an entry from nowhere";
      tier.reset();
      std::filesystem::remove(made.path);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Devices, ::testing::ValuesIn(shapes()), [](const auto &info) {
  const Shape &s = info.param;
  return std::string(s.checksum ? "checked" : "unchecked") + (s.direct ? "Direct" : "Buffered") + std::to_string(s.pageBytes);
});

} // namespace
