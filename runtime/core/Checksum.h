// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checksum of stored pages: XXH3, 64 bits.
#ifndef QUIRE_RUNTIME_CORE_CHECKSUM_H
#define QUIRE_RUNTIME_CORE_CHECKSUM_H

#include <cstddef>
#include <cstdint>

namespace quire::runtime {

uint64_t checksumOf(const void *data, size_t bytes, uint64_t seed = 0);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_CHECKSUM_H
