// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention and recurrent operations bound to their kernels.
#include "Rules.h"
#include "dialects/ONNX/ONNXAttentionOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace quire::eval;

namespace quire::onnx {

static Results rule(AttentionOp op, Operands in) {
  AttentionAttributes attributes;
  attributes.scale = asDouble(op.getScale());
  attributes.isCausal = op.getIsCausal();
  attributes.qHeads = op.getQNumHeads().value_or(0);
  attributes.kvHeads = op.getKvNumHeads().value_or(0);
  attributes.softcap = op.getSoftcap();
  attributes.qkOutputMode = op.getQkMatmulOutputMode();
  attributes.leftWindow = op.getLeftWindowSize();
  attributes.rightWindow = op.getRightWindowSize();
  attributes.wantQkOutput = !isa<NoneType>(op.getQkMatmulOutput().getType());
  if (op.getSoftmaxPrecision()) {
    llvm::Expected<ElementKind> kind = kindOrError(*op.getSoftmaxPrecision());
    if (!kind)
      return kind.takeError();
    attributes.softmaxPrecision = *kind;
  }
  return attention(*in[0], *in[1], *in[2], in[3], in[4], in[5], in[6], attributes);
}

static Result rule(RotaryEmbeddingOp op, Operands in) {
  RotaryAttributes attributes{op.getInterleaved() != 0, op.getNumHeads().value_or(0), op.getRotaryEmbeddingDim()};
  return rotaryEmbedding(*in[0], *in[1], *in[2], in[3], attributes);
}
static Result rule(MSRotaryEmbeddingOp op, Operands in) {
  RotaryAttributes attributes{op.getInterleaved().value_or(0) != 0, op.getNumHeads().value_or(0),
                              op.getRotaryEmbeddingDim()};
  if (asDouble(op.getScale()).value_or(1.0) != 1.0)
    return fail("not implemented: a scale other than 1");
  if (op.getIsPackedBatching().value_or(0))
    return fail("not implemented: is_packed_batching");
  return msRotaryEmbedding(*in[0], *in[1], *in[2], *in[3], attributes);
}

static Results rule(MSGroupQueryAttentionOp op, Operands in) {
  if (op.getKQuantType() != "NONE" || op.getVQuantType() != "NONE")
    return fail("not implemented: a quantised cache");
  if (op.getSlidingWindowCache())
    return fail("not implemented: sliding_window_cache");
  if (in.size() > 16 && in[16])
    return fail("not implemented: query_seqlens");
  GroupQueryAttributes attributes;
  attributes.heads = op.getNumHeads();
  attributes.kvHeads = op.getKvNumHeads();
  attributes.scale = asDouble(op.getScale());
  if (attributes.scale == 0.0)
    attributes.scale = std::nullopt;
  attributes.softcap = op.getSoftcap();
  attributes.localWindow = op.getLocalWindowSize();
  attributes.doRotary = op.getDoRotary();
  attributes.rotaryInterleaved = op.getRotaryInterleaved();
  attributes.smoothSoftmax = op.getSmoothSoftmax() == 1;
  attributes.causal = op.getCausal();
  attributes.qkOutput = op.getQkOutput();
  double shared = op.getQkNormEpsilon();
  attributes.qNormEpsilon = asDouble(op.getQNormEpsilon()).value_or(shared);
  attributes.kNormEpsilon = asDouble(op.getKNormEpsilon()).value_or(shared);
  GroupQueryOperands operands{in[0], in[1], in[2],  in[3],  in[4],  in[5],  in[6],  in[7],
                              in[8], in[9], in[10], in[11], in[12], in[13], in[14], in[15]};
  return groupQueryAttention(operands, attributes);
}

static Results rule(MSMultiHeadAttentionOp op, Operands in) {
  if (in[8] || in[9])
    return fail("not implemented: past_sequence_length and cache_indirection");
  MultiHeadAttributes attributes;
  attributes.heads = op.getNumHeads();
  attributes.scale = asDouble(op.getScale());
  attributes.maskFilterValue = op.getMaskFilterValue();
  attributes.unidirectional = op.getUnidirectional();
  return multiHeadAttention(*in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], attributes);
}

static Results rule(MSAttentionOp op, Operands in) {
  if (op.getPastPresentShareBuffer() || in[6])
    return fail("not implemented: a past in a shared buffer");
  MultiHeadAttributes attributes;
  attributes.heads = op.getNumHeads();
  attributes.scale = asDouble(op.getScale());
  attributes.maskFilterValue = op.getMaskFilterValue();
  attributes.unidirectional = op.getUnidirectional();
  attributes.qkvHiddenSizes = listOf(op.getQkvHiddenSizes());
  attributes.doRotary = op.getDoRotary();
  return msAttention(*in[0], *in[1], in[2], in[3], in[4], in[5], attributes);
}

static llvm::Expected<UpdateRule> updateRuleOf(llvm::StringRef name) {
  auto found = llvm::StringSwitch<std::optional<UpdateRule>>(name)
                   .Case("linear", UpdateRule::Linear)
                   .Case("gated", UpdateRule::Gated)
                   .Case("delta", UpdateRule::Delta)
                   .Case("gated_delta", UpdateRule::GatedDelta)
                   .Default(std::nullopt);
  if (!found)
    return fail("expected an update rule of linear, gated, delta or gated_delta, but got " + name);
  return *found;
}
template <typename Op>
static Results linearRule(Op op, Operands in) {
  llvm::Expected<UpdateRule> update = updateRuleOf(op.getUpdateRule());
  if (!update)
    return update.takeError();
  return linearAttention(*in[0], *in[1], *in[2], in[3], in[4], in[5], op.getQNumHeads(), op.getKvNumHeads(),
                         op.getScale(), *update);
}
static Results rule(LinearAttentionOp op, Operands in) { return linearRule(op, in); }
static Results rule(MSLinearAttentionOp op, Operands in) {
  if (op.getStateWindow())
    return fail("not implemented: state_window");
  return linearRule(op, in);
}

static llvm::Expected<bool> isSilu(llvm::StringRef activation) {
  if (activation == "none" || activation == "silu" || activation == "swish")
    return activation != "none";
  return fail("expected an activation of none, silu or swish, but got " + activation);
}
static Results rule(CausalConvWithStateOp op, Operands in) {
  llvm::Expected<bool> silu = isSilu(op.getActivation());
  return silu ? causalConvWithState(*in[0], *in[1], in[2], in[3], *silu) : Results(silu.takeError());
}
static Results rule(MSCausalConvWithStateOp op, Operands in) {
  if (op.getChannelsLast() || op.getDilation() != 1 || op.getNdim() != 1 || op.getInputChannels() ||
      op.getInputChannelOffset() || op.getStateLength() || op.getStateUpdateCapacity() || op.getStateWindow() ||
      op.getStateChannelsLast() > 0)
    return fail("not implemented: other layouts than [batch,channels,length]");
  llvm::Expected<bool> silu = isSilu(op.getActivation());
  if (!silu)
    return silu.takeError();
  Results results = causalConvWithState(*in[0], *in[1], in[2], in[3], *silu);
  if (results)
    results->push_back(Tensor());
  return results;
}

} // namespace quire::onnx

namespace quire::eval {
using namespace quire::onnx;

void attachAttentionRules(MLIRContext &context) {
  attachRules<AttentionOp, RotaryEmbeddingOp, MSRotaryEmbeddingOp, MSGroupQueryAttentionOp, MSMultiHeadAttentionOp,
              MSAttentionOp, LinearAttentionOp, MSLinearAttentionOp, CausalConvWithStateOp, MSCausalConvWithStateOp>(
      context);
}

} // namespace quire::eval
