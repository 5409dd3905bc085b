// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views of the step, of weights, of scratch and of pages become memref descriptors.
#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"
#include "lib/Conversion/KVRTToLLVM/StepAccess.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using namespace quire::kvrt;

namespace {

template <typename Op>
struct ViewPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  static Value constant(OpBuilder &builder, Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(value));
  }
  static Value pointerField(OpBuilder &builder, Location loc, Value batch, int64_t index) {
    return loadStepField(builder, loc, batch, index, LLVM::LLVMPointerType::get(builder.getContext()));
  }
  static Value extentField(OpBuilder &builder, Location loc, Value batch, Extent extent) {
    return loadStepField(builder, loc, batch, static_cast<int64_t>(extent), builder.getI64Type());
  }
  static Value product(OpBuilder &builder, Location loc, Value a, Value b) {
    return LLVM::MulOp::create(builder, loc, a, b);
  }

  // A contiguous view at `pointer`; `sizes` are the dynamic extents.
  Value view(OpBuilder &builder, Location loc, MemRefType type, Value pointer, ValueRange sizes) const {
    auto view = MemRefDescriptor::poison(builder, loc, this->getTypeConverter()->convertType(type));
    view.setAllocatedPtr(builder, loc, pointer);
    view.setAlignedPtr(builder, loc, pointer);
    view.setConstantOffset(builder, loc, 0);
    Value stride = constant(builder, loc, 1);
    for (int64_t dimension = type.getRank() - 1; dimension >= 0; --dimension) {
      Value size;
      if (type.isDynamicDim(dimension)) {
        size = sizes.back();
        sizes = sizes.drop_back();
      } else {
        size = constant(builder, loc, type.getDimSize(dimension));
      }
      view.setSize(builder, loc, dimension, size);
      view.setStride(builder, loc, dimension, stride);
      if (dimension > 0)
        stride = product(builder, loc, stride, size);
    }
    return view;
  }
};

struct LowerRead : ViewPattern<ReadOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(ReadOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<MemRefType>(op.getResult().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "expected a memref");
    Location loc = op.getLoc();
    Value batch = adaptor.getBatch();
    auto extent = [&](Extent e) { return extentField(rewriter, loc, batch, e); };
    SmallVector<Value> sizes;
    switch (op.getField()) {
    case Field::ids:
    case Field::positions:
    case Field::places:
    case Field::sequence_of:
      sizes = {extent(Extent::tokens)};
      break;
    case Field::query_starts:
      sizes = {LLVM::AddOp::create(rewriter, loc, extent(Extent::sequences), constant(rewriter, loc, 1))};
      break;
    case Field::past_lens:
      sizes = {extent(Extent::sequences)};
      break;
    case Field::selected:
      sizes = {extent(Extent::selected)};
      break;
    }
    Value pointer = pointerField(rewriter, loc, batch, static_cast<int64_t>(op.getField()));
    rewriter.replaceOp(op, view(rewriter, loc, type, pointer, sizes));
    return success();
  }
};

struct LowerTables : ViewPattern<TablesOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(TablesOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value sequences = extentField(rewriter, loc, adaptor.getBatch(), Extent::sequences);
    Value stride = extentField(rewriter, loc, adaptor.getBatch(), Extent::table_stride);
    Value pointer = LLVM::ExtractValueOp::create(rewriter, loc, adaptor.getState(), stateTables);
    auto type = cast<MemRefType>(op.getResult().getType());
    rewriter.replaceOp(op, view(rewriter, loc, type, pointer, {sequences, stride}));
    return success();
  }
};

struct LowerIsObserved : ViewPattern<IsObservedOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(IsObservedOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value pointer = LLVM::ExtractValueOp::create(rewriter, loc, adaptor.getState(), stateObserved);
    Value null = LLVM::ZeroOp::create(rewriter, loc, pointer.getType());
    rewriter.replaceOp(op, LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::ne, pointer, null));
    return success();
  }
};

struct LowerObserved : ViewPattern<ObservedOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(ObservedOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value sequences = extentField(rewriter, loc, adaptor.getBatch(), Extent::sequences);
    Value stride = extentField(rewriter, loc, adaptor.getBatch(), Extent::table_stride);
    Value pointer = LLVM::ExtractValueOp::create(rewriter, loc, adaptor.getState(), stateObserved);
    rewriter.replaceOp(op, view(rewriter, loc, op.getType(), pointer, {sequences, stride}));
    return success();
  }
};

struct LowerExtent : ViewPattern<ExtentOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(ExtentOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, extentField(rewriter, op.getLoc(), adaptor.getBatch(), op.getExtent()));
    return success();
  }
};

struct LowerWeight : ViewPattern<WeightOp> {
  LowerWeight(const LLVMTypeConverter &converter, SymbolTableCollection &tables)
      : ViewPattern(converter), tables(tables) {}

  LogicalResult matchAndRewrite(WeightOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<MemRefType>(op.getResult().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "expected a memref");
    WeightEntry entry = lookupWeight(op, op.getWeightAttr(), tables);
    if (entry.offset < 0)
      return op.emitOpError("expected ") << op.getWeightAttr() << " to have an offset: run assign-weight-offsets first";
    Location loc = op.getLoc();
    Value weights = pointerField(rewriter, loc, adaptor.getBatch(), weightsField);
    Value pointer = advance(rewriter, loc, weights, constant(rewriter, loc, entry.offset));
    rewriter.replaceOp(op, view(rewriter, loc, type, pointer, {}));
    return success();
  }

  SymbolTableCollection &tables;
};

struct LowerWeightAt : ViewPattern<WeightAtOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(WeightAtOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value weights = pointerField(rewriter, loc, adaptor.getBatch(), weightsField);
    Value pointer = advance(rewriter, loc, weights, adaptor.getOffset());
    rewriter.replaceOp(op, view(rewriter, loc, cast<MemRefType>(op.getType()), pointer, {}));
    return success();
  }
};

struct LowerLogits : ViewPattern<LogitsOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(LogitsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getResult().getType());
    SmallVector<Value> sizes;
    if (type.isDynamicDim(0))
      sizes.push_back(extentField(rewriter, loc, adaptor.getBatch(), Extent::selected));
    Value pointer = pointerField(rewriter, loc, adaptor.getBatch(), logitsField);
    rewriter.replaceOp(op, view(rewriter, loc, type, pointer, sizes));
    return success();
  }
};

struct LowerScratch : ViewPattern<ScratchOp> {
  using ViewPattern::ViewPattern;

  LogicalResult matchAndRewrite(ScratchOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value batch = adaptor.getBatch(), offset = constant(rewriter, loc, op.getFixed());
    for (auto [bytes, extent] :
         {std::pair(op.getPerToken(), Extent::tokens), std::pair(op.getPerSelected(), Extent::selected)}) {
      if (bytes == 0)
        continue;
      Value rows = extentField(rewriter, loc, batch, extent);
      Value size = product(rewriter, loc, rows, constant(rewriter, loc, bytes));
      offset = LLVM::AddOp::create(rewriter, loc, offset, size);
    }
    Value pointer = advance(rewriter, loc, pointerField(rewriter, loc, batch, scratchField), offset);
    auto type = cast<MemRefType>(op.getResult().getType());
    rewriter.replaceOp(op, view(rewriter, loc, type, pointer, adaptor.getSizes()));
    return success();
  }
};

// Bytes from the start of a block to a part of it.
int64_t offsetOf(KeyPageOp, StateType) { return 0; }
int64_t offsetOf(ValuePageOp, StateType state) { return state.getValueOffset(); }
int64_t offsetOf(KeyScalesOp, StateType state) { return state.getKeyScalesOffset(); }
int64_t offsetOf(ValueScalesOp, StateType state) { return state.getValueScalesOffset(); }

template <typename Op>
struct LowerPage : ViewPattern<Op> {
  using ViewPattern<Op>::ViewPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    StateType state = op.getState().getType();
    Value base = LLVM::ExtractValueOp::create(rewriter, loc, adaptor.getState(), stateBase);
    Value stride = LLVM::ExtractValueOp::create(rewriter, loc, adaptor.getState(), stateStride);
    Value offset = this->product(rewriter, loc, adaptor.getBlock(), stride);
    if (int64_t inBlock = offsetOf(op, state))
      offset = LLVM::AddOp::create(rewriter, loc, offset, this->constant(rewriter, loc, inBlock));
    auto type = cast<MemRefType>(op.getResult().getType());
    rewriter.replaceOp(op, this->view(rewriter, loc, type, advance(rewriter, loc, base, offset), {}));
    return success();
  }
};

} // namespace

void quire::kvrt::populateKVRTToLLVMTypes(LLVMTypeConverter &converter) {
  converter.addConversion([](BatchType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
  converter.addConversion([](StateType type) {
    Type pointer = LLVM::LLVMPointerType::get(type.getContext()), i64 = IntegerType::get(type.getContext(), 64);
    return LLVM::LLVMStructType::getLiteral(type.getContext(), {pointer, i64, pointer, pointer, i64});
  });
}

void quire::kvrt::populateViewPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns,
                                       SymbolTableCollection &tables) {
  patterns.add<LowerRead, LowerTables, LowerIsObserved, LowerObserved, LowerExtent, LowerWeightAt, LowerLogits, LowerScratch, LowerPage<KeyPageOp>,
               LowerPage<ValuePageOp>, LowerPage<KeyScalesOp>, LowerPage<ValueScalesOp>>(converter);
  patterns.add<LowerWeight>(converter, tables);
}
