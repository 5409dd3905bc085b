// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes, durations and rates as people write them on command lines and in configurations: a whole number and a unit.
#ifndef QUIRE_RUNTIME_CORE_QUANTITIES_H
#define QUIRE_RUNTIME_CORE_QUANTITIES_H

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::runtime {

/// "256MiB", "2GiB", "1000000", in bytes. False if it is no size or does not fit;
/// `out` is then as it was. So are those below.
bool parseSize(std::string_view text, uint64_t &out);

/// "100us", "5ms", "2h", in nanoseconds: ns, us, ms, s, min or h; 0 needs no unit.
bool parseDuration(std::string_view text, int64_t &out);

/// "2GB/s", in bytes a second: a size a second, not 0.
bool parseBandwidth(std::string_view text, uint64_t &out);

// The shortest text that reads back as the same.
std::string printSize(uint64_t bytes);
std::string printDuration(int64_t nanoseconds);
std::string printBandwidth(uint64_t bytesPerSecond);

/// What parseSize takes, for errors.
extern const char expectedSize[];

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_QUANTITIES_H
