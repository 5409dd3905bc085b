// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages with recognisable content, and single transfers through a tier.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TESTTIER_H
#define QUIRE_TEST_UNIT_RUNTIME_TESTTIER_H

#include "core/Random.h"
#include "tier/Tier.h"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace quire::test {

/// Memory for one page, aligned as the arena aligns pages, or off by 64 bytes.
class TestPage {
public:
  explicit TestPage(uint64_t bytes, bool aligned = true)
      : bytes_(bytes), memory_(std::aligned_alloc(4096, (bytes + 64 + 4095) / 4096 * 4096), &std::free),
        data_(static_cast<char *>(memory_.get()) + (aligned ? 0 : 64)) {
    std::memset(data_, 0x77, bytes);
  }
  char *data() { return data_; }

  /// No two tags give the same, and no page is zero.
  void fill(uint64_t tag) {
    uint64_t state = tag;
    for (uint64_t at = 0; at < bytes_; at += 8) {
      uint64_t word = runtime::splitMix(state) | 1;
      std::memcpy(data_ + at, &word, std::min<uint64_t>(8, bytes_ - at));
    }
  }
  bool holds(uint64_t tag) {
    TestPage expected(bytes_);
    expected.fill(tag);
    return std::memcmp(data_, expected.data_, bytes_) == 0;
  }

private:
  uint64_t bytes_;
  std::unique_ptr<void, decltype(&std::free)> memory_;
  char *data_;
};

inline runtime::Transfer transferOf(runtime::Transfer::Kind kind, uint32_t slot, char *page, uint64_t tag) {
  runtime::Transfer transfer;
  transfer.kind = kind;
  transfer.slot = slot;
  transfer.page = page;
  transfer.tag = tag;
  return transfer;
}

inline runtime::Status runOne(runtime::Tier &tier, runtime::Transfer transfer) {
  runtime::Transfer *one = &transfer;
  tier.run(&one, 1);
  return transfer.status;
}

inline runtime::Status store(runtime::Tier &tier, uint32_t slot, uint64_t tag, bool aligned = true) {
  TestPage page(tier.pageBytes(), aligned);
  page.fill(tag);
  return runOne(tier, transferOf(runtime::Transfer::Kind::Store, slot, page.data(), tag));
}

inline runtime::Status erase(runtime::Tier &tier, uint32_t slot) {
  return runOne(tier, transferOf(runtime::Transfer::Kind::Erase, slot, nullptr, 0));
}

/// QUIRE_INVARIANT_BROKEN: it says that all is well, and gives wrong bytes.
inline runtime::Status load(runtime::Tier &tier, uint32_t slot, uint64_t tag, bool aligned = true) {
  TestPage page(tier.pageBytes(), aligned);
  runtime::Status status = runOne(tier, transferOf(runtime::Transfer::Kind::Load, slot, page.data(), tag));
  if (status.ok() && !page.holds(tag))
    return runtime::failure(QUIRE_INVARIANT_BROKEN, "wrong bytes");
  return status;
}

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TESTTIER_H
