// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where each entry of weights.bin lies.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/Passes.h"

namespace quire::cpu {
#define GEN_PASS_DEF_ASSIGNWEIGHTOFFSETS
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;

namespace {

struct AssignWeightOffsets : quire::cpu::impl::AssignWeightOffsetsBase<AssignWeightOffsets> {
  template <typename Entry>
  static int64_t place(Entry entry, int64_t offset) {
    entry.setOffset(offset);
    auto type = cast<RankedTensorType>(entry.getType());
    // Booleans and smaller integers take whole bytes.
    int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    return kvrt::alignTo64(offset + bytes);
  }

  void runOnOperation() override {
    int64_t offset = 0;
    for (Operation &op : *getOperation().getBody()) {
      if (auto packed = dyn_cast<kvrt::PackedOp>(op))
        offset = place(packed, offset);
      else if (auto raw = dyn_cast<kvrt::RawOp>(op))
        offset = place(raw, offset);
    }
    for (auto model : getOperation().getOps<kvrt::ModelOp>())
      model.setWeightsBytes(offset);
  }
};

} // namespace
