// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous states become paged, and rows whose logits nobody wants are dropped early.
#include "dialects/KV/KVDialect.h"
#include "lib/Transforms/KV/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace quire::kv {
#define GEN_PASS_DEF_PAGINATEPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
/// A tensor that counts rows on one axis.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumDynamicDims() == 1;
}

bool hasNoRows(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return !type || type.hasStaticShape();
}

/// In the ragged form an operator treats each row alone: it reads along no row axis, and its shapes say -1 for the number of rows.
bool isRowWise(Operation *op) {
  return op->getNumResults() == 1 && isMemoryEffectFree(op) && op->getNumRegions() == 0 && !isa<SelectOp>(op) && hasRows(op->getResult(0)) &&
         llvm::any_of(op->getOperands(), hasRows) && llvm::all_of(op->getOperands(), [](Value v) { return hasRows(v) || hasNoRows(v); });
}

/// Selects of one value are one.
SelectOp mergeSelects(SelectOp select) {
  for (Operation *user : llvm::make_early_inc_range(select.getInput().getUsers()))
    if (auto other = dyn_cast<SelectOp>(user); other && other != select && other.getBatch() == select.getBatch()) {
      if (other->isBeforeInBlock(select))
        select->moveBefore(other);
      other.replaceAllUsesWith(select.getResult());
      other.erase();
    }
  return select;
}

/// select(op(x)) becomes op(select(x)) where all that uses op(x) are selects.
void moveSelectsUp(ModuleOp module) {
  llvm::SetVector<Value> worklist; // values that are selected from
  module.walk([&](SelectOp select) { worklist.insert(select.getInput()); });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    auto user = llvm::find_if(value.getUsers(), llvm::IsaPred<SelectOp>);
    if (user == value.user_end())
      continue;
    SelectOp select = mergeSelects(cast<SelectOp>(*user));
    Operation *producer = value.getDefiningOp();
    if (!producer || !producer->hasOneUse() || producer->getBlock() != select->getBlock() || !isRowWise(producer))
      continue;
    OpBuilder builder(producer);
    for (OpOperand &operand : producer->getOpOperands())
      if (hasRows(operand.get())) {
        worklist.insert(operand.get());
        operand.set(SelectOp::create(builder, select.getLoc(), operand.get(), select.getBatch()));
      }
    select.replaceAllUsesWith(producer->getResult(0));
    select.erase();
  }
}

/// The element type that `name` asks for, `element` for "model"; null: no such name.
Type storedElement(StringRef name, Type element) {
  Builder builder(element.getContext());
  return llvm::StringSwitch<Type>(name)
      .Case("model", element)
      .Case("f16", builder.getF16Type())
      .Case("bf16", builder.getBF16Type())
      .Case("int8", builder.getI8Type())
      .Case("int4", builder.getIntegerType(4))
      .Case("fp8_e4m3", Float8E4M3FNType::get(element.getContext()))
      .Case("fp8_e5m2", Float8E5M2Type::get(element.getContext()))
      .Default(Type());
}

struct Paginate : quire::kv::impl::PaginatePassBase<Paginate> {
  using PaginatePassBase::PaginatePassBase;

  void runOnOperation() override {
    if (blockTokens < 1 || !llvm::isPowerOf2_64(blockTokens)) {
      emitError(getOperation().getLoc()) << "expected a block of a power of two of tokens, but got " << int64_t(blockTokens);
      return signalPassFailure();
    }
    if (!storedElement(kvType, Float32Type::get(&getContext()))) {
      emitError(getOperation().getLoc()) << "expected kv-type model, f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2, but got '" << kvType << "'";
      return signalPassFailure();
    }
    moveSelectsUp(getOperation());
    bool changed = false;
    AttrTypeReplacer replacer;
    auto paged = PagedAttr::get(&getContext(), blockTokens, 0);
    replacer.addReplacement([&](StateType type) -> std::optional<Type> {
      if (!isa<ContiguousAttr>(type.getLayout()))
        return std::nullopt;
      changed = true;
      return StateType::get(type.getContext(), type.getHeads(), type.getKey(), type.getValue(), storedElement(kvType, type.getElement()), paged);
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    if (!changed)
      remark::missed(getOperation().getLoc(), remark::RemarkOpts::name("paginate").category("kv")) << "no contiguous state is here";
  }
};
} // namespace
