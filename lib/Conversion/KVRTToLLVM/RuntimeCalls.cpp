// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that are calls of the runtime: loads from the step's table and indirect calls.
#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"
#include "lib/Conversion/KVRTToLLVM/StepAccess.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using namespace quire::kvrt;

namespace {

// Calls the entry of `Op` in the runtime's table: (context, arguments...) -> void.
template <typename Op>
void callRuntime(OpBuilder &builder, Location loc, Value batch, ValueRange arguments) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value table = loadStepField(builder, loc, batch, runtimeField, pointer);
  Value function = loadStepField(builder, loc, table, static_cast<int64_t>(Op::getRuntimeEntry()), pointer);
  SmallVector<Value> operands = {function, loadStepField(builder, loc, batch, contextField, pointer)};
  llvm::append_range(operands, arguments);
  SmallVector<Type> types(ValueRange(operands).drop_front().getTypes());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  LLVM::CallOp::create(builder, loc, type, operands);
}

Value i64(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(value));
}

// The number of a layer as i64: `base` + `layer`, where there is a base.
Value layerNumber(OpBuilder &builder, Location loc, Value base, int64_t layer) {
  Value number = i64(builder, loc, layer);
  return base ? LLVM::AddOp::create(builder, loc, base, number) : number;
}

// A stack slot in the entry block of the function around `op`: one in a loop would grow the stack.
Value stackSlot(ConversionPatternRewriter &rewriter, Operation *op, Type type) {
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *function = op->getParentOp();
  while (function->getParentOp() && !isa<ModuleOp>(function->getParentOp()))
    function = function->getParentOp();
  rewriter.setInsertionPointToStart(&function->getRegion(0).front());
  Value one = i64(rewriter, op->getLoc(), 1);
  return LLVM::AllocaOp::create(rewriter, op->getLoc(), LLVM::LLVMPointerType::get(op->getContext()), type, one);
}

struct LowerAcquire : ConvertOpToLLVMPattern<AcquireOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(AcquireOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(op.getContext());
    auto viewType = LLVM::LLVMStructType::getLiteral(op.getContext(), {pointer, rewriter.getI64Type(), pointer, pointer});
    Value view = stackSlot(rewriter, op, viewType), layer = layerNumber(rewriter, loc, adaptor.getBase(), op.getLayer());
    callRuntime<AcquireOp>(rewriter, loc, adaptor.getBatch(), {layer, view});
    Value base = LLVM::LoadOp::create(rewriter, loc, pointer, view);
    Value stride = loadStepField(rewriter, loc, view, 1, rewriter.getI64Type());
    Value tables = loadStepField(rewriter, loc, view, 2, pointer);
    Value observed = loadStepField(rewriter, loc, view, 3, pointer);
    Value state = LLVM::PoisonOp::create(rewriter, loc, getTypeConverter()->convertType(op.getType()));
    SmallVector<Value> fields = {base, stride, tables, observed, layer};
    for (auto [i, value] : llvm::enumerate(fields))
      state = LLVM::InsertValueOp::create(rewriter, loc, state, value, static_cast<int64_t>(i));
    rewriter.replaceOp(op, state);
    return success();
  }
};

struct LowerRelease : ConvertOpToLLVMPattern<ReleaseOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(ReleaseOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Value layer = LLVM::ExtractValueOp::create(rewriter, op.getLoc(), adaptor.getState(), stateLayer);
    callRuntime<ReleaseOp>(rewriter, op.getLoc(), adaptor.getBatch(), {layer});
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerPrefetch : ConvertOpToLLVMPattern<PrefetchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(PrefetchOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    callRuntime<PrefetchOp>(rewriter, loc, adaptor.getBatch(),
                            {layerNumber(rewriter, loc, adaptor.getBase(), op.getLayer()), i64(rewriter, loc, op.getFirst()),
                             i64(rewriter, loc, op.getCount())});
    rewriter.eraseOp(op);
    return success();
  }
};

// Captures go, flattened as the callee wants them, through a struct on the stack; a trampoline (env, begin, end) unpacks it.
struct LowerParallelCall : ConvertOpToLLVMPattern<ParallelCallOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LLVM::LLVMFuncOp trampoline(ParallelCallOp op, LLVM::LLVMStructType captures,
                              ConversionPatternRewriter &rewriter) const {
    auto module = op->getParentOfType<ModuleOp>();
    Location loc = op.getLoc();
    MLIRContext *context = op.getContext();
    std::string name = (op.getCallee() + "_task").str();
    if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
      return known;
    auto pointer = LLVM::LLVMPointerType::get(context);
    Type i64 = rewriter.getI64Type();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, i64, i64});
    auto function = LLVM::LLVMFuncOp::create(rewriter, loc, name, type, LLVM::Linkage::Internal);
    Block *entry = function.addEntryBlock(rewriter);
    rewriter.setInsertionPointToStart(entry);
    SmallVector<Value> arguments = {entry->getArgument(1), entry->getArgument(2)};
    for (auto [i, element] : llvm::enumerate(captures.getBody())) {
      Value slot = LLVM::GEPOp::create(rewriter, loc, pointer, captures, entry->getArgument(0),
                                       ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      arguments.push_back(LLVM::LoadOp::create(rewriter, loc, element, slot));
    }
    LLVM::CallOp::create(rewriter, loc, TypeRange{}, op.getCallee(), arguments);
    LLVM::ReturnOp::create(rewriter, loc, ValueRange{});
    return function;
  }

  LogicalResult matchAndRewrite(ParallelCallOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(op.getContext());
    SmallVector<Value> flat =
        getTypeConverter()->promoteOperands(loc, op.getCaptures(), adaptor.getCaptures(), rewriter);
    SmallVector<Type> types(ValueRange(flat).getTypes());
    auto captures = LLVM::LLVMStructType::getLiteral(op.getContext(), types);
    LLVM::LLVMFuncOp task = trampoline(op, captures, rewriter);
    Value slots = stackSlot(rewriter, op, captures);
    LLVM::LifetimeStartOp::create(rewriter, loc, slots);
    for (auto [i, value] : llvm::enumerate(flat)) {
      Value slot = LLVM::GEPOp::create(rewriter, loc, pointer, captures, slots,
                                       ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      LLVM::StoreOp::create(rewriter, loc, value, slot);
    }
    Value function = LLVM::AddressOfOp::create(rewriter, loc, pointer, task.getSymName());
    callRuntime<ParallelCallOp>(rewriter, loc, adaptor.getBatch(),
                                {adaptor.getCount(), i64(rewriter, loc, op.getGrain()), function, slots});
    LLVM::LifetimeEndOp::create(rewriter, loc, slots);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void quire::kvrt::populateRuntimeCallPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerAcquire, LowerRelease, LowerPrefetch, LowerParallelCall>(converter);
}
