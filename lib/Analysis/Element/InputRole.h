// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a graph input is for, as found by its uses.

#ifndef QUIRE_ANALYSIS_ELEMENT_INPUTROLE_H
#define QUIRE_ANALYSIS_ELEMENT_INPUTROLE_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace quire {

enum class InputRole {
  Unknown,
  InputIds,       // [B, L]
  PositionIds,    // [B, L] = P + i
  AttentionMask,  // [B, P + L] = 1
  EncoderMask,    // [B, encoder length] = 1
  CachePosition,  // [L] = P + i
  PastLengths,    // [B] = P
  TotalLengths,   // [B] = P + L
  LastPositions,  // [B] = P + L - 1
  TotalLength,    // [] = P + L, one for the whole batch
  PastLength,     // [] = P, one for the whole batch
  UseCacheBranch, // true
  State,          // cached rows or recurrent state
  CallerMask,     // a mask that the caller makes: no meaning in the graph
  PrefixLength,   // a length of the whole batch with no known meaning
  Unused,
};

llvm::StringRef stringifyInputRole(InputRole role);
/// Of a role that can be given.
std::optional<InputRole> parseInputRole(llvm::StringRef text);
/// All of those, by commas: all but `unknown`.
std::string inputRoleNames();

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_INPUTROLE_H
