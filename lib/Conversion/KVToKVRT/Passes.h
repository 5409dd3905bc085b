// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass that turns KV states into handles of the runtime.
#ifndef QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES_H
#define QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES_H

#include "mlir/Pass/Pass.h"

namespace quire {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/KVToKVRT/Passes.h.inc"

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES_H
