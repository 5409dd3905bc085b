// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Access to the step structure from kernel code.
#ifndef QUIRE_LIB_TARGET_CPU_STEPFIELDS_H
#define QUIRE_LIB_TARGET_CPU_STEPFIELDS_H

#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"

namespace quire::cpu {

class StepFields {
public:
  StepFields(KernelEmitter &emitter, mlir::Value batch) : emitter(emitter), batch(batch) {}

  /// An array of the step: memref<?xi64>, or memref<?x?xi32> for the block tables.
  mlir::Value read(kvrt::Field field) {
    bool table = field == kvrt::Field::block_tables;
    llvm::SmallVector<int64_t> shape(table ? 2 : 1, mlir::ShapedType::kDynamic);
    auto type = mlir::MemRefType::get(shape, emitter.builder.getIntegerType(table ? 32 : 64));
    return kvrt::ReadOp::create(emitter.builder, emitter.loc, type, batch, field);
  }
  mlir::Value extent(kvrt::Extent extent) {
    return kvrt::ExtentOp::create(emitter.builder, emitter.loc, emitter.builder.getIndexType(), batch, extent);
  }

private:
  KernelEmitter &emitter;
  mlir::Value batch;
};

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_STEPFIELDS_H
