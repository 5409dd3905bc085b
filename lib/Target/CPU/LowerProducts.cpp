// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.product: one kernel per form of packed panels, called for pieces of the panels and row chunks.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"

#include "llvm/ADT/SetVector.h"

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
// Weight bytes that several row blocks read one after the other: half of a first-level cache.
constexpr int64_t depthBytes = 16 * 1024;
// Values of k between two prefetches of a line for each of two row blocks.
constexpr int64_t depthUnroll = 2;

struct ProductShape {
  explicit ProductShape(kvrt::ProductOp op, int64_t vectorBytes) {
    auto weight = cast<MemRefType>(op.getWeight().getType());
    panels = weight.getDimSize(0);
    k = weight.getDimSize(1);
    nr = weight.getDimSize(2);
    n = cast<MemRefType>(op.getOutput().getType()).getDimSize(1);
    lanes = std::gcd(nr, vectorBytes / 4);
    evenDepth = k % (2 * depthUnroll) == 0;
    weightBytes = weight.getElementTypeBitWidth() / 8;
    maxRows = vectorBytes >= 64 ? 8 : 6;
    depth = std::max<int64_t>(depthBytes / (nr * weightBytes), depthUnroll) / depthUnroll * depthUnroll;
  }
  int64_t vectors() const { return nr / lanes; }
  /// Columns of the last panel that exist.
  int64_t lastColumns() const { return n - (panels - 1) * nr; }
  int64_t grain() const { return std::max<int64_t>(1, grainBytes / (k * nr * weightBytes)); }

  /// What code is the same for, whatever the depth and the number of panels.
  std::string form() const { return (Twine(lastColumns()) + "/" + Twine(nr) + (evenDepth ? " even" : "")).str(); }

  int64_t panels, k, nr, n, lanes, weightBytes;
  bool evenDepth;  // the depth is a multiple of every unrolling
  int64_t maxRows; // rows that are computed together, at most
  int64_t depth;   // values of k that several row blocks read one after the other
};

/// Emits one kernel: tasks [begin, end), each a panel and a chunk of rows. The depth and the number of panels are those of its operands, so that products
/// of one form share a kernel whatever their sizes.
///
/// One row block runs over the whole depth with its sums in registers. Several take turns on pieces of the depth that stay in the first-level cache, their
/// sums in a stack buffer between the pieces; blocks of less than the most rows prefetch their shares of the next piece, so that
/// memory does not wait for a block that reads the cache (measured: 1.1 to 1.2 times as fast at 8 rows; with many rows it would cost 4 to 9 %).
/// Every sum is one chain of multiply-adds in ascending k in both cases.
class ProductKernel {
public:
  using Values = KernelEmitter::Values;

  ProductKernel(KernelEmitter &emitter, const ProductShape &shape, ValueRange arguments, bool hasBias)
      : e(emitter), shape(shape), input(arguments[0]), weight(arguments[1]), bias(hasBias ? arguments[2] : Value()),
        output(arguments[hasBias ? 3 : 2]), begin(arguments[arguments.size() - 2]), end(arguments.back()) {
    SmallVector<ReassociationIndices> rows = {{0, 1}, {2}};
    lines = memref::CollapseShapeOp::create(e.builder, e.loc, weight, rows);
    panels = memref::DimOp::create(e.builder, e.loc, weight, e.index(0));
    k = memref::DimOp::create(e.builder, e.loc, weight, e.index(1));
    partial = e.stackBuffer({rowChunk, shape.nr});
  }

  void emit() {
    Value rows = memref::DimOp::create(e.builder, e.loc, input, e.index(0));
    Value chunks = e.ceilDiv(rows, rowChunk);
    e.loop(begin, end, 1, [&](Value task) {
      panel = e.div(task, chunks);
      Value low = e.mul(e.rem(task, chunks), rowChunk);
      Value high = e.min(e.add(low, rowChunk), rows);
      single = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::sle, e.sub(high, low), e.index(shape.maxRows));
      Value depth = e.select(single, k, e.index(shape.depth));
      auto pieces = scf::ForOp::create(e.builder, e.loc, e.index(0), k, depth);
      OpBuilder::InsertionGuard guard(e.builder);
      e.builder.setInsertionPointToStart(pieces.getBody());
      from = pieces.getInductionVar();
      to = e.min(e.add(from, depth), k);
      emitBlocks(low, high);
    });
  }

private:
  void emitBlocks(Value low, Value high) {
    e.loopWhileBelow(low, high, [&](Value row) {
      Value count = rowsOfBlock(e.sub(high, row));
      // Two blocks share the lines of the next piece; later ones repeat the second share, and a single one its own lines.
      Value share = e.select(arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, row, low), e.index(0), e.index(shape.depth / 2));
      Value next = e.add(to, share);
      ahead = e.add(e.mul(panel, k), e.select(single, from, next));
      place = e.sub(row, low);
      emitSwitch(row, count, shape.maxRows);
      return e.add(row, count);
    });
  }

  // Blocks as even as can be at the end: 8 rows are 4 and 4, not 6 and 2.
  Value rowsOfBlock(Value left) {
    int64_t most = shape.maxRows;
    Value half = e.div(e.add(left, 1), 2);
    Value fits = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::sle, left, e.index(most));
    Value isLong = e.atLeast(left, e.index(2 * most));
    return e.select(fits, left, e.select(isLong, e.index(most), half));
  }

  void emitSwitch(Value row, Value count, int64_t rows) {
    if (rows == 1)
      return emitBlock(row, 1);
    Value is = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, count, e.index(rows));
    e.ifThen(is, [&] { emitBlock(row, rows); }, [&] { emitSwitch(row, count, rows - 1); });
  }

  // Adds products of `unroll` values of k from `first` on to the sums.
  Values step(Value row, int64_t block, Value first, int64_t unroll, Values sums) {
    for (int64_t u = 0; u < unroll; ++u) {
      Value at = e.add(first, u);
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

  void prefetchLine(Value at) {
    Value line = e.add(ahead, e.div(e.sub(at, from), depthUnroll));
    for (int64_t byte = 0; byte < shape.nr * shape.weightBytes; byte += 64)
      memref::PrefetchOp::create(e.builder, e.loc, lines, ValueRange{line, e.index(byte / shape.weightBytes)}, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
  }

  void emitBlock(Value row, int64_t block) {
    int64_t unroll = block <= 2 ? 2 * depthUnroll : depthUnroll;
    Value whole = shape.evenDepth ? k : e.mul(e.div(k, unroll), unroll);
    Values sums;
    Value isFirst = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, from, e.index(0));
    auto initial = scf::IfOp::create(
        e.builder, e.loc, isFirst,
        [&](OpBuilder &inner, Location loc) { scf::YieldOp::create(inner, loc, Values(block * shape.vectors(), e.zeros(shape.lanes))); },
        [&](OpBuilder &inner, Location loc) {
          Values kept;
          for (int64_t r = 0; r < block; ++r)
            for (int64_t v = 0; v < shape.vectors(); ++v)
              kept.push_back(e.loadVector(partial, {e.add(place, r), e.index(v * shape.lanes)}, shape.lanes));
          scf::YieldOp::create(inner, loc, kept);
        });
    sums = Values(initial.getResults());
    sums = e.loop(from, shape.evenDepth ? to : e.min(to, whole), unroll, sums, [&](Value at, ValueRange carried) {
      if (block > 2 && block < shape.maxRows)
        prefetchLine(at);
      return step(row, block, at, unroll, Values(carried));
    });
    if (!shape.evenDepth)
      sums = e.loop(e.max(from, whole), to, 1, sums, [&](Value at, ValueRange carried) { return step(row, block, at, 1, Values(carried)); });
    Value isLast = e.atLeast(to, k);
    e.ifThen(
        isLast, [&] { emitStore(row, block, sums); },
        [&] {
          for (int64_t r = 0; r < block; ++r)
            for (int64_t v = 0; v < shape.vectors(); ++v)
              e.storeVector(sums[r * shape.vectors() + v], partial, {e.add(place, r), e.index(v * shape.lanes)});
        });
  }

  void emitStore(Value row, int64_t block, const Values &sums) {
    if (shape.lastColumns() == shape.nr)
      return storeBlock(row, block, sums, shape.nr);
    Value isLast = e.atLeast(panel, e.sub(panels, e.index(1)));
    e.ifThen(isLast, [&] { storeBlock(row, block, sums, shape.lastColumns()); }, [&] { storeBlock(row, block, sums, shape.nr); });
  }

  void storeBlock(Value row, int64_t block, const Values &sums, int64_t columns) {
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
  Value panels, k;
  Value lines;   // the weight as rows of nr, over all panels
  Value partial; // sums of a task's rows between pieces of the depth
  // Of the task, the piece and the block that code is emitted for.
  Value panel, single, from, to, place;
  Value ahead; // the first line to prefetch
};

struct LowerProducts : quire::cpu::impl::LowerProductsBase<LowerProducts> {
  using LowerProductsBase::LowerProductsBase;

  /// A product whose tasks are some of a loop's.
  struct Member {
    func::FuncOp kernel;
    SmallVector<Value> operands;
    int64_t panels;
  };

  /// `value` with all extents dynamic but the last `kept` ones.
  static Value withoutSizes(OpBuilder &builder, Value value, int64_t kept) {
    auto type = cast<MemRefType>(value.getType());
    if (!type.getLayout().isIdentity())
      return value;
    SmallVector<int64_t> extents(type.getShape());
    std::fill(extents.begin(), extents.end() - kept, ShapedType::kDynamic);
    return memref::CastOp::create(builder, value.getLoc(), MemRefType::get(extents, type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace()), value);
  }

  Member memberOf(OpBuilder &builder, kvrt::ProductOp op, KernelTable &kernels) const {
    ProductShape shape(op, vectorBytes);
    bool hasBias = op.getBias() != nullptr;
    SmallVector<Value> operands = {withoutSizes(builder, op.getInput(), 0), withoutSizes(builder, op.getWeight(), 1)};
    if (hasBias)
      operands.push_back(withoutSizes(builder, op.getBias(), 0));
    operands.push_back(withoutSizes(builder, op.getOutput(), 0));
    Type index = IndexType::get(op.getContext());
    SmallVector<Type> types(ValueRange(operands).getTypes());
    types.append({index, index});
    std::string name, key = shape.form();
    llvm::raw_string_ostream(name) << "product_" << cast<MemRefType>(op.getWeight().getType()).getElementType() << "x" << shape.nr;
    llvm::raw_string_ostream stream(key);
    llvm::interleave(types, stream, ";");
    func::FuncOp kernel = kernels.getOrCreate(
        name, key, op.getLoc(), types,
        [&](KernelEmitter &e, ValueRange arguments) { ProductKernel(e, shape, arguments, hasBias).emit(); });
    return {kernel, std::move(operands), shape.panels};
  }

  /// Products of one input with nothing but views between them, as the projections to queries, keys and values are. Their buffers are in use together:
  /// the input up to the last one, the outputs from the first one on, for the operations that follow.
  static SmallVector<kvrt::ProductOp> groupFrom(kvrt::ProductOp first) {
    SmallVector<kvrt::ProductOp> group = {first};
    for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
      auto product = dyn_cast<kvrt::ProductOp>(op);
      if (product && product.getInput() == first.getInput())
        group.push_back(product);
      else if (product || !isMemoryEffectFree(op) || op->getNumRegions() > 0)
        break;
    }
    return group;
  }

  /// One loop over the tasks of all products of a group, at the place of the last.
  void lower(ArrayRef<kvrt::ProductOp> group, KernelTable &kernels) const {
    kvrt::ProductOp last = group.back();
    SmallVector<Member> members;
    int64_t panels = 0, grain = 1;
    OpBuilder builder(last);
    for (kvrt::ProductOp op : group) {
      members.push_back(memberOf(builder, op, kernels));
      panels += members.back().panels;
      grain = std::max(grain, ProductShape(op, vectorBytes).grain());
    }
    KernelEmitter e(builder, last.getLoc());
    Value rows = memref::DimOp::create(builder, last.getLoc(), last.getInput(), e.index(0));
    Value chunks = e.ceilDiv(rows, rowChunk);
    kvrt::ParallelOp::create(builder, last.getLoc(), e.mul(chunks, panels), last.getBatch(), grain,
                             [&](OpBuilder &inner, Location loc, Value begin, Value end) { callEach(inner, loc, members, chunks, begin, end); });
    for (kvrt::ProductOp op : group)
      op.erase();
  }

  /// Calls every kernel for its part of the tasks [begin, end).
  static void callEach(OpBuilder &builder, Location loc, ArrayRef<Member> members, Value chunks, Value begin, Value end) {
    KernelEmitter e(builder, loc);
    int64_t first = 0;
    for (const Member &member : members) {
      SmallVector<Value> arguments(member.operands);
      if (members.size() == 1) {
        arguments.append({begin, end});
      } else {
        Value from = e.mul(chunks, first), to = e.mul(chunks, first + member.panels);
        arguments.append({e.sub(e.max(begin, from), from), e.sub(e.min(end, to), from)});
      }
      first += member.panels;
      func::CallOp::create(builder, loc, member.kernel, arguments);
    }
  }

  void runOnOperation() override {
    KernelTable kernels(getOperation());
    llvm::SetVector<kvrt::ProductOp> ops;
    getOperation().walk([&](kvrt::ProductOp op) { ops.insert(op); });
    for (kvrt::ProductOp op : ops)
      for (Value value : {op.getInput(), op.getWeight(), op.getOutput()})
        if (!isa<MemRefType>(value.getType())) {
          op.emitOpError("expected memrefs: lower-products runs after bufferization");
          return signalPassFailure();
        }
    while (!ops.empty()) {
      SmallVector<kvrt::ProductOp> group = groupFrom(ops.front());
      ops.remove_if([&](kvrt::ProductOp op) { return llvm::is_contained(group, op); });
      lower(group, kernels);
    }
  }
};

} // namespace
