// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Movement, indexing and reduction operations bound to their kernels.
#include "Rules.h"
#include "dialects/ONNX/ONNXReduceOps.h"
#include "dialects/ONNX/ONNXShapeOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace quire::eval;

namespace quire::onnx {

using Storage = llvm::SmallVector<int64_t, 8>;

static Result rule(ReshapeOp op, Operands in) { return reshape(*in[0], integersOf(*in[1]), op.getAllowzero()); }
static Result rule(TransposeOp op, Operands in) { return transpose(*in[0], op.getPerm()); }
static Result rule(SqueezeOp, Operands in) {
  Storage axes;
  return squeeze(*in[0], optionalInts(in[1], axes));
}
static Result rule(UnsqueezeOp, Operands in) { return unsqueeze(*in[0], integersOf(*in[1])); }
static Result rule(FlattenOp op, Operands in) { return flatten(*in[0], op.getAxis()); }
static Result rule(ExpandOp, Operands in) { return expand(*in[0], integersOf(*in[1])); }
static Result rule(TileOp, Operands in) { return tile(*in[0], integersOf(*in[1])); }
static Result rule(ConcatOp op, Operands in) { return concat(in, op.getAxis()); }
static Results rule(SplitOp op, Operands in) {
  Storage sizes;
  return split(*in[0], op.getAxis(), optionalInts(in[1], sizes), op.getNumResults());
}
static Result rule(SliceOp, Operands in) {
  Storage axes, steps;
  return slice(*in[0], integersOf(*in[1]), integersOf(*in[2]), optionalInts(in[3], axes), optionalInts(in[4], steps));
}
static Result rule(PadOp op, Operands in) {
  Storage axes;
  PadMode mode = llvm::StringSwitch<PadMode>(op.getMode())
                     .Case("reflect", PadMode::Reflect)
                     .Case("edge", PadMode::Edge)
                     .Case("wrap", PadMode::Wrap)
                     .Default(PadMode::Constant);
  return pad(*in[0], integersOf(*in[1]), in[2], optionalInts(in[3], axes), mode);
}
static Result rule(GatherOp op, Operands in) { return gather(*in[0], *in[1], op.getAxis()); }
static Result rule(GatherElementsOp op, Operands in) { return gatherElements(*in[0], *in[1], op.getAxis()); }
static Result rule(GatherNDOp op, Operands in) { return gatherND(*in[0], *in[1], op.getBatchDims()); }
static Result rule(MSGatherNDOp, Operands in) { return gatherND(*in[0], *in[1], 0); }
static llvm::Expected<Reduction> reductionOf(llvm::StringRef name) {
  auto found = llvm::StringSwitch<std::optional<Reduction>>(name)
                   .Case("none", Reduction::None)
                   .Case("add", Reduction::Add)
                   .Case("mul", Reduction::Mul)
                   .Case("max", Reduction::Max)
                   .Case("min", Reduction::Min)
                   .Default(std::nullopt);
  if (!found)
    return fail("expected a reduction of none, add, mul, max or min, but got " + name);
  return *found;
}
static Result rule(ScatterElementsOp op, Operands in) {
  llvm::Expected<Reduction> reduction = reductionOf(op.getReduction());
  return reduction ? scatterElements(*in[0], *in[1], *in[2], op.getAxis(), *reduction) : Result(reduction.takeError());
}
static Result rule(ScatterNDOp op, Operands in) {
  llvm::Expected<Reduction> reduction = reductionOf(op.getReduction());
  return reduction ? scatterND(*in[0], *in[1], *in[2], *reduction) : Result(reduction.takeError());
}
static Result rule(TensorScatterOp op, Operands in) {
  return tensorScatter(*in[0], *in[1], in[2], op.getAxis(), op.getMode() == "circular");
}
static Result rule(ShapeOp op, Operands in) { return shapeOf(*in[0], op.getStart(), op.getEnd()); }
static Result rule(SizeOp, Operands in) { return scalarTensor(ElementKind::I64, static_cast<double>(in[0]->count())); }
static Result rule(IdentityOp, Operands in) { return *in[0]; }
static Result rule(ConstantOfShapeOp op, Operands in) {
  Result value = op.getValue() ? tensorOf(*op.getValue()) : Result(Tensor::zeros(ElementKind::F32, {}));
  return value ? constantOfShape(integersOf(*in[0]), *value) : std::move(value);
}
static Result rule(EyeLikeOp op, Operands in) {
  if (!op.getDtype())
    return eyeLike(*in[0], std::nullopt, op.getK());
  llvm::Expected<ElementKind> kind = kindOrError(*op.getDtype());
  return kind ? eyeLike(*in[0], *kind, op.getK()) : Result(kind.takeError());
}
static Result rule(RangeOp, Operands in) { return range(*in[0], *in[1], *in[2]); }
static Result rule(OneHotOp op, Operands in) {
  return oneHot(*in[0], static_cast<int64_t>(scalarOf(*in[1])), *in[2], op.getAxis());
}
static Result rule(TriluOp op, Operands in) {
  return trilu(*in[0], in[1] ? static_cast<int64_t>(scalarOf(*in[1])) : 0, op.getUpper());
}
static Result rule(MSTriluOp op, Operands in) {
  return trilu(*in[0], in[1] ? static_cast<int64_t>(scalarOf(*in[1])) : 0, op.getUpper());
}
static Result rule(NonZeroOp, Operands in) { return nonZero(*in[0]); }
static Result rule(CompressOp op, Operands in) { return compress(*in[0], *in[1], op.getAxis()); }
static Result rule(ReverseSequenceOp op, Operands in) {
  return reverseSequence(*in[0], integersOf(*in[1]), op.getBatchAxis(), op.getTimeAxis());
}
static Result rule(DepthToSpaceOp op, Operands in) {
  return depthToSpace(*in[0], op.getBlocksize(), op.getMode() == "CRD");
}
static Result rule(SpaceToDepthOp op, Operands in) {
  return spaceToDepth(*in[0], op.getBlocksize(), op.getMode() == "CRD");
}
static Result rule(MSExpandDimsOp, Operands in) { return unsqueeze(*in[0], integersOf(*in[1])); }
static Results rule(DropoutOp op, Operands in) {
  bool training = in[2] && scalarOf(*in[2]) != 0;
  if (training && (!in[1] || scalarOf(*in[1]) != 0))
    return fail("not implemented: Dropout in training mode");
  std::vector<uint8_t> kept(static_cast<size_t>(in[0]->count()), 1);
  return Tensors{*in[0], Tensor::adopt(ElementKind::Bool, in[0]->shape(), std::move(kept))};
}

template <typename Op>
static Result reduceRule(ReduceKind kind, Op op, Operands in) {
  Storage axes;
  return reduce(kind, *in[0], optionalInts(in[1], axes), op.getKeepdims(), op.getNoopWithEmptyAxes());
}
static Result rule(ReduceL1Op op, Operands in) { return reduceRule(ReduceKind::L1, op, in); }
static Result rule(ReduceL2Op op, Operands in) { return reduceRule(ReduceKind::L2, op, in); }
static Result rule(ReduceLogSumOp op, Operands in) { return reduceRule(ReduceKind::LogSum, op, in); }
static Result rule(ReduceLogSumExpOp op, Operands in) { return reduceRule(ReduceKind::LogSumExp, op, in); }
static Result rule(ReduceMaxOp op, Operands in) { return reduceRule(ReduceKind::Max, op, in); }
static Result rule(ReduceMeanOp op, Operands in) { return reduceRule(ReduceKind::Mean, op, in); }
static Result rule(ReduceMinOp op, Operands in) { return reduceRule(ReduceKind::Min, op, in); }
static Result rule(ReduceProdOp op, Operands in) { return reduceRule(ReduceKind::Prod, op, in); }
static Result rule(ReduceSumOp op, Operands in) { return reduceRule(ReduceKind::Sum, op, in); }
static Result rule(ReduceSumSquareOp op, Operands in) { return reduceRule(ReduceKind::SumSquare, op, in); }
static Result rule(ArgMaxOp op, Operands in) {
  return argExtreme(*in[0], op.getAxis(), op.getKeepdims(), op.getSelectLastIndex(), true);
}
static Result rule(ArgMinOp op, Operands in) {
  return argExtreme(*in[0], op.getAxis(), op.getKeepdims(), op.getSelectLastIndex(), false);
}
static Results rule(TopKOp op, Operands in) {
  return topK(*in[0], static_cast<int64_t>(scalarOf(*in[1])), op.getAxis(), op.getLargest());
}

} // namespace quire::onnx

namespace quire::eval {
using namespace quire::onnx;

void attachShapeRules(MLIRContext &context) {
  attachRules<ReshapeOp, TransposeOp, SqueezeOp, UnsqueezeOp, FlattenOp, ExpandOp, TileOp, ConcatOp, SplitOp, SliceOp,
              PadOp, GatherOp, GatherElementsOp, GatherNDOp, MSGatherNDOp, ScatterElementsOp, ScatterNDOp,
              TensorScatterOp, onnx::ShapeOp, SizeOp, IdentityOp, ConstantOfShapeOp, EyeLikeOp, RangeOp, OneHotOp,
              TriluOp, MSTriluOp, NonZeroOp, CompressOp, ReverseSequenceOp, DepthToSpaceOp, SpaceToDepthOp,
              MSExpandDimsOp, DropoutOp>(context);
}

void attachReduceRules(MLIRContext &context) {
  attachRules<ReduceL1Op, ReduceL2Op, ReduceLogSumOp, ReduceLogSumExpOp, ReduceMaxOp, ReduceMeanOp, ReduceMinOp,
              ReduceProdOp, ReduceSumOp, ReduceSumSquareOp, ArgMaxOp, ArgMinOp, TopKOp>(context);
}

} // namespace quire::eval
