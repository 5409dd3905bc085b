// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How operations of the `kvrt` dialect bufferize: views turn into views, kernels take memrefs.
#ifndef QUIRE_DIALECTS_KVRT_KVRTBUFFERIZATION_H
#define QUIRE_DIALECTS_KVRT_KVRTBUFFERIZATION_H

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace quire::kvrt {

/// Makes `view`, which has one tensor result, give a memref instead.
llvm::LogicalResult bufferizeView(mlir::RewriterBase &rewriter, mlir::Operation *view);

/// Makes `kernel` take memrefs for its tensors; its result is its last operand's memref.
llvm::LogicalResult bufferizeKernel(mlir::RewriterBase &rewriter, mlir::Operation *kernel,
                                    const mlir::bufferization::BufferizationOptions &options,
                                    mlir::bufferization::BufferizationState &state);

/// Effects of a kernel that writes its last operand: reads and writes of memrefs, and of pages when it has a state.
void kernelEffects(
    mlir::Operation *kernel,
    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects);

} // namespace quire::kvrt

#endif // QUIRE_DIALECTS_KVRT_KVRTBUFFERIZATION_H
