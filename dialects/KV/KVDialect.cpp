// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registration, types and layouts of the `kv` dialect.
#include "dialects/KV/KVDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace quire::kv;

#include "dialects/KV/KVAttrInterfaces.cpp.inc"
#include "dialects/KV/KVDialect.cpp.inc"
#include "dialects/KV/KVInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/KV/KVAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/KV/KVTypes.cpp.inc"

void KVDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/KV/KVOps.cpp.inc"
      >();
}

void KVDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/KV/KVAttrs.cpp.inc"
      >();
}

void KVDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/KV/KVTypes.cpp.inc"
      >();
}

int64_t ContiguousAttr::getBlockTokens() const { return 0; }

int64_t PagedAttr::getBlockTokens() const { return getBlock(); }

LogicalResult PagedAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t block, int64_t group) {
  if (block < 1 || !llvm::isPowerOf2_64(block))
    return emitError() << "expected a block of a power of two of tokens, but got " << block;
  if (group < 0)
    return emitError() << "expected a group that is not negative, but got " << group;
  return success();
}

LogicalResult StateType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t key, int64_t value, Type element,
                                KVLayoutAttrInterface layout) {
  if (heads < 1 || key < 1 || value < 1)
    return emitError() << "expected heads, key and value of at least 1, but got " << heads << ", " << key << " and " << value;
  if (!isa<FloatType>(element) && !element.isInteger(8) && !element.isInteger(4))
    return emitError() << "expected a float element, i8 or i4, but got " << element;
  return success();
}
