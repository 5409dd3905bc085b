// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.product: one kernel per shape over packed panels, called for pieces of the panels and row chunks.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"

#include <numeric>

namespace quire::cpu {
#define GEN_PASS_DEF_LOWERPRODUCTS
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

// Rows that one task takes when there are many: a multiple of every row block, and few enough that X stays in the cache.
constexpr int64_t rowChunk = 48;
// Weight bytes that make a task worth its dispatch.
constexpr int64_t grainBytes = 128 * 1024;

struct ProductShape {
  explicit ProductShape(kvrt::ProductOp op, int64_t vectorBytes) {
    auto weight = cast<MemRefType>(op.getWeight().getType());
    panels = weight.getDimSize(0);
    k = weight.getDimSize(1);
    nr = weight.getDimSize(2);
    n = cast<MemRefType>(op.getOutput().getType()).getDimSize(1);
    lanes = std::gcd(nr, vectorBytes / 4);
    weightBytes = weight.getElementTypeBitWidth() / 8;
    rowBlocks = {vectorBytes >= 64 ? 8 : 6, 4, 2, 1};
  }
  int64_t vectors() const { return nr / lanes; }
  /// Columns of the last panel that exist.
  int64_t lastColumns() const { return n - (panels - 1) * nr; }
  int64_t grain() const { return std::max<int64_t>(1, grainBytes / (k * nr * weightBytes)); }

  int64_t panels, k, nr, n, lanes, weightBytes;
  SmallVector<int64_t> rowBlocks;
};

/// Emits one kernel: tasks [begin, end), each a panel and a chunk of rows.
class ProductKernel {
public:
  using Values = KernelEmitter::Values;

  ProductKernel(KernelEmitter &emitter, const ProductShape &shape, ValueRange arguments, bool hasBias)
      : e(emitter), shape(shape), input(arguments[0]), weight(arguments[1]), bias(hasBias ? arguments[2] : Value()),
        output(arguments[hasBias ? 3 : 2]), begin(arguments[arguments.size() - 2]), end(arguments.back()) {}

  void emit() {
    Value rows = memref::DimOp::create(e.builder, e.loc, input, e.index(0));
    Value chunks = e.ceilDiv(rows, rowChunk);
    e.loop(begin, end, 1, [&](Value task) {
      Value panel = e.div(task, chunks);
      Value low = e.mul(e.rem(task, chunks), rowChunk);
      Value high = e.min(e.add(low, rowChunk), rows);
      for (int64_t block : shape.rowBlocks) {
        Value stop = block == 1 ? high : e.add(low, e.mul(e.div(e.sub(high, low), block), block));
        e.loop(low, stop, block, [&](Value row) { emitBlock(panel, row, block); });
        low = stop;
      }
    });
  }

private:
  // Adds products of `unroll` values of k from `k` on to the sums.
  Values step(Value panel, Value row, int64_t block, Value k, int64_t unroll, Values sums) {
    for (int64_t u = 0; u < unroll; ++u) {
      Value at = e.add(k, u);
      Values weights;
      for (int64_t v = 0; v < shape.vectors(); ++v)
        weights.push_back(e.loadVector(weight, {panel, at, e.index(v * shape.lanes)}, shape.lanes));
      for (int64_t r = 0; r < block; ++r) {
        Value x = e.broadcast(e.load(input, {e.add(row, r), at}), shape.lanes);
        for (auto [v, w] : llvm::enumerate(weights)) {
          Value &sum = sums[r * shape.vectors() + v];
          sum = e.fma(w, x, sum);
        }
      }
    }
    return sums;
  }

  void emitBlock(Value panel, Value row, int64_t block) {
    int64_t unroll = block <= 2 ? 4 : 2;
    int64_t whole = shape.k / unroll * unroll;
    Values sums(block * shape.vectors(), e.zeros(shape.lanes));
    if (whole)
      sums = e.loop(e.index(0), e.index(whole), unroll, sums, [&](Value k, ValueRange carried) {
        return step(panel, row, block, k, unroll, Values(carried));
      });
    if (whole < shape.k)
      sums = step(panel, row, block, e.index(whole), shape.k - whole, sums);
    if (shape.lastColumns() == shape.nr)
      return storeBlock(panel, row, block, sums, shape.nr);
    Value isLast = e.atLeast(panel, e.index(shape.panels - 1));
    e.ifThen(
        isLast, [&] { storeBlock(panel, row, block, sums, shape.lastColumns()); },
        [&] { storeBlock(panel, row, block, sums, shape.nr); });
  }

  void storeBlock(Value panel, Value row, int64_t block, const Values &sums, int64_t columns) {
    Value first = e.mul(panel, shape.nr);
    for (int64_t v = 0; v < shape.vectors(); ++v) {
      int64_t count = columns - v * shape.lanes;
      if (count <= 0)
        return;
      Value column = e.add(first, v * shape.lanes);
      Value offset = bias ? e.loadFirst(count, bias, {column}, shape.lanes) : Value();
      for (int64_t r = 0; r < block; ++r) {
        Value sum = sums[r * shape.vectors() + v];
        if (offset)
          sum = arith::AddFOp::create(e.builder, e.loc, sum, offset);
        e.storeFirst(sum, count, output, {e.add(row, r), column});
      }
    }
  }

  KernelEmitter &e;
  const ProductShape &shape;
  Value input, weight, bias, output, begin, end;
};

struct LowerProducts : quire::cpu::impl::LowerProductsBase<LowerProducts> {
  using LowerProductsBase::LowerProductsBase;

  LogicalResult lower(kvrt::ProductOp op, KernelTable &kernels) {
    for (Value value : {op.getInput(), op.getWeight(), op.getOutput()})
      if (!isa<MemRefType>(value.getType()))
        return op.emitOpError("expected memrefs: lower-products runs after bufferization");
    ProductShape shape(op, vectorBytes);
    bool hasBias = op.getBias() != nullptr;
    SmallVector<Value> operands = {op.getInput(), op.getWeight()};
    if (hasBias)
      operands.push_back(op.getBias());
    operands.push_back(op.getOutput());
    OpBuilder builder(op);
    Type index = builder.getIndexType();
    SmallVector<Type> types(ValueRange(operands).getTypes());
    types.append({index, index});
    std::string name = ("product_" + Twine(shape.k) + "x" + Twine(shape.n)).str();
    func::FuncOp kernel = kernels.getOrCreate(
        name, kernelKey(op), op.getLoc(), types,
        [&](KernelEmitter &e, ValueRange arguments) { ProductKernel(e, shape, arguments, hasBias).emit(); });

    KernelEmitter e(builder, op.getLoc());
    Value rows = memref::DimOp::create(builder, op.getLoc(), op.getInput(), e.index(0));
    Value count = e.mul(e.ceilDiv(rows, rowChunk), shape.panels);
    kvrt::ParallelOp::create(builder, op.getLoc(), count, op.getBatch(), shape.grain(),
                             [&](OpBuilder &inner, Location loc, Value begin, Value end) {
                               SmallVector<Value> arguments(operands);
                               arguments.append({begin, end});
                               func::CallOp::create(inner, loc, kernel, arguments);
                             });
    op.erase();
    return success();
  }

  void runOnOperation() override {
    KernelTable kernels(getOperation());
    SmallVector<kvrt::ProductOp> ops;
    getOperation().walk([&](kvrt::ProductOp op) { ops.push_back(op); });
    for (kvrt::ProductOp op : ops)
      if (failed(lower(op, kernels)))
        return signalPassFailure();
  }
};

} // namespace
