// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model, its graphs and subgraphs: names, initializers, order of nodes, inputs and outputs.

#include "lib/Import/GraphImporter.h"

#include "dialects/ONNX/ONNXControlOps.h"
#include "lib/Import/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"

#include <queue>

using namespace mlir;
using namespace quire::import;

// The operator sets whose old forms are upgraded, and the newest one known.
static constexpr int64_t minOpset = 11, maxOpset = 28;

StringRef quire::import::canonicalDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

GraphImporter::GraphImporter(const ModelFile &file, MLIRContext *context, const ImportOptions &options)
    : file(file), context(context), options(options), builder(context),
      tensors(file, context, options.maxConstantBytes) {}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

GraphImporter::Error GraphImporter::error() { return emitError(builder.getUnknownLoc()) << file.path() << ": "; }

GraphImporter::Error GraphImporter::error(const pb::NodeProto &node) {
  StringRef name = !node.name().empty() ? StringRef(node.name())
                   : node.output_size() ? StringRef(node.output(0))
                                        : StringRef();
  return error() << "node '" << name << "' (" << node.op_type() << "): ";
}

// Verifies the module; errors name the file and the node, as all errors of the importer do.
LogicalResult GraphImporter::verify(ModuleOp moduleOp) {
  SmallVector<std::pair<Location, std::string>> messages;
  {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      messages.emplace_back(diagnostic.getLocation(), diagnostic.str());
      return success();
    });
    if (succeeded(mlir::verify(moduleOp)))
      return success();
  }
  for (auto &[loc, message] : messages) {
    StringRef text(message), name;
    if (auto named = dyn_cast<NameLoc>(loc))
      name = named.getName();
    StringRef op = text.split("' op ").first;
    if (op.consume_front("'onnx.") && text.contains("' op "))
      error() << "node '" << name << "' (" << op << "): " << text.split("' op ").second;
    else
      error() << "node '" << name << "': " << text;
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::readVersions(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto> &sets,
                                          llvm::StringMap<int64_t> &versions) {
  for (const auto &set : sets) {
    StringRef domain = canonicalDomain(set.domain());
    if (domain.empty() && (set.version() < minOpset || set.version() > maxOpset))
      return error() << "expected operator set " << minOpset << " to " << maxOpset << ", but got " << set.version();
    versions[domain] = set.version();
  }
  return success();
}

LogicalResult GraphImporter::readFunctions() {
  for (const auto &function : file.model().functions()) {
    auto key = std::make_tuple(canonicalDomain(function.domain()).str(), function.name(), function.overload());
    if (!functions.emplace(key, &function).second)
      return error() << "function '" << function.name() << "' is defined twice";
  }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> GraphImporter::import() {
  const pb::ModelProto &model = file.model();
  if (failed(readVersions(model.opset_import(), modelVersions)) || failed(readFunctions()))
    return failure();
  module = ModuleOp::create(builder.getUnknownLoc());
  if (failed(importMain(model.graph())) || failed(verify(*module)))
    return failure();
  return std::move(module);
}

static std::string producer(const pb::ModelProto &model) {
  std::string name = model.producer_name();
  if (!model.producer_version().empty())
    name += (name.empty() ? "" : " ") + model.producer_version();
  return name;
}

LogicalResult GraphImporter::importMain(const pb::GraphProto &graph) {
  Scope scope(Scope::Kind::Graph, nullptr);
  scope.versions = &modelVersions;
  if (failed(declare(graph, scope)))
    return failure();
  symbols.insert("main");
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(builder, builder.getUnknownLoc(), "main", builder.getFunctionType({}, {}));
  mainBlock = scope.block = function.addEntryBlock();

  SmallVector<int> inputs;
  for (int i = 0; i < graph.input_size(); ++i) {
    const pb::ValueInfoProto &input = graph.input(i);
    if (scope.initializers.contains(input.name()) || scope.sparseInitializers.contains(input.name()))
      continue;
    std::string reason;
    Type type = input.has_type() ? valueType(context, input.type(), reason) : Type();
    if (!type)
      return error() << "input '" << input.name() << "': " << (reason.empty() ? "it has no type" : reason);
    Location loc = NameLoc::get(builder.getStringAttr(input.name()));
    if (!scope.values.try_emplace(input.name(), scope.block->addArgument(type, loc)).second)
      return error() << "input '" << input.name() << "' is listed twice";
    inputs.push_back(i);
  }
  builder.setInsertionPointToEnd(scope.block);
  if (failed(importNodes(graph.node(), scope)))
    return failure();

  SmallVector<Value> outputs;
  llvm::StringSet<> seen;
  for (const auto &output : graph.output()) {
    if (!seen.insert(output.name()).second)
      return error() << "output '" << output.name() << "' is listed twice";
    FailureOr<Value> value = lookup(output.name(), scope);
    if (failed(value))
      return failure();
    if (!*value)
      return error() << "output '" << output.name() << "' is not defined";
    outputs.push_back(*value);
  }
  builder.setInsertionPointToEnd(scope.block);
  func::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);
  function.setType(builder.getFunctionType(scope.block->getArgumentTypes(), ValueRange(outputs).getTypes()));
  createEntry(graph, inputs);
  if (noneValue && noneValue.use_empty())
    noneValue.getDefiningOp()->erase();
  return success();
}

void GraphImporter::createEntry(const pb::GraphProto &graph, ArrayRef<int> inputs) {
  SmallVector<StringRef> inputNames, outputNames;
  SmallVector<Attribute> inputDims, outputDims;
  auto function = cast<func::FuncOp>(mainBlock->getParentOp());
  auto add = [&](const pb::ValueInfoProto &value, Type type, SmallVector<StringRef> &names,
                 SmallVector<Attribute> &dims) {
    names.push_back(value.name());
    SmallVector<std::string> extents = dimensionNames(value.type());
    // The file may state another rank than the values have, or none.
    if (auto ranked = dyn_cast<RankedTensorType>(type))
      extents.resize(ranked.getRank());
    SmallVector<StringRef> refs(extents.begin(), extents.end());
    dims.push_back(builder.getStrArrayAttr(refs));
  };
  for (auto [i, type] : llvm::zip_equal(inputs, function.getArgumentTypes()))
    add(graph.input(i), type, inputNames, inputDims);
  for (auto [output, type] : llvm::zip_equal(graph.output(), function.getResultTypes()))
    add(output, type, outputNames, outputDims);
  builder.setInsertionPoint(function);
  std::string made = producer(file.model());
  quire::onnx::EntryOp::create(builder, builder.getUnknownLoc(), FlatSymbolRefAttr::get(context, "main"),
                               builder.getStrArrayAttr(inputNames), builder.getStrArrayAttr(outputNames),
                               builder.getArrayAttr(inputDims), builder.getArrayAttr(outputDims),
                               made.empty() ? StringAttr() : builder.getStringAttr(made));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::declareOutputs(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes,
                                            Scope &scope) {
  for (const pb::NodeProto &node : nodes)
    for (const std::string &output : node.output()) {
      if (output.empty())
        continue;
      if (scope.initializers.contains(output) || scope.sparseInitializers.contains(output))
        return error(node) << "output '" << output << "' has the name of an initializer";
      if (!scope.defined.insert(output).second)
        return error(node) << "output '" << output << "' is defined twice";
    }
  return success();
}

LogicalResult GraphImporter::declare(const pb::GraphProto &graph, Scope &scope) {
  for (const pb::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return error() << "an initializer has no name";
    if (!scope.initializers.try_emplace(tensor.name(), &tensor).second)
      return error() << "initializer '" << tensor.name() << "' is defined twice";
  }
  for (const pb::SparseTensorProto &tensor : graph.sparse_initializer()) {
    const std::string &name = tensor.values().name();
    if (name.empty())
      return error() << "an initializer has no name";
    if (scope.initializers.contains(name) || !scope.sparseInitializers.try_emplace(name, &tensor).second)
      return error() << "initializer '" << name << "' is defined twice";
  }
  if (failed(declareOutputs(graph.node(), scope)))
    return failure();
  for (const pb::ValueInfoProto &input : graph.input()) {
    if (input.name().empty())
      return error() << "an input has no name";
    if (scope.defined.contains(input.name()))
      return error() << "input '" << input.name() << "' has the name of a node's output";
  }
  for (const pb::ValueInfoProto &value : graph.value_info())
    scope.types[value.name()] = &value.type();
  for (const pb::ValueInfoProto &value : graph.output())
    scope.types[value.name()] = &value.type();
  return success();
}

static void collectNodeNames(const pb::NodeProto &node, llvm::SetVector<StringRef> &names) {
  for (const std::string &input : node.input())
    if (!input.empty())
      names.insert(input);
  for (const pb::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      collectFreeNames(attribute.g(), names);
    for (const pb::GraphProto &graph : attribute.graphs())
      collectFreeNames(graph, names);
  }
}

void quire::import::collectFreeNames(const pb::GraphProto &graph, llvm::SetVector<StringRef> &names) {
  llvm::StringSet<> own;
  for (const auto &input : graph.input())
    own.insert(input.name());
  for (const auto &tensor : graph.initializer())
    own.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    own.insert(tensor.values().name());
  for (const auto &node : graph.node())
    for (const auto &output : node.output())
      own.insert(output);
  llvm::SetVector<StringRef> used;
  for (const auto &node : graph.node())
    collectNodeNames(node, used);
  for (const auto &output : graph.output())
    used.insert(output.name());
  for (StringRef name : used)
    if (!own.contains(name))
      names.insert(name);
}

// The order of the file where it is a valid one, else the closest to it: the earliest node that is ready comes next.
FailureOr<SmallVector<int>> GraphImporter::sortNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes,
                                                     Scope &scope) {
  llvm::StringMap<int> producers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty())
        producers[output] = i;
  SmallVector<SmallVector<int, 2>> users(nodes.size());
  SmallVector<int> waiting(nodes.size(), 0);
  for (int i = 0; i < nodes.size(); ++i) {
    llvm::SetVector<StringRef> names;
    collectNodeNames(nodes[i], names);
    for (StringRef name : names)
      if (auto producer = producers.find(name); producer != producers.end()) {
        users[producer->second].push_back(i);
        ++waiting[i];
      }
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  SmallVector<int> order;
  while (!ready.empty()) {
    int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int user : users[next])
      if (--waiting[user] == 0)
        ready.push(user);
  }
  if (static_cast<int>(order.size()) != nodes.size())
    for (int i = 0; i < nodes.size(); ++i)
      if (waiting[i] > 0)
        return error(nodes[i]) << "the graph has a cycle through this node";
  return order;
}

LogicalResult GraphImporter::importNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes,
                                         Scope &scope) {
  FailureOr<SmallVector<int>> order = sortNodes(nodes, scope);
  if (failed(order))
    return failure();
  for (int i : *order)
    if (failed(importNode(nodes[i], scope)))
      return failure();
  return success();
}

LogicalResult GraphImporter::importSubgraph(const Node &node, const pb::GraphProto &graph, StringRef name,
                                            Scope &outer, Region &region, TypeRange argumentTypes) {
  if (active.size() + depth >= maxNesting)
    return error(node.proto) << "expected model functions and subgraphs to be nested at most " << maxNesting << " deep";
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  Scope scope(Scope::Kind::Graph, &outer);
  scope.versions = outer.versions;
  scope.arguments = outer.arguments;
  scope.prefix = outer.prefix;
  if (failed(declare(graph, scope)))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  scope.block = builder.createBlock(&region);
  unsigned index = 0;
  for (const pb::ValueInfoProto &input : graph.input()) {
    if (scope.initializers.contains(input.name()) || scope.sparseInitializers.contains(input.name()))
      continue;
    std::string reason;
    Type type = input.has_type() ? valueType(context, input.type(), reason) : Type();
    if (!reason.empty())
      return error(node.proto) << "input '" << input.name() << "' of " << name << ": " << reason;
    if (index < argumentTypes.size())
      type = mergeTypes(type, argumentTypes[index]);
    if (!type)
      type = unrankedTensor(quire::onnx::UnknownType::get(context));
    ++index;
    Location loc = NameLoc::get(builder.getStringAttr(input.name()));
    if (!scope.values.try_emplace(input.name(), scope.block->addArgument(type, loc)).second)
      return error(node.proto) << "input '" << input.name() << "' of " << name << " is listed twice";
  }
  builder.setInsertionPointToEnd(scope.block);
  if (failed(importNodes(graph.node(), scope)))
    return failure();
  SmallVector<Value> outputs;
  for (const pb::ValueInfoProto &output : graph.output()) {
    FailureOr<Value> value = lookup(output.name(), scope);
    if (failed(value))
      return failure();
    if (!*value)
      return error(node.proto) << "output '" << output.name() << "' of " << name << " is not defined";
    outputs.push_back(*value);
  }
  builder.setInsertionPointToEnd(scope.block);
  quire::onnx::YieldOp::create(builder, node.loc, outputs);
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FailureOr<Value> GraphImporter::lookup(StringRef name, Scope &scope) {
  for (Scope *at = &scope; at; at = at->parent) {
    if (auto found = at->values.find(name); found != at->values.end())
      return found->second;
    if (at->initializers.contains(name) || at->sparseInitializers.contains(name))
      return materialize(name, *at);
    // A name that this graph defines later hides outer ones.
    if (at->defined.contains(name))
      return Value();
  }
  return Value();
}

FailureOr<Value> GraphImporter::materialize(StringRef name, Scope &scope) {
  auto initializerError = [&] { return error() << "initializer '" << name << "': "; };
  auto dense = scope.initializers.find(name);
  const void *identity;
  FailureOr<TensorData> data = failure();
  if (dense != scope.initializers.end()) {
    identity = dense->second;
    data = tensors.read(*dense->second, initializerError);
  } else {
    const pb::SparseTensorProto *sparse = scope.sparseInitializers.find(name)->second;
    identity = sparse;
    data = tensors.read(*sparse, initializerError);
  }
  if (failed(data))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  if (scope.lastConstant)
    builder.setInsertionPointAfter(scope.lastConstant);
  else
    builder.setInsertionPointToStart(scope.block);
  Value value = constant(*data, name, NameLoc::get(builder.getStringAttr(name)), identity);
  scope.lastConstant = value.getDefiningOp();
  scope.values[name] = value;
  return value;
}

Value GraphImporter::none() {
  if (!noneValue) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(mainBlock);
    noneValue = quire::onnx::NoneOp::create(builder, builder.getUnknownLoc(), builder.getNoneType());
  }
  return noneValue;
}

std::string GraphImporter::uniqueSymbol(StringRef name) {
  std::string symbol = name.str();
  for (int suffix = 1; !symbols.insert(symbol).second; ++suffix)
    symbol = (name + "_" + Twine(suffix)).str();
  return symbol;
}

Value GraphImporter::constant(const TensorData &data, StringRef name, Location loc, const void *identity) {
  if (data.value)
    return quire::onnx::ConstantOp::create(builder, loc, data.type, data.value);
  std::string &symbol = symbolOf[identity];
  if (symbol.empty()) {
    symbol = uniqueSymbol(name);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(mainBlock->getParentOp());
    quire::onnx::InitializerOp::create(builder, loc, symbol, data.file, data.offset, data.bytes, data.type,
                                       StringAttr());
  }
  return quire::onnx::WeightOp::create(builder, loc, data.type, symbol);
}

Value GraphImporter::constantInts(ArrayRef<int64_t> values, Location loc) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return quire::onnx::ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, values));
}
