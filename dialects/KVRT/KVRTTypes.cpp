// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Geometry of a block, and what a state type and a layout may say.
#include "dialects/KVRT/KVRT.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace quire::kvrt;

// Bytes of a row of one head.
static int64_t rowBytes(Type type, int64_t features) { return llvm::divideCeil(features * type.getIntOrFloatBitWidth(), 8); }

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t key, int64_t value,
                                Type element, int64_t block, int64_t lanes) {
  if (heads <= 0 || key <= 0 || value <= 0 || block <= 0 || lanes <= 0)
    return emitError() << "expected positive heads, key, value, block and lanes";
  if (lanes & (lanes - 1))
    return emitError() << "expected lanes to be a power of two, but got " << lanes;
  if (block % lanes != 0)
    return emitError() << "expected lanes to divide block, but got " << lanes << " lanes and block " << block;
  bool stored = element.isInteger(8) || element.isInteger(4) || isa<Float32Type, Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(element);
  if (!stored)
    return emitError() << "expected element f32, f16, bf16, i8, i4, f8E4M3FN or f8E5M2, but got " << element;
  return success();
}

static MemRefType scalesType(StateType state, int64_t features) {
  int64_t groups = llvm::divideCeil(features, StateType::groupFeatures);
  return MemRefType::get({state.getHeads(), groups, 2, state.getBlock()}, Float32Type::get(state.getContext()));
}

// K or V of one block without scales, and with them.
static int64_t elementsBytes(StateType state, int64_t features) {
  return alignTo64(state.getHeads() * state.getBlock() * rowBytes(state.getElement(), features));
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

StringRef StateType::getElementName() const {
  return llvm::TypeSwitch<Type, StringRef>(getElement())
      .Case([](Float32Type) { return "f32"; })
      .Case([](Float16Type) { return "f16"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float8E4M3FNType) { return "fp8_e4m3"; })
      .Case([](Float8E5M2Type) { return "fp8_e5m2"; })
      .Default([](Type type) { return type.isInteger(8) ? "i8" : "i4"; });
}

// Elements of a page and of a row in it: bytes where two codes share one.
static Type placeType(StateType state) { return state.isHalved() ? IntegerType::get(state.getContext(), 8) : state.getElement(); }
static int64_t placesOf(StateType state, int64_t features) { return state.isHalved() ? rowBytes(state.getElement(), features) : features; }

MemRefType StateType::getKeyPageType() const {
  return MemRefType::get({getHeads(), getBlock() / getLanes(), placesOf(*this, getKey()), getLanes()}, placeType(*this));
}

MemRefType StateType::getValuePageType() const {
  return MemRefType::get({getHeads(), getBlock(), placesOf(*this, getValue())}, placeType(*this));
}

LogicalResult PanelsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t nr) {
  if (nr <= 0)
    return emitError() << "expected a positive panel width, but got " << nr;
  return success();
}
