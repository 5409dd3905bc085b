// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Declarations of the `kvrt` dialect: types, attributes, operations.
#ifndef QUIRE_DIALECTS_KVRT_KVRT_H
#define QUIRE_DIALECTS_KVRT_KVRT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/KVRT/KVRTDialect.h.inc"
#include "dialects/KVRT/KVRTEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/KVRT/KVRTAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KVRT/KVRTTypes.h.inc"

namespace quire::kvrt {

/// The pages of the runtime: what appends write and attends read.
struct KVResource : mlir::SideEffects::Resource::Base<KVResource> {
  llvm::StringRef getName() final { return "KV"; }
};

/// What leaves the step.
struct OutputResource : mlir::SideEffects::Resource::Base<OutputResource> {
  llvm::StringRef getName() final { return "Output"; }
};

/// The smallest multiple of 64 that is at least `bytes`.
inline int64_t alignTo64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// The memref with the shape and element type of `type`, contiguous.
mlir::MemRefType bufferTypeOfView(mlir::Type type);

} // namespace quire::kvrt

#include "dialects/KVRT/KVRTInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/KVRT/KVRTOps.h.inc"

namespace quire::kvrt {

/// The entry of weights.bin that `name`, looked up from `from`, is: its type and offset (-1: not assigned). Null type: none.
struct WeightEntry {
  mlir::RankedTensorType type;
  int64_t offset = -1;
};
WeightEntry lookupWeight(mlir::Operation *from, mlir::FlatSymbolRefAttr name, mlir::SymbolTableCollection &tables);

} // namespace quire::kvrt

#endif // QUIRE_DIALECTS_KVRT_KVRT_H
