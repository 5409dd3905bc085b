// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading and showing of sizes.
#include "core/ByteSize.h"

#include <charconv>
#include <iterator>

namespace quire::runtime {

bool parseByteSize(std::string_view text, uint64_t &out) {
  struct Unit {
    const char *name;
    uint64_t bytes;
  };
  static constexpr Unit units[] = {{"", 1},
                                   {"B", 1},
                                   {"KiB", uint64_t(1) << 10},
                                   {"MiB", uint64_t(1) << 20},
                                   {"GiB", uint64_t(1) << 30},
                                   {"TiB", uint64_t(1) << 40},
                                   {"KB", 1000},
                                   {"MB", 1000000},
                                   {"GB", 1000000000},
                                   {"TB", 1000000000000}};
  uint64_t count;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc())
    return false;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  for (const Unit &unit : units)
    if (text == unit.name)
      return !__builtin_mul_overflow(count, unit.bytes, &out);
  return false;
}

std::string shownByteSize(uint64_t bytes) {
  static constexpr const char *units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; unit + 1 < std::size(units) && bytes > 0 && bytes % 1024 == 0; ++unit)
    bytes /= 1024;
  return std::to_string(bytes) + units[unit];
}

} // namespace quire::runtime
