// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The strict JSON lines reader.
#include "serving/RequestReader.h"

#include "core/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace quire::serving {

using Json = nlohmann::json;

static constexpr size_t maxLineBytes = size_t(64) << 20;
static constexpr size_t maxIdLength = 64;
static constexpr size_t maxShown = 40; // characters of a bad value in an error

namespace {

/// A refused line; the text goes into the request's error.
struct BadLine {
  std::string text;
};

} // namespace

static std::string shown(const Json &value) {
  if (value.is_array())
    return "an array";
  if (value.is_object())
    return "an object";
  return runtime::shownJson(value, maxShown);
}

[[noreturn]] static void refuse(const std::string &what, const std::string &expected, const Json &got) {
  throw BadLine{what + ": expected " + expected + ", but got " + shown(got)};
}

static std::string range(int64_t low, int64_t high) {
  return "an integer of " + std::to_string(low) + " to " + std::to_string(high);
}

/// JSON integers only: 1.0 and 1e3 are not.
static int64_t integer(const Json &value, const std::string &what, int64_t low, int64_t high) {
  bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX));
  if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high)
    refuse(what, range(low, high), value);
  return value.get<int64_t>();
}

static double number(const Json &value, const std::string &what, const char *expected) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    refuse(what, expected, value);
  return value.get<double>();
}

static std::vector<int64_t> tokenIds(const Json &value, const char *what, int64_t limit) {
  if (!value.is_array())
    refuse(what, "an array of token ids", value);
  std::vector<int64_t> ids;
  ids.reserve(value.size());
  for (const Json &id : value)
    ids.push_back(integer(id, std::string(what) + "[" + std::to_string(ids.size()) + "]", 0, limit - 1));
  return ids;
}

static bool validId(const std::string &id) {
  if (id.empty() || id.size() > maxIdLength)
    return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

/// False if there is no id, or no valid one.
static bool takeId(const Json &object, Request &out) {
  auto found = object.find("id");
  if (found == object.end())
    return false;
  if (found->is_number_unsigned()) {
    out.id = std::to_string(found->get<uint64_t>());
    out.idKind = Request::IdKind::Integer;
  } else if (found->is_number_integer()) {
    out.id = std::to_string(found->get<int64_t>());
    out.idKind = Request::IdKind::Integer;
  } else if (found->is_string() && validId(found->get<std::string>())) {
    out.id = found->get<std::string>();
    out.idKind = Request::IdKind::Text;
  }
  return out.idKind != Request::IdKind::None;
}

/// Of turns or paragraphs. Each has a token, and the last may end with the prompt.
static std::vector<int64_t> endsIn(const Json &value, const std::string &key, const std::vector<int64_t> &prompt) {
  if (!value.is_array())
    refuse(key, "an array of positions in the prompt", value);
  std::vector<int64_t> ends;
  int64_t length = static_cast<int64_t>(prompt.size());
  for (const Json &end : value) {
    std::string what = key + "[" + std::to_string(ends.size()) + "]";
    int64_t low = ends.empty() ? 1 : ends.back() + 1;
    if (low > length)
      refuse(what, "no more of them, as the one before ends with the prompt", end);
    ends.push_back(integer(end, what, low, length));
  }
  return ends;
}

static void readSampling(const std::string &key, const Json &value, Sampling &out) {
  if (key == "temperature") {
    out.temperature = number(value, key, "a number of at least 0");
    if (out.temperature < 0)
      refuse(key, "a number of at least 0", value);
  } else if (key == "top_k") {
    out.topK = integer(value, key, 0, INT64_MAX);
  } else if (key == "top_p") {
    out.topP = number(value, key, "a number above 0, at most 1");
    if (!(out.topP > 0 && out.topP <= 1))
      refuse(key, "a number above 0, at most 1", value);
  } else if (key == "seed") {
    if (!value.is_number_unsigned())
      refuse(key, "an integer of 0 to 18446744073709551615", value);
    out.seed = value.get<uint64_t>();
  }
}

RequestReader::RequestReader(const quire_model_info &model)
    : tokenLimit_(model.token_limit), vocabulary_(model.vocabulary), maxPositions_(model.max_positions) {}

void RequestReader::checkLength(bool lengthGiven, Request &out) const {
  int64_t prompt = static_cast<int64_t>(out.prompt.size());
  if (!lengthGiven) {
    out.maxNewTokens = defaultMaxNewTokens;
    if (maxPositions_ >= 0)
      out.maxNewTokens = std::min(out.maxNewTokens, maxPositions_ - prompt);
  }
  if (maxPositions_ >= 0 && (prompt >= maxPositions_ || out.maxNewTokens > maxPositions_ - prompt))
    throw BadLine{"length: " + std::to_string(prompt) + " prompt tokens and " +
                  std::to_string(std::max<int64_t>(out.maxNewTokens, 1)) + " new ones are beyond the model's " +
                  std::to_string(maxPositions_) + " positions"};
}

void RequestReader::parse(std::string_view line, Request &out) {
  if (line.size() > maxLineBytes)
    throw BadLine{"longer than 64 MiB"};
  Json object;
  std::string error;
  bool parsed = runtime::parseJson(line, object, error);
  if (parsed && !object.is_object())
    refuse("request", "an object", object);
  bool named = takeId(object, out);
  bool used = named && !seen_.insert(out.id).second;
  if (!parsed)
    throw BadLine{error};
  if (!object.contains("id"))
    throw BadLine{"missing 'id'"};
  if (!named)
    refuse("id", "an integer or 1 to 64 characters of A-Z a-z 0-9 . _ -", object["id"]);
  if (used)
    throw BadLine{"id '" + out.id + "' was used by an earlier request"};
  bool lengthGiven = false;
  for (const auto &[key, value] : object.items()) {
    if (key == "id")
      continue;
    if (key == "prompt") {
      out.prompt = tokenIds(value, "prompt", tokenLimit_);
    } else if (key == "max_new_tokens") {
      out.maxNewTokens = integer(value, key, 1, INT32_MAX);
      lengthGiven = true;
    } else if (key == "stop") {
      out.stop = tokenIds(value, "stop", vocabulary_);
    } else if (key == "turns" || key == "paragraphs") {
      continue; // after the prompt
    } else if (key == "tenant") {
      if (!value.is_string() || !validId(value.get<std::string>()))
        refuse(key, "1 to 64 characters of A-Z a-z 0-9 . _ -", value);
      out.tenant = value.get<std::string>();
    } else if (key == "temperature" || key == "top_k" || key == "top_p" || key == "seed") {
      readSampling(key, value, out.sampling);
    } else if (key == "inputs") {
      if (!value.is_object())
        refuse(key, "an object of file names", value);
      if (!value.empty())
        throw BadLine{"inputs: this model takes no input but tokens, but got " + shown(value.begin().key())};
    } else {
      throw BadLine{"unknown key " + shown(key) +
                    ": expected id, prompt, max_new_tokens, stop, temperature, top_k, top_p, seed, inputs, tenant, turns or paragraphs"};
    }
  }
  if (!object.contains("prompt"))
    throw BadLine{"missing 'prompt'"};
  if (out.prompt.empty())
    throw BadLine{"prompt: expected at least one token id, but got none"};
  if (object.contains("turns"))
    out.turns = endsIn(object["turns"], "turns", out.prompt);
  if (object.contains("paragraphs"))
    out.paragraphs = endsIn(object["paragraphs"], "paragraphs", out.prompt);
  checkLength(lengthGiven, out);
}

bool RequestReader::read(std::string_view line, Request &out) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == std::string_view::npos)
    return false;
  out = Request();
  out.line = line_;
  try {
    parse(line, out);
  } catch (const BadLine &bad) {
    out.error = "line " + std::to_string(line_) + ": " + bad.text;
  }
  return true;
}

} // namespace quire::serving
