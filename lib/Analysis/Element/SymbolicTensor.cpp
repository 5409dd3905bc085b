// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generic indices of symbolic tensors.

#include "lib/Analysis/Element/SymbolicTensor.h"
#include <cassert>

using namespace llvm;

namespace quire {

Expr genericIndex(ExprContext &ctx, unsigned axis, Expr extent) {
  if (ctx.isConst(extent, 1))
    return ctx.num(0);
  return ctx.index("i" + std::to_string(axis), extent);
}

SmallVector<Expr, 4> genericIndices(ExprContext &ctx, ArrayRef<Expr> extents) {
  SmallVector<Expr, 4> out;
  for (auto [axis, extent] : llvm::enumerate(extents))
    out.push_back(genericIndex(ctx, axis, extent));
  return out;
}

Expr elementAt(ExprContext &ctx, const SymbolicTensor &t,
               ArrayRef<Expr> index) {
  assert(index.size() == t.rank() && "one index per axis");
  Substitution map;
  for (auto [axis, extent] : llvm::enumerate(t.extents)) {
    Expr v = genericIndex(ctx, axis, extent);
    if (v->is(ExprKind::Var))
      map.push_back({v, index[axis]});
  }
  return ctx.subst(t.element, map);
}

} // namespace quire
