// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fused attention operators spelt out in primitive ones, so that one analysis reads all spellings.
#ifndef QUIRE_LIB_TRANSFORMS_ONNX_DECOMPOSEATTENTION_H
#define QUIRE_LIB_TRANSFORMS_ONNX_DECOMPOSEATTENTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace quire {

/// The softmax of a decomposed operator, and the idiom that its state had: "attention", "gqa", "mha".
using AttentionOrigins = llvm::DenseMap<mlir::Operation *, llvm::StringRef>;

/// Replaces `onnx.Attention`, `onnx.ms.GroupQueryAttention` and `onnx.ms.MultiHeadAttention` in `function` by concatenation with the past, products, mask
/// arithmetic and a softmax, as their specifications define them (ONNX 1.23; contrib operators of ONNX Runtime 1.32). The cache of GroupQueryAttention is read as
/// one that grows: rows before `seqlens_k + 1 - tokens` are the past. Fails with the node and the reason when an operator uses something that has no such spelling.
mlir::LogicalResult decomposeAttention(mlir::func::FuncOp function, AttentionOrigins &origins, std::string &why);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/ONNX/Passes.h.inc"

} // namespace quire

#endif // QUIRE_LIB_TRANSFORMS_ONNX_DECOMPOSEATTENTION_H
