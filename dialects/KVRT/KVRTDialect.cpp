// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registration of the `kvrt` dialect's types, attributes and operations.
#include "dialects/KVRT/KVRT.h"
#include "dialects/KVRT/KVRTBufferization.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace quire::kvrt;

#include "dialects/KVRT/KVRTDialect.cpp.inc"
#include "dialects/KVRT/KVRTEnums.cpp.inc"
#include "dialects/KVRT/KVRTInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/KVRT/KVRTAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KVRT/KVRTTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/KVRT/KVRTOps.cpp.inc"

void KVRTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/KVRT/KVRTTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/KVRT/KVRTAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/KVRT/KVRTOps.cpp.inc"
      >();
}
