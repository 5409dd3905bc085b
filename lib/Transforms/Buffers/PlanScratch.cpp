// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places the buffers of a step in its arena: what is not live together shares bytes.
#include "lib/Transforms/Buffers/Passes.h"

#include "dialects/KVRT/KVRT.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_PLANSCRATCH
#include "lib/Transforms/Buffers/Passes.h.inc"

namespace {
/// What the size of a buffer grows with.
enum class Growth { Fixed, Tokens, Selected };

struct Buffer {
  memref::AllocOp alloc;
  Growth growth = Growth::Fixed;
  int64_t bytes = 0; // of the buffer, or for each row; a multiple of 64
  unsigned first = 0, last = 0; // positions in the step's block
  int64_t offset = 0;           // bytes, or bytes for each row
};

class PlanScratchPass : public impl::PlanScratchBase<PlanScratchPass> {
public:
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(plan(function)))
        return signalPassFailure();
  }

private:
  LogicalResult plan(func::FuncOp function) {
    Value batch;
    for (BlockArgument argument : function.getArguments())
      if (isa<kvrt::BatchType>(argument.getType()))
        batch = argument;
    if (!batch)
      return success();
    writeLogitsInPlace(function, batch);
    number(function);
    SmallVector<Buffer> buffers;
    WalkResult result = function.walk([&](memref::AllocOp alloc) {
      Buffer buffer;
      buffer.alloc = alloc;
      if (failed(measure(buffer)))
        return WalkResult::interrupt();
      buffers.push_back(buffer);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    int64_t fixed = place(buffers, Growth::Fixed), perToken = place(buffers, Growth::Tokens), perSelected = place(buffers, Growth::Selected);
    for (Buffer &buffer : buffers)
      replace(buffer, batch, fixed, perToken);
    for (auto model : getOperation().getOps<kvrt::ModelOp>())
      if (model.getStep() == function.getSymName()) {
        model.setScratchFixed(fixed);
        model.setScratchPerToken(perToken);
        model.setScratchPerSelected(perSelected);
      }
    return success();
  }

  /// A buffer of its own that is written out becomes the output.
  static void writeLogitsInPlace(func::FuncOp function, Value batch) {
    function.walk([&](kvrt::WriteOp write) {
      auto alloc = write.getSource().getDefiningOp<memref::AllocOp>();
      if (!alloc || !alloc.getType().getLayout().isIdentity())
        return;
      OpBuilder builder(alloc);
      Value output = kvrt::LogitsOp::create(builder, write.getLoc(), alloc.getType(), batch);
      alloc.replaceAllUsesWith(output);
      alloc.erase();
      write.erase();
    });
  }

  void number(func::FuncOp function) {
    positions.clear();
    for (auto [i, op] : llvm::enumerate(function.getBody().front()))
      positions[&op] = i;
  }

  LogicalResult measure(Buffer &buffer) {
    memref::AllocOp alloc = buffer.alloc;
    MemRefType type = alloc.getType();
    if (!positions.contains(alloc))
      return alloc.emitError("not implemented: a buffer that is allocated in a region");
    if (!type.getLayout().isIdentity() || !type.getElementType().isIntOrIndexOrFloat())
      return alloc.emitError("not implemented: a buffer of type ") << type;
    int64_t elements = 1;
    for (int64_t extent : type.getShape())
      elements *= ShapedType::isDynamic(extent) ? 1 : extent;
    int64_t bits = type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
    buffer.bytes = kvrt::alignTo64(elements * ((bits + 7) / 8));
    if (type.getNumDynamicDims() > 1)
      return alloc.emitError("expected a buffer with one unknown extent at most, but got ") << type;
    if (!type.hasStaticShape()) {
      auto extent = alloc.getDynamicSizes().front().getDefiningOp<kvrt::ExtentOp>();
      if (!extent || (extent.getExtent() != kvrt::Extent::tokens && extent.getExtent() != kvrt::Extent::selected))
        return alloc.emitError("expected a buffer that grows with the tokens or the selected rows");
      buffer.growth = extent.getExtent() == kvrt::Extent::tokens ? Growth::Tokens : Growth::Selected;
    }
    findLifetime(buffer);
    return success();
  }

  void findLifetime(Buffer &buffer) {
    Block *block = buffer.alloc->getBlock();
    buffer.first = std::numeric_limits<unsigned>::max();
    SmallVector<Value> aliases = {buffer.alloc.getMemref()};
    DenseSet<Value> seen(aliases.begin(), aliases.end());
    while (!aliases.empty()) {
      for (Operation *user : aliases.pop_back_val().getUsers()) {
        if (isa<ViewLikeOpInterface>(user)) {
          for (Value view : user->getResults())
            if (isa<BaseMemRefType>(view.getType()) && seen.insert(view).second)
              aliases.push_back(view);
          continue;
        }
        unsigned position = positions.lookup(block->findAncestorOpInBlock(*user));
        buffer.first = std::min(buffer.first, position);
        buffer.last = std::max(buffer.last, position);
      }
    }
    buffer.first = std::min(buffer.first, buffer.last);
  }

  /// Lowest free place for every buffer of a kind, the large ones first; returns the size of the part.
  static int64_t place(SmallVector<Buffer> &buffers, Growth growth) {
    SmallVector<Buffer *> open, placed;
    for (Buffer &buffer : buffers)
      if (buffer.growth == growth)
        open.push_back(&buffer);
    llvm::sort(open, [](Buffer *a, Buffer *b) { return std::pair(-a->bytes, a) < std::pair(-b->bytes, b); });
    int64_t size = 0;
    for (Buffer *buffer : open) {
      SmallVector<std::pair<int64_t, int64_t>> taken;
      for (Buffer *other : placed)
        if (other->first <= buffer->last && buffer->first <= other->last)
          taken.push_back({other->offset, other->offset + other->bytes});
      llvm::sort(taken);
      int64_t offset = 0;
      for (auto [begin, end] : taken) {
        if (offset + buffer->bytes <= begin)
          break;
        offset = std::max(offset, end);
      }
      buffer->offset = offset;
      size = std::max(size, offset + buffer->bytes);
      placed.push_back(buffer);
    }
    return size;
  }

  static void replace(Buffer &buffer, Value batch, int64_t fixed, int64_t perToken) {
    OpBuilder builder(buffer.alloc);
    int64_t start[3] = {buffer.offset, 0, 0};
    if (buffer.growth == Growth::Tokens)
      start[0] = fixed, start[1] = buffer.offset;
    if (buffer.growth == Growth::Selected)
      start[0] = fixed, start[1] = perToken, start[2] = buffer.offset;
    auto scratch = kvrt::ScratchOp::create(builder, buffer.alloc.getLoc(), buffer.alloc.getType(), batch, buffer.alloc.getDynamicSizes(), start[0], start[1], start[2]);
    buffer.alloc.replaceAllUsesWith(scratch.getResult());
    buffer.alloc.erase();
  }

  DenseMap<Operation *, unsigned> positions;
};
} // namespace

} // namespace quire
