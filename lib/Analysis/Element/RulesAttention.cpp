// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of products, rotations, convolutions and recurrent operators.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {
namespace {

struct ProductForm {
  bool transA = false, transB = false;
  double alpha = 1;
};

LogicalResult matrixProduct(Operation *op, Interp &in, const SymbolicTensor &a,
                            const SymbolicTensor &b, ProductForm form,
                            const SymbolicTensor *bias = nullptr,
                            double beta = 1) {
  ExprContext &ctx = in.ctx;
  unsigned ra = a.rank(), rb = b.rank();
  if (ra < 2 || rb < 2)
    return in.refuse(op, "product with a vector");
  unsigned r = std::max(ra, rb);
  Expr ka = a.extents[form.transA ? ra - 2 : ra - 1];
  Expr kb = b.extents[form.transB ? rb - 1 : rb - 2];
  Expr m = a.extents[form.transA ? ra - 1 : ra - 2];
  Expr n = b.extents[form.transB ? rb - 2 : rb - 1];
  if (failed(in.unify(op, ka, kb)))
    return failure();
  SymbolicTensor fa, fb;
  fa.extents.assign(a.extents.begin(), a.extents.end() - 2);
  fb.extents.assign(b.extents.begin(), b.extents.end() - 2);
  auto extents = in.broadcast(op, {&fa, &fb});
  if (!extents)
    return failure();
  extents->push_back(m);
  extents->push_back(n);
  Expr c = in.fresh(ka);
  auto element = [&](const SymbolicTensor &t, Expr first, Expr second) {
    SmallVector<Expr, 4> idx;
    for (unsigned q = 0; q + 2 < t.rank(); ++q) {
      unsigned axis = q + r - t.rank();
      idx.push_back(ctx.isConst(t.extents[q], 1)
                        ? ctx.num(0)
                        : in.index(axis, (*extents)[axis]));
    }
    idx.push_back(first);
    idx.push_back(second);
    return in.at(t, idx);
  };
  Expr row = in.index(r - 2, m), col = in.index(r - 1, n);
  Expr ea = form.transA ? element(a, c, row) : element(a, row, c);
  Expr eb = form.transB ? element(b, col, c) : element(b, c, col);
  Value result = op->getResult(0);
  SymbolicTensor out;
  out.extents = *extents;
  out.type = elementTypeOf(result.getType());
  out.element = in.contract(op, result, out.extents, c, ea, eb, form.alpha);
  if (bias) {
    auto whole = in.broadcast(op, {&out, bias});
    if (!whole)
      return failure();
    out.element = ctx.add(out.element, ctx.mul(ctx.real(beta),
                                               in.atBroadcast(*bias, *whole)));
    if (*whole != out.extents)
      return in.refuse(op, "expected a bias that fits the product");
  }
  in.set(result, std::move(out));
  return success();
}

LogicalResult matMulRule(onnx::MatMulOp op, Interp &in) {
  const SymbolicTensor *a = in.get(op.getA()), *b = in.get(op.getB());
  return a && b ? matrixProduct(op, in, *a, *b, {}) : failure();
}

template <typename OpT>
LogicalResult fusedMatMulRule(OpT op, Interp &in) {
  if constexpr (std::is_same_v<OpT, onnx::MSFusedMatMulOp>)
    if (op.getTransBatchA() || op.getTransBatchB())
      return in.refuse(op, "not implemented: transposed batch axes");
  const SymbolicTensor *a = in.get(op.getA()), *b = in.get(op.getB());
  if (!a || !b)
    return failure();
  return matrixProduct(op, in, *a, *b,
                       {op.getTransA() != 0, op.getTransB() != 0,
                        double(op.getAlpha())});
}

LogicalResult gemmRule(onnx::GemmOp op, Interp &in) {
  const SymbolicTensor *a = in.get(op.getA()), *b = in.get(op.getB());
  if (!a || !b)
    return failure();
  return matrixProduct(op, in, *a, *b,
                       {op.getTransA() != 0, op.getTransB() != 0,
                        double(op.getAlpha())},
                       in.getOptional(op.getC()), double(op.getBeta()));
}

/// Products with integers: zero points are weights or data of the same token.
LogicalResult matMulIntegerRule(onnx::MatMulIntegerOp op, Interp &in) {
  const SymbolicTensor *a = in.get(op.getA()), *b = in.get(op.getB());
  if (!a || !b)
    return failure();
  SymbolicTensor shifted[2] = {*a, *b};
  for (auto [i, zero] : {std::pair(0, op.getAZeroPoint()),
                         std::pair(1, op.getBZeroPoint())}) {
    const SymbolicTensor *z = in.getOptional(zero);
    if (!z)
      continue;
    if (!in.ctx.isConst(in.productOf(z->extents), 1)) {
      if (!in.ctx.leavesOf(z->element).tokens.empty())
        return in.refuse(op, "not implemented: zero points per row");
      continue; // a weight
    }
    shifted[i].element = in.ctx.sub(shifted[i].element, z->element);
  }
  return matrixProduct(op, in, shifted[0], shifted[1], {});
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

/// x with its features mixed by rows of the tables at `pos`.
LogicalResult rotate(Operation *op, Interp &in, const SymbolicTensor &x,
                     const SymbolicTensor &cosine, const SymbolicTensor *pos,
                     int64_t rotaryDim, bool interleaved) {
  ExprContext &ctx = in.ctx;
  if (x.rank() != 3 && x.rank() != 4)
    return in.refuse(op, "expected rows of heads");
  unsigned token = x.rank() == 4 ? 2 : 1;
  Expr batch = in.index(0, x.extents[0]), row = in.index(token, x.extents[token]);
  SmallVector<Expr> bound;
  Expr turned = in.bindAxes(x, {x.rank() - 1}, bound);
  auto at = [&](const SymbolicTensor &t, unsigned axis, Expr v) {
    return ctx.isConst(t.extents[axis], 1) ? ctx.num(0) : v;
  };
  Expr angle;
  Expr feature = in.fresh(cosine.extents.back());
  if (feature->is(ExprKind::Var))
    bound.push_back(feature);
  if (pos && pos->rank() == 2 && cosine.rank() == 2) {
    if (failed(in.unify(op, pos->extents[1], x.extents[token])))
      return failure();
    Expr p = in.at(*pos, {at(*pos, 0, batch), at(*pos, 1, row)});
    in.boundPositions(p, cosine.extents[0]);
    angle = p->isBad() ? p : in.at(cosine, {p, feature});
  } else if (pos && pos->rank() == 1 && cosine.rank() == 2 &&
             ctx.isConst(pos->extents[0], 1)) {
    Expr p = ctx.add(pos->element, row);
    in.boundPositions(p, cosine.extents[0]);
    angle = in.at(cosine, {p, feature});
  } else if (!pos && cosine.rank() == 3) {
    if (failed(in.unify(op, cosine.extents[1], x.extents[token])))
      return failure();
    angle = in.at(cosine, {at(cosine, 0, batch), at(cosine, 1, row), feature});
  } else {
    return in.refuse(op, "expected positions or rows of angles");
  }
  Value r = op->getResult(0);
  if (std::optional<int64_t> half = ctx.constInt(cosine.extents.back()))
    in.rotations[in.label(r)] =
        (interleaved ? "interleaved " : "half ") +
        std::to_string(rotaryDim ? rotaryDim : *half * 2);
  in.set(r, {x.extents,
             in.leaf(op, in.label(r), x.extents, {turned, angle},
                     ElementType::Float, bound),
             ElementType::Float});
  return success();
}

LogicalResult rotaryRule(onnx::RotaryEmbeddingOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getX()), *c = in.get(op.getCosCache()),
                       *s = in.get(op.getSinCache());
  if (!x || !c || !s)
    return failure();
  const SymbolicTensor *pos = in.getOptional(op.getPositionIds());
  SymbolicTensor both = *c;
  if (s->extents != c->extents)
    return in.refuse(op, "expected tables of one shape");
  both.element = in.ctx.named("angle", {c->element, s->element});
  return rotate(op, in, *x, both, pos, op.getRotaryEmbeddingDim(),
                op.getInterleaved());
}

LogicalResult msRotaryRule(onnx::MSRotaryEmbeddingOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput()),
                       *pos = in.get(op.getPositionIds()),
                       *c = in.get(op.getCosCache()),
                       *s = in.get(op.getSinCache());
  if (!x || !pos || !c || !s)
    return failure();
  if (op.getIsPackedBatching().value_or(0))
    return in.refuse(op, "not implemented: packed batches");
  if (s->extents != c->extents)
    return in.refuse(op, "expected tables of one shape");
  SymbolicTensor both = *c;
  both.element = in.ctx.named("angle", {c->element, s->element});
  return rotate(op, in, *x, both, pos, op.getRotaryEmbeddingDim(),
                op.getInterleaved().value_or(0) != 0);
}

//===----------------------------------------------------------------------===//
// Carried states
//===----------------------------------------------------------------------===//

LogicalResult convRule(onnx::ConvOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *x = in.get(op.getX()), *w = in.get(op.getW());
  if (!x || !w)
    return failure();
  if (x->rank() != 3 || w->rank() != 3)
    return in.refuse(op, "not implemented: convolution of this rank");
  std::optional<int64_t> k = ctx.constInt(w->extents[2]);
  if (!k)
    return in.refuse(op, "expected a constant kernel");
  int64_t pads = 0;
  if (auto p = op.getPads())
    for (int64_t v : *p)
      pads += v;
  if (auto s = op.getStrides())
    for (int64_t v : *s)
      if (v != 1)
        return in.refuse(op, "not implemented: convolution with a stride");
  if (auto s = op.getDilations())
    for (int64_t v : *s)
      if (v != 1)
        return in.refuse(op, "not implemented: dilated convolution");
  SymbolicTensor out;
  out.extents = {x->extents[0], w->extents[0],
                 ctx.add(x->extents[2], ctx.num(pads - (*k - 1)))};
  Leaves l = ctx.leavesOf(x->element);
  out.element = l.bad ? l.bad
                      : in.bad(op, "convolution over tokens with a carried "
                                   "state");
  in.set(op.getResult(), std::move(out));
  return success();
}
} // namespace

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

void attachAttentionRules(MLIRContext &c) {
  using namespace onnx;
  attach<MatMulOp, matMulRule>(c);
  attach<MSFusedMatMulOp, fusedMatMulRule<MSFusedMatMulOp>>(c);
  attach<MSTransposeMatMulOp, fusedMatMulRule<MSTransposeMatMulOp>>(c);
  attach<GemmOp, gemmRule>(c);
  attach<MatMulIntegerOp, matMulIntegerRule>(c);
  attach<RotaryEmbeddingOp, rotaryRule>(c);
  attach<MSRotaryEmbeddingOp, msRotaryRule>(c);
  attach<ConvOp, convRule>(c);
}

} // namespace quire
