// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes from linalg on tensors to loops over buffers, and the two pipelines that end in tensors and in buffers.
#ifndef QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES_H
#define QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace quire {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Buffers/Passes.h.inc"

/// From the paged form to the resource form. `lanes`: tokens side by side in a K block; `panelColumns`: columns of a packed panel.
void buildResourcePipeline(mlir::OpPassManager &pm, int64_t lanes, int64_t panelColumns);

/// From the resource form to the buffer form. `reserve` adds the target's passes that allocate what its kernels need beside their operands.
void buildBufferPipeline(mlir::OpPassManager &pm, llvm::function_ref<void(mlir::OpPassManager &)> reserve = nullptr);

/// The bufferization and linalg interfaces that these passes need; call it on the registry of every context that runs them.
void registerBufferInterfaces(mlir::DialectRegistry &registry);

} // namespace quire

#endif // QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES_H
