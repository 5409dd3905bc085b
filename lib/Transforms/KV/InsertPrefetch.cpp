// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Requests the blocks of later states while earlier ones are attended.
#include "lib/Transforms/KV/EnteringState.h"
#include "lib/Transforms/KV/Passes.h"

#include "mlir/IR/Remarks.h"

namespace quire::kv {
#define GEN_PASS_DEF_INSERTPREFETCHPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
struct InsertPrefetch : quire::kv::impl::InsertPrefetchPassBase<InsertPrefetch> {
  using InsertPrefetchPassBase::InsertPrefetchPassBase;

  void runOnOperation() override {
    SmallVector<std::pair<AppendOp, Value>> order; // appends in program order, with the state each came from
    SmallVector<Value> prefetched;
    Value batch;
    for (Block &block : getOperation().getBody())
      for (Operation &op : block) {
        if (auto append = dyn_cast<AppendOp>(op)) {
          order.push_back({append, enteringState(append)});
          batch = append.getBatch();
        } else if (auto prefetch = dyn_cast<PrefetchOp>(op)) {
          prefetched.push_back(enteringState(prefetch.getState()));
        }
      }
    if (order.empty() || distance <= 0) {
      remark::missed(getOperation().getLoc(), remark::RemarkOpts::name("prefetch").category("kv"))
          << (order.empty() ? "no state is appended here" : "the distance is 0");
      return;
    }
    OpBuilder builder(&getContext());
    auto request = [&](size_t index, Operation *before) {
      if (index >= order.size() || llvm::is_contained(prefetched, order[index].second))
        return;
      builder.setInsertionPoint(before);
      PrefetchOp::create(builder, before->getLoc(), order[index].second, batch, 0, -1);
      prefetched.push_back(order[index].second);
    };
    Operation *start = &getOperation().getBody().front().front();
    for (size_t first = 0; first < size_t(distance); ++first)
      request(first, start);
    for (size_t index = 0; index < order.size(); ++index)
      request(index + distance, order[index].first);
  }
};
} // namespace
