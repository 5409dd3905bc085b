// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The wire-format walk: tensor data is left out and found again; damaged framing is refused.

#include "test/Unit/Import/TestModel.h"

#include "lib/Import/ModelFile.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;
using namespace quire::import;
using quire::test::Importer;

namespace {

struct Parsed {
  Parsed(std::string text) : bytes(std::move(text)) {
    auto error = [&] { return emitError(UnknownLoc::get(&importer.context)); };
    auto result = ModelFile::parse(bytes, "folder/test.onnx", error);
    if (succeeded(result))
      file = std::move(*result);
  }
  std::string bytes;
  Importer importer;
  std::unique_ptr<ModelFile> file;
};

::onnx::ModelProto withTensor(::onnx::TensorProto tensor) {
  ::onnx::ModelProto model = quire::test::reluChain(1);
  *model.mutable_graph()->add_initializer() = std::move(tensor);
  return model;
}

} // namespace

TEST(ModelFile, FindsRawData) {
  ::onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_raw_data(std::string(5000, 'q'));
  Parsed parsed(withTensor(tensor).SerializeAsString());
  ASSERT_TRUE(parsed.file);
  const ::onnx::TensorProto &read = parsed.file->model().graph().initializer(0);
  EXPECT_LT(read.raw_data().size(), 100u);
  FailureOr<InlineData> data = ModelFile::inlineData(read);
  ASSERT_TRUE(succeeded(data));
  EXPECT_EQ(data->size, 5000u);
  EXPECT_EQ(parsed.file->bytes(*data), std::string(5000, 'q'));
  EXPECT_EQ(parsed.file->folder(), "folder");
  EXPECT_EQ(parsed.file->name(), "test.onnx");
}

TEST(ModelFile, FindsPackedFloats) {
  ::onnx::TensorProto tensor;
  tensor.set_name("w");
  for (int i = 0; i < 100; ++i)
    tensor.add_float_data(static_cast<float>(i));
  Parsed parsed(withTensor(tensor).SerializeAsString());
  ASSERT_TRUE(parsed.file);
  const ::onnx::TensorProto &read = parsed.file->model().graph().initializer(0);
  EXPECT_EQ(read.float_data_size(), 0);
  FailureOr<InlineData> data = ModelFile::inlineData(read);
  ASSERT_TRUE(succeeded(data));
  EXPECT_EQ(data->field, static_cast<uint64_t>(InlineData::floatData));
  float last;
  std::memcpy(&last, parsed.file->bytes(*data).data() + 99 * sizeof(float), sizeof(last));
  EXPECT_EQ(last, 99.0f);
}

TEST(ModelFile, FindsDataOfAttributesInSubgraphsAndFunctions) {
  ::onnx::ModelProto model = quire::test::reluChain(1);
  ::onnx::TensorProto tensor;
  tensor.set_raw_data(std::string(3000, 'a'));
  ::onnx::FunctionProto &function = *model.add_functions();
  *quire::test::addNode(*function.mutable_node(), "Constant", {}, {"c"}).add_attribute()->mutable_t() = tensor;
  auto &branch = quire::test::addNode(*model.mutable_graph()->mutable_node(), "If", {"x"}, {"y"});
  auto *graph = branch.add_attribute()->mutable_g();
  *quire::test::addNode(*graph->mutable_node(), "Constant", {}, {"d"}).add_attribute()->mutable_t() = tensor;
  Parsed parsed(model.SerializeAsString());
  ASSERT_TRUE(parsed.file);
  const ::onnx::ModelProto &read = parsed.file->model();
  for (const ::onnx::TensorProto &found :
       {read.functions(0).node(0).attribute(0).t(), read.graph().node(1).attribute(0).g().node(0).attribute(0).t()}) {
    FailureOr<InlineData> data = ModelFile::inlineData(found);
    ASSERT_TRUE(succeeded(data));
    EXPECT_EQ(parsed.file->bytes(*data), std::string(3000, 'a'));
  }
}

TEST(ModelFile, RefusesDamage) {
  std::pair<std::string, std::string> cases[] = {
      {"", "the file is empty"},
      {std::string("\x0b", 1), "expected a field of a known wire type (byte 0)"},
      {std::string("\x00\x01", 2), "expected a field number (byte 0)"},
      {std::string("\x08\xff\xff", 3), "the file ends inside a field (byte 1)"},
      {std::string("\x3a\x7f", 2), "a field is longer than the file (byte 0)"},
      {std::string("\x0d\x01", 2), "the file ends inside a field (byte 0)"},
      {std::string("\x08") + std::string(10, '\xff') + '\x01', "a number is longer than ten bytes (byte 1)"},
      {"GGUF and more text", "not an ONNX model"},
  };
  for (auto &[bytes, message] : cases) {
    Parsed parsed(bytes);
    EXPECT_FALSE(parsed.file);
    EXPECT_NE(parsed.importer.messages().find(message), std::string::npos)
        << message << " expected, but got " << parsed.importer.messages();
  }
}

TEST(ModelFile, RefusesTwoDataFields) {
  ::onnx::TensorProto tensor;
  tensor.set_raw_data(std::string(400, 'a'));
  for (int i = 0; i < 100; ++i)
    tensor.add_float_data(1);
  Parsed parsed(withTensor(tensor).SerializeAsString());
  EXPECT_FALSE(parsed.file);
  EXPECT_NE(parsed.importer.messages().find("a tensor has its data twice"), std::string::npos);
}

TEST(ModelFile, RefusesMessagesThatAreNoModel) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  Parsed noGraph(model.SerializeAsString());
  EXPECT_FALSE(noGraph.file);
  EXPECT_NE(noGraph.importer.messages().find("not an ONNX model: it has no graph"), std::string::npos);
  ::onnx::ModelProto undated = quire::test::reluChain(1);
  undated.clear_ir_version();
  Parsed noVersion(undated.SerializeAsString());
  EXPECT_FALSE(noVersion.file);
  EXPECT_NE(noVersion.importer.messages().find("not an ONNX model: it has no ir_version"), std::string::npos);
}

// The walk copies messages without tensors as they are; what is damaged inside of one is for Protobuf to find.
TEST(ModelFile, RefusesDamageThatTheWalkLeavesToProtobuf) {
  Parsed parsed(quire::test::reluChain(1).SerializeAsString() + std::string("\x42\x01\xff", 3));
  EXPECT_FALSE(parsed.file);
  EXPECT_NE(parsed.importer.messages().find("not an ONNX model, or damaged: Protobuf cannot parse it"), std::string::npos) << parsed.importer.messages();
}
