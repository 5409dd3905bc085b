// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rule of If, and the registration of all families.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {
namespace {

LogicalResult ifRule(onnx::IfOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *cond = in.get(op.getCond());
  if (!cond)
    return failure();
  Expr c = ctx.asBool(cond->element);
  if (c->isBad())
    return in.refuse(op, c->name);
  auto branch = [&](Region &region) -> ValueRange {
    return cast<onnx::YieldOp>(region.front().getTerminator()).getValues();
  };
  if (c->is(ExprKind::Bool)) {
    Region &taken = c->payload ? op.getThenBranch() : op.getElseBranch();
    if (failed(in.interpretBlock(taken.front())))
      return failure();
    for (auto [r, v] : llvm::zip(op.getOutputs(), branch(taken))) {
      const SymbolicTensor *t = in.get(v);
      if (!t)
        return failure();
      in.set(r, *t);
    }
    return success();
  }
  for (Region *region : {&op.getThenBranch(), &op.getElseBranch()})
    if (failed(in.interpretBlock(region->front())))
      return failure();
  in.flag("If on " + ctx.str(c));
  for (auto [r, v, w] :
       llvm::zip(op.getOutputs(), branch(op.getThenBranch()),
                 branch(op.getElseBranch()))) {
    const SymbolicTensor *a = in.get(v), *b = in.get(w);
    if (!a || !b)
      return failure();
    SymbolicTensor out = *a;
    if (a->rank() != b->rank())
      return in.refuse(op, "branches of different rank");
    if (a->extents == b->extents) {
      out.element = ctx.ite(c, a->element, b->element);
    } else {
      // Tables of different length: indices within the shorter one agree.
      for (unsigned q = 0; q < a->rank(); ++q)
        if (a->extents[q] != b->extents[q] &&
            (!ctx.constInt(a->extents[q]) || !ctx.constInt(b->extents[q])))
          return in.refuse(op, "branches of different extents " +
                                   ctx.str(a->extents[q]) + " and " +
                                   ctx.str(b->extents[q]));
      in.assumeShortSide(c);
      out.element = ctx.ite(c, a->element,
                            in.at(*b, in.generic(a->extents)));
    }
    in.set(r, std::move(out));
  }
  return success();
}
} // namespace

void attachControlRules(MLIRContext &context) {
  onnx::IfOp::attachInterface<RuleModel<onnx::IfOp, ifRule>>(context);
}

void registerElementExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, onnx::ONNXDialect *) {
    attachMathRules(*context);
    attachShapeRules(*context);
    attachIndexRules(*context);
    attachNormRules(*context);
    attachAttentionRules(*context);
    attachQuantRules(*context);
    attachControlRules(*context);
  });
}

} // namespace quire
