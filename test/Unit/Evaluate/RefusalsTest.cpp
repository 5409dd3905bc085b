// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forms of operators and element types that have no kernel say so.
#include "lib/Analysis/Evaluate/Evaluator.h"
#include "lib/Analysis/Evaluate/Generate.h"
#include "lib/Analysis/Evaluate/Kernels.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace quire;
using namespace quire::eval;

namespace {

/// An operation on the values of `constants`, with results of the types of others of them.
struct Form {
  const char *operation;
  const char *operands;
  const char *attributes;
  const char *results;
  const char *reason;
};

struct Constant {
  const char *name, *type, *elements;
};
const Constant constants[] = {
    {"x", "tensor<1x2x4xf32>", "1.0"},       {"ids", "tensor<1x2xi64>", "0"},        {"table", "tensor<4x2xf32>", "1.0"},
    {"two", "tensor<2xf32>", "1.0"},         {"half", "tensor<f32>", "0.5"},         {"true", "tensor<i1>", "true"},
    {"length", "tensor<1xi32>", "1"},        {"total", "tensor<i32>", "2"},          {"weights", "tensor<4x12xf32>", "1.0"},
    {"mask", "tensor<1x1x2x2xi32>", "1"},    {"router", "tensor<2x2xf32>", "1.0"},   {"experts", "tensor<2x4x4xf32>", "1.0"},
    {"bytes", "tensor<2x4x4xui8>", "1"},     {"blocks", "tensor<2x1x8xui8>", "1"},   {"scales", "tensor<2x1xf32>", "1.0"},
    {"kernel", "tensor<2x1x3xf32>", "1.0"},  {"state", "tensor<1x1x4x4xf32>", "1.0"}, {"exponents", "tensor<2xf8E8M0FNU>", "1.0"},
    {"carried", "tensor<1x2x2xf32>", "1.0"}};

const Form forms[] = {
    {"onnx.ms.RotaryEmbedding", "x ids table table", "scale = 2.0 : f32", "x", "not implemented: a scale other than 1"},
    {"onnx.ms.RotaryEmbedding", "x ids table table", "is_packed_batching = 1 : i64", "x", "not implemented: is_packed_batching"},
    {"onnx.BatchNormalization", "x two two two two", "training_mode = 1 : i64", "x none none", "not implemented: BatchNormalization in training mode"},
    {"onnx.BatchNormalization", "x two two two two", "", "x two two", "not implemented: result 1"},
    {"onnx.Dropout", "x half true", "", "x none", "not implemented: Dropout in training mode"},
    {"onnx.Cast", "two", "to = f8E8M0FNU, round_mode = \"down\"", "exponents", "not implemented: round_mode down"},
    {"onnx.ms.GroupQueryAttention", "x x x none none length total none none none none none none none none none none",
     "num_heads = 1 : i64, kv_num_heads = 1 : i64, k_quant_type = \"PER_TENSOR\"", "x none none none", "not implemented: a quantised cache"},
    {"onnx.ms.GroupQueryAttention", "x x x none none length total none none none none none none none none none none",
     "num_heads = 1 : i64, kv_num_heads = 1 : i64, sliding_window_cache = 1 : i64", "x none none none", "not implemented: sliding_window_cache"},
    {"onnx.ms.GroupQueryAttention", "x x x none none length total none none none none none none none none none length",
     "num_heads = 1 : i64, kv_num_heads = 1 : i64", "x none none none", "not implemented: query_seqlens"},
    {"onnx.ms.MultiHeadAttention", "x x x none none none none none length none", "num_heads = 1 : i64", "x none none none",
     "not implemented: past_sequence_length and cache_indirection"},
    {"onnx.ms.MultiHeadAttention", "x x x none mask none none none none none", "num_heads = 1 : i64", "x none none none",
     "not implemented: a mask of shape [1,1,2,2]"},
    {"onnx.ms.Attention", "x weights none none none none none", "num_heads = 1 : i64, past_present_share_buffer = 1 : i64", "x none",
     "not implemented: a past in a shared buffer"},
    {"onnx.ms.Attention", "x weights none none none none none", "num_heads = 1 : i64, do_rotary = 1 : i64", "x none",
     "not implemented: do_rotary of com.microsoft.Attention"},
    {"onnx.ms.LinearAttention", "x x x none none none", "q_num_heads = 1 : i64, kv_num_heads = 1 : i64, state_window = 1 : i64, update_rule = \"linear\"", "x state",
     "not implemented: state_window"},
    {"onnx.ms.CausalConvWithState", "x kernel none none", "channels_last = 1 : i64", "x carried none",
     "not implemented: other layouts than [batch,channels,length]"},
    {"onnx.ms.MatMulNBits", "x blocks scales none none none", "K = 4 : i64, N = 2 : i64, block_size = 16 : i64, weight_prepacked = 1 : i64", "table",
     "not implemented: weights packed for another engine"},
    {"onnx.ms.MoE", "x router experts none experts none none none", "use_sparse_mixer = 1 : i64", "x",
     "not implemented: use_sparse_mixer and swiglu_limit_after_activation"},
    {"onnx.ms.MoE", "x router experts none experts none none none", "activation_type = \"swiglu\", swiglu_fusion = 2 : i64", "x",
     "not implemented: SwiGLU with swiglu_fusion other than 1"},
    {"onnx.ms.QMoE", "x router bytes none none bytes none none none none none none none none none none none none none none none", "quant_type = \"fp4\"", "x",
     "not implemented: expert weights other than plain integers of one width"},
};

class Refusals : public testing::Test {
protected:
  Refusals() {
    DialectRegistry registry;
    registry.insert<onnx::ONNXDialect, func::FuncDialect>();
    registerEvaluateExternalModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  /// The error of a function without arguments and results.
  std::string errorOf(const std::string &body) {
    auto module = parseSourceString<ModuleOp>("func.func @main() {\n" + body + "return\n}", &context);
    if (!module)
      return "no module: " + body;
    Evaluator model(*module, ".");
    auto results = model.run(ArrayRef<Tensor>());
    return results ? "no error" : llvm::toString(results.takeError());
  }
  MLIRContext context;
};

std::string typeOf(StringRef name) {
  for (const Constant &constant : constants)
    if (name == constant.name)
      return constant.type;
  return "none";
}
std::string listed(StringRef names, function_ref<std::string(StringRef)> text) {
  SmallVector<StringRef> parts;
  names.split(parts, ' ');
  return llvm::join(llvm::map_range(parts, text), ", ");
}

TEST_F(Refusals, OfForms) {
  std::string values = "%none = onnx.none : none\n";
  for (const Constant &constant : constants)
    values += std::string("%") + constant.name + " = onnx.constant dense<" + constant.elements + "> : " + constant.type + "\n";
  for (const Form &form : forms) {
    std::string results = listed(form.results, typeOf);
    std::string count = std::to_string(1 + StringRef(form.results).count(' '));
    std::string operation = "%y:" + count + " = " + form.operation + " " + listed(form.operands, [](StringRef name) { return "%" + name.str(); }) + " {" +
                            form.attributes + "} : (" + listed(form.operands, typeOf) + ") -> (" + results + ")\n";
    std::string error = errorOf(values + operation);
    EXPECT_TRUE(StringRef(error).ends_with(form.reason)) << error << " of " << operation;
  }
}

TEST_F(Refusals, OfConstants) {
  EXPECT_EQ(errorOf("%c = onnx.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>\n"),
            "node (onnx.constant): not implemented: elements of type complex<f32>");
  EXPECT_EQ(errorOf("%c = onnx.constant sparse<[[1]], [1.0]> : tensor<4xf32>\n"), "node (onnx.constant): not implemented: constants of this form");
}

TEST_F(Refusals, OfInputs) {
  auto module = parseSourceString<ModuleOp>("func.func @main(%ids: tensor<1x1xcomplex<f32>>) {\nreturn\n}\n"
                                            "onnx.entry @main {inputs = [\"ids\"], outputs = []}",
                                            &context);
  ASSERT_TRUE(module);
  Evaluator model(*module, ".");
  GenerationPlan plan;
  plan.inputs.push_back({"ids", InputRole::InputIds});
  auto generated = generateGreedy(model, plan, {1}, {});
  ASSERT_FALSE(static_cast<bool>(generated));
  EXPECT_EQ(llvm::toString(generated.takeError()), "input 'ids': not implemented: its element type");
}

std::string textOfError(Result result) { return result ? "no error" : llvm::toString(result.takeError()); }

TEST(ElementTypes, WithoutKernelsAreRefused) {
  Tensor floats = storeAs(ElementKind::F32, {2}, std::vector<float>{1, 2}), ints = storeAs(ElementKind::I64, {2}, std::vector<int64_t>{1, 2});
  Tensor nibbles = storeAs(ElementKind::I4, {2, 2}, std::vector<int64_t>{1, 2, 3, 4}), flags = storeAs(ElementKind::Bool, {2, 2}, std::vector<int64_t>{1, 0, 1, 0});
  EXPECT_EQ(textOfError(unary(UnaryKind::Exp, ints)), "not implemented: this operator on elements of type i64");
  EXPECT_EQ(textOfError(binary(BinaryKind::BitAnd, floats, floats)), "not implemented: this operator on elements of type f32");
  EXPECT_EQ(textOfError(where(flags, nibbles, nibbles)), "not implemented: Where on elements of type i4");
  EXPECT_EQ(textOfError(concat({&nibbles, &nibbles}, 0)), "not implemented: Concat of elements of type i4");
  EXPECT_EQ(textOfError(trilu(nibbles, 0, true)), "not implemented: Trilu of elements of type i4");
}

} // namespace
