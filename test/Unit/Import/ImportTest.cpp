// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The importer on models built in memory: whatever the bytes are, it gives a verified module or an error.

#include "test/Unit/Import/TestModel.h"

#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXMathOps.h"
#include "lib/Import/ElementRules.h"
#include "lib/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace quire::test;

TEST(Import, BuildsFunctionAndEntry) {
  Importer importer;
  OwningOpRef<ModuleOp> module = importer.import(reluChain(3));
  ASSERT_TRUE(module) << importer.messages();
  auto function = module->lookupSymbol<func::FuncOp>("main");
  ASSERT_TRUE(function);
  EXPECT_EQ(llvm::count_if(function.getOps(), [](Operation &op) { return isa<quire::onnx::ReluOp>(op); }), 3);
  auto entries = llvm::to_vector(module->getOps<quire::onnx::EntryOp>());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(cast<StringAttr>(entries[0].getInputs()[0]).getValue(), "x");
  EXPECT_EQ(cast<StringAttr>(entries[0].getOutputs()[0]).getValue(), "v3");
}

TEST(Import, EveryTruncationGivesAnErrorOrAModel) {
  std::string bytes = reluChain(2).SerializeAsString();
  int errors = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    Importer importer;
    OwningOpRef<ModuleOp> module = importer.import(StringRef(bytes).take_front(length));
    if (module)
      EXPECT_TRUE(succeeded(verify(*module)));
    else
      EXPECT_NE(importer.messages(), "") << length;
    errors += !module;
  }
  EXPECT_GT(errors, static_cast<int>(bytes.size()) / 2);
}

TEST(Import, EveryFlippedByteGivesAnErrorOrAModel) {
  std::string bytes = reluChain(2).SerializeAsString();
  for (size_t at = 0; at < bytes.size(); ++at)
    for (unsigned char mask : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      Importer importer;
      OwningOpRef<ModuleOp> module = importer.import(damaged);
      EXPECT_TRUE(module || !importer.messages().empty()) << at;
    }
}

// Element types that ONNX does not allow are an error of the node, here, and no defect later.
TEST(Import, ElementTypesOfOperands) {
  MLIRContext context;
  Builder b(&context);
  auto of = [&](Type element) -> Type { return RankedTensorType::get({2}, element); };
  Type f32 = of(b.getF32Type()), f16 = of(b.getF16Type()), i64 = of(b.getI64Type()), i1 = of(b.getI1Type()), none = b.getNoneType();
  EXPECT_EQ(quire::elementMismatch("Add", {f32, f32}), "");
  EXPECT_EQ(quire::elementMismatch("Add", {f32, f16}), "input 1: expected elements of f32 as another input has, but got f16");
  EXPECT_EQ(quire::elementMismatch("Add", {i1, i1}), "input 0: expected elements of a number type, but got i1");
  EXPECT_EQ(quire::elementMismatch("Clip", {f32, none, i64}), "input 2: expected elements of f32 as another input has, but got i64");
  EXPECT_EQ(quire::elementMismatch("Clip", {f32, none, f32}), "");
  EXPECT_EQ(quire::elementMismatch("Where", {f32, f32, f32}), "input 0: expected elements of bool, but got f32");
  EXPECT_EQ(quire::elementMismatch("Where", {i1, f32, i64}), "input 2: expected elements of f32 as another input has, but got i64");
  EXPECT_EQ(quire::elementMismatch("Not", {f32}), "input 0: expected elements of bool, but got f32");
  EXPECT_EQ(quire::elementMismatch("BitwiseNot", {f32}), "input 0: expected elements of an integer type, but got f32");
  EXPECT_EQ(quire::elementMismatch("Gather", {f32, f32}), "input 1: expected elements of an integer type, but got f32");
  EXPECT_EQ(quire::elementMismatch("LayerNormalization", {f32, i64}), "input 1: expected elements of a float type, but got i64");
  EXPECT_EQ(quire::elementMismatch("Slice", {f32, i64, i64, i64, f32}), "input 4: expected elements of an integer type, but got f32");
  EXPECT_EQ(quire::elementMismatch("Somewhere", {f32, i64}), "");
  ::onnx::ModelProto model = reluChain(1);
  model.mutable_graph()->mutable_node(0)->set_op_type("Not");
  Importer importer;
  EXPECT_FALSE(importer.import(model.SerializeAsString()));
  EXPECT_NE(importer.messages().find("input 0: expected elements of bool, but got f32"), std::string::npos) << importer.messages();
}

// Engines read a switch of 2 or -1 as on or as off; so it is an error.
TEST(Import, SwitchesAreZeroOrOne) {
  for (int64_t value : {-1, 0, 1, 2}) {
    ::onnx::ModelProto model = reluChain(1);
    ::onnx::NodeProto &node = *model.mutable_graph()->mutable_node(0);
    node.set_op_type("Transpose");
    node.add_attribute()->CopyFrom(intAttribute("keepdims", value));
    Importer importer;
    OwningOpRef<ModuleOp> module = importer.import(model.SerializeAsString());
    bool refused = importer.messages().find("attribute 'keepdims': expected 0 or 1, but got " + std::to_string(value)) != std::string::npos;
    EXPECT_EQ(refused, value != 0 && value != 1) << importer.messages();
  }
  for (int64_t value : {-1, 0, 1, 2}) { // -1 is the default of GroupQueryAttention's
    ::onnx::ModelProto model = reluChain(1);
    model.mutable_graph()->mutable_node(0)->add_attribute()->CopyFrom(intAttribute("smooth_softmax", value));
    Importer importer;
    OwningOpRef<ModuleOp> module = importer.import(model.SerializeAsString());
    EXPECT_EQ(importer.messages().find("attribute 'smooth_softmax': expected 0 or 1") != std::string::npos, value == 2) << importer.messages();
  }
  for (int64_t value : {-2, -1, 0, 1}) {
    ::onnx::ModelProto model = reluChain(1);
    model.mutable_graph()->mutable_node(0)->add_attribute()->CopyFrom(intAttribute("local_window_size", value));
    Importer importer;
    OwningOpRef<ModuleOp> module = importer.import(model.SerializeAsString());
    bool refused = importer.messages().find("attribute 'local_window_size': expected -1, or at least 1") != std::string::npos;
    EXPECT_EQ(refused, value == -2 || value == 0) << importer.messages();
  }
}

static ::onnx::FunctionProto &addFunction(::onnx::ModelProto &model, int number) {
  ::onnx::FunctionProto &function = *model.add_functions();
  function.set_domain("local");
  function.set_name("f" + std::to_string(number));
  function.add_input("a");
  function.add_output("c");
  auto &set = *function.add_opset_import();
  set.set_domain("");
  set.set_version(21);
  return function;
}

TEST(Import, LimitsNodesAfterInlining) {
  // Each function calls the next one twice: 2^40 nodes.
  ::onnx::ModelProto model = reluChain(1);
  for (int i = 0; i < 40; ++i) {
    ::onnx::FunctionProto &function = addFunction(model, i);
    std::string next = "f" + std::to_string(i + 1), domain = "local";
    if (i == 39)
      next = "Relu", domain = "";
    addNode(*function.mutable_node(), next, {"a"}, {"b"}, domain);
    addNode(*function.mutable_node(), next, {"b"}, {"c"}, domain);
  }
  addNode(*model.mutable_graph()->mutable_node(), "f0", {"x"}, {"z"}, "local");
  Importer importer;
  importer.options.maxNodes = 1000;
  EXPECT_FALSE(importer.import(model));
  EXPECT_NE(importer.messages().find("expected at most 1000 nodes after inlining model functions"), std::string::npos) << importer.messages();
}

// Calls of functions nest without nesting in the file; a subgraph in the innermost counts too.
TEST(Import, LimitsNestingOfCalls) {
  for (int functions : {95, 96, 97}) {
    ::onnx::ModelProto model = reluChain(1);
    for (int i = 0; i < functions; ++i) {
      ::onnx::FunctionProto &function = addFunction(model, i);
      if (i + 1 < functions) {
        addNode(*function.mutable_node(), "f" + std::to_string(i + 1), {"a"}, {"c"}, "local");
        continue;
      }
      addNode(*function.mutable_node(), "Cast", {"a"}, {"b"}).add_attribute()->CopyFrom(intAttribute("to", ::onnx::TensorProto::BOOL));
      ::onnx::NodeProto &branch = addNode(*function.mutable_node(), "If", {"b"}, {"c"});
      for (const char *name : {"then_branch", "else_branch"}) {
        ::onnx::AttributeProto &attribute = *branch.add_attribute();
        attribute.set_name(name);
        attribute.set_type(::onnx::AttributeProto::GRAPH);
        addNode(*attribute.mutable_g()->mutable_node(), "Relu", {"a"}, {"d"});
        attribute.mutable_g()->add_output()->set_name("d");
      }
    }
    addNode(*model.mutable_graph()->mutable_node(), "f0", {"x"}, {"z"}, "local");
    Importer importer;
    std::string node = functions == 96 ? "(If)" : "(f96)";
    EXPECT_EQ(static_cast<bool>(importer.import(model)), functions == 95) << importer.messages();
    bool refused = importer.messages().find(node + ": expected model functions and subgraphs to be nested at most 96 deep") != std::string::npos;
    EXPECT_EQ(refused, functions > 95) << importer.messages();
  }
}

TEST(Import, LimitsNesting) {
  ::onnx::ModelProto model = reluChain(1);
  ::onnx::GraphProto *graph = model.mutable_graph();
  for (int i = 0; i < 200; ++i) {
    ::onnx::NodeProto &node = addNode(*graph->mutable_node(), "If", {"x"}, {"y" + std::to_string(i)});
    ::onnx::AttributeProto &attribute = *node.add_attribute();
    attribute.set_name("then_branch");
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    graph = attribute.mutable_g();
  }
  Importer importer;
  EXPECT_FALSE(importer.import(model));
  EXPECT_NE(importer.messages().find("nested too deeply"), std::string::npos) << importer.messages();
}

TEST(Import, LongSequencesOfGathersStaySmall) {
  // Every Gather doubles the rank of its indices.
  ::onnx::ModelProto model = reluChain(1);
  auto &nodes = *model.mutable_graph()->mutable_node();
  addNode(nodes, "Cast", {"x"}, {"g0"}).add_attribute()->CopyFrom(intAttribute("to", ::onnx::TensorProto::INT64));
  for (int i = 0; i < 64; ++i)
    addNode(nodes, "Gather", {"g" + std::to_string(i), "g" + std::to_string(i)}, {"g" + std::to_string(i + 1)});
  Importer importer;
  EXPECT_TRUE(importer.import(model)) << importer.messages();
}

TEST(Import, ErrorsNameFileNodeAndReason) {
  ::onnx::ModelProto model = reluChain(1);
  addNode(*model.mutable_graph()->mutable_node(), "Add", {"x", "ghost"}, {"z"}).set_name("adder");
  Importer importer;
  EXPECT_FALSE(importer.import(model));
  EXPECT_EQ(importer.messages(), "test.onnx: node 'adder' (Add): input 'ghost' is not defined\n");
}

TEST(Import, VerifierErrorsNameFileNodeAndReason) {
  ::onnx::ModelProto model = reluChain(1);
  addNode(*model.mutable_graph()->mutable_node(), "Softmax", {"x"}, {"z"})
      .add_attribute()
      ->CopyFrom(intAttribute("axis", 7));
  Importer importer;
  EXPECT_FALSE(importer.import(model));
  EXPECT_EQ(importer.messages(), "test.onnx: node 'z' (Softmax): expected an axis within rank 2, but got 7\n");
}

TEST(Import, MissingFile) {
  Importer importer;
  EXPECT_TRUE(failed(quire::importOnnx("no/such/file.onnx", importer.context)));
  EXPECT_EQ(importer.messages(), "no/such/file.onnx: cannot read the file: No such file or directory\n");
}
