// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small models for the importer's tests, and an importer that collects its diagnostics.

#ifndef QUIRE_TEST_UNIT_IMPORT_TESTMODEL_H
#define QUIRE_TEST_UNIT_IMPORT_TESTMODEL_H

#include "lib/Import/Import.h"
#include "lib/Import/Messages.h"

#include "mlir/IR/Diagnostics.h"

#include <initializer_list>
#include <string>

namespace quire::test {

inline ::onnx::NodeProto &addNode(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes, const std::string &op,
                                  std::initializer_list<std::string> inputs, std::initializer_list<std::string> outputs,
                                  const std::string &domain = "") {
  ::onnx::NodeProto &node = *nodes.Add();
  node.set_op_type(op);
  if (!domain.empty())
    node.set_domain(domain);
  for (const std::string &input : inputs)
    node.add_input(input);
  for (const std::string &output : outputs)
    node.add_output(output);
  return node;
}

inline ::onnx::AttributeProto intAttribute(const std::string &name, int64_t value) {
  ::onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

/// x : tensor<2x3xf32> through `count` Relu to v<count>.
inline ::onnx::ModelProto reluChain(int count) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  auto &set = *model.add_opset_import();
  set.set_domain("");
  set.set_version(21);
  ::onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("g");
  ::onnx::ValueInfoProto &input = *graph.add_input();
  input.set_name("x");
  auto &tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(::onnx::TensorProto::FLOAT);
  for (int extent : {2, 3})
    tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  for (int i = 1; i <= count; ++i)
    addNode(*graph.mutable_node(), "Relu", {i == 1 ? "x" : "v" + std::to_string(i - 1)}, {"v" + std::to_string(i)});
  graph.add_output()->set_name("v" + std::to_string(count));
  return model;
}

class Importer {
public:
  Importer() : handler(&context, [this](mlir::Diagnostic &diagnostic) {
      text += diagnostic.str() + "\n";
      return mlir::success();
    }) {}

  mlir::OwningOpRef<mlir::ModuleOp> import(llvm::StringRef bytes) {
    auto module = quire::importOnnxBytes(bytes, "test.onnx", context, options);
    return failed(module) ? mlir::OwningOpRef<mlir::ModuleOp>() : std::move(*module);
  }
  mlir::OwningOpRef<mlir::ModuleOp> import(const ::onnx::ModelProto &model) {
    std::string bytes = model.SerializeAsString();
    return import(llvm::StringRef(bytes));
  }
  const std::string &messages() const { return text; }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  quire::ImportOptions options;

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_IMPORT_TESTMODEL_H
