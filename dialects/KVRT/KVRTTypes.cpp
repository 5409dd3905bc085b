// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Geometry of a block, and what a state type and a layout may say.
#include "dialects/KVRT/KVRT.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace quire::kvrt;

static int64_t elementBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t key, int64_t value,
                                Type element, int64_t block, int64_t lanes) {
  if (heads <= 0 || key <= 0 || value <= 0 || block <= 0 || lanes <= 0)
    return emitError() << "expected positive heads, key, value, block and lanes";
  if (lanes & (lanes - 1))
    return emitError() << "expected lanes to be a power of two, but got " << lanes;
  if (block % lanes != 0)
    return emitError() << "expected lanes to divide block, but got " << lanes << " lanes and block " << block;
  if (!element.isF32() && !element.isF16() && !element.isBF16() && !element.isInteger(8))
    return emitError() << "expected element f32, f16, bf16 or i8, but got " << element;
  return success();
}

static MemRefType scalesType(StateType state, int64_t features) {
  int64_t groups = llvm::divideCeil(features, StateType::groupFeatures);
  return MemRefType::get({state.getHeads(), groups, 2, state.getBlock()}, Float32Type::get(state.getContext()));
}

// K or V of one block without scales, and with them.
static int64_t elementsBytes(StateType state, int64_t features) {
  return alignTo64(state.getHeads() * state.getBlock() * features * elementBytes(state.getElement()));
}
static int64_t partBytes(StateType state, int64_t features) {
  int64_t bytes = elementsBytes(state, features);
  if (state.isQuantized())
    bytes += alignTo64(scalesType(state, features).getNumElements() * sizeof(float));
  return bytes;
}

int64_t StateType::getValueOffset() const { return partBytes(*this, getKey()); }
int64_t StateType::getBlockBytes() const { return getValueOffset() + partBytes(*this, getValue()); }
int64_t StateType::getKeyScalesOffset() const { return elementsBytes(*this, getKey()); }
int64_t StateType::getValueScalesOffset() const { return getValueOffset() + elementsBytes(*this, getValue()); }
MemRefType StateType::getKeyScalesType() const { return scalesType(*this, getKey()); }
MemRefType StateType::getValueScalesType() const { return scalesType(*this, getValue()); }

MemRefType StateType::getKeyPageType() const {
  return MemRefType::get({getHeads(), getBlock() / getLanes(), getKey(), getLanes()}, getElement());
}

MemRefType StateType::getValuePageType() const {
  return MemRefType::get({getHeads(), getBlock(), getValue()}, getElement());
}

LogicalResult PanelsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t nr) {
  if (nr <= 0)
    return emitError() << "expected a positive panel width, but got " << nr;
  return success();
}
