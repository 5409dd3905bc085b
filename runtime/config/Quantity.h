// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes, times and rates as people write them: a whole number and a unit.
#ifndef QUIRE_RUNTIME_CONFIG_QUANTITY_H
#define QUIRE_RUNTIME_CONFIG_QUANTITY_H

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::config {

/// Bytes: "256MiB", "2GB", "1000000". False if it is no size or does not fit.
bool parseSize(std::string_view text, uint64_t &out);

/// Nanoseconds: "3600s", "100us"; units ns, us, ms, s, min, h. False if it is no
/// time or does not fit into 63 bits.
bool parseTime(std::string_view text, int64_t &out);

/// Bytes a second: a size and "/s".
bool parseRate(std::string_view text, uint64_t &out);

// The shortest text that reads back as the same.
std::string printSize(uint64_t bytes);
std::string printTime(int64_t nanoseconds);
std::string printRate(uint64_t bytesPerSecond);

} // namespace quire::config

#endif // QUIRE_RUNTIME_CONFIG_QUANTITY_H
