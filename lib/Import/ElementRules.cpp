// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which element types the operands of common operators may have (ONNX operator specification): what must be equal, logical, integer or a float.
#include "lib/Import/ElementRules.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace quire {
namespace {

constexpr unsigned all = 0x80000000; // every operand, of a variadic one too

/// Sets of operands, one bit each.
struct Rule {
  unsigned same = 0, logical = 0, integer = 0, real = 0, number = 0; // a number is anything but bool
};

const llvm::StringMap<Rule> &rules() {
  static const llvm::StringMap<Rule> table = [] {
    llvm::StringMap<Rule> rules;
    auto add = [&](std::initializer_list<const char *> names, Rule rule) {
      for (const char *name : names)
        rules[name] = rule;
    };
    add({"Concat", "Equal"}, {all});
    add({"Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "Mod", "MatMul", "Gemm", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "PRelu", "Clip", "Einsum",
         "Range"},
        {all, 0, 0, 0, all});
    add({"Abs", "Neg", "Sign", "Pow", "Relu"}, {0, 0, 0, 0, all});
    add({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}, {all, 0, all});
    add({"Not", "And", "Or", "Xor"}, {0, all});
    add({"Where"}, {0b110, 0b001});
    add({"Exp", "Log", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Erf", "Sqrt", "Reciprocal", "Softmax", "LogSoftmax", "Softplus", "Gelu", "Elu", "HardSigmoid", "HardSwish", "IsNaN",
         "IsInf", "Floor", "Ceil", "Round", "LpNormalization"},
        {0, 0, 0, 0b001});
    add({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "InstanceNormalization"}, {0, 0, 0, 0b111});
    add({"Gather", "GatherElements", "GatherND", "Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "CumSum", "Trilu"},
        {0, 0, 0b10});
    add({"ScatterElements", "ScatterND"}, {0b101, 0, 0b010});
    add({"Slice"}, {0, 0, 0b11110});
    add({"TensorScatter"}, {0b011, 0, 0b100});
    return rules;
  }();
  return table;
}

std::string text(Type type) {
  std::string out;
  llvm::raw_string_ostream(out) << type;
  return out;
}

} // namespace

std::string elementMismatch(StringRef operation, ArrayRef<Type> operands) {
  auto found = rules().find(operation);
  if (found == rules().end())
    return {};
  const Rule &rule = found->second;
  auto holds = [](unsigned set, size_t index) { return (set & all) || (index < 31 && (set >> index & 1)); };
  Type first;
  for (auto [index, type] : llvm::enumerate(operands)) {
    auto shaped = dyn_cast<TensorType>(type);
    Type element = shaped ? shaped.getElementType() : Type();
    if (!element || !(element.isIntOrFloat())) // absent, unknown, or a string
      continue;
    auto expected = [index = index, element](StringRef what) { return llvm::formatv("input {0}: expected elements {1}, but got {2}", index, what, text(element)).str(); };
    if (holds(rule.logical, index) && !element.isInteger(1))
      return expected("of bool");
    if (holds(rule.integer, index) && !(isa<IntegerType>(element) && !element.isInteger(1)))
      return expected("of an integer type");
    if (holds(rule.number, index) && element.isInteger(1))
      return expected("of a number type");
    if (holds(rule.real, index) && !isa<FloatType>(element))
      return expected("of a float type");
    if (!holds(rule.same, index))
      continue;
    if (first && first != element)
      return expected("of " + text(first) + " as another input has");
    first = element;
  }
  return {};
}

} // namespace quire
