// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the repetitions of a step and makes them calls of one function.
#include "lib/Transforms/Buffers/Passes.h"

#include "dialects/KVRT/KVRT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_SHARELAYERS
#include "lib/Transforms/Buffers/Passes.h.inc"

namespace {

/// An operation that is not made again at will: it has an effect, or a region. The others are views, extents and constants.
bool isStep(Operation &op) { return !op.hasTrait<OpTrait::IsTerminator>() && (op.getNumRegions() > 0 || !isMemoryEffectFree(&op)); }

/// The layer's number is the one attribute that may differ.
bool namesLayer(Operation *op) { return isa<kvrt::AcquireOp, kvrt::PrefetchOp>(op); }

int64_t layerOf(Operation *op) {
  auto acquire = dyn_cast<kvrt::AcquireOp>(op);
  return acquire ? acquire.getLayer() : cast<kvrt::PrefetchOp>(op).getLayer();
}

/// `op` with number 0, counted from `base`.
void setLayer(OpBuilder &builder, Operation *op, Value base) {
  IntegerAttr zero = builder.getI64IntegerAttr(0);
  if (auto acquire = dyn_cast<kvrt::AcquireOp>(op)) {
    acquire.setLayerAttr(zero);
    acquire.getBaseMutable().assign(base);
  } else {
    auto prefetch = cast<kvrt::PrefetchOp>(op);
    prefetch.setLayerAttr(zero);
    prefetch.getBaseMutable().assign(base);
  }
}

llvm::hash_code hashOf(Operation *op) {
  if (namesLayer(op))
    return llvm::hash_combine(op->getName(), op->getNumOperands(), llvm::hash_combine_range(op->result_type_begin(), op->result_type_end()));
  llvm::hash_code hash = llvm::hash_combine_range(op->operand_type_begin(), op->operand_type_end());
  op->walk([&](Operation *inner) {
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(inner, OperationEquivalence::ignoreHashValue, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

/// `count` repetitions of `period` operations from `first` on.
struct Repetition {
  size_t first = 0, period = 0, count = 0;
  size_t saved() const { return count > 1 ? (count - 1) * period : 0; }
};

/// The repetition that leaves the fewest operations, the shortest one among equals.
Repetition findRepetition(ArrayRef<llvm::hash_code> hashes, size_t leastPeriod) {
  Repetition best;
  for (size_t period = leastPeriod; 2 * period <= hashes.size(); ++period)
    for (size_t at = 0; at + period < hashes.size();) {
      size_t run = 0;
      while (at + run + period < hashes.size() && hashes[at + run] == hashes[at + run + period])
        ++run;
      Repetition found{at, period, run / period + 1};
      if (found.saved() > best.saved())
        best = found;
      at += run + 1;
    }
  return best;
}

/// Makes one function of repetitions; each has the same operations, one list a repetition.
class LayerBuilder {
public:
  LayerBuilder(ArrayRef<ArrayRef<Operation *>> repetitions, Value batch) : repetitions(repetitions), batch(batch), instances(repetitions.size()) {}

  /// The function, not yet in a module; null if the repetitions differ in more than arguments can tell.
  func::FuncOp build(Location loc) {
    for (ArrayRef<Operation *> repetition : repetitions)
      for (Operation *op : repetition)
        if (!isUsedWithin(op, repetition))
          return {};
    function = func::FuncOp::create(loc, "layers", FunctionType::get(loc.getContext(), {}, {}));
    function.setPrivate();
    Block *entry = function.addEntryBlock();
    innerBatch = entry->addArgument(batch.getType(), loc);
    OpBuilder builder = OpBuilder::atBlockEnd(entry);
    for (size_t at = 0; at < repetitions[0].size(); ++at)
      if (!cloneStep(builder, at)) {
        function.erase();
        return {};
      }
    func::ReturnOp::create(builder, loc);
    function.setFunctionType(FunctionType::get(loc.getContext(), entry->getArgumentTypes(), {}));
    return function;
  }

  /// Replaces a repetition by a call.
  void call(size_t repetition) const {
    Operation *last = repetitions[repetition].back();
    OpBuilder builder(last);
    SmallVector<Value> operands = {batch};
    for (const Argument &argument : arguments) {
      Value value = argument.values.empty() ? Value() : argument.values[repetition];
      operands.push_back(value ? value : arith::ConstantIndexOp::create(builder, last->getLoc(), argument.numbers[repetition]).getResult());
    }
    func::CallOp::create(builder, last->getLoc(), function, operands);
    for (Operation *op : llvm::reverse(repetitions[repetition])) {
      eraseUsers(op); // views and arithmetic that the later ones of the repetition used
      op->erase();
    }
  }

private:
  using Values = std::vector<Value>;   // one of each repetition
  using Numbers = std::vector<int64_t>;
  struct Argument {
    Values values;   // or, where they are none,
    Numbers numbers; // constants to make
  };

  Value addArgument(Type type, Argument argument) {
    arguments.push_back(std::move(argument));
    return function.getBody().front().addArgument(type, function.getLoc());
  }

  /// The number in the function: a constant where all repetitions have the same.
  Value number(OpBuilder &builder, Numbers numbers) {
    if (llvm::all_equal(numbers))
      return arith::ConstantIndexOp::create(builder, function.getLoc(), numbers.front());
    Value &known = numbersInside[numbers];
    if (!known)
      known = addArgument(builder.getIndexType(), {{}, numbers});
    return known;
  }

  static int64_t orderOf(Value value) { return reinterpret_cast<intptr_t>(value.getAsOpaquePointer()); }

  /// The value in the function that stands for `values`; null if there can be none.
  Value inside(OpBuilder &builder, const Values &values) {
    if (llvm::all_equal(values) && values.front() == batch)
      return innerBatch;
    std::vector<int64_t> key;
    for (Value value : values)
      key.push_back(orderOf(value));
    if (auto known = valuesInside.find(key); known != valuesInside.end())
      return known->second;
    Value result = makeInside(builder, values);
    if (result)
      valuesInside[key] = result;
    return result;
  }

  Value makeInside(OpBuilder &builder, const Values &values) {
    Operation *op = values.front().getDefiningOp();
    auto isAlike = [&](Value value) {
      Operation *other = value.getDefiningOp();
      return value.getType() == values.front().getType() && op && other && other->getName() == op->getName() && !isStep(*other) &&
             other->getNumOperands() == op->getNumOperands() && cast<OpResult>(value).getResultNumber() == cast<OpResult>(values.front()).getResultNumber();
    };
    if (!op || isStep(*op) || !llvm::all_of(values, isAlike))
      return makeArgument(values);
    if (isa<kvrt::WeightOp>(op))
      return makeWeight(builder, values);
    bool isSame = llvm::all_of(values, [&](Value value) {
      Operation *other = value.getDefiningOp();
      return other->getDiscardableAttrDictionary() == op->getDiscardableAttrDictionary() && other->getPropertiesAsAttribute() == op->getPropertiesAsAttribute();
    });
    if (!isSame)
      return makeArgument(values);
    SmallVector<Value> operands;
    for (unsigned index = 0; index < op->getNumOperands(); ++index) {
      Values of;
      for (Value value : values)
        of.push_back(value.getDefiningOp()->getOperand(index));
      operands.push_back(inside(builder, of));
      if (!operands.back())
        return {};
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    return copy->getResult(cast<OpResult>(values.front()).getResultNumber());
  }

  /// Values from outside that are there before the call: made by operations that stay in the step.
  Value makeArgument(const Values &values) {
    for (Value value : values) {
      auto isItsMaker = [&](ArrayRef<Operation *> repetition) { return llvm::is_contained(repetition, value.getDefiningOp()); };
      if (value.getType() != values.front().getType() || llvm::any_of(repetitions, isItsMaker))
        return {};
    }
    return addArgument(values.front().getType(), {values, {}});
  }

  Value makeWeight(OpBuilder &builder, const Values &values) {
    Numbers offsets;
    SymbolTableCollection tables;
    for (Value value : values) {
      auto op = value.getDefiningOp<kvrt::WeightOp>();
      if (op.getBatch() != batch)
        return {};
      offsets.push_back(kvrt::lookupWeight(op, op.getWeightAttr(), tables).offset);
    }
    auto type = dyn_cast<MemRefType>(values.front().getType());
    if (!type || llvm::is_contained(offsets, -1))
      return {};
    if (llvm::all_equal(offsets)) {
      Operation *copy = builder.clone(*values.front().getDefiningOp());
      copy->setOperand(0, innerBatch);
      return copy->getResult(0);
    }
    return kvrt::WeightAtOp::create(builder, function.getLoc(), type, innerBatch, number(builder, offsets));
  }

  /// Clones the operation at a place of every repetition.
  bool cloneStep(OpBuilder &builder, size_t at) {
    Operation *op = repetitions[0][at];
    // What the regions of the operations, and they themselves, take from outside; for each value of the first, those of all.
    llvm::MapVector<Value, Values> used;
    op->walk([&](Operation *inner) {
      for (Value value : inner->getOperands())
        if (isOutside(op, value))
          used.insert({value, Values(instances)});
    });
    for (size_t instance = 0; instance < instances; ++instance)
      if (!isAlike(op, repetitions[instance][at]) || !collect(op, repetitions[instance][at], instance, used))
        return false;
    IRMapping mapping;
    for (auto &[value, values] : used) {
      Value mapped = inside(builder, values);
      if (!mapped)
        return false;
      mapping.map(value, mapped);
    }
    Operation *copy = builder.clone(*op, mapping);
    if (namesLayer(op)) {
      Numbers layers;
      for (ArrayRef<Operation *> repetition : repetitions)
        layers.push_back(layerOf(repetition[at]));
      if (!llvm::all_equal(layers)) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(copy);
        setLayer(builder, copy, number(builder, layers));
      }
    }
    for (unsigned index = 0; index < op->getNumResults(); ++index) {
      std::vector<int64_t> key;
      for (ArrayRef<Operation *> repetition : repetitions)
        key.push_back(orderOf(repetition[at]->getResult(index)));
      valuesInside[key] = copy->getResult(index);
    }
    return true;
  }

  /// Whether all that is computed from the results of `op` is used by the repetition itself.
  static bool isUsedWithin(Operation *op, ArrayRef<Operation *> repetition) {
    for (Operation *user : op->getUsers()) {
      Operation *step = op->getBlock()->findAncestorOpInBlock(*user);
      if (llvm::is_contained(repetition, step))
        continue;
      if (isStep(*step) || step->hasTrait<OpTrait::IsTerminator>() || !isUsedWithin(step, repetition))
        return false;
    }
    return true;
  }

  static void eraseUsers(Operation *op) {
    while (!op->use_empty()) {
      Operation *user = *op->user_begin();
      eraseUsers(user);
      user->erase();
    }
  }

  static bool isOutside(Operation *root, Value value) { return !root->isAncestor(value.getParentBlock()->getParentOp()); }

  /// Whether two operations differ in nothing but what they take from outside, and in a layer's number.
  static bool isAlike(Operation *op, Operation *other) {
    if (auto prefetch = dyn_cast<kvrt::PrefetchOp>(op)) {
      auto second = dyn_cast<kvrt::PrefetchOp>(other);
      return second && prefetch.getFirst() == second.getFirst() && prefetch.getCount() == second.getCount() && op->getNumOperands() == other->getNumOperands();
    }
    if (isa<kvrt::AcquireOp>(op))
      return isa<kvrt::AcquireOp>(other) && op->getNumOperands() == other->getNumOperands() && op->getResultTypes() == other->getResultTypes();
    DenseMap<Value, Value> marked;
    auto check = [&](Value a, Value b) {
      bool outside = isOutside(op, a);
      return success(outside == isOutside(other, b) && a.getType() == b.getType() && (outside || marked.lookup(a) == b));
    };
    return OperationEquivalence::isEquivalentTo(
        op, other, check, [&](Value a, Value b) { marked[a] = b; }, OperationEquivalence::IgnoreLocations);
  }

  /// Notes for each value that `op` takes from outside what `other` takes in its place; false if it takes several.
  static bool collect(Operation *op, Operation *other, size_t instance, llvm::MapVector<Value, Values> &used) {
    SmallVector<Operation *> first, second;
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) { first.push_back(inner); });
    other->walk<WalkOrder::PreOrder>([&](Operation *inner) { second.push_back(inner); });
    for (auto [mine, others] : llvm::zip_equal(first, second))
      for (auto [value, counterpart] : llvm::zip_equal(mine->getOperands(), others->getOperands())) {
        if (!isOutside(op, value))
          continue;
        Value &known = used.find(value)->second[instance];
        if (known && known != counterpart)
          return false;
        known = counterpart;
      }
    return true;
  }

  ArrayRef<ArrayRef<Operation *>> repetitions;
  Value batch, innerBatch;
  size_t instances;
  func::FuncOp function;
  std::vector<Argument> arguments; // after the batch
  std::map<std::vector<int64_t>, Value> valuesInside;
  std::map<Numbers, Value> numbersInside;
};

class ShareLayersPass : public impl::ShareLayersBase<ShareLayersPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    for (auto model : getOperation().getOps<kvrt::ModelOp>())
      if (auto step = getOperation().lookupSymbol<func::FuncOp>(model.getStep()))
        share(step);
  }

private:
  void share(func::FuncOp step) {
    if (step.getNumArguments() != 1 || !llvm::hasSingleElement(step.getBody()))
      return;
    SmallVector<Operation *> ops;
    std::vector<llvm::hash_code> hashes;
    for (Operation &op : step.getBody().front())
      if (isStep(op)) {
        ops.push_back(&op);
        hashes.push_back(hashOf(&op));
      }
    Repetition found = findRepetition(hashes, std::max<int64_t>(1, leastOperations));
    // A layer may begin anywhere in the period, and the first repetitions may differ in what they take.
    for (size_t skip = 0; skip < 2 * found.period && found.first + skip + 2 * found.period <= ops.size(); ++skip) {
      size_t whole = (found.count * found.period - skip) / found.period;
      if (whole >= 2 && shareAt(step, ArrayRef(ops).slice(found.first + skip, whole * found.period), found.period))
        return;
    }
  }

  bool shareAt(func::FuncOp step, ArrayRef<Operation *> ops, size_t period) {
    SmallVector<ArrayRef<Operation *>> repetitions;
    for (size_t at = 0; at < ops.size(); at += period)
      repetitions.push_back(ops.slice(at, period));
    LayerBuilder layer(repetitions, step.getArgument(0));
    func::FuncOp function = layer.build(step.getLoc());
    if (!function)
      return false;
    SymbolTable(getOperation()).insert(function);
    for (size_t repetition = 0; repetition < repetitions.size(); ++repetition)
      layer.call(repetition);
    return true;
  }
};

} // namespace

} // namespace quire
