// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of keys as text, and what is made of the table alone: defaults, comparison, documentation.
#include "config/Keys.h"
#include "core/Quantities.h"
#include "tier/TierOptions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace quire::config {

using namespace runtime;

static constexpr size_t maxPathBytes = 4096;
static constexpr size_t maxListLength = 4096;
static constexpr size_t maxTiers = 15; // below the first one

/// As short as reads back the same.
static std::string printNumber(double value) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

template <typename Number>
static bool parseWhole(std::string_view text, Number &out) {
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && rest == text.data() + text.size();
}

static std::string printBound(const Key &key, double bound) {
  switch (key.type) {
  case Key::Type::Size:
    return printSize(static_cast<uint64_t>(bound));
  case Key::Type::Rate:
    return printBandwidth(static_cast<uint64_t>(bound));
  case Key::Type::Time:
    return printDuration(static_cast<int64_t>(bound));
  case Key::Type::Ratio:
    return printNumber(bound);
  default:
    return std::to_string(static_cast<int64_t>(bound));
  }
}

static std::string rangeOf(const Key &key) {
  std::string text;
  switch (key.type) {
  case Key::Type::Choice:
    for (size_t i = 0; i < key.names.size(); ++i)
      text += (i == 0 ? "" : i + 1 == key.names.size() ? " or " : ", ") + std::string(key.names[i]);
    return text;
  case Key::Type::Switch:
    return "true or false";
  case Key::Type::Path:
    return "text of 1 to " + std::to_string(maxPathBytes) + " bytes";
  case Key::Type::Tiers:
    return "TIER SIZE, as in \"file:/var/tmp/kv 1GiB\", at most " + std::to_string(maxTiers) + " of them";
  default:
    return printBound(key, key.low) + " to " + printBound(key, key.high);
  }
}

static const char *typeName(const Key &key) {
  switch (key.type) {
  case Key::Type::Size:
    return "size";
  case Key::Type::Rate:
    return "rate";
  case Key::Type::Time:
    return "time";
  case Key::Type::Count:
    return "count";
  case Key::Type::Ratio:
    return "ratio";
  case Key::Type::Switch:
    return "switch";
  case Key::Type::Choice:
    return "choice";
  case Key::Type::Path:
    return "path";
  case Key::Type::Counts:
    return "list of counts";
  case Key::Type::Tiers:
    return "list of tiers";
  }
  return "";
}

bool isList(const Key &key) { return key.type == Key::Type::Counts || key.type == Key::Type::Tiers; }

bool splitTier(std::string_view text, std::string &where, uint64_t &bytes) {
  size_t space = text.rfind(' ');
  if (space == std::string_view::npos)
    return false;
  where = text.substr(0, space);
  TierOptions tier;
  return parseTier(where, tier).ok() && tier.kind != TierOptions::Kind::None && parseSize(text.substr(space + 1), bytes) && bytes > 0;
}

std::string expectedOf(const Key &key) {
  switch (key.type) {
  case Key::Type::Choice:
  case Key::Type::Switch:
  case Key::Type::Path:
  case Key::Type::Tiers:
    return rangeOf(key);
  case Key::Type::Size:
    return "a size (KiB, MiB, GiB, TiB, or KB, MB, GB, TB) of " + rangeOf(key);
  case Key::Type::Rate:
    return "a size a second of " + rangeOf(key);
  case Key::Type::Time:
    return "a time (ns, us, ms, s, min, h) of " + rangeOf(key);
  case Key::Type::Ratio:
    return "a number of " + rangeOf(key);
  default:
    return "a whole number of " + rangeOf(key);
  }
}

static bool parseBytes(const Key &key, std::string_view text, Value &out) {
  uint64_t value;
  if (!(key.type == Key::Type::Size ? parseSize(text, value) : parseBandwidth(text, value)))
    return false;
  out = value;
  return value >= static_cast<uint64_t>(key.low) && value <= static_cast<uint64_t>(key.high);
}

static bool parseCount(const Key &key, std::string_view text, Value &out) {
  int64_t value;
  if (!(key.type == Key::Type::Time ? parseDuration(text, value) : parseWhole(text, value)))
    return false;
  out = value;
  return value >= static_cast<int64_t>(key.low) && value <= static_cast<int64_t>(key.high);
}

static bool parseRatio(const Key &key, std::string_view text, Value &out) {
  double value;
  if (!parseWhole(text, value) || !std::isfinite(value))
    return false;
  out = value + 0.0; // one zero
  return value >= key.low && value <= key.high;
}

static bool parsePath(std::string_view text, Value &out) {
  for (char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return false;
  out = std::string(text);
  return text.size() <= maxPathBytes && !text.empty();
}

template <typename Element>
static std::vector<Element> &listIn(Value &value) {
  if (!std::holds_alternative<std::vector<Element>>(value))
    value = std::vector<Element>();
  return std::get<std::vector<Element>>(value);
}

static bool parseTierOf(std::string_view text, Value &out) {
  Value path;
  std::string where;
  uint64_t bytes;
  std::vector<std::string> &list = listIn<std::string>(out);
  if (list.size() == maxTiers || !parsePath(text, path) || !splitTier(text, where, bytes))
    return false;
  list.emplace_back(text);
  return true;
}

bool parseValue(const Key &key, std::string_view text, Value &out) {
  switch (key.type) {
  case Key::Type::Size:
  case Key::Type::Rate:
    return parseBytes(key, text, out);
  case Key::Type::Time:
  case Key::Type::Count:
    return parseCount(key, text, out);
  case Key::Type::Ratio:
    return parseRatio(key, text, out);
  case Key::Type::Switch:
    out = text == "true";
    return text == "true" || text == "false";
  case Key::Type::Choice:
    for (size_t i = 0; i < key.names.size(); ++i)
      if (text == key.names[i]) {
        out = static_cast<int64_t>(i);
        return true;
      }
    return false;
  case Key::Type::Path:
    return parsePath(text, out);
  case Key::Type::Counts: {
    Value element;
    std::vector<int64_t> &list = listIn<int64_t>(out);
    if (list.size() == maxListLength || !parseCount(key, text, element))
      return false;
    list.push_back(std::get<int64_t>(element));
    return true;
  }
  case Key::Type::Tiers:
    return parseTierOf(text, out);
  }
  return false;
}

bool isFor(const Key &key, Keys keys) {
  return keys != Keys::Implemented || key.use == Key::Use::Run;
}

std::string refusalOf(const Key &key) {
  if (key.use == Key::Use::Pages)
    return std::string(key.name) + ": blocks of a compiled model have one size, a constant of its code; choose it by quirec --block-tokens=N, or make pages of several sizes from C, by quire_sized_pool_create";
  return {};
}

std::string refusalOf(const Key &key, const Value &value) {
  for (const Key::Refused &refused : key.refused)
    if (printValue(key, value) == refused.name)
      return (refused.isPlanned ? "not implemented: " : "") + std::string(key.name) + ": " + refused.name + ": " + refused.reason;
  return {};
}

static std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string printValue(const Key &key, const Value &value) {
  switch (key.type) {
  case Key::Type::Size:
    return printSize(std::get<uint64_t>(value));
  case Key::Type::Rate:
    return printBandwidth(std::get<uint64_t>(value));
  case Key::Type::Time:
    return printDuration(std::get<int64_t>(value));
  case Key::Type::Count:
    return std::to_string(std::get<int64_t>(value));
  case Key::Type::Ratio:
    return printNumber(std::get<double>(value));
  case Key::Type::Switch:
    return std::get<bool>(value) ? "true" : "false";
  case Key::Type::Choice:
    return key.names[static_cast<size_t>(std::get<int64_t>(value))];
  case Key::Type::Path:
    return quoted(std::get<std::string>(value));
  case Key::Type::Counts: {
    std::string text;
    for (int64_t element : std::get<std::vector<int64_t>>(value))
      text += (text.empty() ? "" : ", ") + std::to_string(element);
    return "[" + text + "]";
  }
  case Key::Type::Tiers: {
    std::string text;
    for (const std::string &tier : std::get<std::vector<std::string>>(value))
      text += (text.empty() ? "" : ", ") + quoted(tier);
    return "[" + text + "]";
  }
  }
  return {};
}

/// Defaults stand in the table as in a file; lists are in brackets there, and have one element or none.
Config::Config() {
  for (const Key &key : allKeys()) {
    std::string_view text = key.initial;
    Value value;
    if (isList(key))
      text = text.substr(1, text.size() - 2);
    if (key.type == Key::Type::Path && text.empty())
      value = std::string();
    else if (key.type == Key::Type::Tiers && text.empty())
      value = std::vector<std::string>();
    else
      parseValue(key, text, value);
    key.set(*this, value);
  }
}

std::vector<Change> diff(const Config &before, const Config &after) {
  std::vector<Change> changes;
  for (const Key &key : allKeys()) {
    Value a = key.get(before), b = key.get(after);
    if (a != b)
      changes.push_back({key.name, printValue(key, a), printValue(key, b), key.reloadable});
  }
  return changes;
}

/// Nested maps in block style, lists and scalars in one line each.
std::string printConfig(const Config &config, Keys keys) {
  std::string text;
  std::vector<std::string> open; // sections around the last key
  for (const Key &key : allKeys()) {
    if (!isFor(key, keys))
      continue;
    Value value = key.get(config);
    if (key.type == Key::Type::Path && std::get<std::string>(value).empty())
      continue; // its absence says so
    std::string_view rest = key.name;
    size_t depth = 0;
    for (size_t dot; (dot = rest.find('.')) != std::string_view::npos; ++depth) {
      std::string section(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
      if (depth < open.size() && open[depth] == section)
        continue;
      open.resize(depth);
      open.push_back(section);
      text += std::string(2 * depth, ' ') + section + ":\n";
    }
    open.resize(depth);
    text += std::string(2 * depth, ' ') + std::string(rest) + ": " + printValue(key, value) + "\n";
  }
  return text;
}

/// Of a run.
static std::string notTaken(const Key &key) {
  if (key.use == Key::Use::Pages)
    return "from C only";
  std::string text;
  for (const Key::Refused &refused : key.refused)
    text += (text.empty() ? "refused: " : ", ") + std::string(refused.name);
  return text;
}

std::string keyTable() {
  std::string text = "| key | type | default | range | at run time | | meaning |\n|---|---|---|---|---|---|---|\n";
  for (const Key &key : allKeys())
    text += "| `" + std::string(key.name) + "` | " + typeName(key) + " | " +
            (*key.initial ? "`" + std::string(key.initial) + "`" : "none") + " | " + rangeOf(key) + " | " +
            (key.reloadable ? "yes" : "") + " | " + notTaken(key) + " | " + key.description + " |\n";
  return text;
}

static std::string wrapped(const std::string &text, size_t indent, size_t width) {
  std::string out(indent, ' ');
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    if (column > indent && column + 1 + end - at > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(text, at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out + "\n";
}

std::string keyText() {
  constexpr size_t indent = 4, width = 100;
  std::string text;
  for (const Key &key : allKeys()) {
    std::string taken = notTaken(key), initial = *key.initial ? key.initial : "none";
    text += std::string(key.name) + "\n" + wrapped(key.description, indent, width) +
            wrapped(std::string(typeName(key)) + ": " + rangeOf(key) + "; default: " + initial +
                        (key.reloadable ? "; can change at run time" : "") + (taken.empty() ? "" : "; " + taken),
                    indent, width);
  }
  return text;
}

} // namespace quire::config
