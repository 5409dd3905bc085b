// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous states become paged, and rows whose logits nobody wants are dropped early.
#include "dialects/KV/KVDialect.h"
#include "lib/Transforms/KV/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

namespace quire::kv {
#define GEN_PASS_DEF_PAGINATEPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
/// A tensor whose axis 1, and no other, counts rows.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > SelectOp::rowAxis && type.getNumDynamicDims() == 1 && type.isDynamicDim(SelectOp::rowAxis);
}

bool hasNoRows(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return !type || type.hasStaticShape();
}

/// In the ragged form an op whose tensors count rows on axis 1, or not at all, treats each row alone: it reduces along no row axis.
bool isRowWise(Operation *op) {
  return op->getNumResults() == 1 && isMemoryEffectFree(op) && op->getNumRegions() == 0 && !isa<SelectOp>(op) && hasRows(op->getResult(0)) &&
         llvm::any_of(op->getOperands(), hasRows) && llvm::all_of(op->getOperands(), [](Value v) { return hasRows(v) || hasNoRows(v); });
}

/// select(op(x)) becomes op(select(x)) as long as nothing else uses op(x).
void moveSelectsUp(ModuleOp module) {
  SmallVector<SelectOp> worklist;
  module.walk([&](SelectOp select) { worklist.push_back(select); });
  while (!worklist.empty()) {
    SelectOp select = worklist.pop_back_val();
    Operation *producer = select.getInput().getDefiningOp();
    if (!producer || !producer->hasOneUse() || !isRowWise(producer))
      continue;
    OpBuilder builder(producer);
    for (OpOperand &operand : producer->getOpOperands())
      if (hasRows(operand.get())) {
        auto moved = SelectOp::create(builder, select.getLoc(), operand.get(), select.getBatch());
        operand.set(moved);
        worklist.push_back(moved);
      }
    select.replaceAllUsesWith(producer->getResult(0));
    select.erase();
  }
}

struct Paginate : quire::kv::impl::PaginatePassBase<Paginate> {
  using PaginatePassBase::PaginatePassBase;

  void runOnOperation() override {
    if (blockTokens < 1 || !llvm::isPowerOf2_64(blockTokens)) {
      getOperation().emitError() << "expected a block of a power of two of tokens, but got " << int64_t(blockTokens);
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
      return StateType::get(type.getContext(), type.getHeads(), type.getKey(), type.getValue(), type.getElement(), paged);
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    if (!changed)
      remark::missed(getOperation().getLoc(), remark::RemarkOpts::name("paginate").category("kv")) << "no contiguous state is here";
  }
};
} // namespace
