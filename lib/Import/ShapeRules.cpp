// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shapes of results, per operator; what is not here has an unknown shape.

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Import/TypeInference.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace quire;
using namespace quire::onnx;

using Shape = SmallVector<int64_t>;
using MaybeShape = std::optional<Shape>;

static constexpr int64_t dynamic = ShapedType::kDynamic;

static MaybeShape shapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? MaybeShape(Shape(type.getShape())) : std::nullopt;
}

static std::optional<int64_t> normalized(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

// One extent of a broadcast result.
static int64_t broadcastExtent(int64_t a, int64_t b) {
  if (a == 1)
    return b;
  if (b == 1 || ShapedType::isDynamic(b))
    return a;
  return ShapedType::isDynamic(a) ? b : a;
}

static MaybeShape broadcast(const MaybeShape &a, const MaybeShape &b) {
  if (!a || !b)
    return std::nullopt;
  bool first = a->size() >= b->size();
  ArrayRef<int64_t> longer = first ? *a : *b, shorter = first ? *b : *a;
  Shape shape(longer);
  size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    shape[i + shift] = broadcastExtent(longer[i + shift], shorter[i]);
  return shape;
}

static MaybeShape broadcastAll(ValueRange operands) {
  MaybeShape shape = Shape();
  for (Value operand : operands)
    shape = broadcast(shape, shapeOf(operand));
  return shape;
}

static MaybeShape ranked(int64_t rank) { return Shape(rank, dynamic); }

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

static MaybeShape transposeShape(TransposeOp op) {
  MaybeShape input = shapeOf(op.getData());
  if (!input)
    return std::nullopt;
  std::optional<ArrayRef<int64_t>> perm = op.getPerm();
  if (!perm)
    return Shape(input->rbegin(), input->rend());
  if (perm->size() != input->size())
    return std::nullopt;
  Shape shape;
  for (int64_t axis : *perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(input->size()))
      return std::nullopt;
    shape.push_back((*input)[axis]);
  }
  return shape;
}

static int64_t productOf(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t extent : shape)
    if (ShapedType::isDynamic(extent) || llvm::MulOverflow(product, extent, product))
      return dynamic;
  return product;
}

static MaybeShape reshapeShape(ReshapeOp op) {
  std::optional<Shape> target = import::constantInts(op.getShape());
  if (!target) {
    MaybeShape length = shapeOf(op.getShape());
    if (!length || length->size() != 1 || ShapedType::isDynamic((*length)[0]) || (*length)[0] > 64)
      return std::nullopt;
    return ranked((*length)[0]);
  }
  MaybeShape input = shapeOf(op.getData());
  Shape shape;
  std::optional<size_t> inferred;
  for (auto [i, extent] : llvm::enumerate(*target)) {
    if (extent == -1) {
      inferred = i;
      shape.push_back(dynamic);
    } else if (extent == 0 && !op.getAllowzero())
      shape.push_back(input && i < input->size() ? (*input)[i] : dynamic);
    else
      shape.push_back(extent < 0 ? dynamic : extent);
  }
  if (!inferred || !input)
    return shape;
  // Extents that a 0 copies cancel; the rest decides the one that is left.
  Shape from(*input), to(shape);
  to[*inferred] = 1;
  for (auto [i, extent] : llvm::enumerate(*target))
    if (extent == 0 && !op.getAllowzero() && i < from.size())
      from[i] = to[i] = 1;
  int64_t total = productOf(from), known = productOf(to);
  if (ShapedType::isStatic(total) && ShapedType::isStatic(known) && known > 0 && total % known == 0)
    shape[*inferred] = total / known;
  return shape;
}

static MaybeShape squeezeShape(Value data, Value axes) {
  MaybeShape input = shapeOf(data);
  if (!input)
    return std::nullopt;
  Shape shape;
  if (isa<NoneType>(axes.getType())) {
    for (int64_t extent : *input) {
      if (ShapedType::isDynamic(extent))
        return std::nullopt;
      if (extent != 1)
        shape.push_back(extent);
    }
    return shape;
  }
  std::optional<Shape> list = import::constantInts(axes);
  if (!list)
    return std::nullopt;
  SmallVector<bool> removed(input->size());
  for (int64_t axis : *list) {
    std::optional<int64_t> at = normalized(axis, input->size());
    if (!at)
      return std::nullopt;
    removed[*at] = true;
  }
  for (auto [extent, gone] : llvm::zip_equal(*input, removed))
    if (!gone)
      shape.push_back(extent);
  return shape;
}

static MaybeShape unsqueezeShape(UnsqueezeOp op) {
  MaybeShape input = shapeOf(op.getData());
  std::optional<Shape> axes = import::constantInts(op.getAxes());
  if (!input || !axes || axes->size() > 64)
    return std::nullopt;
  int64_t rank = input->size() + axes->size();
  SmallVector<bool> inserted(rank);
  for (int64_t axis : *axes) {
    std::optional<int64_t> at = normalized(axis, rank);
    if (!at || inserted[*at])
      return std::nullopt;
    inserted[*at] = true;
  }
  Shape shape;
  auto next = input->begin();
  for (bool isNew : inserted)
    shape.push_back(isNew ? 1 : *next++);
  return shape;
}

static MaybeShape flattenShape(FlattenOp op) {
  MaybeShape input = shapeOf(op.getInput());
  if (!input)
    return ranked(2);
  int64_t rank = input->size(), axis = op.getAxis();
  if (axis < -rank || axis > rank)
    return ranked(2);
  axis = axis < 0 ? axis + rank : axis;
  return Shape{productOf(ArrayRef(*input).take_front(axis)), productOf(ArrayRef(*input).drop_front(axis))};
}

static MaybeShape expandShape(ExpandOp op) {
  std::optional<Shape> target = import::constantInts(op.getShape());
  MaybeShape input = shapeOf(op.getInput());
  if (target) {
    if (llvm::any_of(*target, [](int64_t extent) { return extent < 0; }))
      return std::nullopt;
    return broadcast(input, *target);
  }
  MaybeShape length = shapeOf(op.getShape());
  if (!length || length->size() != 1 || ShapedType::isDynamic((*length)[0]) || (*length)[0] > 64 || !input)
    return std::nullopt;
  return ranked(std::max<int64_t>((*length)[0], input->size()));
}

static MaybeShape concatShape(ConcatOp op) {
  MaybeShape shape;
  int64_t sum = 0;
  for (Value operand : op.getInputs()) {
    MaybeShape input = shapeOf(operand);
    std::optional<int64_t> axis = input ? normalized(op.getAxis(), input->size()) : std::nullopt;
    if (!axis || (shape && shape->size() != input->size()))
      return std::nullopt;
    int64_t extent = (*input)[*axis];
    if (ShapedType::isDynamic(sum) || ShapedType::isDynamic(extent) || llvm::AddOverflow(sum, extent, sum))
      sum = dynamic;
    if (!shape)
      shape = input;
    for (auto [known, other] : llvm::zip_equal(*shape, *input))
      if (ShapedType::isDynamic(known))
        known = other;
    (*shape)[*axis] = sum;
  }
  return shape;
}

static MaybeShape splitShape(SplitOp op, unsigned index) {
  MaybeShape shape = shapeOf(op.getInput());
  std::optional<int64_t> axis = shape ? normalized(op.getAxis(), shape->size()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  int64_t extent = (*shape)[*axis], parts = op.getNumResults();
  (*shape)[*axis] = dynamic;
  std::optional<Shape> sizes = import::constantInts(op.getSplit());
  if (sizes && index < sizes->size() && (*sizes)[index] >= 0)
    (*shape)[*axis] = (*sizes)[index];
  else if (isa<NoneType>(op.getSplit().getType()) && ShapedType::isStatic(extent)) {
    int64_t chunk = extent / parts + (extent % parts != 0);
    int64_t full = chunk == 0 ? 0 : extent / chunk;
    (*shape)[*axis] = index < full ? chunk : index == full && chunk ? extent % chunk : 0;
  }
  return shape;
}

// Elements of one sliced axis.
static int64_t sliceExtent(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (ShapedType::isDynamic(extent) || step == 0 || step == std::numeric_limits<int64_t>::min())
    return dynamic;
  auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0)
      at = at < -extent ? low : at + extent;
    return std::clamp(at, low, high);
  };
  if (step > 0) {
    int64_t from = clamp(start, 0, extent), to = clamp(end, 0, extent);
    return to > from ? (to - from - 1) / step + 1 : 0;
  }
  int64_t from = clamp(start, 0, std::max<int64_t>(extent - 1, 0)), to = clamp(end, -1, extent - 1);
  return from > to && extent > 0 ? (from - to - 1) / -step + 1 : 0;
}

static MaybeShape sliceShape(SliceOp op) {
  MaybeShape shape = shapeOf(op.getData());
  if (!shape)
    return std::nullopt;
  std::optional<Shape> starts = import::constantInts(op.getStarts()), ends = import::constantInts(op.getEnds());
  std::optional<Shape> axes = import::constantInts(op.getAxes()), steps = import::constantInts(op.getSteps());
  if (isa<NoneType>(op.getAxes().getType()))
    if (MaybeShape length = shapeOf(op.getStarts()); length && length->size() == 1 && (*length)[0] >= 0 &&
                                                     (*length)[0] <= static_cast<int64_t>(shape->size()))
      axes = llvm::to_vector(llvm::seq<int64_t>(0, (*length)[0]));
  if (!axes)
    return ranked(shape->size());
  if (isa<NoneType>(op.getSteps().getType()))
    steps = Shape(axes->size(), 1);
  bool known = starts && ends && steps && starts->size() == axes->size() && ends->size() == axes->size() &&
               steps->size() == axes->size();
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    std::optional<int64_t> at = normalized(axis, shape->size());
    if (!at)
      return ranked(shape->size());
    (*shape)[*at] = known ? sliceExtent((*shape)[*at], (*starts)[i], (*ends)[i], (*steps)[i]) : dynamic;
  }
  return shape;
}

static MaybeShape gatherShape(Value data, Value indices, int64_t axis) {
  MaybeShape input = shapeOf(data), index = shapeOf(indices);
  std::optional<int64_t> at = input ? normalized(axis, input->size()) : std::nullopt;
  if (!at || !index)
    return std::nullopt;
  Shape shape(input->begin(), input->begin() + *at);
  shape.append(*index);
  shape.append(input->begin() + *at + 1, input->end());
  return shape;
}

static MaybeShape gatherNDShape(GatherNDOp op) {
  MaybeShape data = shapeOf(op.getData()), indices = shapeOf(op.getIndices());
  if (!data || !indices || indices->empty() || ShapedType::isDynamic(indices->back()))
    return std::nullopt;
  int64_t skip = op.getBatchDims(), taken = 0;
  if (skip < 0 || indices->back() < 0 || llvm::AddOverflow(skip, indices->back(), taken) ||
      taken > static_cast<int64_t>(data->size()))
    return std::nullopt;
  Shape shape(indices->begin(), indices->end() - 1);
  shape.append(data->begin() + taken, data->end());
  return shape;
}

static MaybeShape shapeShape(quire::onnx::ShapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  if (!type)
    return ranked(1);
  int64_t rank = type.getRank();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(op.getStart()), end = op.getEnd() ? clamp(*op.getEnd()) : rank;
  return Shape{std::max<int64_t>(end - start, 0)};
}

static MaybeShape constantOfShapeShape(ConstantOfShapeOp op) {
  if (std::optional<Shape> shape = import::constantInts(op.getInput())) {
    if (llvm::any_of(*shape, [](int64_t extent) { return extent < 0; }))
      return std::nullopt;
    return *shape;
  }
  MaybeShape length = shapeOf(op.getInput());
  if (!length || length->size() != 1 || ShapedType::isDynamic((*length)[0]) || (*length)[0] > 64)
    return std::nullopt;
  return ranked((*length)[0]);
}

static MaybeShape tileShape(TileOp op) {
  MaybeShape shape = shapeOf(op.getInput());
  std::optional<Shape> repeats = import::constantInts(op.getRepeats());
  if (!shape)
    return std::nullopt;
  for (auto [i, extent] : llvm::enumerate(*shape))
    if (!repeats || repeats->size() != shape->size() || (*repeats)[i] < 0 || ShapedType::isDynamic(extent) ||
        llvm::MulOverflow(extent, (*repeats)[i], extent))
      extent = dynamic;
  return shape;
}

static MaybeShape padShape(PadOp op) {
  MaybeShape shape = shapeOf(op.getData());
  return shape ? ranked(shape->size()) : std::nullopt;
}

static MaybeShape oneHotShape(OneHotOp op) {
  MaybeShape shape = shapeOf(op.getIndices());
  std::optional<int64_t> axis = shape ? normalized(op.getAxis(), shape->size() + 1) : std::nullopt;
  if (!axis)
    return std::nullopt;
  std::optional<Shape> depth = import::constantInts(op.getDepth());
  shape->insert(shape->begin() + *axis, depth && depth->size() == 1 && (*depth)[0] >= 0 ? (*depth)[0] : dynamic);
  return shape;
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

static MaybeShape matmulShape(Value left, Value right) {
  MaybeShape a = shapeOf(left), b = shapeOf(right);
  if (!a || !b || a->empty() || b->empty())
    return std::nullopt;
  bool vectorA = a->size() == 1, vectorB = b->size() == 1;
  if (vectorA)
    a->insert(a->begin(), 1);
  if (vectorB)
    b->push_back(1);
  int64_t rows = (*a)[a->size() - 2], columns = b->back();
  a->resize(a->size() - 2);
  b->resize(b->size() - 2);
  MaybeShape shape = broadcast(a, b);
  if (!vectorA)
    shape->push_back(rows);
  if (!vectorB)
    shape->push_back(columns);
  return shape;
}

static MaybeShape gemmShape(GemmOp op) {
  MaybeShape a = shapeOf(op.getA()), b = shapeOf(op.getB());
  int64_t rows = a && a->size() == 2 ? (*a)[op.getTransA() ? 1 : 0] : dynamic;
  int64_t columns = b && b->size() == 2 ? (*b)[op.getTransB() ? 0 : 1] : dynamic;
  return Shape{rows, columns};
}

static MaybeShape reduceShape(Value data, Value axes, bool keep, bool noop) {
  MaybeShape shape = shapeOf(data);
  std::optional<Shape> list = Shape();
  bool absent = isa<NoneType>(axes.getType());
  if (!absent)
    list = import::constantInts(axes);
  if (!shape)
    return std::nullopt;
  if (!list)
    return keep ? ranked(shape->size()) : std::nullopt;
  if (list->empty() && noop)
    return shape;
  if (list->empty())
    list = llvm::to_vector(llvm::seq<int64_t>(0, shape->size()));
  SmallVector<bool> reduced(shape->size());
  for (int64_t axis : *list) {
    std::optional<int64_t> at = normalized(axis, shape->size());
    if (!at)
      return std::nullopt;
    reduced[*at] = true;
  }
  Shape result;
  for (auto [extent, gone] : llvm::zip_equal(*shape, reduced))
    if (!gone || keep)
      result.push_back(gone ? 1 : extent);
  return result;
}

template <typename Op>
static MaybeShape reduceShapeOf(Op op) {
  return reduceShape(op.getData(), op.getAxes(), op.getKeepdims(), op.getNoopWithEmptyAxes());
}

template <typename Op>
static MaybeShape argShapeOf(Op op) {
  MaybeShape shape = shapeOf(op.getData());
  std::optional<int64_t> axis = shape ? normalized(op.getAxis(), shape->size()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  if (op.getKeepdims())
    (*shape)[*axis] = 1;
  else
    shape->erase(shape->begin() + *axis);
  return shape;
}

static MaybeShape topkShape(TopKOp op) {
  MaybeShape shape = shapeOf(op.getX());
  std::optional<int64_t> axis = shape ? normalized(op.getAxis(), shape->size()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  std::optional<Shape> k = import::constantInts(op.getK());
  (*shape)[*axis] = k && k->size() == 1 && (*k)[0] >= 0 ? (*k)[0] : dynamic;
  return shape;
}

static MaybeShape withLast(Value data, int64_t last) {
  MaybeShape shape = shapeOf(data);
  if (shape && !shape->empty())
    shape->back() = last < 0 ? dynamic : last;
  return shape;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// Past and new rows together: what the past says, with an unknown number of rows.
static MaybeShape presentShape(Value past, int64_t rowAxis) {
  if (!past || isa<NoneType>(past.getType()))
    return std::nullopt;
  MaybeShape shape = shapeOf(past);
  if (shape && rowAxis < static_cast<int64_t>(shape->size()))
    (*shape)[rowAxis] = dynamic;
  return shape;
}

static MaybeShape attentionShape(AttentionOp op, unsigned index) {
  MaybeShape q = shapeOf(op.getQ()), v = shapeOf(op.getV());
  if (index == 1 || index == 2) {
    MaybeShape past = presentShape(index == 1 ? op.getPastKey() : op.getPastValue(), 2);
    return past ? past : ranked(4);
  }
  if (index == 3)
    return ranked(4);
  if (!q)
    return std::nullopt;
  Shape shape(*q);
  if (shape.size() == 4)
    shape[3] = v && v->size() == 4 ? (*v)[3] : dynamic;
  else if (shape.size() == 3) {
    // Value heads of 3-D operands: hidden / kv heads features each, for every query head.
    int64_t hidden = v && v->size() == 3 ? (*v)[2] : dynamic;
    int64_t heads = op.getQNumHeads().value_or(0), kvHeads = op.getKvNumHeads().value_or(0);
    int64_t features = ShapedType::isStatic(hidden) && heads > 0 && kvHeads > 0 ? hidden / kvHeads : dynamic;
    if (ShapedType::isDynamic(features) || llvm::MulOverflow(features, heads, shape[2]))
      shape[2] = dynamic;
  }
  return shape;
}

static MaybeShape groupQueryShape(MSGroupQueryAttentionOp op, unsigned index) {
  if (index == 1 || index == 2) {
    MaybeShape past = presentShape(index == 1 ? op.getPastKey() : op.getPastValue(), 2);
    return past ? past : ranked(4);
  }
  if (index == 3)
    return ranked(4);
  MaybeShape query = shapeOf(op.getQuery());
  if (!query || query->size() != 3 || !isa<NoneType>(op.getKey().getType()))
    return query;
  // Packed: the last axis holds query, key and value heads; without a key a shared cache is read.
  int64_t last = query->back(), heads = op.getNumHeads(), kvHeads = op.getKvNumHeads();
  constexpr int64_t maxHeads = int64_t(1) << 20;
  bool sensible = heads > 0 && kvHeads > 0 && heads < maxHeads && kvHeads < maxHeads;
  int64_t all = sensible ? heads + 2 * kvHeads : 1;
  bool packed = sensible && ShapedType::isStatic(last) && last % all == 0;
  query->back() = packed ? last / all * heads : dynamic;
  return query;
}

// Query rows with one row of value features for each query head, or for each value head if there are more of those.
template <typename Op>
static MaybeShape linearAttentionShape(Op op, unsigned index) {
  if (index == 1)
    return isa<NoneType>(op.getPastState().getType()) ? std::nullopt : shapeOf(op.getPastState());
  MaybeShape query = shapeOf(op.getQuery()), value = shapeOf(op.getValue());
  if (!query || query->size() != 3)
    return std::nullopt;
  int64_t hidden = value && value->size() == 3 ? value->back() : dynamic;
  int64_t heads = op.getQNumHeads(), kvHeads = op.getKvNumHeads();
  query->back() = dynamic;
  if (ShapedType::isStatic(hidden) && heads > 0 && kvHeads > 0)
    if (llvm::MulOverflow(hidden / kvHeads, std::max(heads, kvHeads), query->back()))
      query->back() = dynamic;
  return query;
}

static MaybeShape multiHeadShape(MSMultiHeadAttentionOp op, unsigned index) {
  if (index == 1 || index == 2) {
    MaybeShape past = presentShape(index == 1 ? op.getPastKey() : op.getPastValue(), 2);
    return past ? past : ranked(4);
  }
  if (index == 3)
    return ranked(4);
  MaybeShape query = shapeOf(op.getQuery());
  MaybeShape value = isa<NoneType>(op.getValue().getType()) ? std::nullopt : shapeOf(op.getValue());
  if (!query || query->size() != 3)
    return ranked(3);
  query->back() = value && value->size() == 3 ? value->back() : dynamic;
  return query;
}

static MaybeShape packedAttentionShape(MSAttentionOp op, unsigned index) {
  if (index == 1) {
    MaybeShape past = presentShape(op.getPast(), 3);
    return past ? past : ranked(5);
  }
  MaybeShape input = shapeOf(op.getInput()), weights = shapeOf(op.getWeights());
  if (!input || input->size() != 3)
    return ranked(3);
  // Query, key and value have equal parts of the columns unless the operator says otherwise.
  bool equal = weights && weights->size() == 2 && !op.getQkvHiddenSizes() && ShapedType::isStatic(weights->back());
  input->back() = equal ? weights->back() / 3 : dynamic;
  return input;
}

// Results of a normalisation with a skip input: the sum and the normalised rows, and one number for each row.
static MaybeShape skipNormShape(Value input, unsigned index) {
  return index == 0 || index == 3 ? shapeOf(input) : withLast(input, 1);
}

static MaybeShape layerNormShape(Value data, int64_t axis, unsigned index) {
  MaybeShape shape = shapeOf(data);
  std::optional<int64_t> at = shape ? normalized(axis, shape->size()) : std::nullopt;
  if (index == 0 || !at)
    return index == 0 ? shape : std::nullopt;
  std::fill(shape->begin() + *at, shape->end(), 1);
  return shape;
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

static bool isBroadcasting(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, ModOp, PowOp, MaxOp, MinOp, MeanOp, SumOp, PReluOp, BitShiftOp, BitwiseAndOp,
             BitwiseOrOp, BitwiseXorOp, AndOp, OrOp, XorOp, EqualOp, GreaterOp, GreaterOrEqualOp, LessOp, LessOrEqualOp,
             WhereOp, SwiGLUOp>(op);
}

// Operators whose first result has the first operand's shape.
static bool keepsShape(Operation *op) {
  return isa<AbsOp, AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, CeilOp, CosOp, CoshOp, ErfOp, ExpOp, FloorOp,
             LogOp, NegOp, ReciprocalOp, RoundOp, SigmoidOp, SignOp, SinOp, SinhOp, SqrtOp, TanOp, TanhOp, ReluOp,
             LeakyReluOp, EluOp, SeluOp, CeluOp, GeluOp, HardSigmoidOp, HardSwishOp, MishOp, SoftplusOp, SoftsignOp,
             SwishOp, ShrinkOp, ThresholdedReluOp, BitwiseNotOp, NotOp, IsInfOp, IsNaNOp, ClipOp, CastOp, CastLikeOp,
             CumSumOp, CumProdOp, MSFastGeluOp, MSQuickGeluOp, MSGeluOp, MSBiasGeluOp>(op) ||
         isa<SoftmaxOp, LogSoftmaxOp, HardmaxOp, BatchNormalizationOp, InstanceNormalizationOp, GroupNormalizationOp,
             LpNormalizationOp, MeanVarianceNormalizationOp, IdentityOp, TriluOp, MSTriluOp, DropoutOp,
             ScatterElementsOp, ScatterNDOp, TensorScatterOp, EyeLikeOp, ReverseSequenceOp, BernoulliOp,
             RandomNormalLikeOp, RandomUniformLikeOp, RotaryEmbeddingOp, MSRotaryEmbeddingOp, QuantizeLinearOp,
             DequantizeLinearOp, MSQuantizeLinearOp, MSDequantizeLinearOp, MSBiasSoftmaxOp,
             CausalConvWithStateOp, MSCausalConvWithStateOp, MSMoEOp, MSQMoEOp>(op);
}

static MaybeShape movementShape(Operation *op, unsigned index) {
  return TypeSwitch<Operation *, MaybeShape>(op)
      .Case([](TransposeOp o) { return transposeShape(o); })
      .Case([](ReshapeOp o) { return reshapeShape(o); })
      .Case([](SqueezeOp o) { return squeezeShape(o.getData(), o.getAxes()); })
      .Case([](UnsqueezeOp o) { return unsqueezeShape(o); })
      .Case([](FlattenOp o) { return flattenShape(o); })
      .Case([](ExpandOp o) { return expandShape(o); })
      .Case([](ConcatOp o) { return concatShape(o); })
      .Case([&](SplitOp o) { return splitShape(o, index); })
      .Case([](SliceOp o) { return sliceShape(o); })
      .Case([](GatherOp o) { return gatherShape(o.getData(), o.getIndices(), o.getAxis()); })
      .Case([](GatherElementsOp o) { return shapeOf(o.getIndices()); })
      .Case([](GatherNDOp o) { return gatherNDShape(o); })
      .Case([](quire::onnx::ShapeOp o) { return shapeShape(o); })
      .Case([](SizeOp) { return MaybeShape(Shape()); })
      .Case([](ConstantOfShapeOp o) { return constantOfShapeShape(o); })
      .Case([](TileOp o) { return tileShape(o); })
      .Case([](PadOp o) { return padShape(o); })
      .Case([](OneHotOp o) { return oneHotShape(o); })
      .Case([](RangeOp) { return ranked(1); })
      .Case([](NonZeroOp o) {
        MaybeShape shape = shapeOf(o.getX());
        return MaybeShape(Shape{shape ? static_cast<int64_t>(shape->size()) : dynamic, dynamic});
      })
      .Default([](Operation *) { return MaybeShape(); });
}

static MaybeShape productShape(Operation *op) {
  return TypeSwitch<Operation *, MaybeShape>(op)
      .Case([](MatMulOp o) { return matmulShape(o.getA(), o.getB()); })
      .Case([](MatMulIntegerOp o) { return matmulShape(o.getA(), o.getB()); })
      .Case([](GemmOp o) { return gemmShape(o); })
      .Case([](MSMatMulNBitsOp o) { return withLast(o.getA(), o.getN()); })
      .Case([](MSMatMulBnb4Op o) { return withLast(o.getA(), o.getN()); })
      .Case<ReduceL1Op, ReduceL2Op, ReduceLogSumOp, ReduceLogSumExpOp, ReduceMaxOp, ReduceMeanOp, ReduceMinOp,
            ReduceProdOp, ReduceSumOp, ReduceSumSquareOp>([](auto o) { return reduceShapeOf(o); })
      .Case<ArgMaxOp, ArgMinOp>([](auto o) { return argShapeOf(o); })
      .Case([](TopKOp o) { return topkShape(o); })
      .Case([](ConvOp o) {
        MaybeShape x = shapeOf(o.getX());
        return x ? ranked(x->size()) : MaybeShape();
      })
      .Default([](Operation *) { return MaybeShape(); });
}

static MaybeShape attentionOrNormShape(Operation *op, unsigned index) {
  return TypeSwitch<Operation *, MaybeShape>(op)
      .Case([&](AttentionOp o) { return attentionShape(o, index); })
      .Case([&](MSGroupQueryAttentionOp o) { return groupQueryShape(o, index); })
      .Case([&](LayerNormalizationOp o) { return layerNormShape(o.getX(), o.getAxis(), index); })
      .Case([&](RMSNormalizationOp o) { return layerNormShape(o.getX(), o.getAxis(), index); })
      .Case([&](SimplifiedLayerNormalizationOp o) { return layerNormShape(o.getX(), o.getAxis(), index); })
      .Case([&](MSSkipLayerNormalizationOp o) { return skipNormShape(o.getInput(), index); })
      .Case([&](MSSkipSimplifiedLayerNormalizationOp o) { return skipNormShape(o.getInput(), index); })
      .Case([&](LinearAttentionOp o) { return linearAttentionShape(o, index); })
      .Case([&](MSLinearAttentionOp o) { return linearAttentionShape(o, index); })
      .Case([&](MSMultiHeadAttentionOp o) { return multiHeadShape(o, index); })
      .Case([&](MSAttentionOp o) { return packedAttentionShape(o, index); })
      .Case([&](MSPagedAttentionOp o) {
        Value cache = index == 1 ? o.getKeyCache() : index == 2 ? o.getValueCache() : Value();
        return cache ? shapeOf(cache) : MaybeShape();
      })
      .Default([](Operation *) { return MaybeShape(); });
}

static MaybeShape shapeOfResult(Operation *op, unsigned index) {
  if (isBroadcasting(op))
    return broadcastAll(op->getOperands());
  if (keepsShape(op) && index == 0)
    return op->getNumOperands() ? shapeOf(op->getOperand(0)) : std::nullopt;
  if (isa<DynamicQuantizeLinearOp>(op))
    return index == 0 ? shapeOf(op->getOperand(0)) : MaybeShape(Shape());
  if (MaybeShape shape = movementShape(op, index))
    return shape;
  if (MaybeShape shape = productShape(op))
    return shape;
  return attentionOrNormShape(op, index);
}

MaybeShape import::inferShape(Operation *op, unsigned index) {
  MaybeShape shape = shapeOfResult(op, index);
  // Gather adds ranks; a chain of them must not grow without bound.
  return shape && shape->size() <= 256 ? shape : std::nullopt;
}
