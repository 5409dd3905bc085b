// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lets the runtime see what each state was attended for.
#include "lib/Transforms/KV/EnteringState.h"
#include "lib/Transforms/KV/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace quire::kv {
#define GEN_PASS_DEF_INSERTOBSERVEPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
struct InsertObserve : quire::kv::impl::InsertObservePassBase<InsertObserve> {
  void runOnOperation() override {
    llvm::MapVector<Value, AttendOp> last; // by the state that entered
    llvm::SmallPtrSet<Value, 8> observed;
    getOperation().walk([&](Operation *op) {
      if (auto attend = dyn_cast<AttendOp>(op))
        last[enteringState(attend.getState())] = attend;
      else if (auto observe = dyn_cast<ObserveOp>(op))
        observed.insert(enteringState(observe.getState()));
    });
    for (auto [state, attend] : last) {
      if (observed.contains(state))
        continue;
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(attend);
      ObserveOp::create(builder, attend.getLoc(), attend.getState(), attend.getBatch());
    }
  }
};
} // namespace
