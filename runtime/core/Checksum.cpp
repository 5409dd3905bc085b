// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// XXH3 in one call.
#include "core/Checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire::runtime {

uint64_t checksumOf(const void *data, size_t bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

} // namespace quire::runtime
