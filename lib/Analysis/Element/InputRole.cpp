// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of input roles.

#include "lib/Analysis/Element/InputRole.h"
#include "llvm/ADT/StringExtras.h"
#include <iterator>

namespace quire {

static constexpr llvm::StringLiteral names[] = {
    "unknown",        "input-ids",     "position-ids",     "attention-mask",
    "encoder-mask",   "cache-position", "past-lengths",    "total-lengths",
    "last-positions", "total-length", "past-length",    "use-cache-branch", "state",         "caller-mask",
    "prefix-length",  "unused"};

llvm::StringRef stringifyInputRole(InputRole role) {
  return names[size_t(role)];
}

std::optional<InputRole> parseInputRole(llvm::StringRef text) {
  for (size_t i = 1; i < std::size(names); ++i)
    if (names[i] == text)
      return InputRole(i);
  return std::nullopt;
}

std::string inputRoleNames() {
  return llvm::join(llvm::ArrayRef(names).drop_front(), ", "); // not "unknown"
}

} // namespace quire
