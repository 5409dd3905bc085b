// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The abstract value of a tensor: its extents and its element at a generic
// index.

#ifndef QUIRE_ANALYSIS_ELEMENT_SYMBOLICTENSOR_H
#define QUIRE_ANALYSIS_ELEMENT_SYMBOLICTENSOR_H

#include "lib/Analysis/Element/Expr.h"

namespace quire {

/// Axis a with extent e is indexed by `genericIndex(ctx, a, e)`; an axis of
/// extent 1 is indexed by 0, so that broadcasting needs no case distinction.
struct SymbolicTensor {
  llvm::SmallVector<Expr, 4> extents;
  Expr element = nullptr;
  ElementType type = ElementType::Float;

  unsigned rank() const { return extents.size(); }
};

/// The variable `i<axis>` with this extent, or 0 for an extent of 1.
Expr genericIndex(ExprContext &ctx, unsigned axis, Expr extent);
llvm::SmallVector<Expr, 4> genericIndices(ExprContext &ctx,
                                          llvm::ArrayRef<Expr> extents);
/// The element of `t` at `index` (one expression per axis).
Expr elementAt(ExprContext &ctx, const SymbolicTensor &t,
               llvm::ArrayRef<Expr> index);

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_SYMBOLICTENSOR_H
