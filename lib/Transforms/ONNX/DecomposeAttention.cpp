// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spells Attention, GroupQueryAttention and MultiHeadAttention out in primitive operators.
#include "lib/Transforms/ONNX/DecomposeAttention.h"

#include "dialects/ONNX/ONNXOps.h"

#include <cmath>

namespace quire {
#define GEN_PASS_DEF_DECOMPOSEATTENTIONPASS
#include "lib/Transforms/ONNX/Passes.h.inc"
} // namespace quire

using namespace mlir;
using namespace quire::onnx;

namespace quire {
namespace {

bool present(Value value) { return value && !isa<NoneType>(value.getType()); }

std::optional<int64_t> extent(Value value, int64_t axis) {
  auto type = present(value) ? dyn_cast<RankedTensorType>(value.getType()) : nullptr;
  if (!type)
    return std::nullopt;
  axis += axis < 0 ? type.getRank() : 0;
  if (axis < 0 || axis >= type.getRank() || type.isDynamicDim(axis))
    return std::nullopt;
  return type.getDimSize(axis);
}

/// Builds the primitive operators of one attention; ranks and extents of the intermediate values are left to the analysis.
class Spelling {
public:
  Spelling(Operation *op, AttentionOrigins &origins) : op(op), builder(op), loc(op->getLoc()), origins(origins) {
    element = cast<ShapedType>(op->getResult(0).getType()).getElementType();
  }

  Type like(Value value) { return UnrankedTensorType::get(cast<ShapedType>(value.getType()).getElementType()); }
  Type i64() { return UnrankedTensorType::get(builder.getI64Type()); }
  Type i1() { return UnrankedTensorType::get(builder.getI1Type()); }

  Value ints(ArrayRef<int64_t> values) {
    auto type = RankedTensorType::get({int64_t(values.size())}, builder.getI64Type());
    return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, values));
  }
  Value integer(int64_t value) {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, ArrayRef(value)));
  }
  Value number(double value) {
    auto type = RankedTensorType::get({}, element);
    return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(element, value))));
  }
  Value none() { return NoneOp::create(builder, loc, builder.getNoneType()); }
  Value reshape(Value x, ArrayRef<int64_t> shape) { return ReshapeOp::create(builder, loc, like(x), x, ints(shape), builder.getI64IntegerAttr(0)); }
  Value transpose(Value x, ArrayRef<int64_t> perm) { return TransposeOp::create(builder, loc, like(x), x, builder.getDenseI64ArrayAttr(perm)); }
  Value concat(Value a, Value b, int64_t axis) { return ConcatOp::create(builder, loc, like(a), ValueRange{a, b}, builder.getI64IntegerAttr(axis)); }
  Value slice(Value x, int64_t start, int64_t end, int64_t axis) {
    return SliceOp::create(builder, loc, like(x), x, ints({start}), ints({end}), ints({axis}), none());
  }
  Value unsqueeze(Value x, ArrayRef<int64_t> axes) { return UnsqueezeOp::create(builder, loc, like(x), x, ints(axes)); }
  Value add(Value a, Value b) { return AddOp::create(builder, loc, like(a), a, b); }
  Value sub(Value a, Value b) { return SubOp::create(builder, loc, like(a), a, b); }
  Value mul(Value a, Value b) { return MulOp::create(builder, loc, like(a), a, b); }
  Value matmul(Value a, Value b) { return MatMulOp::create(builder, loc, like(a), a, b); }
  Value cast(Value x, Type to) { return CastOp::create(builder, loc, UnrankedTensorType::get(to), x, TypeAttr::get(to)); }
  Value dim(Value x, int64_t axis) {
    Value shape = ShapeOp::create(builder, loc, i64(), x, IntegerAttr(), builder.getI64IntegerAttr(0));
    return GatherOp::create(builder, loc, i64(), shape, integer(axis), builder.getI64IntegerAttr(0));
  }
  Value scalar(Value x) {
    Value empty = ConstantOp::create(builder, loc, RankedTensorType::get({0}, builder.getI64Type()),
                                     DenseElementsAttr::get(RankedTensorType::get({0}, builder.getI64Type()), ArrayRef<int64_t>()));
    return ReshapeOp::create(builder, loc, i64(), cast(x, builder.getI64Type()), empty, builder.getI64IntegerAttr(0));
  }
  Value range(Value limit) { return RangeOp::create(builder, loc, i64(), integer(0), limit, integer(1), builder.getI64IntegerAttr(1)); }
  Value both(Value a, Value b) { return a ? Value(AndOp::create(builder, loc, i1(), a, b)) : b; }
  Value lessOrEqual(Value a, Value b) { return LessOrEqualOp::create(builder, loc, i1(), a, b); }
  Value hide(Value scores, Value visible) {
    return WhereOp::create(builder, loc, like(scores), visible, scores, number(-std::numeric_limits<double>::infinity()));
  }

  /// [batch, tokens, heads * features] or [batch, heads, tokens, features] to the latter.
  Value splitHeads(Value x, int64_t heads) {
    if (cast<RankedTensorType>(x.getType()).getRank() == 4)
      return x;
    return transpose(reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
  }
  template <typename T> T cast(Type type) { return llvm::cast<T>(type); }

  /// Every query head gets the keys of its KV head.
  Value repeatHeads(Value x, int64_t kvHeads, int64_t heads, int64_t features) {
    if (kvHeads == heads)
      return x;
    Value five = unsqueeze(x, {2});
    Value repeated = ExpandOp::create(builder, loc, like(x), five, ints({1, 1, heads / kvHeads, 1, 1}));
    return reshape(repeated, {0, heads, -1, features});
  }

  struct Parts {
    Value query, keys, values; // [batch, heads, tokens or keys, features]
    int64_t heads = 0, kvHeads = 0, keyDim = 0, valueDim = 0;
    double scale = 0, softcap = 0;
    Value bias;    // added, or a boolean that hides
    Value visible; // boolean, or null
    Value sinks;   // [heads], or null
    bool mergeHeads = false;
  };

  Value attend(const Parts &p, StringRef idiom) {
    Value keys = repeatHeads(p.keys, p.kvHeads, p.heads, p.keyDim), values = repeatHeads(p.values, p.kvHeads, p.heads, p.valueDim);
    Value scores = mul(matmul(p.query, transpose(keys, {0, 1, 3, 2})), number(p.scale));
    if (p.softcap != 0)
      scores = mul(TanhOp::create(builder, loc, like(scores), mul(scores, number(1 / p.softcap))), number(p.softcap));
    if (present(p.bias)) {
      bool boolean = llvm::cast<ShapedType>(p.bias.getType()).getElementType().isInteger(1);
      scores = boolean ? hide(scores, p.bias) : add(scores, p.bias);
    }
    if (p.visible)
      scores = hide(scores, p.visible);
    if (p.sinks) {
      Value shape = concat(concat(concat(unsqueeze(dim(p.query, 0), {0}), ints({p.heads}), 0), unsqueeze(dim(p.query, 2), {0}), 0), ints({1}), 0);
      Value column = ExpandOp::create(builder, loc, like(scores), reshape(p.sinks, {1, p.heads, 1, 1}), shape);
      scores = concat(scores, column, 3);
    }
    auto softmax = SoftmaxOp::create(builder, loc, like(scores), scores, builder.getI64IntegerAttr(-1));
    origins[softmax] = idiom;
    Value weights = softmax;
    if (p.sinks)
      weights = slice(weights, 0, -1, 3);
    Value result = matmul(weights, values);
    return p.mergeHeads ? reshape(transpose(result, {0, 2, 1, 3}), {0, 0, p.heads * p.valueDim}) : result;
  }

  /// Gives the op's result another definition, with the type that the op declared.
  void replace(unsigned index, Value value) {
    if (index < op->getNumResults() && !isa<NoneType>(op->getResult(index).getType())) {
      value.setType(op->getResult(index).getType());
      op->getResult(index).replaceAllUsesWith(value);
    }
  }

  Operation *op;
  OpBuilder builder;
  Location loc;
  Type element;
  AttentionOrigins &origins;
};

bool hasRank(Value value, std::initializer_list<int64_t> ranks) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::is_contained(ranks, type.getRank());
}

/// Extents that the spelling needs as numbers.
bool known(std::optional<int64_t> value, int64_t &to) {
  if (value)
    to = *value;
  return value.has_value();
}

LogicalResult spellAttention(AttentionOp op, AttentionOrigins &origins, std::string &why) {
  if (!op.getQkMatmulOutput().use_empty())
    return why = "not implemented: a score output", failure();
  if (!hasRank(op.getQ(), {3, 4}) || !hasRank(op.getK(), {3, 4}) || !hasRank(op.getV(), {3, 4}))
    return why = "expected query, key and value of rank 3 or 4", failure();
  Spelling s(op, origins);
  Spelling::Parts p;
  bool flat = cast<RankedTensorType>(op.getQ().getType()).getRank() == 3;
  bool found = flat ? op.getQNumHeads() && op.getKvNumHeads() : true;
  p.heads = op.getQNumHeads().value_or(0);
  p.kvHeads = op.getKvNumHeads().value_or(0);
  if (!flat)
    found = known(extent(op.getQ(), 1), p.heads) && known(extent(op.getK(), 1), p.kvHeads);
  if (!found || p.heads < 1 || p.kvHeads < 1 || p.heads % p.kvHeads != 0 || !known(extent(op.getK(), -1), p.keyDim) ||
      !known(extent(op.getV(), -1), p.valueDim))
    return why = "expected known numbers of heads and features", failure();
  if (flat) {
    p.keyDim /= p.kvHeads;
    p.valueDim /= p.kvHeads;
  }
  p.query = s.splitHeads(op.getQ(), p.heads);
  p.keys = s.splitHeads(op.getK(), p.kvHeads);
  p.values = s.splitHeads(op.getV(), p.kvHeads);
  if (present(op.getPastKey())) {
    p.keys = s.concat(op.getPastKey(), p.keys, 2);
    p.values = s.concat(op.getPastValue(), p.values, 2);
    s.replace(1, p.keys);
    s.replace(2, p.values);
  }
  p.scale = op.getScale() ? double(*op.getScale()) : 1 / std::sqrt(double(p.keyDim));
  p.softcap = op.getSoftcap();
  p.bias = op.getAttnMask();
  p.mergeHeads = flat;
  bool bounded = op.getIsCausal() || op.getLeftWindowSize() >= 0 || op.getRightWindowSize() >= 0;
  if (bounded || present(op.getNonpadKvSeqlen())) {
    Value tokens = s.dim(p.query, 2), total = s.dim(p.keys, 2), key = s.range(total);
    Value end = total; // one past the last visible key of the last token
    if (present(op.getNonpadKvSeqlen())) {
      end = s.reshape(op.getNonpadKvSeqlen(), {-1, 1, 1, 1});
      p.visible = s.lessOrEqual(s.add(key, s.integer(1)), end);
    }
    Value query = s.add(s.unsqueeze(s.range(tokens), {1}), s.sub(end, tokens));
    if (op.getIsCausal())
      p.visible = s.both(p.visible, s.lessOrEqual(key, query));
    if (op.getLeftWindowSize() >= 0)
      p.visible = s.both(p.visible, s.lessOrEqual(s.sub(query, s.integer(op.getLeftWindowSize())), key));
    if (op.getRightWindowSize() >= 0)
      p.visible = s.both(p.visible, s.lessOrEqual(key, s.add(query, s.integer(op.getRightWindowSize()))));
  }
  s.replace(0, s.attend(p, present(op.getPastKey()) ? "attention" : "concat"));
  return success();
}

LogicalResult spellGroupQuery(MSGroupQueryAttentionOp op, AttentionOrigins &origins, std::string &why) {
  if (op.getKQuantType() != "NONE" || op.getVQuantType() != "NONE" || present(op.getKScale()) || present(op.getVScale()))
    return why = "not implemented: a cache of quantised rows", failure();
  if (present(op.getQNormWeight()) || present(op.getKNormWeight()) || present(op.getQuerySeqlens()) || op.getSlidingWindowCache() ||
      !op.getOutputQk().use_empty())
    return why = "not implemented: fused query norms, packed sequences, window caches and score outputs", failure();
  if (!present(op.getPastKey()) || !present(op.getPastValue()) || !hasRank(op.getQuery(), {3}))
    return why = "expected a past and a query of rank 3", failure();
  Spelling s(op, origins);
  Spelling::Parts p;
  p.heads = op.getNumHeads();
  p.kvHeads = op.getKvNumHeads();
  int64_t width = 0;
  bool packed = !present(op.getKey());
  if (!known(extent(op.getQuery(), -1), width) || p.heads < 1 || p.kvHeads < 1 || p.heads % p.kvHeads != 0)
    return why = "expected known numbers of heads and features", failure();
  int64_t features = width / (packed ? p.heads + 2 * p.kvHeads : p.heads);
  p.keyDim = p.valueDim = features;
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  if (packed) {
    int64_t keysAt = p.heads * features, valuesAt = keysAt + p.kvHeads * features;
    query = s.slice(op.getQuery(), 0, keysAt, 2);
    key = s.slice(op.getQuery(), keysAt, valuesAt, 2);
    value = s.slice(op.getQuery(), valuesAt, width, 2);
  }
  auto split = [&](Value x, int64_t heads) { return s.transpose(s.reshape(x, {0, 0, heads, features}), {0, 2, 1, 3}); };
  p.query = split(query, p.heads);
  Value newKeys = split(key, p.kvHeads), newValues = split(value, p.kvHeads);
  // Positions: seqlens_k is the number of valid keys less one.
  Value tokens = s.dim(op.getQuery(), 1);
  Value past = s.sub(s.add(s.cast(op.getSeqlensK(), s.builder.getI64Type()), s.integer(1)), tokens);
  if (op.getDoRotary()) {
    Value ids = present(op.getPositionIds()) ? op.getPositionIds() : s.add(s.reshape(past, {-1, 1}), s.range(tokens));
    int64_t half = 0;
    if (!known(extent(op.getCosCache(), -1), half))
      return why = "expected a cos_cache of known width", failure();
    auto rotate = [&](Value x, int64_t heads) -> Value {
      return RotaryEmbeddingOp::create(s.builder, s.loc, s.like(x), x, op.getCosCache(), op.getSinCache(), ids,
                                       s.builder.getI64IntegerAttr(op.getRotaryInterleaved()), s.builder.getI64IntegerAttr(heads),
                                       s.builder.getI64IntegerAttr(2 * half == features ? 0 : 2 * half));
    };
    p.query = rotate(p.query, p.heads);
    newKeys = rotate(newKeys, p.kvHeads);
  }
  p.keys = s.concat(op.getPastKey(), newKeys, 2);
  p.values = s.concat(op.getPastValue(), newValues, 2);
  s.replace(1, p.keys);
  s.replace(2, p.values);
  p.scale = op.getScale() && *op.getScale() != 0 ? double(*op.getScale()) : 1 / std::sqrt(double(features));
  p.softcap = op.getSoftcap();
  p.bias = op.getAttentionBias();
  p.mergeHeads = true;
  if (present(op.getHeadSink()))
    p.sinks = op.getHeadSink();
  else if (op.getSmoothSoftmax() > 0)
    p.sinks = ExpandOp::create(s.builder, s.loc, UnrankedTensorType::get(s.element), s.number(0), s.ints({p.heads}));
  Value position = s.add(s.reshape(past, {-1, 1, 1, 1}), s.unsqueeze(s.range(tokens), {1})), keyIndex = s.range(s.scalar(op.getTotalSequenceLength()));
  if (op.getCausal())
    p.visible = s.lessOrEqual(keyIndex, position);
  if (op.getLocalWindowSize() > 0)
    p.visible = s.both(p.visible, s.lessOrEqual(s.sub(position, s.integer(op.getLocalWindowSize() - 1)), keyIndex));
  s.replace(0, s.attend(p, "gqa"));
  return success();
}

LogicalResult spellMultiHead(MSMultiHeadAttentionOp op, AttentionOrigins &origins, std::string &why) {
  if (!present(op.getKey()) || !present(op.getValue()) || !hasRank(op.getQuery(), {3}) || !hasRank(op.getKey(), {3}) || !hasRank(op.getValue(), {3}))
    return why = "not implemented: packed or projected keys and values", failure();
  if (present(op.getPastSequenceLength()) || present(op.getCacheIndirection()) || !op.getQk().use_empty())
    return why = "not implemented: shared buffers, beam search and score outputs", failure();
  if (present(op.getKeyPaddingMask()) && !hasRank(op.getKeyPaddingMask(), {2}))
    return why = "not implemented: a key padding mask that is no [batch, keys]", failure();
  Spelling s(op, origins);
  Spelling::Parts p;
  p.heads = p.kvHeads = op.getNumHeads();
  int64_t width = 0, valueWidth = 0;
  if (!known(extent(op.getKey(), -1), width) || !known(extent(op.getValue(), -1), valueWidth) || p.heads < 1)
    return why = "expected known numbers of heads and features", failure();
  p.keyDim = width / p.heads;
  p.valueDim = valueWidth / p.heads;
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  if (present(op.getBias())) {
    query = s.add(query, s.slice(op.getBias(), 0, width, 0));
    key = s.add(key, s.slice(op.getBias(), width, 2 * width, 0));
    value = s.add(value, s.slice(op.getBias(), 2 * width, 2 * width + valueWidth, 0));
  }
  auto split = [&](Value x) { return s.transpose(s.reshape(x, {0, 0, p.heads, -1}), {0, 2, 1, 3}); };
  p.query = split(query);
  p.keys = split(key);
  p.values = split(value);
  if (present(op.getPastKey())) {
    p.keys = s.concat(op.getPastKey(), p.keys, 2);
    p.values = s.concat(op.getPastValue(), p.values, 2);
  }
  s.replace(1, p.keys);
  s.replace(2, p.values);
  p.scale = op.getScale() && *op.getScale() != 0 ? double(*op.getScale()) : 1 / std::sqrt(double(p.keyDim));
  p.bias = op.getAttentionBias();
  p.mergeHeads = true;
  if (present(op.getKeyPaddingMask()))
    p.visible = s.cast(s.unsqueeze(op.getKeyPaddingMask(), {1, 2}), s.builder.getI1Type());
  if (op.getUnidirectional()) {
    Value tokens = s.dim(p.query, 2), total = s.dim(p.keys, 2);
    Value position = s.add(s.unsqueeze(s.range(tokens), {1}), s.sub(total, tokens));
    p.visible = s.both(p.visible, s.lessOrEqual(s.range(total), position));
  }
  s.replace(0, s.attend(p, present(op.getPastKey()) ? "mha" : "concat"));
  return success();
}

} // namespace

LogicalResult decomposeAttention(func::FuncOp function, AttentionOrigins &origins, std::string &why) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<AttentionOp, MSGroupQueryAttentionOp, MSMultiHeadAttentionOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    std::string reason;
    LogicalResult done = failure();
    if (auto attention = dyn_cast<AttentionOp>(op))
      done = spellAttention(attention, origins, reason);
    else if (auto group = dyn_cast<MSGroupQueryAttentionOp>(op))
      done = spellGroupQuery(group, origins, reason);
    else
      done = spellMultiHead(cast<MSMultiHeadAttentionOp>(op), origins, reason);
    if (failed(done)) {
      auto name = op->getLoc()->findInstanceOf<NameLoc>();
      why = "node '" + (name ? name.getName().str() : std::string()) + "': " + op->getName().getStringRef().str() + ": " + reason;
      return failure();
    }
    op->erase();
  }
  return success();
}

namespace {
struct DecomposeAttention : impl::DecomposeAttentionPassBase<DecomposeAttention> {
  void runOnOperation() override {
    AttentionOrigins origins;
    std::string why;
    if (failed(decomposeAttention(getOperation(), origins, why))) {
      emitError(getOperation().getLoc()) << why; // not with the whole module
      signalPassFailure();
    }
  }
};
} // namespace
} // namespace quire
