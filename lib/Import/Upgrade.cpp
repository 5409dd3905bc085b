// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Old spellings of operators in the form of the newest operator set.

#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXNormOps.h"
#include "dialects/ONNX/ONNXShapeOps.h"
#include "lib/Import/ElementTypes.h"
#include "lib/Import/GraphImporter.h"
#include "lib/Import/TypeInference.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace quire::import;

namespace {

class Upgrade {
public:
  Upgrade(Node &node, OpBuilder &builder, Value none, llvm::function_ref<GraphImporter::Error()> error)
      : node(node), builder(builder), none(none), error(error) {}

  LogicalResult run();

private:
  LogicalResult moveInts(StringRef name, size_t operand);
  LogicalResult moveFloat(StringRef name, size_t operand);
  LogicalResult upgradeSoftmax();
  LogicalResult upgradeSplit();
  void setOperand(size_t index, Value value);
  Value constant(ElementsAttr value) {
    return quire::onnx::ConstantOp::create(builder, node.loc, value.getType(), value);
  }

  Node &node;
  OpBuilder &builder;
  Value none;
  llvm::function_ref<GraphImporter::Error()> error;
};

} // namespace

void Upgrade::setOperand(size_t index, Value value) {
  if (node.operands.size() <= index)
    node.operands.resize(index + 1, none);
  node.operands[index] = value;
}

// A list that was an attribute and is an operand now.
LogicalResult Upgrade::moveInts(StringRef name, size_t operand) {
  Attribute value = node.takeAttribute(name);
  if (!value)
    return success();
  auto ints = dyn_cast<DenseI64ArrayAttr>(value);
  if (!ints)
    return error() << "attribute '" << name << "': expected integers";
  if (node.operands.size() > operand)
    return error() << "expected '" << name << "' as an attribute or as an input, but got both";
  auto type = RankedTensorType::get({ints.size()}, builder.getI64Type());
  setOperand(operand, constant(DenseElementsAttr::get(type, ints.asArrayRef())));
  return success();
}

// A number that was an attribute and is an operand, of the first operand's element type, now.
LogicalResult Upgrade::moveFloat(StringRef name, size_t operand) {
  Attribute value = node.takeAttribute(name);
  if (!value)
    return success();
  auto number = dyn_cast<FloatAttr>(value);
  if (!number)
    return error() << "attribute '" << name << "': expected a float";
  if (node.operands.size() > operand || node.operands.empty())
    return error() << "expected '" << name << "' as an attribute or as an input, but got both";
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(node.operands[0].getType()));
  if (!element)
    element = builder.getF32Type();
  APFloat converted = number.getValue();
  bool lossy;
  converted.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
  setOperand(operand, constant(DenseElementsAttr::get(RankedTensorType::get({}, element), converted)));
  return success();
}

// Before set 13, softmax ran over all axes from `axis`, 1 by default, on.
LogicalResult Upgrade::upgradeSoftmax() {
  int64_t axis = 1;
  if (Attribute value = node.takeAttribute("axis")) {
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number)
      return error() << "attribute 'axis': expected an integer";
    axis = number.getInt();
  }
  node.setAttribute("axis", builder.getI64IntegerAttr(-1));
  auto type = node.operands.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(node.operands[0].getType());
  if (axis == -1 || (type && axis == type.getRank() - 1))
    return success();
  if (!type || node.proto.output_size() != 1)
    return error() << "not implemented: " << node.opType << " of operator set " << node.version
                   << " over several axes of a value of unknown rank";
  if (axis < -type.getRank() || axis >= type.getRank())
    return error() << "expected an axis within rank " << type.getRank() << ", but got " << axis;
  // The axes from `axis` on as one; the result gets its shape back where the operator is created.
  Type element = type.getElementType();
  auto matrix = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic}, element);
  Operation *flatten = quire::onnx::FlattenOp::create(builder, node.loc, matrix, node.operands[0],
                                                      axis < 0 ? axis + type.getRank() : axis);
  inferResultTypes(flatten);
  node.reshapeTo = node.operands[0];
  node.operands[0] = flatten->getResult(0);
  return success();
}

LogicalResult Upgrade::upgradeSplit() {
  if (failed(moveInts("split", 1)))
    return failure();
  bool sizes = node.operands.size() > 1 && !isa<NoneType>(node.operands[1].getType());
  if (!sizes && !node.attribute("num_outputs"))
    node.setAttribute("num_outputs", builder.getI64IntegerAttr(node.proto.output_size()));
  return success();
}

LogicalResult Upgrade::run() {
  StringRef op = node.opType;
  if (op == "Squeeze" || op == "Unsqueeze" || op == "ReduceSum")
    return node.version < 13 ? moveInts("axes", 1) : success();
  if (op.starts_with("Reduce"))
    return node.version < 18 ? moveInts("axes", 1) : success();
  if (op == "Softmax" || op == "LogSoftmax" || op == "Hardmax")
    return node.version < 13 ? upgradeSoftmax() : success();
  if (op == "Split")
    return node.version < 18 ? upgradeSplit() : success();
  if (op == "Dropout")
    return node.version < 12 ? moveFloat("ratio", 1) : success();
  if (op == "Scatter")
    node.opType = "ScatterElements";
  // Before set 21, scale and bias had one element for each group.
  if (op == "GroupNormalization" && node.version < 21)
    return error() << "not implemented: GroupNormalization of operator set " << node.version;
  return success();
}

LogicalResult quire::import::upgradeNode(Node &node, OpBuilder &builder, Value none,
                                         llvm::function_ref<GraphImporter::Error()> error) {
  if (!node.domain.empty())
    return success();
  return Upgrade(node, builder, none, error).run();
}
