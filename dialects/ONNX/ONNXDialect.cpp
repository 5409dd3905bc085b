// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers the types and operations of the `onnx` dialect.

#include "dialects/ONNX/ONNXControlOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace quire::onnx;

#include "dialects/ONNX/ONNXDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.cpp.inc"

#include "dialects/ONNX/ONNXInterfaces.cpp.inc"

void ONNXDialect::addTypes() {
  Dialect::addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/ONNX/ONNXTypes.cpp.inc"
      >();
}

void ONNXDialect::initialize() {
  addTypes();
  addAttentionOps();
  addControlOps();
  addLogicOps();
  addMathOps();
  addNormOps();
  addQuantOps();
  addReduceOps();
  addSequenceOps();
  addShapeOps();
}

Operation *ONNXDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (isa<UnitAttr>(value) && isa<NoneType>(type))
    return NoneOp::create(builder, loc, type);
  auto elements = dyn_cast<ElementsAttr>(value);
  if (elements && elements.getType() == type)
    return ConstantOp::create(builder, loc, type, elements);
  return nullptr;
}
