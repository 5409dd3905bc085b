// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants from raw bytes, of every element type.

#include "test/Unit/Import/TestModel.h"

#include "lib/Import/ElementTypes.h"
#include "lib/Import/TensorData.h"

#include "dialects/ONNX/ONNXDialect.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace quire::import;

namespace {

class TensorDataTest : public ::testing::Test {
protected:
  TensorDataTest() { context.loadDialect<quire::onnx::ONNXDialect>(); }

  RankedTensorType type(ArrayRef<int64_t> shape, int64_t dataType) {
    return RankedTensorType::get(shape, elementType(&context, dataType));
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
};

} // namespace

TEST_F(TensorDataTest, SizesOfRawData) {
  EXPECT_EQ(rawBytes(type({2, 3}, ::onnx::TensorProto::FLOAT)), 24);
  EXPECT_EQ(rawBytes(type({5}, ::onnx::TensorProto::BOOL)), 5);
  EXPECT_EQ(rawBytes(type({5}, ::onnx::TensorProto::INT4)), 3);
  EXPECT_EQ(rawBytes(type({5}, 25)), 2); // UINT2
  EXPECT_EQ(rawBytes(type({5}, 27)), 4); // FLOAT6E2M3
  EXPECT_EQ(rawBytes(type({2}, ::onnx::TensorProto::COMPLEX128)), 32);
  EXPECT_EQ(rawBytes(type({int64_t(1) << 40, int64_t(1) << 40}, ::onnx::TensorProto::FLOAT)), std::nullopt);
}

TEST_F(TensorDataTest, EveryElementTypeReadsItsOwnZero) {
  for (int64_t dataType = 1; dataType <= 28; ++dataType) {
    if (dataType == ::onnx::TensorProto::STRING)
      continue;
    RankedTensorType tensor = type({5}, dataType);
    ASSERT_TRUE(tensor.getElementType()) << dataType;
    std::string raw(*rawBytes(tensor), '\0');
    ElementsAttr value = elementsFromRaw(tensor, raw);
    ASSERT_TRUE(value) << dataType;
    EXPECT_EQ(value.getType(), tensor);
    EXPECT_TRUE(value.isSplat()) << dataType;
  }
  EXPECT_FALSE(elementType(&context, 0));
  EXPECT_FALSE(elementType(&context, 29));
  EXPECT_FALSE(elementType(&context, -1));
}

TEST_F(TensorDataTest, SubByteElements) {
  ElementsAttr four = elementsFromRaw(type({3}, ::onnx::TensorProto::INT4), StringRef("\xe1\x07", 2));
  SmallVector<int64_t> values;
  for (const APInt &value : four.getValues<APInt>())
    values.push_back(value.getSExtValue());
  EXPECT_EQ(values, (SmallVector<int64_t>{1, -2, 7}));

  ElementsAttr two = elementsFromRaw(type({5}, 26), StringRef("\x1b\x02", 2)); // INT2: 3, 2, 1, 0, 2
  values.clear();
  for (const APInt &value : two.getValues<APInt>())
    values.push_back(value.getSExtValue());
  EXPECT_EQ(values, (SmallVector<int64_t>{-1, -2, 1, 0, -2}));
}

TEST_F(TensorDataTest, RepeatedElementsAreStoredOnce) {
  RankedTensorType tensor = type({64}, ::onnx::TensorProto::FLOAT);
  std::string raw;
  for (int i = 0; i < 64; ++i)
    raw.append("\x00\x00\x80\x3f", 4);
  ElementsAttr same = elementsFromRaw(tensor, raw);
  EXPECT_TRUE(same.isSplat());
  EXPECT_EQ(same.getSplatValue<float>(), 1.0f);
  raw[raw.size() - 1] = '\x40';
  EXPECT_FALSE(elementsFromRaw(tensor, raw).isSplat());
}

TEST_F(TensorDataTest, EmptyTensors) {
  ElementsAttr none = elementsFromRaw(type({0, 4}, ::onnx::TensorProto::FLOAT), "");
  EXPECT_EQ(none.getNumElements(), 0);
}

TEST_F(TensorDataTest, MergeAndJoinOfTypes) {
  Type f32 = elementType(&context, ::onnx::TensorProto::FLOAT), unknown = quire::onnx::UnknownType::get(&context);
  auto tensor = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
  constexpr int64_t any = ShapedType::kDynamic;
  EXPECT_EQ(mergeTypes(tensor({any, 3}, f32), tensor({2, any}, f32)), tensor({2, 3}, f32));
  EXPECT_EQ(mergeTypes(unrankedTensor(unknown), tensor({2, any}, f32)), tensor({2, any}, f32));
  EXPECT_EQ(mergeTypes(tensor({4}, f32), tensor({2, 3}, f32)), tensor({4}, f32));
  EXPECT_EQ(mergeTypes(tensor({4}, f32), tensor({5}, f32)), tensor({4}, f32));
  EXPECT_EQ(joinTypes(tensor({2, 3}, f32), tensor({2, 4}, f32)), tensor({2, any}, f32));
  EXPECT_EQ(joinTypes(tensor({2, 3}, f32), tensor({2}, f32)), unrankedTensor(f32));
}

// The walk leaves a record in the place of raw data; bytes that are no record were never seen by it.
TEST_F(TensorDataTest, RawDataWithoutARecordIsRefused) {
  quire::test::Importer importer;
  auto error = [&] { return emitError(UnknownLoc::get(&importer.context)); };
  std::string bytes = quire::test::reluChain(1).SerializeAsString();
  auto file = ModelFile::parse(bytes, "test.onnx", error);
  ASSERT_TRUE(succeeded(file));
  ::onnx::TensorProto tensor;
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(1);
  tensor.set_raw_data("four");
  EXPECT_TRUE(failed(TensorReader(**file, &importer.context, 1024).read(tensor, error)));
  EXPECT_EQ(importer.messages(), "damaged data\n");
}

TEST_F(TensorDataTest, LargeTensorsAreNoAttributes) {
  ::onnx::ModelProto model = quire::test::reluChain(1);
  ::onnx::AttributeProto &attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("values");
  attribute.set_type(::onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->set_data_type(::onnx::TensorProto::UINT8);
  attribute.mutable_t()->add_dims((4 << 20) + 1);
  attribute.mutable_t()->set_raw_data(std::string((4 << 20) + 1, 'q'));
  quire::test::Importer importer;
  EXPECT_FALSE(importer.import(model));
  EXPECT_NE(importer.messages().find("attribute 'values': not implemented: an attribute of 4194305 bytes"), std::string::npos) << importer.messages();
}
