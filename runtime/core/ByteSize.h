// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes as people write them.
#ifndef QUIRE_RUNTIME_CORE_BYTESIZE_H
#define QUIRE_RUNTIME_CORE_BYTESIZE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::runtime {

/// "256MiB", "2GB", "1000000", "4096B": digits and at most one of the units B,
/// KiB, MiB, GiB, TiB, KB, MB, GB, TB. False if it is no size or does not fit.
bool parseByteSize(std::string_view text, uint64_t &out);

/// In the largest unit that gives a whole number: "512MiB", "3072KiB", "1000".
std::string shownByteSize(uint64_t bytes);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_BYTESIZE_H
