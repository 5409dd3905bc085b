// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The largest of many values, by their places.
#ifndef QUIRE_RUNTIME_RESIDENCY_LARGESTOF_H
#define QUIRE_RUNTIME_RESIDENCY_LARGESTOF_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quire::runtime {

/// The places of the largest `k` values above `floor`, the largest first, the smaller place on ties; never NaN. Returns
/// their number. A heap of the best so far lies in `out`, the worst of them in front.
template <typename Value>
size_t largestOf(const Value *values, size_t count, size_t k, Value floor, uint32_t *out) {
  auto better = [&](uint32_t a, uint32_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; };
  size_t found = 0;
  for (uint32_t i = 0; i < count && k > 0; ++i) {
    if (!(values[i] > floor)) // nor NaN
      continue;
    if (found == k) {
      if (!better(i, out[0]))
        continue;
      std::pop_heap(out, out + found--, better);
    }
    out[found++] = i;
    std::push_heap(out, out + found, better);
  }
  std::sort_heap(out, out + found, better);
  return found;
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_LARGESTOF_H
