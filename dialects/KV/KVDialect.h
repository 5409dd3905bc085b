// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C++ declarations of the `kv` dialect: state types, layouts, operations.
#ifndef QUIRE_DIALECTS_KV_KVDIALECT_H
#define QUIRE_DIALECTS_KV_KVDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace quire::kv {
/// Memory of all KV states: keeps reads, appends and prefetches in order.
struct KVResource : mlir::SideEffects::Resource::Base<KVResource> {
  llvm::StringRef getName() final { return "KV"; }
};
} // namespace quire::kv

#include "dialects/KV/KVAttrInterfaces.h.inc"
#include "dialects/KV/KVDialect.h.inc"
#include "dialects/KV/KVInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/KV/KVAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KV/KVTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/KV/KVOps.h.inc"

#endif // QUIRE_DIALECTS_KV_KVDIALECT_H
