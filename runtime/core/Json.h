// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads JSON that comes from outside: bounded in depth, each key once, errors in words of our own.
#ifndef QUIRE_RUNTIME_CORE_JSON_H
#define QUIRE_RUNTIME_CORE_JSON_H

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::runtime {

/// Levels of arrays and objects in each other. Printing and destroying a value
/// may recurse once a level, so what is deeper is never built.
constexpr size_t maxJsonDepth = 32;

/// Parses the whole text into `out`; false with what is wrong and where in
/// `error`. `out` is then
/// - discarded, if the text is not valid JSON;
/// - what comes before the place that is too deep;
/// - whole, with the first of the values, if a key comes twice in an object.
/// Throws only when memory runs out.
bool parseJson(std::string_view text, nlohmann::json &out, std::string &error);

/// The value as text for errors: at most `limit` characters, ASCII.
std::string shownJson(const nlohmann::json &value, size_t limit);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_JSON_H
