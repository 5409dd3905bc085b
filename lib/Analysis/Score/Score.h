// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the element of a score row to scale, softcap, mask, bias and sinks.

#ifndef QUIRE_ANALYSIS_SCORE_SCORE_H
#define QUIRE_ANALYSIS_SCORE_SCORE_H

#include "lib/Analysis/Element/Expr.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace quire {

enum class MaskKind {
  Causal,  // k <= p
  Window,  // and p - k < size
  Chunked, // and k div size == p div size
  Full,    // every key
  Prefix,  // or k < size: exact only if the prefix arrives in one call
  Other,   // none of these: see the predicate
};

enum class BiasKind {
  None,
  Alibi,  // slopes[h] * k; a row constant is dropped, softmax ignores it
  Region, // some function of head, p and k
};

llvm::StringRef stringifyMaskKind(MaskKind kind);

/// The softmax input at a generic index, and which index is what.
struct ScoreRow {
  Expr element = nullptr;
  Expr rowVar = nullptr; // query row of extent L; null for one-token calls
  Expr keyVar = nullptr; // along the softmax axis
  Expr keys = nullptr;   // keys that exist: P + L, the buffer, the encoder
  Expr keyExtent = nullptr; // keys, or keys + 1 with a sink column
  llvm::SmallVector<Expr> headVars; // row-major
  unsigned heads = 1;
  bool cross = false;
  bool oneToken = false;
};

struct ScoreMeaning {
  std::string failure; // empty if everything below holds
  /// The finite number closest to 0 that masked keys have or get added; 0: none.
  double weakestMask = 0;
  Expr visible = nullptr; // over p, k
  double scale = 1, softcap = 0;
  MaskKind mask = MaskKind::Other;
  int64_t maskSize = 0;
  BiasKind biasKind = BiasKind::None;
  Expr bias = nullptr; // over the head variables, p, k
  llvm::SmallVector<double> slopes;
  bool hasSinks = false;
  llvm::SmallVector<double> sinks;
  explicit operator bool() const { return failure.empty(); }
};

/// Symbols of the result.
Expr queryPosition(ExprContext &ctx);
Expr keyPosition(ExprContext &ctx);

/// What holds for every query position p and key k of a call.
llvm::SmallVector<Expr> positionFacts(ExprContext &ctx, Expr keys, bool cross,
                                      bool oneToken);

/// Kind of a visibility predicate, by proof; `size` is set where one applies.
MaskKind classifyMask(ExprContext &ctx, Expr visible,
                      llvm::ArrayRef<Expr> facts, bool oneToken,
                      int64_t &size);

ScoreMeaning analyzeScore(ExprContext &ctx, const ScoreRow &row);

} // namespace quire

#endif // QUIRE_ANALYSIS_SCORE_SCORE_H
