// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the fields of quire_step, of the runtime's table and of a state lie. See include/quire/model.h.
#ifndef QUIRE_LIB_CONVERSION_KVRTTOLLVM_STEPACCESS_H
#define QUIRE_LIB_CONVERSION_KVRTTOLLVM_STEPACCESS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace quire::kvrt {

// Indices of fields of quire_step that have no name in the dialect.
constexpr int64_t logitsField = 6, weightsField = 7, scratchField = 8, runtimeField = 9, contextField = 10;

// Fields of the struct that stands for a state.
constexpr int64_t stateBase = 0, stateStride = 1, stateTables = 2, stateObserved = 3, stateLayer = 4;

/// The byte address `pointer` + `offset` (i64).
inline mlir::Value advance(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer, mlir::Value offset) {
  auto type = mlir::LLVM::LLVMPointerType::get(builder.getContext());
  return mlir::LLVM::GEPOp::create(builder, loc, type, builder.getI8Type(), pointer,
                                   llvm::ArrayRef<mlir::LLVM::GEPArg>{offset});
}

/// Field `index` of a structure of 8-byte fields.
inline mlir::Value loadStepField(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value structure, int64_t index,
                                 mlir::Type type) {
  auto pointer = mlir::LLVM::LLVMPointerType::get(builder.getContext());
  mlir::Value slot =
      mlir::LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(), structure,
                                llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(index)});
  return mlir::LLVM::LoadOp::create(builder, loc, type, slot);
}

} // namespace quire::kvrt

#endif // QUIRE_LIB_CONVERSION_KVRTTOLLVM_STEPACCESS_H
