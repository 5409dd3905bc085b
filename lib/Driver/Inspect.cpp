// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Describes an exported model without building anything.
#include "lib/Driver/Inspect.h"

#include "dialects/ONNX/ONNXOps.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace quire {

static std::string operatorName(onnx::ONNXOpInterface op) {
  return op.getOnnxDomain().empty() ? op.getOnnxName().str() : (op.getOnnxDomain() + "." + op.getOnnxName()).str();
}

void inspect(ModuleOp module, const Report &report, bool json, llvm::raw_ostream &os) {
  std::map<std::string, int64_t> operators;
  int64_t weightBytes = 0, weights = 0, nodes = 0;
  std::string producer;
  module.walk([&](Operation *op) {
    if (auto initializer = dyn_cast<onnx::InitializerOp>(op)) {
      weightBytes += initializer.getBytes();
      ++weights;
    } else if (auto entry = dyn_cast<onnx::EntryOp>(op)) {
      producer = entry.getProducer().value_or("").str();
    } else if (auto node = dyn_cast<onnx::ONNXOpInterface>(op)) {
      ++operators[operatorName(node)];
      ++nodes;
    }
  });
  if (json) {
    llvm::json::Object object = toJson(report);
    llvm::json::Array inputs;
    for (const InputReport &input : report.raise.inputs)
      inputs.push_back(llvm::json::Object{{"name", input.name}, {"type", input.type}, {"role", input.role}});
    llvm::json::Object counts;
    for (auto &[name, count] : operators)
      counts[name] = count;
    object["inputs"] = std::move(inputs);
    object["operators"] = std::move(counts);
    object["producer"] = producer;
    object["nodes"] = nodes;
    object["weights"] = weights;
    object["weight_bytes"] = weightBytes;
    os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
    return;
  }
  os << report.model << ": " << nodes << " nodes without constants, " << weights << " weights in files (" << weightBytes << " bytes)";
  if (!producer.empty())
    os << ", made by " << producer;
  os << "\n\ninputs\n";
  for (const InputReport &input : report.raise.inputs)
    os << llvm::formatv("  {0,-16} {1,-28} {2}\n", input.role, input.type, input.name);
  os << "\nlayers\n";
  printTable(report, os);
  os << "\noperators\n";
  for (auto &[name, count] : operators)
    os << llvm::formatv("  {0,6}  {1}\n", count, name);
}

} // namespace quire
