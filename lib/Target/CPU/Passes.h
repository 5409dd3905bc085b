// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes of the CPU target.
#ifndef QUIRE_LIB_TARGET_CPU_PASSES_H
#define QUIRE_LIB_TARGET_CPU_PASSES_H

#include "lib/Target/CPU/CpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace quire::cpu {

#define GEN_PASS_DECL
#include "lib/Target/CPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Target/CPU/Passes.h.inc"

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_PASSES_H
