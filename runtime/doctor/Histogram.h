// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Latencies in buckets of equal relative width: fixed size, O(1), no heap.
#ifndef QUIRE_RUNTIME_DOCTOR_HISTOGRAM_H
#define QUIRE_RUNTIME_DOCTOR_HISTOGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace quire::runtime {

/// Nanoseconds. 0 to 15 have a bucket each; from there on each doubling has 8, so
/// that a quantile is at most 1/8 too large. Written by one thread.
class Histogram {
public:
  static constexpr size_t buckets = 16 + 60 * 8;

  void record(uint64_t ns) {
    ++counts_[bucketOf(ns)];
    ++count_;
    sum_ += ns;
  }

  uint64_t count() const { return count_; }
  uint64_t sum() const { return sum_; }
  uint64_t inBucket(size_t bucket) const { return counts_[bucket]; }

  /// The largest value that falls into the bucket of the value at this rank;
  /// nothing while nothing was recorded. `q` in [0, 1].
  std::optional<uint64_t> quantile(double q) const {
    if (count_ == 0)
      return std::nullopt;
    double wanted = q * static_cast<double>(count_);
    uint64_t below = 0;
    size_t last = 0;
    for (size_t bucket = 0; bucket < buckets; ++bucket) {
      if (counts_[bucket] == 0)
        continue;
      last = bucket;
      below += counts_[bucket];
      if (static_cast<double>(below) >= wanted)
        break;
    }
    return upperBound(last);
  }

  void add(const Histogram &other) {
    for (size_t bucket = 0; bucket < buckets; ++bucket)
      counts_[bucket] += other.counts_[bucket];
    count_ += other.count_;
    sum_ += other.sum_;
  }

  static size_t bucketOf(uint64_t ns) {
    if (ns < 16)
      return static_cast<size_t>(ns);
    unsigned top = 63 - static_cast<unsigned>(__builtin_clzll(ns)); // at least 4
    return 16 + size_t(top - 4) * 8 + static_cast<size_t>(ns >> (top - 3) & 7);
  }

  /// The largest value in the bucket.
  static uint64_t upperBound(size_t bucket) {
    if (bucket < 16)
      return bucket;
    unsigned top = static_cast<unsigned>(bucket - 16) / 8 + 4;
    uint64_t first = uint64_t(8 + (bucket - 16) % 8) << (top - 3);
    return first + ((uint64_t(1) << (top - 3)) - 1);
  }

private:
  std::array<uint64_t, buckets> counts_{};
  uint64_t count_ = 0, sum_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_DOCTOR_HISTOGRAM_H
