// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rewrites a paged step: states become layers of the runtime, arguments and results become the step structure.
#include "lib/Conversion/KVToKVRT/Passes.h"

#include "dialects/KV/KVDialect.h"
#include "dialects/KVRT/KVRT.h"
#include "lib/Conversion/ONNXToLinalg/Emitter.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_CONVERTKVTOKVRT
#include "lib/Conversion/KVToKVRT/Passes.h.inc"

namespace {

/// One cached layer of the step while it is rewritten.
struct Layer {
  int64_t number;
  kvrt::StateType type;
  Value handle;               // null before the first use
  Operation *lastUse = nullptr; // the converted op after which the layer is released
  int64_t observedHeads = 0;    // query heads of the attend that is observed; 0: none
  std::optional<int64_t> window; // keys that some attend sees, 0: all; nothing before the first
  bool placeIsPosition = false;  // some attend needs positions of keys
};

class StepConversion {
public:
  StepConversion(func::FuncOp function, int64_t lanes) : function(function), lanes(lanes) {}

  LogicalResult run() {
    if (failed(checkSignature()) || failed(makeLayers()))
      return failure();
    makeArguments();
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa_and_nonnull<kv::KVDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(convert(op)))
        return failure();
    if (failed(convertReturn()))
      return failure();
    for (Layer &layer : layers)
      if (layer.handle) {
        OpBuilder builder(layer.lastUse->getContext());
        builder.setInsertionPointAfter(layer.lastUse);
        kvrt::ReleaseOp::create(builder, layer.lastUse->getLoc(), layer.handle, batch);
      }
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    dropArguments();
    return success();
  }

  int64_t vocabulary() const { return logitColumns; }
  /// Tokens of a block; 1 for a step without states.
  int64_t blockTokens() const { return layers.empty() ? 1 : layers.front().type.getBlock(); }
  SmallVector<int64_t> queryHeads() const {
    return numbers([](const Layer &layer) { return layer.observedHeads; });
  }
  SmallVector<int64_t> windows() const {
    return numbers([](const Layer &layer) { return layer.window.value_or(0); });
  }
  SmallVector<int64_t> placeIsPosition() const {
    return numbers([](const Layer &layer) { return int64_t(layer.placeIsPosition); });
  }
  SmallVector<Type> layerTypes() const {
    return llvm::map_to_vector(layers, [](const Layer &layer) -> Type { return layer.type; });
  }

private:
  /// One of each layer; none where all are 0.
  SmallVector<int64_t> numbers(llvm::function_ref<int64_t(const Layer &)> of) const {
    SmallVector<int64_t> all = llvm::map_to_vector(layers, of);
    return llvm::all_of(all, [](int64_t n) { return n == 0; }) ? SmallVector<int64_t>() : all;
  }

  LogicalResult checkSignature() {
    if (!function.getBody().hasOneBlock())
      return function.emitError("not implemented: convert a step of several blocks");
    for (BlockArgument argument : function.getArguments()) {
      Type type = argument.getType();
      if (isa<kv::BatchType>(type)) {
        oldBatch = argument;
      } else if (isa<kv::StateType>(type)) {
        states.push_back(argument);
      } else if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getElementType().isInteger(64) && !ids) {
        ids = argument;
      } else {
        return function.emitError("expected token ids, a batch and states, but got an argument of type ") << type;
      }
    }
    Operation *terminator = function.getBody().front().getTerminator();
    if (!oldBatch || terminator->getNumOperands() == 0)
      return function.emitError("expected a step that takes a batch and returns logits");
    auto logits = dyn_cast<RankedTensorType>(terminator->getOperand(0).getType());
    if (!logits || logits.getRank() == 0 || logits.isDynamicDim(logits.getRank() - 1))
      return function.emitError("expected logits of a known number of columns, but got ") << terminator->getOperand(0).getType();
    logitColumns = logits.getShape().back();
    return success();
  }

  LogicalResult makeLayers() {
    for (BlockArgument state : states) {
      auto type = cast<kv::StateType>(state.getType());
      auto layout = dyn_cast<kv::PagedAttr>(type.getLayout());
      if (!layout)
        return function.emitError("expected paged states, but got ") << type;
      if (layout.getGroup() != 0)
        return function.emitError("not implemented: convert states of more than one group of block tables");
      auto handleType = kvrt::StateType::getChecked([&] { return function.emitError(); }, function.getContext(), type.getHeads(), type.getKey(), type.getValue(),
                                                    type.getElement(), layout.getBlock(), lanes);
      if (!handleType)
        return failure();
      if (!layers.empty() && layers.front().type.getBlock() != layout.getBlock())
        return function.emitError("not implemented: convert states of different block sizes");
      layerOf[state] = layers.size();
      layers.push_back({static_cast<int64_t>(layers.size()), handleType, {}, {}, 0, std::nullopt, false});
    }
    return success();
  }

  void makeArguments() {
    Block &entry = function.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    batch = entry.addArgument(kvrt::BatchType::get(function.getContext()), oldBatch.getLoc());
    tokens = kvrt::ExtentOp::create(builder, oldBatch.getLoc(), batch, kvrt::Extent::tokens);
    if (ids && !ids.use_empty())
      ids.replaceAllUsesWith(kvrt::ReadOp::create(builder, ids.getLoc(), ids.getType(), batch, kvrt::Field::ids));
  }

  /// The layer of a state, acquired before `op`.
  Layer &use(Value state, OpBuilder &builder, Location loc) {
    Layer &layer = layers[layerOf.lookup(state)];
    if (!layer.handle)
      layer.handle = kvrt::AcquireOp::create(builder, loc, layer.type, batch, builder.getI64IntegerAttr(layer.number));
    return layer;
  }

  LogicalResult convert(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<kv::PositionsOp, kv::AppendOp, kv::AttendOp, kv::SelectOp, kv::PrefetchOp, kv::ObserveOp>([&](auto typed) { return convertOp(typed); })
        .Default([](Operation *other) { return other->emitError("not implemented: convert ") << other->getName(); });
  }

  LogicalResult convertOp(kv::PositionsOp op) {
    OpBuilder builder(op);
    op.getPositions().replaceAllUsesWith(kvrt::ReadOp::create(builder, op.getLoc(), op.getPositions().getType(), batch, kvrt::Field::positions));
    return success();
  }

  LogicalResult convertOp(kv::AppendOp op) {
    OpBuilder builder(op);
    Layer &layer = use(op.getState(), builder, op.getLoc());
    layer.lastUse = kvrt::AppendOp::create(builder, op.getLoc(), op.getKey(), op.getValue(), layer.handle, batch);
    layerOf[op.getNext()] = layer.number;
    return success();
  }

  LogicalResult convertOp(kv::AttendOp op) {
    OpBuilder builder(op);
    if (op.getSinks() && op.getAlibi())
      return op.emitError("not implemented: convert kv.attend with alibi and sinks");
    Layer &layer = use(op.getState(), builder, op.getLoc());
    Emitter emit(builder, op.getLoc());
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Value target = emit.empty(type, tokens);
    auto attend = kvrt::AttendOp::create(builder, op.getLoc(), TypeRange(type), op.getQuery(), layer.handle, batch, op.getSinks(), /*parts=*/Value(), target,
                                         builder.getF32FloatAttr(static_cast<float>(op.getScale().convertToDouble())),
                                         builder.getF32FloatAttr(op.getSoftcap() ? static_cast<float>(op.getSoftcap()->convertToDouble()) : 0.0f),
                                         builder.getI64IntegerAttr(op.getWindow().value_or(0)), builder.getI64IntegerAttr(op.getChunk().value_or(0)),
                                         builder.getBoolAttr(op.getCausal()), op.getAlibiAttr(), /*observe=*/UnitAttr());
    layer.lastUse = attend;
    // A chunk ends where the next one begins: no key before it is seen again.
    int64_t seen = static_cast<int64_t>(op.getWindow().value_or(0)), chunk = static_cast<int64_t>(op.getChunk().value_or(0));
    seen = seen && chunk ? std::min(seen, chunk) : std::max(seen, chunk);
    layer.placeIsPosition |= op.needsPositionsOfKeys();
    layer.window = !layer.window || (*layer.window && seen) ? std::max(layer.window.value_or(0), seen) : 0;
    op.getResult().replaceAllUsesWith(attend->getResult(0));
    return success();
  }

  LogicalResult convertOp(kv::SelectOp op) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Emitter emit(builder, loc);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Value count = kvrt::ExtentOp::create(builder, loc, batch, kvrt::Extent::selected);
    auto listType = RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type());
    Value list = kvrt::ReadOp::create(builder, loc, listType, batch, kvrt::Field::selected);
    Value input = op.getInput();
    int64_t rank = type.getRank(), rowAxis = op.getRowAxis();
    AffineMap maps[] = {AffineMap::get(rank, 0, builder.getAffineDimExpr(rowAxis), builder.getContext()), builder.getMultiDimIdentityMap(rank)};
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    auto gather = linalg::GenericOp::create(builder, loc, type, list, emit.empty(type, count), maps, iterators, [&](OpBuilder &nested, Location at, ValueRange arguments) {
      SmallVector<Value> index;
      for (int64_t axis = 0; axis < rank; ++axis)
        index.push_back(axis == rowAxis ? Value(arith::IndexCastOp::create(nested, at, nested.getIndexType(), arguments[0]))
                                                      : Value(linalg::IndexOp::create(nested, at, axis)));
      linalg::YieldOp::create(nested, at, Emitter::extract(nested, at, input, index));
    });
    op.getResult().replaceAllUsesWith(gather.getResult(0));
    return success();
  }

  LogicalResult convertOp(kv::PrefetchOp op) {
    OpBuilder builder(op);
    int64_t number = layerOf.lookup(op.getState());
    kvrt::PrefetchOp::create(builder, op.getLoc(), batch, builder.getI64IntegerAttr(number), op.getFirstAttr(), op.getCountAttr());
    return success();
  }

  LogicalResult convertOp(kv::ObserveOp op) {
    Layer &layer = layers[layerOf.lookup(op.getState())];
    auto attend = dyn_cast_or_null<kvrt::AttendOp>(layer.lastUse);
    if (!attend)
      return op.emitError("expected an attend of the state before it is observed");
    attend.setObserve(true);
    layer.observedHeads = cast<ShapedType>(attend.getQuery().getType()).getDimSize(1);
    return success();
  }

  LogicalResult convertReturn() {
    auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    OpBuilder builder(terminator);
    Location loc = terminator.getLoc();
    Emitter emit(builder, loc);
    Value logits = terminator.getOperand(0);
    auto type = cast<RankedTensorType>(logits.getType());
    int64_t rows = type.hasStaticShape() ? type.getNumElements() / logitColumns : ShapedType::kDynamic;
    Value flat = emit.reshape(logits, RankedTensorType::get({rows, logitColumns}, type.getElementType()));
    if (!flat)
      return terminator.emitError("expected logits [rows, columns], but got ") << type;
    kvrt::WriteOp::create(builder, loc, emit.convert(flat, builder.getF32Type()), batch);
    func::ReturnOp::create(builder, loc);
    terminator.erase();
    return success();
  }

  void dropArguments() {
    Block &entry = function.getBody().front();
    entry.eraseArguments([&](BlockArgument argument) { return argument != batch; });
    function.setFunctionType(FunctionType::get(function.getContext(), entry.getArgumentTypes(), {}));
    function.removeArgAttrsAttr();
    function.removeResAttrsAttr();
  }

  func::FuncOp function;
  int64_t lanes;
  BlockArgument ids, oldBatch;
  SmallVector<BlockArgument> states;
  Value batch, tokens;
  SmallVector<Layer> layers;
  DenseMap<Value, int64_t> layerOf;
  int64_t logitColumns = 0;
};

class ConvertKVToKVRTPass : public impl::ConvertKVToKVRTBase<ConvertKVToKVRTPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> steps;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<kv::BatchType>))
        steps.push_back(function);
    if (steps.size() > 1) {
      steps[1].emitError("expected one step, but got another one");
      return signalPassFailure();
    }
    for (func::FuncOp step : steps) {
      StepConversion conversion(step, lanes);
      if (failed(conversion.run()))
        return signalPassFailure();
      addModel(step, conversion);
    }
  }

private:
  void addModel(func::FuncOp step, const StepConversion &conversion) {
    int64_t tokenLimit = conversion.vocabulary(), maxPositions = -1;
    for (auto entry : llvm::make_early_inc_range(getOperation().getOps<kv::EntryOp>()))
      if (entry.getFunction() == step.getSymName()) {
        tokenLimit = entry.getTokenLimit();
        maxPositions = entry.getMaxPositions();
        entry.erase();
      }
    OpBuilder builder(step);
    kvrt::ModelOp::create(builder, step.getLoc(), FlatSymbolRefAttr::get(step.getSymNameAttr()), builder.getI64IntegerAttr(conversion.vocabulary()),
                          builder.getI64IntegerAttr(tokenLimit), builder.getI64IntegerAttr(maxPositions), builder.getI64IntegerAttr(conversion.blockTokens()),
                          builder.getTypeArrayAttr(conversion.layerTypes()),
                          builder.getDenseI64ArrayAttr(conversion.queryHeads()), builder.getDenseI64ArrayAttr(conversion.windows()),
                          builder.getDenseI64ArrayAttr(conversion.placeIsPosition()), IntegerAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
  }
};
} // namespace

} // namespace quire
