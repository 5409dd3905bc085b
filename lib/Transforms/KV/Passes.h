// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes inside the `kv` level.
#ifndef QUIRE_LIB_TRANSFORMS_KV_PASSES_H
#define QUIRE_LIB_TRANSFORMS_KV_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace quire::kv {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

#endif // QUIRE_LIB_TRANSFORMS_KV_PASSES_H
