// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Building of values from the events of nlohmann's parser, which itself does not recurse.
#include "core/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

namespace quire::runtime {

using Json = nlohmann::json;

static constexpr size_t maxShown = 40; // characters of the text or of a key in an error

static std::string shortened(std::string text, size_t limit) {
  if (text.size() > limit)
    text.replace(limit - 3, std::string::npos, "...");
  return text;
}

std::string shownJson(const Json &value, size_t limit) {
  return shortened(value.dump(-1, ' ', true, Json::error_handler_t::replace), limit);
}

/// "line 2, column 5", or without the line where there is only one.
static std::string placeIn(std::string_view text, size_t offset) {
  std::string_view before = text.substr(0, std::max<size_t>(offset, 1) - 1);
  size_t start = before.rfind('\n') + 1; // none: 0
  std::string column = "column " + std::to_string(before.size() - start + 1);
  if (text.find('\n') == std::string_view::npos)
    return column;
  return "line " + std::to_string(std::count(before.begin(), before.end(), '\n') + 1) + ", " + column;
}

/// The character that the parser stopped at; `offset` counts those it has read.
static std::string characterAt(std::string_view text, size_t offset) {
  if (offset == 0 || offset > text.size())
    return "end of input";
  unsigned char c = static_cast<unsigned char>(text[offset - 1]);
  if (c > 0x20 && c < 0x7f)
    return {'\'', text[offset - 1], '\''};
  char shown[16];
  std::snprintf(shown, sizeof(shown), "byte 0x%02x", c);
  return shown;
}

/// "expected X, but got Y" for the parser's "[name] parse error at line 1, column 2: syntax error while parsing CONTEXT
/// - unexpected Y; expected X", or with "REASON; last read: 'token'" in the middle.
static std::string reword(std::string what, const std::string &token, const std::string &character) {
  size_t name = what.find("] ");
  if (name != std::string::npos)
    what.erase(0, name + 2);
  if (what.rfind("number overflow", 0) == 0)
    return "expected a number within the range of double precision, but got " + shortened(token, maxShown);
  size_t context = what.find("while parsing "), dash = what.find(" - ");
  if (context == std::string::npos || dash == std::string::npos || context > dash)
    return shortened(what, 200); // another version of the parser
  std::string inside = what.substr(context + 14, dash - context - 14);
  std::string got = what.substr(dash + 3), expected = "a value";
  std::string read = "; last read: '" + token + "'";
  size_t end = got.find(read), tail = got.find("; expected ", end == std::string::npos ? 0 : end + read.size());
  if (tail != std::string::npos)
    expected = got.substr(tail + 11);
  if (inside == "array" || inside == "object")
    expected = "',' or " + expected;
  if (end != std::string::npos)
    got = character + ": " + got.substr(0, end);
  else if (got.rfind("unexpected ", 0) == 0)
    got = got.substr(11, tail == std::string::npos ? tail : tail - 11);
  return "expected " + expected + ", but got " + got;
}

namespace {

class Builder : public nlohmann::json_sax<Json> {
public:
  Builder(std::string_view text, Json &root) : text_(text), root_(root) {}

  std::string error;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override { return add(value); }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; } // not in text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &name) override {
    auto [place, isNew] = open_.back()->emplace(name, nullptr);
    member_ = isNew ? &*place : &repeated_.emplace_back();
    if (!isNew && error.empty())
      error = "key " + shownJson(name, maxShown) + " comes twice";
    return true;
  }

  bool parse_error(size_t offset, const std::string &token, const Json::exception &exception) override {
    error = "not valid JSON: " + placeIn(text_, offset) + ": " +
            reword(exception.what(), token, characterAt(text_, offset));
    root_ = Json(Json::value_t::discarded);
    return false;
  }

private:
  Json *place(Json value) {
    if (open_.empty())
      return &(root_ = std::move(value));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &(*member_ = std::move(value));
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == maxJsonDepth) {
      error = "expected at most " + std::to_string(maxJsonDepth) + " levels of arrays and objects, but got more";
      return false;
    }
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  Json &root_;
  std::deque<Json> repeated_; // values of keys that were there before; some may be open
  Json *member_ = nullptr;    // value of the last key
  // Arrays and objects that are not closed, outermost first. An array does not
  // grow while one of its elements is open, so the addresses hold.
  std::vector<Json *> open_;
};

} // namespace

bool parseJson(std::string_view text, Json &out, std::string &error) {
  out = Json();
  if (size_t at = text.find('\0'); at != text.npos) { // the parser takes it for the end
    error = "not valid JSON: " + placeIn(text, at + 1) + ": expected no byte of value 0";
    return false;
  }
  Builder builder(text, out);
  Json::sax_parse(text.begin(), text.end(), &builder);
  error = std::move(builder.error);
  return error.empty();
}

} // namespace quire::runtime
