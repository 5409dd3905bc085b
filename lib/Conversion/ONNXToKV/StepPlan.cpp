// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides how each value of an analysed decoder comes to be in the ragged step, and proves that it may.
#include "lib/Conversion/ONNXToKV/StepBuilder.h"

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/Interp.h"

using namespace mlir;

namespace quire {

/// Integer vectors with more elements are not spelt out.
static constexpr int64_t largestSpelt = 4096;

StepBuilder::StepBuilder(func::FuncOp source, const RaisedModel &model)
    : source(source), model(model), exprs(model.context()), builder(source.getContext()) {
  for (const AttentionSite &site : model.sites)
    siteOfResult[site.result.value] = &site;
}

bool StepBuilder::fail(Location loc, const Twine &why) {
  if (failureReason.empty()) {
    llvm::raw_string_ostream os(failureReason);
    if (auto name = loc->findInstanceOf<NameLoc>())
      os << "node '" << name.getName().getValue() << "': ";
    os << why;
  }
  return false;
}

bool StepBuilder::fail(Operation *op, const Twine &why) { return fail(op->getLoc(), op->getName().getStringRef() + ": " + why); }

/// c if the extent is c times the tokens of the call, c > 1: tokens and, say, heads folded into one axis.
std::optional<int64_t> StepBuilder::rowsPerToken(Expr extent) {
  extent = exprs.subst(extent, exprs.B(), exprs.num(1));
  Coef factor = exprs.coefficient(extent, exprs.L());
  if (factor.isFloat || factor.i < 2 || extent != exprs.mul(exprs.num(factor.i), exprs.L()))
    return std::nullopt;
  return factor.i;
}

/// An axis of the value folds tokens with something else; in the step it is two axes.
bool StepBuilder::countsPartsOfRows(Value value) {
  const SymbolicTensor *tensor = model.elementOf(value);
  return tensor && llvm::any_of(tensor->extents, [&](Expr extent) { return rowsPerToken(extent).has_value(); });
}

/// All data of the value is of the call's last token, and of its position: it comes after the selection of rows.
bool StepBuilder::isOfLastToken(Value value) {
  const SymbolicTensor *tensor = model.elementOf(value);
  if (!tensor || model.tokenAxis(value) >= 0)
    return false;
  Leaves leaves = exprs.leavesOf(tensor->element);
  if (leaves.bad || leaves.tokens.empty() || !leaves.past.empty() || leaves.readsScores())
    return false;
  Expr last = exprs.sub(exprs.L(), exprs.num(1));
  return llvm::all_of(leaves.tokens, [&](auto token) { return token.first == last; }) &&
         model.interp().notOfPosition({tensor->element}, last).empty();
}

/// The token ids, in another type or shape at most.
bool StepBuilder::isTokenIds(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<onnx::CastOp, onnx::IdentityOp, onnx::ReshapeOp, onnx::SqueezeOp, onnx::UnsqueezeOp>(op))
      return false;
    value = op->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &source.getBody().front() && model.inputRoles[argument.getArgNumber()] == InputRole::InputIds;
}

/// Indices that are computed from data: nothing proves that they stay inside of the table. The ids themselves are bounded by the token limit.
bool StepBuilder::indexesByData(Operation *op) {
  if (!isa<onnx::GatherOp, onnx::GatherNDOp, onnx::GatherElementsOp>(op))
    return false;
  Value indices = op->getOperand(1);
  const SymbolicTensor *tensor = model.elementOf(indices);
  return !tensor || (!exprs.leavesOf(tensor->element).tokens.empty() && !isTokenIds(indices));
}

/// Indices by position that nothing keeps inside of the table for some number of positions.
bool StepBuilder::indexesFromOutside(Operation *op) {
  const SymbolicTensor *data = model.elementOf(op->getOperand(0)), *indices = model.elementOf(op->getOperand(1));
  auto mayLeave = [&](Expr index, int64_t axis) {
    std::optional<int64_t> rows = exprs.constInt(data->extents[axis < 0 ? axis + int64_t(data->rank()) : axis]);
    std::optional<int64_t> inside = rows ? positionsInside(exprs, index, *rows) : std::nullopt;
    return index->uses(exprs.P()) && (!inside || *inside == 0);
  };
  if (!data || !indices)
    return false;
  if (auto gather = dyn_cast<onnx::GatherOp>(op))
    return mayLeave(indices->element, gather.getAxis());
  if (auto gather = dyn_cast<onnx::GatherElementsOp>(op))
    return mayLeave(indices->element, gather.getAxis());
  auto gather = dyn_cast<onnx::GatherNDOp>(op);
  if (!gather || indices->rank() == 0)
    return false;
  SmallVector<Expr> at = genericIndices(exprs, indices->extents);
  for (int64_t c = 0, count = exprs.constInt(indices->extents.back()).value_or(0); c < count; ++c) {
    at.back() = exprs.num(c);
    if (mayLeave(elementAt(exprs, *indices, at), gather.getBatchDims() + c))
      return true;
  }
  return false;
}

bool StepBuilder::isEmpty(Value value) {
  const SymbolicTensor *tensor = model.elementOf(value);
  return tensor && llvm::any_of(tensor->extents, [&](Expr extent) { return exprs.isConst(extent, 0); });
}

/// The type a value has in the step: constants stay, the tokens of the call become `?`, an axis of c * tokens becomes `?` and c. None if an extent is
/// something else.
std::optional<RankedTensorType> StepBuilder::stepType(Value value) {
  const SymbolicTensor *tensor = model.elementOf(value);
  auto shaped = dyn_cast<ShapedType>(value.getType());
  if (!tensor || !shaped)
    return std::nullopt;
  SmallVector<int64_t> shape;
  for (Expr extent : tensor->extents) {
    extent = exprs.subst(extent, exprs.B(), exprs.num(1));
    if (std::optional<int64_t> size = exprs.constInt(extent))
      shape.push_back(*size);
    else if (model.extentKind(extent) == ExtentKind::Length)
      shape.push_back(ShapedType::kDynamic);
    else if (std::optional<int64_t> parts = rowsPerToken(extent))
      shape.append({ShapedType::kDynamic, *parts});
    else
      return std::nullopt;
  }
  if (isOfLastToken(value)) { // [batch, 1, ...] or [batch, ...]: the selected rows take the place of the token, or of the batch
    unsigned axis = shape.size() > 2 && shape[1] == 1 ? 1 : 0;
    if (shape.empty() || shape[axis] != 1)
      return std::nullopt;
    shape[axis] = ShapedType::kDynamic;
  }
  if (llvm::count(shape, ShapedType::kDynamic) > 1)
    return std::nullopt;
  return RankedTensorType::get(shape, shaped.getElementType());
}

/// The elements of a small integer or boolean tensor that is the same in every call.
std::optional<SmallVector<int64_t>> StepBuilder::constantElements(Value value) {
  const SymbolicTensor *tensor = model.elementOf(value);
  if (!tensor || tensor->type == ElementType::Float)
    return std::nullopt;
  SmallVector<int64_t> extents;
  int64_t count = 1;
  for (Expr extent : tensor->extents) {
    std::optional<int64_t> size = exprs.constInt(exprs.subst(extent, exprs.B(), exprs.num(1)));
    if (!size || *size > largestSpelt || count * *size > largestSpelt)
      return std::nullopt;
    extents.push_back(*size);
    count *= *size;
  }
  SmallVector<int64_t> elements;
  for (int64_t flat = 0; flat < count; ++flat) {
    SmallVector<Expr> index(extents.size());
    int64_t rest = flat;
    for (int axis = int(extents.size()) - 1; axis >= 0; --axis) {
      index[axis] = exprs.num(rest % extents[axis]);
      rest /= extents[axis];
    }
    Expr element = elementAt(exprs, *tensor, index);
    element = exprs.subst(element, exprs.B(), exprs.num(1));
    if (element->is(ExprKind::Bool)) {
      elements.push_back(element == exprs.boolean(true));
      continue;
    }
    std::optional<int64_t> number = exprs.constInt(element);
    if (!number)
      return std::nullopt;
    elements.push_back(*number);
  }
  return elements;
}

bool StepBuilder::plan(Value root) {
  SmallVector<Value> worklist{root};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (plans.count(value))
      continue;
    Plan result;
    if (!planValue(value, result))
      return false;
    worklist.append(result.needs.begin(), result.needs.end());
    plans[value] = std::move(result);
  }
  return true;
}

bool StepBuilder::planValue(Value value, Plan &plan) {
  if (auto found = siteOfResult.find(value); found != siteOfResult.end()) {
    const AttentionSite &site = *found->second;
    plan = {Source::Attention, {site.query.value, model.states[site.keyState].newRows.value, model.states[site.valueState].newRows.value}, &site};
    return true;
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && model.inputRoles[argument.getArgNumber()] == InputRole::InputIds) {
    plan.source = Source::Ids;
    return true;
  }
  if (isa<NoneType>(value.getType())) {
    plan.source = Source::Clone;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (op && isa<onnx::ConstantOp, onnx::WeightOp>(op)) {
    plan.source = Source::Clone;
    return true;
  }
  if (constantElements(value) || model.asIntegerOfPosition(value)) {
    plan.source = Source::Integer;
    return true;
  }
  if (argument)
    return fail(source.getLoc(), "input " + Twine(argument.getArgNumber()) + " (" + stringifyInputRole(model.inputRoles[argument.getArgNumber()]) +
                                     ") reaches the data of rows and is no function of the position");
  if (isa<onnx::GatherOp>(op))
    return planGather(op, value, plan);
  if (isa<onnx::SliceOp>(op))
    return planSlice(op, value, plan);
  return planClone(op, value, plan);
}

/// True if `result` is `data` with its token axis reduced to the last token: the index is -1 or L - 1, and nothing else is cut.
bool StepBuilder::selectsLastRow(Operation *op, Value data, Value result) {
  const SymbolicTensor *from = model.elementOf(data), *to = model.elementOf(result);
  int axis = model.tokenAxis(data);
  if (!from || !to || axis < 0 || !isOfLastToken(result))
    return false;
  auto isLast = [&](Value indices, int64_t at) {
    const SymbolicTensor *tensor = model.elementOf(indices);
    if (!tensor || tensor->rank() > 1)
      return false;
    Expr index = tensor->rank() == 0 ? tensor->element : elementAt(exprs, *tensor, {exprs.num(at)});
    return exprs.isConst(index, -1) || index == exprs.sub(exprs.L(), exprs.num(1));
  };
  if (auto gather = dyn_cast<onnx::GatherOp>(op)) {
    const SymbolicTensor *indices = model.elementOf(gather.getIndices());
    bool one = indices && (indices->rank() == 0 || (indices->rank() == 1 && exprs.isConst(indices->extents[0], 1)));
    int64_t gathered = gather.getAxis() < 0 ? gather.getAxis() + int64_t(from->rank()) : gather.getAxis();
    return one && gathered == axis && isLast(gather.getIndices(), 0);
  }
  auto slice = dyn_cast<onnx::SliceOp>(op);
  if (!slice || from->rank() != to->rank())
    return false;
  for (unsigned a = 0; a < to->rank(); ++a)
    if (int(a) == axis ? !exprs.isConst(to->extents[a], 1) : from->extents[a] != to->extents[a])
      return false;
  std::optional<SmallVector<int64_t>> axes, steps;
  if (!isa<NoneType>(slice.getAxes().getType()) && !(axes = constantElements(slice.getAxes())))
    return false;
  if (!isa<NoneType>(slice.getSteps().getType()) && !(steps = constantElements(slice.getSteps())))
    return false;
  if (steps && llvm::any_of(*steps, [](int64_t step) { return step != 1; }))
    return false;
  for (int64_t at = 0, end = axes ? int64_t(axes->size()) : int64_t(from->rank()); at < end; ++at) {
    int64_t cut = axes ? (*axes)[at] : at;
    if ((cut < 0 ? cut + int64_t(from->rank()) : cut) == axis)
      return isLast(slice.getStarts(), at);
  }
  return false;
}

/// A slice from 0 of a table can be left out when only rows inside of the slice are taken from it.
Value StepBuilder::withoutPrefixSlices(Value table, unsigned axis) {
  while (auto slice = table.getDefiningOp<onnx::SliceOp>()) {
    const SymbolicTensor *from = model.elementOf(slice.getData()), *to = model.elementOf(table);
    if (!from || !to || from->rank() != to->rank() || !model.elementOf(slice.getData()))
      break;
    SmallVector<Expr> index = genericIndices(exprs, to->extents);
    bool others = true;
    for (unsigned a = 0; a < to->rank(); ++a)
      others &= a == axis || from->extents[a] == to->extents[a];
    if (!others || elementAt(exprs, *from, index) != to->element)
      break;
    table = slice.getData();
  }
  return table;
}

bool StepBuilder::planGather(Operation *op, Value value, Plan &plan) {
  auto gather = cast<onnx::GatherOp>(op);
  if (selectsLastRow(op, gather.getData(), value)) {
    plan = {Source::LastRow, {gather.getData()}};
    return true;
  }
  if (!planClone(op, value, plan))
    return false;
  const SymbolicTensor *data = model.elementOf(gather.getData());
  if (data) {
    int64_t axis = gather.getAxis() < 0 ? gather.getAxis() + int64_t(data->rank()) : gather.getAxis();
    plan.needs[0] = withoutPrefixSlices(gather.getData(), axis);
  }
  return true;
}

bool StepBuilder::planSlice(Operation *op, Value value, Plan &plan) {
  auto slice = cast<onnx::SliceOp>(op);
  const SymbolicTensor *from = model.elementOf(slice.getData()), *to = model.elementOf(value);
  if (!from || !to)
    return fail(op, "has no meaning in the analysis");
  if (from->extents == to->extents && from->element == to->element) {
    plan = {Source::SameAs, {slice.getData()}};
    return true;
  }
  if (selectsLastRow(op, slice.getData(), value)) {
    plan = {Source::LastRow, {slice.getData()}};
    return true;
  }
  int axis = model.tokenAxis(value);
  if (axis >= 0 && model.tokenAxis(slice.getData()) < 0)
    if (std::optional<int64_t> offset = model.sliceFromPosition(op, axis)) {
      plan = {Source::RowsOfTable, {slice.getData()}};
      plan.offset = *offset;
      plan.axis = axis;
      for (unsigned a = 0; a < to->rank(); ++a)
        if (int(a) != axis && from->extents[a] != to->extents[a])
          return fail(op, "not implemented: a slice by position that cuts another axis too");
      return true;
    }
  if (!planClone(op, value, plan))
    return false;
  plan.needs = {slice.getData()};
  return true;
}

/// An op on a value whose tokens are folded with another axis: it must not care, since the step has two axes there.
bool StepBuilder::planPartsOfRows(Operation *op, Value value) {
  if (isa<onnx::ReshapeOp, onnx::CastOp, onnx::IdentityOp>(op))
    return true;
  const SymbolicTensor &result = *model.elementOf(value);
  unsigned folded = 0;
  while (folded < result.rank() && !rowsPerToken(result.extents[folded]))
    ++folded;
  int64_t last = int64_t(result.rank()) - 1;
  if (auto norm = dyn_cast<onnx::SimplifiedLayerNormalizationOp>(op))
    return (norm.getAxis() == -1 || norm.getAxis() == last) && int64_t(folded) < last;
  if (auto norm = dyn_cast<onnx::RMSNormalizationOp>(op))
    return (norm.getAxis() == -1 || norm.getAxis() == last) && int64_t(folded) < last;
  if (auto norm = dyn_cast<onnx::LayerNormalizationOp>(op))
    return (norm.getAxis() == -1 || norm.getAxis() == last) && int64_t(folded) < last;
  if (!isa<onnx::AddOp, onnx::SubOp, onnx::MulOp, onnx::DivOp, onnx::PowOp, onnx::SqrtOp, onnx::NegOp, onnx::ReciprocalOp, onnx::ReduceMeanOp>(op))
    return false;
  if (auto reduce = dyn_cast<onnx::ReduceMeanOp>(op)) {
    std::optional<SmallVector<int64_t>> axes = isa<NoneType>(reduce.getAxes().getType()) ? std::nullopt : constantElements(reduce.getAxes());
    return axes && axes->size() == 1 && axes->front() == -1 && reduce.getKeepdims() && int64_t(folded) < last;
  }
  // Operands are folded in the same place, or end right of it.
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    const SymbolicTensor *tensor = model.elementOf(operand);
    return tensor && (tensor->rank() < result.rank() - folded || (tensor->rank() == result.rank() && tensor->extents[folded] == result.extents[folded]));
  });
}

/// The selected rows lie on another axis of the result than of an operand: an axis that the op names would be another one in the step.
bool StepBuilder::movesSelectedRows(Operation *op, Value value) {
  auto rowAxis = [&](Value of) {
    std::optional<RankedTensorType> type = isOfLastToken(of) ? stepType(of) : std::nullopt;
    const int64_t *axis = type ? llvm::find(type->getShape(), ShapedType::kDynamic) : nullptr;
    return type && axis != type->getShape().end() ? std::optional<int64_t>(axis - type->getShape().begin()) : std::nullopt;
  };
  auto rankOf = [](Value of) { return cast<RankedTensorType>(of.getType()).getRank(); };
  std::optional<int64_t> to = rowAxis(value);
  return to && llvm::any_of(op->getOperands(), [&](Value operand) {
           std::optional<int64_t> from = rowAxis(operand);
           return from && rankOf(operand) == rankOf(value) && *from != *to;
         });
}

/// The op can be emitted again on the rows of the step.
bool StepBuilder::planClone(Operation *op, Value value, Plan &plan) {
  std::string why;
  if (op->getNumRegions() != 0)
    return fail(op, "not implemented: operators with subgraphs on the way to a row");
  if (!stepType(value))
    return fail(op, "a row needs a value whose extents are not those of the tokens of the call");
  if (!model.isTokenWise(value, &why) && !isOfLastToken(value))
    return fail(op, why.empty() ? "not a function of the token and its position" : why);
  if ((countsPartsOfRows(value) || llvm::any_of(op->getOperands(), [&](Value v) { return countsPartsOfRows(v); })) && !planPartsOfRows(op, value))
    return fail(op, "not implemented: on an axis that folds tokens with another axis");
  if (indexesByData(op))
    return fail(op, "not implemented: indices that are computed from data");
  if (isa<onnx::GatherOp, onnx::GatherNDOp, onnx::GatherElementsOp>(op) && indexesFromOutside(op))
    return fail(op, "the position leads to an index outside of the table, or to one that is not known");
  plan.source = Source::Clone;
  plan.needs.assign(op->operand_begin(), op->operand_end());
  if (isa<onnx::ConcatOp>(op))
    llvm::erase_if(plan.needs, [&](Value operand) { return isEmpty(operand); });
  if (isa<onnx::ReshapeOp, onnx::ExpandOp, onnx::SqueezeOp, onnx::UnsqueezeOp, onnx::FlattenOp, onnx::SliceOp>(op))
    plan.needs.truncate(1); // where the data goes is said by the type
  else if (isa<onnx::ConstantOfShapeOp>(op))
    plan.needs.clear(); // likewise
  else if (isa<onnx::SplitOp, onnx::TileOp>(op))
    plan.needs.truncate(1);
  else if (movesSelectedRows(op, value))
    return fail(op, "not implemented: on the axis of the token that is selected");
  return true;
}

const ModelOutput *StepBuilder::logitsOutput() {
  const ModelOutput *found = nullptr;
  for (const ModelOutput &output : model.outputs) {
    if (output.kind != OutputKind::TokenWise && output.kind != OutputKind::LastToken)
      continue;
    auto type = dyn_cast<ShapedType>(output.value.value.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      continue;
    if (found) {
      fail(source.getLoc(), "expected one output of logits, but got several outputs of rows");
      return nullptr;
    }
    found = &output;
  }
  if (!found)
    fail(source.getLoc(), "expected an output of logits, but got none");
  return found;
}

int64_t StepBuilder::tokenLimit() {
  int64_t limit = -1;
  for (BlockArgument argument : source.getArguments()) {
    if (model.inputRoles[argument.getArgNumber()] != InputRole::InputIds)
      continue;
    SmallVector<Value> worklist{argument};
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      for (OpOperand &use : value.getUses()) {
        if (auto gather = dyn_cast<onnx::GatherOp>(use.getOwner()); gather && use.getOperandNumber() == 1) {
          const SymbolicTensor *table = model.elementOf(gather.getData());
          if (!table || table->rank() == 0)
            continue;
          unsigned axis = gather.getAxis() < 0 ? gather.getAxis() + table->rank() : gather.getAxis();
          if (std::optional<int64_t> rows = model.context().constInt(table->extents[axis]))
            limit = limit < 0 ? *rows : std::min(limit, *rows);
        } else if (isa<onnx::CastOp, onnx::IdentityOp, onnx::ReshapeOp, onnx::SqueezeOp, onnx::UnsqueezeOp>(use.getOwner())) {
          worklist.push_back(use.getOwner()->getResult(0));
        }
      }
    }
  }
  return limit;
}

} // namespace quire
