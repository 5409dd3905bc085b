// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timed copies and loads.
#include "pool/TransferRates.h"

#include "core/MappedMemory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace quire::runtime {
namespace {

double rateOf(uint64_t bytes, int64_t nanoseconds) {
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<int64_t>(1, nanoseconds));
}

int64_t steadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Compilers must assume that the copy is read.
void use(const void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

Status runAll(Tier &tier, std::vector<Transfer> &transfers, Transfer::Kind kind) {
  std::vector<Transfer *> batch;
  for (Transfer &transfer : transfers) {
    transfer.kind = kind;
    transfer.status = success();
    batch.push_back(&transfer);
  }
  tier.run(batch.data(), batch.size());
  for (const Transfer &transfer : transfers)
    if (!transfer.status.ok())
      return transfer.status;
  return success();
}

Status measureSize(Tier &tier, const RateOptions &options, const Clock &clock, SizeRate &out) {
  uint64_t pageBytes = tier.pageBytes();
  uint32_t count = static_cast<uint32_t>(
      std::min<uint64_t>(tier.slots().freeCount(), std::max<uint64_t>(1, options.bytes / pageBytes)));
  std::vector<int32_t> slots;
  if (count == 0 || !tier.slots().allocate(count, slots))
    return failure(QUIRE_NO_SPACE, "tier %s has no free slot to measure", tier.name().c_str());
  MappedMemory pages;
  QUIRE_TRY(pages.map(count * pageBytes, MappedMemory::Pages::Huge));
  std::memset(pages.data(), 1, pages.size());
  std::vector<Transfer> transfers(count);
  for (uint32_t i = 0; i < count; ++i) {
    transfers[i].slot = static_cast<uint32_t>(slots[i]);
    transfers[i].page = pages.data() + i * pageBytes;
    transfers[i].tag = i + 1;
  }
  QUIRE_TRY(runAll(tier, transfers, Transfer::Kind::Store));
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    int64_t before = clock.now();
    QUIRE_TRY(runAll(tier, transfers, Transfer::Kind::Load));
    out.bytesPerSecond = std::max(out.bytesPerSecond, rateOf(count * pageBytes, clock.now() - before));
  }
  return success();
}

} // namespace

std::vector<uint64_t> blockSizes(uint64_t least, uint64_t most) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = least; size <= most && size != 0; size *= 2)
    sizes.push_back(size);
  return sizes;
}

Status measureCopy(const std::vector<uint64_t> &sizes, const RateOptions &options, std::vector<SizeRate> &out) {
  out.clear();
  std::mt19937_64 random(1);
  for (uint64_t size : sizes) {
    uint64_t source = std::max(options.sourceBytes, size), count = std::max<uint64_t>(1, options.bytes / size);
    MappedMemory from, to;
    QUIRE_TRY(from.map(source, MappedMemory::Pages::Huge));
    QUIRE_TRY(to.map(size, MappedMemory::Pages::Huge));
    std::memset(from.data(), 1, source);
    std::memset(to.data(), 1, size);
    std::vector<uint64_t> starts(count);
    SizeRate rate{size, 0};
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      for (uint64_t &start : starts)
        start = random() % (source / size) * size;
      int64_t before = steadyNow();
      for (uint64_t start : starts) {
        std::memcpy(to.data(), from.data() + start, size);
        use(to.data());
      }
      rate.bytesPerSecond = std::max(rate.bytesPerSecond, rateOf(count * size, steadyNow() - before));
    }
    out.push_back(rate);
  }
  return success();
}

Status measureTier(const std::vector<uint64_t> &sizes, const RateOptions &options, const Clock &clock,
                   const std::function<std::unique_ptr<Tier>(uint64_t pageBytes)> &make, std::vector<SizeRate> &out) {
  out.clear();
  for (uint64_t size : sizes) {
    std::unique_ptr<Tier> tier = make(size);
    if (!tier || tier->pageBytes() != size)
      return failure(QUIRE_INVALID_ARGUMENT, "expected a tier of %llu byte pages",
                     static_cast<unsigned long long>(size));
    SizeRate rate{size, 0};
    QUIRE_TRY(measureSize(*tier, options, clock, rate));
    out.push_back(rate);
  }
  return success();
}

} // namespace quire::runtime
