// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types that follow from operands, and rules that must not guess.

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Import/TypeInference.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

// The type inferred for the first result of the last operation before the return.
std::string inferred(StringRef arguments, StringRef body) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<quire::onnx::ONNXDialect, func::FuncDialect>();
  std::string text = ("func.func @f(" + arguments + ") {\n%none = onnx.none : none\n" + body + "\nreturn\n}").str();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return "does not parse";
  Block &block = module->lookupSymbol<func::FuncOp>("f").getBody().front();
  Operation *op = block.getTerminator()->getPrevNode();
  quire::import::inferResultTypes(op);
  std::string type;
  llvm::raw_string_ostream(type) << op->getResult(0).getType();
  return type;
}

} // namespace

TEST(TypeInference, Broadcast) {
  EXPECT_EQ(inferred("%a: tensor<?x1x4xf32>, %b: tensor<3x?xf32>", "%y = onnx.Add %a, %b : (tensor<?x1x4xf32>, tensor<3x?xf32>) -> tensor<*xf32>"),
            "tensor<?x3x4xf32>");
  EXPECT_EQ(inferred("%a: tensor<*xf32>, %b: tensor<3x?xf32>", "%y = onnx.Add %a, %b : (tensor<*xf32>, tensor<3x?xf32>) -> tensor<*xf32>"), "tensor<*xf32>");
}

TEST(TypeInference, Reshape) {
  auto reshape = [](StringRef operand, StringRef shape) {
    return inferred(("%x: " + operand).str(), ("%s = onnx.constant " + shape + "\n%y = onnx.Reshape %x, %s : (" + operand +
                                               ", tensor<" + Twine(shape.count(',') + 1) + "xi64>) -> tensor<*xf32>").str());
  };
  EXPECT_EQ(reshape("tensor<2x3x4xf32>", "dense<[0, -1]> : tensor<2xi64>"), "tensor<2x12xf32>");
  EXPECT_EQ(reshape("tensor<?x3x4xf32>", "dense<[0, -1]> : tensor<2xi64>"), "tensor<?x12xf32>");
  EXPECT_EQ(reshape("tensor<?x?x64xf32>", "dense<[0, 0, 4, -1]> : tensor<4xi64>"), "tensor<?x?x4x16xf32>");
  EXPECT_EQ(reshape("tensor<?x3xf32>", "dense<[-1, 2]> : tensor<2xi64>"), "tensor<?x2xf32>");
  EXPECT_EQ(reshape("tensor<*xf32>", "dense<[0, 5]> : tensor<2xi64>"), "tensor<?x5xf32>");
}

TEST(TypeInference, Slice) {
  auto slice = [](int64_t start, int64_t end, int64_t step) {
    auto constant = [](StringRef name, int64_t value) {
      return ("%" + name + " = onnx.constant dense<" + Twine(value) + "> : tensor<1xi64>\n").str();
    };
    std::string body = constant("s", start) + constant("e", end) + constant("a", 1) + constant("t", step) +
                       "%y = onnx.Slice %x, %s, %e, %a, %t : (tensor<?x7xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>";
    return inferred("%x: tensor<?x7xf32>", body);
  };
  constexpr int64_t far = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(slice(0, 3, 1), "tensor<?x3xf32>");
  EXPECT_EQ(slice(-3, far, 1), "tensor<?x3xf32>");
  EXPECT_EQ(slice(1, far, 2), "tensor<?x3xf32>");
  EXPECT_EQ(slice(-1, low, -1), "tensor<?x7xf32>");
  EXPECT_EQ(slice(-1, -3, -1), "tensor<?x2xf32>");
  EXPECT_EQ(slice(5, 2, 1), "tensor<?x0xf32>");
  EXPECT_EQ(slice(0, 3, 0), "tensor<?x?xf32>");
}

TEST(TypeInference, SplitIntoUnevenParts) {
  EXPECT_EQ(inferred("%x: tensor<7x2xf32>", "%y:3 = onnx.Split %x, %none {num_outputs = 3 : i64} : (tensor<7x2xf32>, none) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"),
            "tensor<3x2xf32>");
}

TEST(TypeInference, StatedTypesFillUnknownExtents) {
  EXPECT_EQ(inferred("%x: tensor<?x3xf32>", "%y = onnx.Relu %x : (tensor<?x3xf32>) -> tensor<2x?xf32>"), "tensor<2x3xf32>");
  EXPECT_EQ(inferred("%x: tensor<?x3xf32>", "%y = onnx.Relu %x : (tensor<?x3xf32>) -> tensor<2x9xi8>"), "tensor<2x3xf32>");
}

TEST(TypeInference, States) {
  EXPECT_EQ(inferred("%q: tensor<?x?x64xf32>, %k: tensor<?x?x32xf32>, %p: tensor<?x2x?x16xf32>",
                     "%y:4 = onnx.Attention %q, %k, %k, %none, %p, %p, %none {q_num_heads = 4 : i64, kv_num_heads = 2 : i64} : (tensor<?x?x64xf32>, "
                     "tensor<?x?x32xf32>, tensor<?x?x32xf32>, none, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, none) -> (tensor<*xf32>, none, none, none)"),
            "tensor<?x?x64xf32>");
}
