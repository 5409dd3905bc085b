// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A table that is a product's weight too is read from the product's panels.
#include "lib/Transforms/Buffers/Passes.h"

#include "dialects/KVRT/KVRT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_SHAREWEIGHTS
#include "lib/Transforms/Buffers/Passes.h.inc"

namespace {
class ShareWeightsPass : public impl::ShareWeightsBase<ShareWeightsPass> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<kvrt::PackedOp> packed; // by the initializer whose rows are the panels' columns
    for (auto op : module.getOps<kvrt::PackedOp>())
      if (op.getTransposed())
        packed[op.getSource()] = op;
    llvm::MapVector<StringRef, SmallVector<kvrt::WeightOp>> readers;
    module.walk([&](kvrt::WeightOp op) { readers[op.getWeight()].push_back(op); });
    for (auto raw : llvm::make_early_inc_range(module.getOps<kvrt::RawOp>())) {
      kvrt::PackedOp panels = packed.lookup(raw.getSource());
      if (!panels || !holdsAllOf(panels, raw) || !llvm::all_of(readers[raw.getSymName()], isReadByElement))
        continue;
      for (kvrt::WeightOp reader : readers[raw.getSymName()])
        readFrom(panels, reader);
      raw.erase();
    }
  }

private:
  static bool holdsAllOf(kvrt::PackedOp panels, kvrt::RawOp raw) {
    auto rawType = cast<RankedTensorType>(raw.getType()), type = cast<RankedTensorType>(panels.getType());
    return rawType.getElementType() == type.getElementType() && rawType.getShape() == ArrayRef<int64_t>{int64_t(panels.getN()), int64_t(panels.getK())};
  }

  static bool isReadByElement(kvrt::WeightOp reader) {
    return llvm::all_of(reader->getUsers(), llvm::IsaPred<tensor::ExtractOp>);
  }

  /// [row, k] lies in panel row / nr at [k, row % nr].
  static void readFrom(kvrt::PackedOp panels, kvrt::WeightOp reader) {
    OpBuilder builder(reader);
    Value weight = kvrt::WeightOp::create(builder, reader.getLoc(), panels.getType(), reader.getBatch(), FlatSymbolRefAttr::get(panels.getSymNameAttr()));
    for (Operation *user : llvm::make_early_inc_range(reader->getUsers())) {
      auto extract = cast<tensor::ExtractOp>(user);
      builder.setInsertionPoint(extract);
      Location loc = extract.getLoc();
      Value nr = arith::ConstantIndexOp::create(builder, loc, panels.getLayout().getNr());
      Value row = extract.getIndices()[0];
      Value panel = arith::DivUIOp::create(builder, loc, row, nr), column = arith::RemUIOp::create(builder, loc, row, nr);
      Value element = tensor::ExtractOp::create(builder, loc, weight, ValueRange{panel, extract.getIndices()[1], column});
      extract.replaceAllUsesWith(element);
      extract.erase();
    }
    reader.erase();
  }
};
} // namespace

} // namespace quire
