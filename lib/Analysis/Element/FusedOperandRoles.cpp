// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads roles off the operands of fused attention operators.

#include "lib/Analysis/Element/FusedOperandRoles.h"
#include "dialects/ONNX/ONNXAttentionOps.h"
#include "dialects/ONNX/ONNXControlOps.h"

using namespace mlir;

namespace quire {

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
      if (isa<onnx::AttentionOp>(use.getOwner()) && use.getOperandNumber() == 6)
        roles.try_emplace(cast<StringAttr>(entry.getInputs()[i]).getValue(),
                          InputRole::TotalLengths);
  }
}

} // namespace quire
