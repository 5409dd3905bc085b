// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on modules in text form: weights from files, subgraphs, errors and constant folding.
#include "lib/Analysis/Evaluate/Evaluator.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace quire;
using namespace quire::eval;

namespace {

class Interpreter : public testing::Test {
protected:
  Interpreter() {
    DialectRegistry registry;
    registry.insert<onnx::ONNXDialect, func::FuncDialect>();
    registerEvaluateExternalModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  OwningOpRef<ModuleOp> parse(StringRef text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(static_cast<bool>(module));
    return module;
  }
  static std::vector<float> floats(const Tensor &tensor) {
    Numbers<float> numbers(tensor);
    return {numbers.all().begin(), numbers.all().end()};
  }
  static Tensor tensor(ArrayRef<int64_t> shape, std::vector<float> values) {
    return Tensor::adopt(ElementKind::F32, shape, std::move(values));
  }

  MLIRContext context;
};

TEST_F(Interpreter, RunsByNameWithWeightsFromAFile) {
  SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("quire-evaluate", folder));
  std::string path = (folder + "/w.bin").str();
  {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    float weights[] = {9, 1, 2, 3, 4};
    out.write("x", 1); // an offset that is not aligned
    out.write(reinterpret_cast<const char *>(weights), sizeof weights);
  }
  auto module = parse(R"(
    onnx.initializer @w {file = "w.bin", offset = 5 : i64, bytes = 16 : i64} : tensor<2x2xf32>
    func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %w = onnx.weight @w : tensor<2x2xf32>
      %y = onnx.MatMul %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    }
    onnx.entry @main {inputs = ["in"], outputs = ["out"]}
  )");
  Evaluator model(*module, folder);
  llvm::StringMap<Tensor> inputs;
  inputs["in"] = tensor({1, 2}, {1, 10});
  auto outputs = model.run(inputs);
  ASSERT_TRUE(static_cast<bool>(outputs)) << llvm::toString(outputs.takeError());
  EXPECT_EQ(floats(outputs->lookup("out")), (std::vector<float>{31, 42}));
  llvm::sys::fs::remove(path);
  llvm::sys::fs::remove(folder);
}

TEST_F(Interpreter, RunsLoopsAndBranches) {
  auto module = parse(R"(
    func.func @main(%n: tensor<i64>, %x: tensor<f32>) -> (tensor<f32>, tensor<?xf32>) {
      %none = onnx.none : none
      %r:2 = onnx.Loop %n, %none, %x : (tensor<i64>, none, tensor<f32>) -> (tensor<f32>, tensor<?xf32>) {
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
        %two = onnx.constant dense<2> : tensor<i64>
        %small = onnx.Less %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
        %next = onnx.If %small : (tensor<i1>) -> tensor<f32> {
          %a = onnx.Add %v, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
          onnx.yield %a : tensor<f32>
        }, {
          %m = onnx.Mul %v, %v : (tensor<f32>, tensor<f32>) -> tensor<f32>
          onnx.yield %m : tensor<f32>
        }
        onnx.yield %c, %next, %next : tensor<i1>, tensor<f32>, tensor<f32>
      }
      return %r#0, %r#1 : tensor<f32>, tensor<?xf32>
    }
  )");
  Evaluator model(*module, ".");
  auto results = model.run({scalarTensor(ElementKind::I64, 3), scalarTensor(ElementKind::F32, 2)});
  ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
  EXPECT_EQ(floats((*results)[0]), (std::vector<float>{36}));
  EXPECT_EQ(floats((*results)[1]), (std::vector<float>{4, 6, 36}));
}

TEST_F(Interpreter, NamesTheNodeThatFails) {
  auto module = parse(R"(
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %z = onnx.Add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("adds/them")
      return %z : tensor<?xf32>
    }
    onnx.entry @main {inputs = ["x", "y"], outputs = ["z"]}
  )");
  Evaluator model(*module, ".");
  auto results = model.run({tensor({2}, {1, 2}), tensor({3}, {1, 2, 3})});
  ASSERT_FALSE(static_cast<bool>(results));
  EXPECT_EQ(llvm::toString(results.takeError()),
            "node 'adds/them' (onnx.Add): expected shapes that broadcast, but got [2] and [3]");
  results = model.run({tensor({2}, {1, 2}), vectorTensor({1})});
  ASSERT_FALSE(static_cast<bool>(results));
  EXPECT_EQ(llvm::toString(results.takeError()), "input 'y': expected elements of type f32, but got i64");
}

TEST_F(Interpreter, ComputesOneValueWithoutTheRest) {
  auto module = parse(R"(
    func.func @main(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
      %y = onnx.custom "vendor" "Fancy" %x : (tensor<2xf32>) -> tensor<2xf32>
      %n = onnx.Neg %x : (tensor<2xf32>) -> tensor<2xf32>
      %i = onnx.If %c : (tensor<i1>) -> tensor<2xf32> {
        onnx.yield %n : tensor<2xf32>
      }, {
        onnx.yield %x : tensor<2xf32>
      }
      %s = onnx.Add %y, %i : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %s : tensor<2xf32>
    }
  )");
  Evaluator model(*module, ".");
  Value sum = model.function().getBody().front().getTerminator()->getOperand(0);
  Value branch = sum.getDefiningOp()->getOperand(1);
  Tensor x = tensor({2}, {1, -2});
  auto chosen = model.valueOf(branch, {x, scalarTensor(ElementKind::Bool, 1)});
  ASSERT_TRUE(static_cast<bool>(chosen)) << llvm::toString(chosen.takeError());
  EXPECT_EQ(floats(*chosen), (std::vector<float>{-1, 2}));
  auto whole = model.valueOf(sum, {x, scalarTensor(ElementKind::Bool, 1)});
  ASSERT_FALSE(static_cast<bool>(whole));
  EXPECT_EQ(llvm::toString(whole.takeError()),
            "node (onnx.custom Fancy): not implemented: evaluation of this operator");
}

TEST_F(Interpreter, RefusesUnknownOperators) {
  auto module = parse(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = onnx.custom "vendor" "Fancy" %x : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
  )");
  Evaluator model(*module, ".");
  auto results = model.run({tensor({2}, {1, 2})});
  ASSERT_FALSE(static_cast<bool>(results));
  EXPECT_EQ(llvm::toString(results.takeError()),
            "node (onnx.custom Fancy): not implemented: evaluation of this operator");
}

TEST_F(Interpreter, FoldsConstantsUpToALimit) {
  auto module = parse(R"(
    func.func @main() -> (tensor<3xi64>, tensor<4xi1>) {
      %none = onnx.none : none
      %a = onnx.constant dense<[1, 2, 3]> : tensor<3xi64>
      %b = onnx.constant dense<10> : tensor<i64>
      %c = onnx.Mul %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
      %f = onnx.constant dense<[true, false, true, true]> : tensor<4xi1>
      %g = onnx.Not %f : (tensor<4xi1>) -> tensor<4xi1>
      return %c, %g : tensor<3xi64>, tensor<4xi1>
    }
  )");
  auto returned = cast<func::FuncOp>(module->lookupSymbol("main")).getBody().front().getTerminator();
  Operation *product = returned->getOperand(0).getDefiningOp(), *negated = returned->getOperand(1).getDefiningOp();
  auto folded = foldConstant(product);
  ASSERT_TRUE(folded.has_value());
  EXPECT_EQ(llvm::to_vector(folded->getValues<int64_t>()), (SmallVector<int64_t>{10, 20, 30}));
  EXPECT_FALSE(foldConstant(product, 2).has_value());
  auto flags = foldConstant(negated);
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(llvm::to_vector(flags->getValues<bool>()), (SmallVector<bool>{false, true, false, false}));
}

} // namespace
