// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions of kvrt.parallel become functions; equal functions are one.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/Passes.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace quire::cpu {
#define GEN_PASS_DEF_OUTLINEPARALLEL
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;

namespace {

struct OutlineParallel : quire::cpu::impl::OutlineParallelBase<OutlineParallel> {
  // The body and signature of a function as text, without its name.
  static std::string textOf(func::FuncOp function) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << function.getFunctionType();
    OpPrintingFlags flags = OpPrintingFlags().printGenericOpForm().useLocalScope().elideLargeElementsAttrs(false);
    for (Operation &op : function.getBody().front())
      op.print(stream, flags);
    return text;
  }

  func::FuncOp outline(kvrt::ParallelOp op, ArrayRef<Value> captures) {
    OpBuilder builder(op.getContext());
    Type index = builder.getIndexType();
    SmallVector<Type> types = {index, index};
    llvm::append_range(types, ValueRange(captures).getTypes());
    auto function = func::FuncOp::create(op.getLoc(), "piece", builder.getFunctionType(types, {}));
    function.setPrivate();
    function.getBody().takeBody(op.getBody());
    Block &entry = function.getBody().front();
    for (Value capture : captures)
      replaceAllUsesInRegionWith(capture, entry.addArgument(capture.getType(), capture.getLoc()), function.getBody());
    Operation *terminator = entry.getTerminator();
    builder.setInsertionPoint(terminator);
    func::ReturnOp::create(builder, op.getLoc());
    terminator->erase();
    return function;
  }

  LogicalResult process(kvrt::ParallelOp op, SymbolTable &symbols, llvm::StringMap<func::FuncOp> &known) {
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(op.getBody(), used);
    OpBuilder builder(op.getContext());
    builder.setInsertionPointToStart(&op.getBody().front());
    SmallVector<Value> captures;
    for (Value value : used) {
      if (isa<TensorType>(value.getType()))
        return op.emitOpError("expected no tensor from outside in the region, but got ") << value.getType();
      Operation *producer = value.getDefiningOp();
      if (producer && producer->hasTrait<OpTrait::ConstantLike>())
        replaceAllUsesInRegionWith(value, builder.clone(*producer)->getResult(0), op.getBody());
      else
        captures.push_back(value);
    }
    func::FuncOp function = outline(op, captures);
    func::FuncOp &shared = known[textOf(function)];
    if (shared) {
      function.erase();
    } else {
      shared = function;
      symbols.insert(function);
    }
    builder.setInsertionPoint(op);
    kvrt::ParallelCallOp::create(builder, op.getLoc(), shared.getSymName(), op.getCount(), op.getBatch(),
                                 op.getGrain(), captures);
    op.erase();
    return success();
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> known;
    SmallVector<kvrt::ParallelOp> ops;
    getOperation().walk([&](kvrt::ParallelOp op) { ops.push_back(op); });
    for (kvrt::ParallelOp op : ops)
      if (failed(process(op, symbols, known)))
        return signalPassFailure();
  }
};

} // namespace
