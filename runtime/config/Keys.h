// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of keys: everything that is known of a key stands in one row.
#ifndef QUIRE_RUNTIME_CONFIG_KEYS_H
#define QUIRE_RUNTIME_CONFIG_KEYS_H

#include "config/Config.h"

#include <variant>

namespace quire::config {

/// What a key holds. A choice is the index of its name.
using Value = std::variant<uint64_t, int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<std::string>>;

struct Key {
  /// Who does something with it.
  enum class Use {
    Pages, // callers with pages of several sizes, see quire/config.h
    Run    // quire-run
  };
  /// A name of a choice that a run refuses, and why.
  struct Refused {
    const char *name;
    bool isPlanned; // "not implemented" stands before it
    const char *reason;
  };
  enum class Type {
    Size,   // uint64_t, bytes
    Rate,   // uint64_t, bytes a second
    Time,   // int64_t, nanoseconds
    Count,  // int64_t
    Ratio,  // double
    Switch, // bool
    Choice, // int64_t
    Path,   // string
    Counts, // vector of int64_t
    Tiers   // vector of string, as splitTier() reads them
  };

  const char *name; // with its sections, such as "memory.slow.path"
  Type type;
  double low, high;                // bounds, inclusive, where the type has such
  std::vector<const char *> names; // of a choice
  const char *initial;             // as in a file; a path: what "" means
  bool reloadable;                 // a running program can take a new value
  Use use;
  const char *description;
  Value (*get)(const Config &);
  void (*set)(Config &, const Value &);
  std::vector<Refused> refused = {};
};

const std::vector<Key> &allKeys();

/// Whether its value is a list.
bool isList(const Key &key);

/// "file:/var/tmp/kv 1GiB": a tier, as in quire_slow_tier_options, and its bytes. False: it is none.
bool splitTier(std::string_view text, std::string &where, uint64_t &bytes);

/// "a size of 4KiB to 4MiB".
std::string expectedOf(const Key &key);

/// Reads the text of a scalar (of one element, where the type is a list). False
/// if it is not of the key's type or out of its range.
bool parseValue(const Key &key, std::string_view text, Value &out);

/// Whether files for these may have the key.
bool isFor(const Key &key, Keys keys);

/// Why a run does not take the key, or this value of it; "": it does.
std::string refusalOf(const Key &key);
std::string refusalOf(const Key &key, const Value &value);

/// As in a file.
std::string printValue(const Key &key, const Value &value);

/// What no single key can tell. False with the key at fault and the reason.
bool checkTogether(const Config &config, const char *&key, std::string &why);

} // namespace quire::config

#endif // QUIRE_RUNTIME_CONFIG_KEYS_H
