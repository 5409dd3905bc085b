// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Normalisation and quantisation operations bound to their kernels.
#include "Rules.h"
#include "dialects/ONNX/ONNXNormOps.h"
#include "dialects/ONNX/ONNXQuantOps.h"
#include "dialects/ONNX/ONNXReduceOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace quire::eval;

namespace quire::onnx {

//===--- Normalisation --------------------------------------------------------------------------------------------===//

static Result rule(SoftmaxOp op, Operands in) { return softmax(SoftmaxKind::Softmax, *in[0], op.getAxis()); }
static Result rule(LogSoftmaxOp op, Operands in) { return softmax(SoftmaxKind::LogSoftmax, *in[0], op.getAxis()); }
static Result rule(HardmaxOp op, Operands in) { return softmax(SoftmaxKind::Hardmax, *in[0], op.getAxis()); }
static Results rule(LayerNormalizationOp op, Operands in) {
  return layerNormalization(*in[0], *in[1], in[2], op.getAxis(), op.getEpsilon());
}
static Results firstOf(Results all) {
  if (!all)
    return all;
  return Tensors{(*all)[0]};
}
static Results rule(RMSNormalizationOp op, Operands in) {
  return firstOf(rmsNormalization(*in[0], *in[1], op.getAxis(), op.getEpsilon()));
}
static Results rule(SimplifiedLayerNormalizationOp op, Operands in) {
  return rmsNormalization(*in[0], *in[1], op.getAxis(), op.getEpsilon());
}
static Results rule(BatchNormalizationOp op, Operands in) {
  if (op.getTrainingMode())
    return fail("not implemented: BatchNormalization in training mode");
  Result out = batchNormalization(*in[0], *in[1], *in[2], *in[3], *in[4], op.getEpsilon());
  if (!out)
    return out.takeError();
  return Tensors{*out, Tensor(), Tensor()};
}
static Result rule(InstanceNormalizationOp op, Operands in) {
  return instanceNormalization(*in[0], *in[1], *in[2], op.getEpsilon());
}
static Result rule(GroupNormalizationOp op, Operands in) {
  return groupNormalization(*in[0], *in[1], *in[2], op.getNumGroups(), op.getEpsilon());
}
static Result rule(LpNormalizationOp op, Operands in) { return lpNormalization(*in[0], op.getAxis(), op.getP()); }
static Results rule(MSSkipLayerNormalizationOp op, Operands in) {
  return skipLayerNormalization(*in[0], *in[1], *in[2], in[3], in[4], {op.getEpsilon(), false});
}
static Results rule(MSSkipSimplifiedLayerNormalizationOp op, Operands in) {
  return skipLayerNormalization(*in[0], *in[1], *in[2], nullptr, in[3], {op.getEpsilon(), true});
}
static Results rule(MSEmbedLayerNormalizationOp op, Operands in) {
  return embedLayerNormalization(*in[0], in[1], *in[2], *in[3], in[4], *in[5], *in[6], in[7], in[8], op.getEpsilon());
}

//===--- Quantisation ---------------------------------------------------------------------------------------------===//

static Result rule(DequantizeLinearOp op, Operands in) {
  std::optional<ElementKind> kind;
  if (op.getOutputDtype()) {
    llvm::Expected<ElementKind> given = kindOrError(*op.getOutputDtype());
    if (!given)
      return given.takeError();
    kind = *given;
  }
  return dequantizeLinear(*in[0], *in[1], in[2], op.getAxis(), op.getBlockSize(), kind);
}
static Result rule(QuantizeLinearOp op, Operands in) {
  ElementKind kind = in[2] ? in[2]->kind() : ElementKind::U8;
  if (op.getOutputDtype()) {
    llvm::Expected<ElementKind> given = kindOrError(*op.getOutputDtype());
    if (!given)
      return given.takeError();
    kind = *given;
  }
  return quantizeLinear(*in[0], *in[1], in[2], op.getAxis(), op.getBlockSize(), kind, op.getSaturate());
}
static Result rule(MSDequantizeLinearOp op, Operands in) {
  return dequantizeLinear(*in[0], *in[1], in[2], op.getAxis().value_or(1), 0, std::nullopt);
}
static Result rule(MSQuantizeLinearOp op, Operands in) {
  return quantizeLinear(*in[0], *in[1], in[2], op.getAxis().value_or(1), 0, in[2] ? in[2]->kind() : ElementKind::U8,
                        true);
}
static Results rule(DynamicQuantizeLinearOp, Operands in) { return dynamicQuantizeLinear(*in[0]); }
static Result rule(MatMulIntegerOp, Operands in) { return matMulInteger(*in[0], *in[1], in[2], in[3]); }

/// The f32 product of integer operands times their scales, plus a bias.
static Result scaledProduct(const Tensor &a, const Tensor &b, const Tensor &aScale, const Tensor &bScale, Operand aZero,
                            Operand bZero, Operand bias) {
  Result product = matMulInteger(a, b, aZero, bZero);
  if (product)
    product = castTo(*product, ElementKind::F32);
  if (product)
    product = binary(BinaryKind::Mul, *product, aScale);
  if (product)
    product = binary(BinaryKind::Mul, *product, bScale);
  return product && bias ? binary(BinaryKind::Add, *product, *bias) : std::move(product);
}
static Result rule(MSMatMulIntegerToFloatOp, Operands in) {
  return scaledProduct(*in[0], *in[1], *in[2], *in[3], in[4], in[5], in[6]);
}
static Result rule(MSDynamicQuantizeMatMulOp, Operands in) {
  Results quantized = dynamicQuantizeLinear(*in[0]);
  if (!quantized)
    return quantized.takeError();
  return scaledProduct((*quantized)[0], *in[1], (*quantized)[1], *in[2], &(*quantized)[2], in[3], in[4]);
}
static Result rule(QLinearMatMulOp, Operands in) {
  // Per-row scales of a become a column, so that they broadcast over the product.
  auto asColumn = [](const Tensor &scale) {
    if (scale.rank() != 1 || scale.count() == 1)
      return scale;
    return scale.withShape({scale.count(), 1});
  };
  auto wide = [](const Tensor &scale) { return castTo(scale, ElementKind::F32); };
  Result aScale = wide(asColumn(*in[1])), bScale = wide(*in[4]), yScale = wide(*in[6]);
  if (!aScale)
    return aScale;
  if (!bScale)
    return bScale;
  if (!yScale)
    return yScale;
  Result product = scaledProduct(*in[0], *in[3], *aScale, *bScale, in[2], in[5], nullptr);
  return product ? quantizeLinear(*product, *yScale, in[7], -1, 0, in[7]->kind(), true) : std::move(product);
}
static Result rule(MSMatMulNBitsOp op, Operands in) {
  if (op.getWeightPrepacked())
    return fail("not implemented: weights packed for another engine");
  NBitsAttributes attributes{op.getK(), op.getN(), op.getBits(), op.getBlockSize()};
  return matMulNBits(*in[0], *in[1], *in[2], in[3], in[4], in[5], attributes);
}
static Result rule(MSGatherBlockQuantizedOp op, Operands in) {
  GatherQuantAttributes attributes{op.getBits(), op.getBlockSize(), op.getGatherAxis(), op.getQuantizeAxis()};
  return gatherBlockQuantized(*in[0], *in[1], *in[2], in[3], attributes);
}

//===--- Mixture of experts ---------------------------------------------------------------------------------------===//

template <typename Op>
static llvm::Expected<MoEAttributes> expertAttributes(Op op) {
  auto activation = llvm::StringSwitch<std::optional<MoEAttributes::Activation>>(op.getActivationType())
                        .Case("relu", MoEAttributes::Relu)
                        .Case("gelu", MoEAttributes::Gelu)
                        .Case("silu", MoEAttributes::Silu)
                        .Case("identity", MoEAttributes::Identity)
                        .Case("swiglu", MoEAttributes::SwiGlu)
                        .Default(std::nullopt);
  if (!activation)
    return fail("expected an activation of relu, gelu, silu, identity or swiglu, but got " + op.getActivationType());
  if (op.getUseSparseMixer() || op.getSwigluLimitAfterActivation())
    return fail("not implemented: use_sparse_mixer and swiglu_limit_after_activation");
  MoEAttributes attributes;
  attributes.activation = *activation;
  attributes.k = op.getK();
  attributes.normalizeRouting = op.getNormalizeRoutingWeights();
  attributes.swigluFusion = op.getSwigluFusion();
  attributes.alpha = op.getActivationAlpha();
  attributes.beta = op.getActivationBeta();
  attributes.swigluLimit = asDouble(op.getSwigluLimit());
  return attributes;
}
static Result rule(MSMoEOp op, Operands in) {
  llvm::Expected<MoEAttributes> attributes = expertAttributes(op);
  if (!attributes)
    return attributes.takeError();
  MoEProjection fc1{in[2], nullptr, in[3]}, fc2{in[4], nullptr, in[5]}, fc3{in[6], nullptr, in[7]};
  return mixtureOfExperts(*in[0], *in[1], fc1, fc2, fc3, nullptr, *attributes);
}
static Result rule(MSQMoEOp op, Operands in) {
  llvm::Expected<MoEAttributes> attributes = expertAttributes(op);
  if (!attributes)
    return attributes.takeError();
  if (op.getQuantType() != "int" || op.getWeightsPrepacked() > 0 || op.getFc1ExpertWeightBits() ||
      op.getFc2ExpertWeightBits() || op.getFc3ExpertWeightBits() ||
      llvm::any_of(in.drop_front(15), [](Operand operand) { return operand != nullptr; }))
    return fail("not implemented: expert weights other than plain integers of one width");
  attributes->quantized = true;
  attributes->bits = op.getExpertWeightBits();
  attributes->blockSize = op.getBlockSize().value_or(0);
  MoEProjection fc1{in[2], in[3], in[4], in[11]}, fc2{in[5], in[6], in[7], in[12]}, fc3{in[8], in[9], in[10], in[13]};
  return mixtureOfExperts(*in[0], *in[1], fc1, fc2, fc3, in[14], *attributes);
}

} // namespace quire::onnx

namespace quire::eval {
using namespace quire::onnx;

void attachNormRules(MLIRContext &context) {
  attachRules<SoftmaxOp, LogSoftmaxOp, HardmaxOp, LayerNormalizationOp, RMSNormalizationOp,
              SimplifiedLayerNormalizationOp, BatchNormalizationOp, InstanceNormalizationOp, GroupNormalizationOp,
              LpNormalizationOp, MSSkipLayerNormalizationOp, MSSkipSimplifiedLayerNormalizationOp,
              MSEmbedLayerNormalizationOp>(context);
}

void attachQuantRules(MLIRContext &context) {
  attachRules<DequantizeLinearOp, QuantizeLinearOp, MSDequantizeLinearOp, MSQuantizeLinearOp, DynamicQuantizeLinearOp,
              MatMulIntegerOp, MSMatMulIntegerToFloatOp, MSDynamicQuantizeMatMulOp, QLinearMatMulOp, MSMatMulNBitsOp,
              MSGatherBlockQuantizedOp, MSMoEOp, MSQMoEOp>(context);
}

} // namespace quire::eval
