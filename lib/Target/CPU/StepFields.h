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

  /// An array of the step: memref<?xi64>.
  mlir::Value read(kvrt::Field field) {
    auto type = mlir::MemRefType::get({mlir::ShapedType::kDynamic}, emitter.builder.getI64Type());
    return kvrt::ReadOp::create(emitter.builder, emitter.loc, type, batch, field);
  }
  /// The block tables of a layer: memref<?x?xi32>.
  mlir::Value tables(mlir::Value state) {
    return kvrt::TablesOp::create(emitter.builder, emitter.loc, state, batch);
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
