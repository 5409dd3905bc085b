// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits conversions between f32 and the 8-bit formats f8E4M3FN and f8E5M2, for which processors have no instructions. Scalars or vectors.
#ifndef QUIRE_LIB_TARGET_CPU_SMALLFLOATS_H
#define QUIRE_LIB_TARGET_CPU_SMALLFLOATS_H

#include "lib/Target/CPU/KernelEmitter.h"

namespace quire::cpu {

bool isSmallFloat(mlir::Type element);

/// The exact value in f32; NaN stays NaN. `viaHalf` goes by f16, in fewer operations where the processor converts that.
mlir::Value widenSmallFloat(KernelEmitter &emitter, mlir::Value elements, bool viaHalf);

/// To the nearest, ties to even. What is beyond the largest number, infinite or NaN becomes 0x7f, which is NaN: as in quire/model.h.
mlir::Value narrowToSmallFloat(KernelEmitter &emitter, mlir::Value numbers, mlir::Type element);

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_SMALLFLOATS_H
