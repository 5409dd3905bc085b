// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A whole number and a unit from a table.
#include "core/Quantities.h"

#include <charconv>

namespace quire::runtime {

const char expectedSize[] = "a size such as 256MiB (KiB, MiB, GiB, TiB, or KB, MB, GB, TB)";

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit sizes[] = {{"TiB", uint64_t(1) << 40},
                          {"GiB", uint64_t(1) << 30},
                          {"MiB", uint64_t(1) << 20},
                          {"KiB", uint64_t(1) << 10},
                          {"TB", 1000000000000},
                          {"GB", 1000000000},
                          {"MB", 1000000},
                          {"KB", 1000},
                          {"B", 1},
                          {"", 1}};

constexpr Unit durations[] = {{"h", 3600000000000}, {"min", 60000000000}, {"s", 1000000000},
                              {"ms", 1000000},      {"us", 1000},         {"ns", 1}};

constexpr std::string_view perSecond = "/s";

template <size_t count>
bool parse(std::string_view text, const Unit (&units)[count], uint64_t &out) {
  uint64_t number, value;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return false;
  std::string_view name = text.substr(static_cast<size_t>(rest - text.data()));
  for (const Unit &unit : units)
    if (name == unit.name && !__builtin_mul_overflow(number, unit.factor, &value)) {
      out = value;
      return true;
    }
  return false;
}

template <size_t count>
std::string print(uint64_t value, const Unit (&units)[count], std::string_view ofZero) {
  if (value == 0)
    return "0" + std::string(ofZero);
  std::string shortest;
  for (const Unit &unit : units) {
    if (value % unit.factor != 0)
      continue;
    std::string text = std::to_string(value / unit.factor) + std::string(unit.name);
    if (shortest.empty() || text.size() < shortest.size())
      shortest = std::move(text);
  }
  return shortest;
}

} // namespace

bool parseSize(std::string_view text, uint64_t &out) { return parse(text, sizes, out); }

bool parseDuration(std::string_view text, int64_t &out) {
  uint64_t value = 0;
  if (text != "0" && (!parse(text, durations, value) || value > INT64_MAX))
    return false;
  out = static_cast<int64_t>(value);
  return true;
}

bool parseBandwidth(std::string_view text, uint64_t &out) {
  uint64_t value;
  if (text.size() < perSecond.size() || text.substr(text.size() - perSecond.size()) != perSecond ||
      !parseSize(text.substr(0, text.size() - perSecond.size()), value) || value == 0)
    return false;
  out = value;
  return true;
}

std::string printSize(uint64_t bytes) { return print(bytes, sizes, ""); }

std::string printDuration(int64_t nanoseconds) { return print(static_cast<uint64_t>(nanoseconds), durations, "s"); }

std::string printBandwidth(uint64_t bytesPerSecond) { return printSize(bytesPerSecond) + std::string(perSecond); }

} // namespace quire::runtime
