// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Room for results of attention over parts of the keys.
#include "lib/Target/CPU/AttendRows.h"

namespace quire::cpu {
#define GEN_PASS_DEF_RESERVEPARTS
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

struct ReserveParts : quire::cpu::impl::ReservePartsBase<ReserveParts> {
  using ReservePartsBase::ReservePartsBase;

  /// Results that are worth keeping in one step; 0 when no row has two parts. `positions` is the longest sequence, -1 when not known.
  int64_t placesFor(kvrt::AttendOp op, int64_t positions) const {
    int64_t block = op.getState().getType().getBlock(), tokens = std::max<int64_t>(1, partTokens / block) * block;
    int64_t seen = positions < 0 ? std::numeric_limits<int64_t>::max() : positions;
    for (int64_t bound : {op.getWindow(), op.getChunk()})
      seen = bound ? std::min<int64_t>(seen, bound) : seen;
    if (seen <= tokens)
      return 0;
    int64_t parts = std::min((seen - 1) / tokens + 1, mostAttendParts) + (op.getWindow() ? 1 : 0);
    return std::min((enoughAttendTasks - 1) * parts, mostAttendPlaces);
  }

  void runOnOperation() override {
    int64_t positions = -1;
    for (auto model : getOperation().getOps<kvrt::ModelOp>())
      positions = model.getMaxPositions();
    getOperation().walk([&](kvrt::AttendOp op) {
      int64_t places = op.getParts() || !isa<MemRefType>(op.getQuery().getType()) ? 0 : placesFor(op, positions);
      if (!places)
        return;
      kvrt::StateType state = op.getState().getType();
      int64_t group = cast<MemRefType>(op.getQuery().getType()).getDimSize(1) / state.getHeads();
      OpBuilder builder(op);
      auto type = MemRefType::get({places, group, state.getValue() + 2}, builder.getF32Type());
      op.getPartsMutable().assign(memref::AllocOp::create(builder, op.getLoc(), type));
    });
  }
};

} // namespace
