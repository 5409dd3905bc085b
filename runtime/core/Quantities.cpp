// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A whole number and a unit from a table.
#include "core/Quantities.h"

#include <cstddef>

namespace quire::runtime {

const char expectedSize[] = "a size such as 256MiB (KiB, MiB, GiB, TiB, or KB, MB, GB, TB)";

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

} // namespace

static constexpr Unit sizes[] = {{"", 1},
                                 {"B", 1},
                                 {"KiB", uint64_t(1) << 10},
                                 {"MiB", uint64_t(1) << 20},
                                 {"GiB", uint64_t(1) << 30},
                                 {"TiB", uint64_t(1) << 40},
                                 {"KB", 1000},
                                 {"MB", 1000000},
                                 {"GB", 1000000000},
                                 {"TB", 1000000000000}};
static constexpr Unit durations[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

template <size_t count>
static bool parseWithUnit(std::string_view text, const Unit (&units)[count], uint64_t &out) {
  uint64_t number = 0;
  size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if (__builtin_mul_overflow(number, uint64_t(10), &number) ||
        __builtin_add_overflow(number, static_cast<uint64_t>(text[at] - '0'), &number))
      return false;
  if (at == 0)
    return false;
  uint64_t value;
  for (const Unit &unit : units)
    if (text.substr(at) == unit.name && !__builtin_mul_overflow(number, unit.factor, &value)) {
      out = value;
      return true;
    }
  return false;
}

bool parseSize(std::string_view text, uint64_t &out) { return parseWithUnit(text, sizes, out); }

bool parseDuration(std::string_view text, int64_t &out) {
  uint64_t value = 0;
  if (text != "0" && (!parseWithUnit(text, durations, value) || value > INT64_MAX))
    return false;
  out = static_cast<int64_t>(value);
  return true;
}

bool parseBandwidth(std::string_view text, uint64_t &out) {
  constexpr std::string_view end = "/s";
  uint64_t value;
  if (text.size() < end.size() || text.substr(text.size() - end.size()) != end ||
      !parseSize(text.substr(0, text.size() - end.size()), value) || value == 0)
    return false;
  out = value;
  return true;
}

} // namespace quire::runtime
