// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants, weights and operations with subgraphs, and the registration of every rule.
#include "Rules.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cmath>

using namespace mlir;
using namespace quire::eval;
using namespace quire::onnx;

namespace quire::eval {

Result tensorOf(ElementsAttr attribute) {
  ShapedType type = attribute.getShapedType();
  llvm::Expected<ElementKind> kind = kindOrError(type.getElementType());
  if (!kind)
    return kind.takeError();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    ArrayRef<char> bytes = resource.getRawHandle().getBlob()->getData();
    return Tensor::view(*kind, type.getShape(), bytes.data());
  }
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense)
    return fail("not implemented: constants of this form");
  unsigned bits = bitWidth(*kind);
  int64_t count = type.getNumElements();
  std::vector<uint8_t> bytes(static_cast<size_t>(bits < 8 ? count : count * bits / 8));
  size_t width = bits < 8 ? 1 : bits / 8;
  auto put = [&, at = size_t(0)](const APInt &value) mutable {
    uint64_t word = bits < 8 && computeClass(*kind) == ComputeClass::Signed
                        ? static_cast<uint64_t>(value.getSExtValue())
                        : value.getZExtValue();
    std::memcpy(bytes.data() + at, &word, width);
    at += width;
  };
  if (isa<FloatType>(type.getElementType())) {
    for (const APFloat &value : dense.getValues<APFloat>())
      put(value.bitcastToAPInt());
  } else {
    for (const APInt &value : dense.getValues<APInt>())
      put(value);
  }
  if (bits < 8)
    return packNibbles(*kind, type.getShape(), bytes);
  return Tensor::adopt(*kind, type.getShape(), std::move(bytes));
}

namespace {

struct NoneModel : EvaluateOpInterface::ExternalModel<NoneModel, NoneOp> {
  llvm::Error evaluate(Operation *, Operands, EvaluateContext &, SmallVectorImpl<Tensor> &results) const {
    results.emplace_back();
    return llvm::Error::success();
  }
};

struct ConstantModel : EvaluateOpInterface::ExternalModel<ConstantModel, onnx::ConstantOp> {
  llvm::Error evaluate(Operation *op, Operands, EvaluateContext &, SmallVectorImpl<Tensor> &results) const {
    return deliver(tensorOf(cast<onnx::ConstantOp>(op).getValue()), results);
  }
};

struct WeightModel : EvaluateOpInterface::ExternalModel<WeightModel, WeightOp> {
  llvm::Error evaluate(Operation *op, Operands, EvaluateContext &context, SmallVectorImpl<Tensor> &results) const {
    return deliver(context.weight(cast<WeightOp>(op).getInitializerAttr()), results);
  }
};

struct IfModel : EvaluateOpInterface::ExternalModel<IfModel, IfOp> {
  llvm::Error evaluate(Operation *op, Operands operands, EvaluateContext &context,
                       SmallVectorImpl<Tensor> &results) const {
    auto branch = cast<IfOp>(op);
    if (operands[0]->count() != 1)
      return fail("expected one condition, but got shape " + textOf(operands[0]->shape()));
    return context.runRegion(scalarOf(*operands[0]) != 0 ? branch.getThenBranch() : branch.getElseBranch(), {},
                             results);
  }
};

/// Joins the slices of each iteration along a new axis.
Result stack(ArrayRef<Tensor> slices, int64_t axis, bool reversed, Type emptyType) {
  if (slices.empty()) {
    auto type = dyn_cast<RankedTensorType>(emptyType);
    llvm::Expected<ElementKind> kind = type ? kindOrError(type.getElementType()) : ElementKind::F32;
    if (!kind)
      return kind.takeError();
    Shape shape;
    if (type)
      for (int64_t extent : type.getShape())
        shape.push_back(ShapedType::isDynamic(extent) ? 1 : extent);
    if (shape.empty())
      shape.push_back(0);
    shape[axis] = 0;
    return Tensor::zeros(*kind, shape);
  }
  SmallVector<Tensor> widened;
  SmallVector<Operand> pointers;
  for (const Tensor &slice : slices) {
    Result wide = unsqueeze(slice, {axis});
    if (!wide)
      return wide;
    widened.push_back(*wide);
  }
  for (const Tensor &wide : widened)
    pointers.push_back(&wide);
  if (reversed)
    std::reverse(pointers.begin(), pointers.end());
  return concat(pointers, axis);
}

struct LoopModel : EvaluateOpInterface::ExternalModel<LoopModel, LoopOp> {
  llvm::Error evaluate(Operation *op, Operands operands, EvaluateContext &context,
                       SmallVectorImpl<Tensor> &results) const {
    auto loop = cast<LoopOp>(op);
    size_t carried = loop.getVInitial().size(), outputs = op->getNumResults() - carried;
    std::optional<int64_t> limit;
    if (operands[0])
      limit = static_cast<int64_t>(scalarOf(*operands[0]));
    bool going = !operands[1] || scalarOf(*operands[1]) != 0;
    SmallVector<Tensor> state;
    for (Operand operand : operands.drop_front(2))
      state.push_back(operand ? *operand : Tensor());
    std::vector<SmallVector<Tensor>> slices(outputs);
    for (int64_t iteration = 0; going && (!limit || iteration < *limit); ++iteration) {
      SmallVector<Tensor> arguments{scalarTensor(ElementKind::I64, static_cast<double>(iteration)),
                                    scalarTensor(ElementKind::Bool, 1)};
      arguments.append(state.begin(), state.end());
      SmallVector<Tensor> yielded;
      if (llvm::Error error = context.runRegion(loop.getBody(), arguments, yielded))
        return error;
      going = scalarOf(yielded[0]) != 0;
      state.assign(yielded.begin() + 1, yielded.begin() + 1 + carried);
      for (size_t i = 0; i < outputs; ++i)
        slices[i].push_back(yielded[1 + carried + i]);
    }
    results.append(state.begin(), state.end());
    for (size_t i = 0; i < outputs; ++i)
      if (llvm::Error error = deliver(stack(slices[i], 0, false, op->getResult(carried + i).getType()), results))
        return error;
    return llvm::Error::success();
  }
};

struct ScanModel : EvaluateOpInterface::ExternalModel<ScanModel, ScanOp> {
  llvm::Error evaluate(Operation *op, Operands operands, EvaluateContext &context,
                       SmallVectorImpl<Tensor> &results) const {
    auto scan = cast<ScanOp>(op);
    size_t scanned = static_cast<size_t>(scan.getNumScanInputs()), carried = operands.size() - scanned;
    size_t outputs = op->getNumResults() - carried;
    SmallVector<int64_t> inAxes(scanned, 0), inBackward(scanned, 0), outAxes(outputs, 0), outBackward(outputs, 0);
    auto read = [](std::optional<ArrayRef<int64_t>> from, SmallVector<int64_t> &to) {
      if (from)
        llvm::copy(from->take_front(to.size()), to.begin());
    };
    read(scan.getScanInputAxes(), inAxes);
    read(scan.getScanInputDirections(), inBackward);
    read(scan.getScanOutputAxes(), outAxes);
    read(scan.getScanOutputDirections(), outBackward);
    int64_t length = operands[carried]->extent(inAxes[0]);
    SmallVector<Tensor> state;
    for (Operand operand : operands.take_front(carried))
      state.push_back(*operand);
    std::vector<SmallVector<Tensor>> slices(outputs);
    for (int64_t iteration = 0; iteration < length; ++iteration) {
      SmallVector<Tensor> arguments(state.begin(), state.end());
      for (size_t i = 0; i < scanned; ++i) {
        int64_t at = inBackward[i] ? length - 1 - iteration : iteration;
        Result picked =
            gather(*operands[carried + i], scalarTensor(ElementKind::I64, static_cast<double>(at)), inAxes[i]);
        if (!picked)
          return picked.takeError();
        arguments.push_back(*picked);
      }
      SmallVector<Tensor> yielded;
      if (llvm::Error error = context.runRegion(scan.getBody(), arguments, yielded))
        return error;
      state.assign(yielded.begin(), yielded.begin() + carried);
      for (size_t i = 0; i < outputs; ++i)
        slices[i].push_back(yielded[carried + i]);
    }
    results.append(state.begin(), state.end());
    for (size_t i = 0; i < outputs; ++i) {
      int64_t axis = outAxes[i] < 0 && !slices[i].empty() ? outAxes[i] + slices[i][0].rank() + 1 : outAxes[i];
      if (llvm::Error error =
              deliver(stack(slices[i], axis, outBackward[i], op->getResult(carried + i).getType()), results))
        return error;
    }
    return llvm::Error::success();
  }
};

/// Attention whose scores and probabilities subgraphs change. It computes in f32, or in softmax_precision.
struct FlexModel : EvaluateOpInterface::ExternalModel<FlexModel, PreviewFlexAttentionOp> {
  llvm::Error evaluate(Operation *op, Operands in, EvaluateContext &context, SmallVectorImpl<Tensor> &results) const {
    auto flex = cast<PreviewFlexAttentionOp>(op);
    const Tensor &q = *in[0], &k = *in[1], &v = *in[2];
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.shape()[1] == 0 || q.shape()[1] % k.shape()[1])
      return fail("expected operands of rank 4 and query heads a multiple of key heads, but got " + textOf(q.shape()) +
                  " and " + textOf(k.shape()));
    ElementKind kind = bitWidth(q.kind()) < 32 ? ElementKind::F32 : q.kind();
    if (flex.getSoftmaxPrecision()) {
      llvm::Expected<ElementKind> given = kindOrError(*flex.getSoftmaxPrecision());
      if (!given)
        return given.takeError();
      kind = *given;
    }
    std::vector<int64_t> heads;
    for (int64_t h = 0; h < q.shape()[1]; ++h)
      heads.push_back(h * k.shape()[1] / q.shape()[1]);
    auto wide = [&](const Tensor &x) { return castTo(x, kind); };
    auto repeated = [&](const Tensor &x) -> Result {
      Result all = gather(x, vectorTensor(heads), 1);
      return all ? wide(*all) : std::move(all);
    };
    auto inRegion = [&](Region &region, Result value) -> Result {
      if (!value || region.empty())
        return value;
      SmallVector<Tensor> out;
      if (llvm::Error error = context.runRegion(region, {*value}, out))
        return error;
      return out.front();
    };
    double scale = asDouble(flex.getScale()).value_or(1.0 / std::sqrt(static_cast<double>(q.shape()[3])));
    Result queries = wide(q), keys = repeated(k), values = repeated(v);
    if (keys)
      keys = swapLastTwo(*keys);
    for (Result *part : {&queries, &keys, &values})
      if (!*part)
        return joinErrors(joinErrors(queries.takeError(), keys.takeError()), values.takeError());
    Result scores = inRegion(flex.getScoreMod(), matMul(*queries, *keys, scale));
    if (scores)
      scores = inRegion(flex.getProbMod(), softmax(SoftmaxKind::Softmax, *scores, -1));
    if (scores)
      scores = matMul(*scores, *values);
    return deliver(scores ? castTo(*scores, v.kind()) : std::move(scores), results);
  }
};

} // namespace

void attachControlRules(MLIRContext &context) {
  NoneOp::attachInterface<NoneModel>(context);
  onnx::ConstantOp::attachInterface<ConstantModel>(context);
  WeightOp::attachInterface<WeightModel>(context);
  IfOp::attachInterface<IfModel>(context);
  LoopOp::attachInterface<LoopModel>(context);
  ScanOp::attachInterface<ScanModel>(context);
  PreviewFlexAttentionOp::attachInterface<FlexModel>(context);
}

} // namespace quire::eval

#include "lib/Analysis/Evaluate/EvaluateOpInterface.cpp.inc"

void quire::registerEvaluateExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, onnx::ONNXDialect *) {
    attachControlRules(*context);
    attachMathRules(*context);
    attachLogicRules(*context);
    attachReduceRules(*context);
    attachShapeRules(*context);
    attachNormRules(*context);
    attachQuantRules(*context);
    attachAttentionRules(*context);
  });
}
