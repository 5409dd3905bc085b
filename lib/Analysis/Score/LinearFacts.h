// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entailment between predicates over integers, by Fourier-Motzkin elimination.

#ifndef QUIRE_ANALYSIS_SCORE_LINEARFACTS_H
#define QUIRE_ANALYSIS_SCORE_LINEARFACTS_H

#include "lib/Analysis/Element/Expr.h"

namespace quire {

/// Expressions that are all >= 0.
using Conjunction = llvm::SmallVector<Expr, 8>;

/// Disjunction of conjunctions of integer inequalities, or nothing if the
/// predicate has other atoms or is too large.
std::optional<std::vector<Conjunction>> disjunctiveForm(ExprContext &ctx,
                                                        Expr predicate);

/// False only if no integers satisfy all inequalities. Monomials that are not
/// variables count as variables; floor division and modulus by constants
/// bring their defining inequalities.
bool isFeasible(ExprContext &ctx, llvm::ArrayRef<Expr> inequalities);

/// Proved answers; "false" means "not proved".
bool implies(ExprContext &ctx, Expr a, Expr b, llvm::ArrayRef<Expr> given);
bool equivalent(ExprContext &ctx, Expr a, Expr b, llvm::ArrayRef<Expr> given);
/// a never holds.
bool contradicts(ExprContext &ctx, Expr a, llvm::ArrayRef<Expr> given);

} // namespace quire

#endif // QUIRE_ANALYSIS_SCORE_LINEARFACTS_H
