// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads roles off the operands of fused attention operators.

#include "lib/Analysis/Element/FusedOperandRoles.h"
#include "dialects/ONNX/ONNXAttentionOps.h"
#include "dialects/ONNX/ONNXControlOps.h"

using namespace mlir;

namespace quire {

static std::optional<InputRole> roleOf(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned operand = use.getOperandNumber();
  if (isa<onnx::AttentionOp>(op) && operand == 6) // nonpad_kv_seqlen
    return InputRole::TotalLengths;
  if (isa<onnx::MSGroupQueryAttentionOp>(op) && operand == 5) // seqlens_k
    return InputRole::LastPositions;
  if (isa<onnx::MSGroupQueryAttentionOp>(op) && operand == 6)
    return InputRole::TotalLength; // total_sequence_length
  return std::nullopt;
}

void addRolesOfFusedOperands(func::FuncOp original,
                             llvm::StringMap<InputRole> &roles) {
  onnx::EntryOp entry;
  if (auto module = original->getParentOfType<ModuleOp>())
    for (auto op : module.getOps<onnx::EntryOp>())
      if (op.getFunction() == original.getName())
        entry = op;
  if (!entry)
    return;
  for (BlockArgument arg : original.getArguments()) {
    unsigned i = arg.getArgNumber();
    if (i >= entry.getInputs().size())
      continue;
    for (OpOperand &use : arg.getUses())
      if (std::optional<InputRole> role = roleOf(use))
        roles.try_emplace(cast<StringAttr>(entry.getInputs()[i]).getValue(),
                          *role);
  }
}

} // namespace quire
