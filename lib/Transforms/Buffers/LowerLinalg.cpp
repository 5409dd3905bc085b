// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups linalg operations that run over the rows of a step and emits one parallel loop for each group.
#include "lib/Transforms/Buffers/LoopEmitter.h"
#include "lib/Transforms/Buffers/Passes.h"

#include "dialects/KVRT/KVRT.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_LOWERLINALG
#include "lib/Transforms/Buffers/Passes.h.inc"

namespace {

/// Neighbouring operations that run over the same rows.
struct Group {
  SmallVector<LoopPlan> plans;
  Value count;
  std::optional<kvrt::Extent> extent;
  bool isOpen = false; // may take another operation
};

class LowerLinalgPass : public impl::LowerLinalgBase<LowerLinalgPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    batch = {};
    for (BlockArgument argument : function.getArguments())
      if (isa<kvrt::BatchType>(argument.getType()))
        batch = argument;
    if (failed(generalize(function)))
      return signalPassFailure();
    for (Block &block : function.getBody())
      lower(block);
    bool isDone = true;
    function.walk([&](linalg::LinalgOp op) {
      op.emitError("not implemented: lower ") << op->getName() << " of this form";
      isDone = false;
    });
    if (!isDone)
      signalPassFailure();
  }

private:
  /// Fills that only start a reduction move into it; every other operation becomes a generic.
  LogicalResult generalize(func::FuncOp function) {
    starts.clear();
    SmallVector<linalg::LinalgOp> ops;
    function.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(function.getContext());
    for (linalg::LinalgOp op : ops)
      if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()); generic && generic.getNumReductionLoops() > 0 && generic.getNumDpsInits() == 1)
        if (linalg::FillOp fill = startOf(generic)) {
          starts[generic] = fill.value();
          absorbed.push_back(fill);
        }
    for (linalg::FillOp fill : absorbed) {
      llvm::erase(ops, cast<linalg::LinalgOp>(fill.getOperation()));
      fill.erase();
    }
    absorbed.clear();
    for (linalg::LinalgOp op : ops) {
      if (isa<linalg::GenericOp>(op.getOperation()))
        continue;
      rewriter.setInsertionPoint(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op)))
        return op.emitError("not implemented: lower ") << op->getName();
    }
    return success();
  }

  /// The fill that is the only use of a reduction's output before it.
  static linalg::FillOp startOf(linalg::GenericOp reduction) {
    Value output = reduction.getDpsInitOperand(0)->get();
    if (!output.getDefiningOp<memref::AllocOp>())
      return {};
    linalg::FillOp fill;
    for (Operation *user : output.getUsers()) {
      if (user->getBlock() != reduction->getBlock())
        return {};
      if (user == reduction || !user->isBeforeInBlock(reduction))
        continue;
      if (fill || !isa<linalg::FillOp>(user))
        return {};
      fill = cast<linalg::FillOp>(user);
    }
    return fill;
  }

  void lower(Block &block) {
    Group group;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic) {
        if (!isPure(&op) && !isa<memref::AllocOp>(op))
          flush(group);
        continue;
      }
      if (isCopyToItself(generic)) {
        generic.erase();
        continue;
      }
      LoopPlan plan(generic, starts.lookup(generic));
      if (!isSupported(plan)) {
        flush(group);
        continue;
      }
      bool isRowLocal = plan.isRowLocal();
      Value count = plan.rowLoop >= 0 ? rowCount(plan) : Value();
      auto extentOp = count ? count.getDefiningOp<kvrt::ExtentOp>() : kvrt::ExtentOp();
      std::optional<kvrt::Extent> extent = extentOp ? std::optional(extentOp.getExtent()) : std::nullopt;
      if (!group.isOpen || !isRowLocal || !extent || group.extent != extent)
        flush(group);
      group.plans.push_back(plan);
      if (group.plans.size() == 1) {
        group.count = count;
        group.extent = extent;
      }
      group.isOpen = isRowLocal && extent;
    }
    flush(group);
  }

  static bool isCopyToItself(linalg::GenericOp op) {
    if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getDpsInputOperand(0)->get() != op.getDpsInitOperand(0)->get())
      return false;
    return op.getIndexingMapsArray()[0] == op.getIndexingMapsArray()[1] && op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0);
  }

  static bool isSupported(const LoopPlan &plan) {
    linalg::GenericOp op = plan.op;
    if (llvm::count_if(plan.extents, ShapedType::isDynamic) > 1 || (plan.rowLoop >= 0 && plan.isReduction(plan.rowLoop)))
      return false;
    if (op.getNumReductionLoops() > 0 && op.getNumDpsInits() != 1)
      return false;
    return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
      return llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
    });
  }

  /// The number of rows, from an operand that has them.
  static Value rowCount(const LoopPlan &plan) {
    linalg::GenericOp op = plan.op;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type || type.hasStaticShape())
        continue;
      Value source = operand.get();
      while (auto view = source.getDefiningOp<ViewLikeOpInterface>())
        source = view.getViewSource();
      if (auto alloc = source.getDefiningOp<memref::AllocOp>(); alloc && alloc.getDynamicSizes().size() == 1)
        return alloc.getDynamicSizes().front();
    }
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (auto type = dyn_cast<MemRefType>(operand.get().getType()))
        for (int64_t axis = 0; axis < type.getRank(); ++axis)
          if (type.isDynamicDim(axis))
            return memref::DimOp::create(builder, op.getLoc(), operand.get(), axis);
    return {};
  }

  /// Emits a group at the place of its last operation and erases it.
  void flush(Group &group) {
    if (group.plans.empty())
      return;
    OpBuilder builder(group.plans.back().op);
    Location loc = group.plans.back().op.getLoc();
    int64_t work = 0;
    for (LoopPlan &plan : group.plans)
      work += plan.workOfRow();
    if (!group.count && work >= 4 * grainWork && group.plans.front().takeOuterLoopForRows()) {
      LoopPlan &plan = group.plans.front();
      int64_t extent = plan.extents[plan.rowLoop];
      work /= extent;
      group.count = arith::ConstantIndexOp::create(builder, loc, extent);
    }
    auto emitRow = [&](OpBuilder &nested, Value row) {
      for (LoopPlan &plan : group.plans)
        emitLoops(nested, plan, row);
    };
    auto emitRows = [&](OpBuilder &nested, Location at, Value begin, Value end) {
      auto loop = scf::ForOp::create(nested, at, begin, end, arith::ConstantIndexOp::create(nested, at, 1));
      OpBuilder inner = OpBuilder::atBlockTerminator(loop.getBody());
      emitRow(inner, loop.getInductionVar());
    };
    if (!group.count)
      emitRow(builder, {});
    else if (batch)
      kvrt::ParallelOp::create(builder, loc, group.count, batch, std::max<int64_t>(1, (grainWork + work - 1) / work), emitRows);
    else
      emitRows(builder, loc, arith::ConstantIndexOp::create(builder, loc, 0), group.count);
    for (LoopPlan &plan : group.plans)
      plan.op.erase();
    group = Group();
  }

  Value batch;
  DenseMap<Operation *, Value> starts;
  SmallVector<linalg::FillOp> absorbed;
};
} // namespace

} // namespace quire
