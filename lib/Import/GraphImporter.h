// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the function of a model: scopes of names, order of nodes, subgraphs, model functions, operators.

#ifndef QUIRE_LIB_IMPORT_GRAPHIMPORTER_H
#define QUIRE_LIB_IMPORT_GRAPHIMPORTER_H

#include "lib/Import/Import.h"
#include "lib/Import/Messages.h"
#include "lib/Import/ModelFile.h"
#include "lib/Import/Signature.h"
#include "lib/Import/TensorData.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace quire::import {

/// An operator on its way from the file to an operation: upgrades rewrite it, then it is created.
struct Node {
  Node(const pb::NodeProto &proto, mlir::Location loc) : proto(proto), loc(loc) {}

  const pb::NodeProto &proto;
  mlir::Location loc;
  std::string opType, domain;
  /// The version of the operator's domain that the model uses.
  int64_t version = 1;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::NamedAttribute> attributes;
  llvm::SmallVector<std::pair<llvm::StringRef, const pb::GraphProto *>> graphs;

  /// If set, the first result is reshaped to the shape of this value.
  mlir::Value reshapeTo;

  mlir::Attribute attribute(llvm::StringRef name) const;
  /// Removes and returns an attribute, null if there is none.
  mlir::Attribute takeAttribute(llvm::StringRef name);
  void setAttribute(llvm::StringRef name, mlir::Attribute value);
};

/// The names that one graph defines.
struct Scope {
  enum class Kind { Graph, Function };

  Scope(Kind kind, Scope *parent) : kind(kind), parent(parent) {}

  Kind kind;
  /// Where names are looked up next; null for the model's graph and for functions.
  Scope *parent;
  llvm::StringMap<mlir::Value> values;
  /// Constants that get their operation at the first use.
  llvm::StringMap<const pb::TensorProto *> initializers;
  llvm::StringMap<const pb::SparseTensorProto *> sparseInitializers;
  llvm::StringMap<const pb::TypeProto *> types;
  /// The names that nodes of the graph define.
  llvm::StringSet<> defined;
  mlir::Block *block = nullptr;
  /// The last of the constants at the start of the block.
  mlir::Operation *lastConstant = nullptr;
  /// Operator set versions by domain.
  const llvm::StringMap<int64_t> *versions = nullptr;
  /// What `ref_attr_name` refers to, within a model function.
  const std::map<std::string, const pb::AttributeProto *> *arguments = nullptr;
  /// Prefix of node names within a model function.
  std::string prefix;
};

class GraphImporter {
public:
  using Error = mlir::InFlightDiagnostic;

  GraphImporter(const ModelFile &file, mlir::MLIRContext *context, const ImportOptions &options);

  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> import();

private:
  // Diagnostics.
  Error error();
  Error error(const pb::NodeProto &node);
  mlir::LogicalResult verify(mlir::ModuleOp module);

  // The model.
  mlir::LogicalResult readVersions(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto> &sets,
                                   llvm::StringMap<int64_t> &versions);
  mlir::LogicalResult readFunctions();
  mlir::LogicalResult importMain(const pb::GraphProto &graph);
  void createEntry(const pb::GraphProto &graph, llvm::ArrayRef<int> inputs);

  // Graphs.
  mlir::LogicalResult declare(const pb::GraphProto &graph, Scope &scope);
  mlir::LogicalResult declareOutputs(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes, Scope &scope);
  mlir::LogicalResult importNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes, Scope &scope);
  mlir::FailureOr<llvm::SmallVector<int>> sortNodes(const google::protobuf::RepeatedPtrField<pb::NodeProto> &nodes,
                                                    Scope &scope);
  mlir::LogicalResult importSubgraph(const Node &node, const pb::GraphProto &graph, llvm::StringRef name, Scope &outer,
                                     mlir::Region &region, mlir::TypeRange argumentTypes);
  /// The value of a name, null if it has none yet; fails where its initializer is wrong.
  mlir::FailureOr<mlir::Value> lookup(llvm::StringRef name, Scope &scope);
  mlir::FailureOr<mlir::Value> materialize(llvm::StringRef name, Scope &scope);

  // Nodes (NodeImporter.cpp).
  mlir::LogicalResult importNode(const pb::NodeProto &proto, Scope &scope);
  mlir::LogicalResult readOperands(Node &node, Scope &scope);
  mlir::LogicalResult readAttributes(Node &node, Scope &scope);
  mlir::LogicalResult checkAttributeValues(const Node &node);
  mlir::FailureOr<mlir::Attribute> readAttribute(Node &node, const pb::AttributeProto &attribute);
  mlir::LogicalResult createOperator(Node &node, const Signature &signature, Scope &scope);
  mlir::LogicalResult createCustom(Node &node, Scope &scope);
  mlir::LogicalResult createConstant(Node &node, Scope &scope);
  mlir::LogicalResult inlineFunction(Node &node, const pb::FunctionProto &function, Scope &scope);
  mlir::LogicalResult importRegions(Node &node, mlir::Operation *op, Scope &scope);
  mlir::FailureOr<mlir::Attribute> convertAttribute(Node &node, const Signature::Field &field, mlir::Attribute value);
  mlir::Value restoreShape(Node &node, mlir::Value value);
  mlir::LogicalResult bindResults(Node &node, mlir::ValueRange results, Scope &scope);
  mlir::FailureOr<llvm::SmallVector<mlir::Type>> declaredTypes(Node &node, Scope &scope);
  std::string unsupported(const Node &node, const Signature &signature);

  // Values.
  mlir::Value none();
  mlir::Value constant(const TensorData &data, llvm::StringRef name, mlir::Location loc, const void *identity);
  mlir::Value constantInts(llvm::ArrayRef<int64_t> values, mlir::Location loc);
  std::string uniqueSymbol(llvm::StringRef name);

  const ModelFile &file;
  mlir::MLIRContext *context;
  ImportOptions options;
  mlir::OpBuilder builder;
  TensorReader tensors;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *mainBlock = nullptr;
  mlir::Value noneValue;
  llvm::StringSet<> symbols;
  /// Symbols of tensors that have one, so that a function inlined often keeps one copy.
  llvm::DenseMap<const void *, std::string> symbolOf;
  llvm::StringMap<int64_t> modelVersions;
  std::map<std::tuple<std::string, std::string, std::string>, const pb::FunctionProto *> functions;
  /// Functions being inlined, outermost first.
  llvm::SmallVector<const pb::FunctionProto *> active;
  llvm::StringMap<std::optional<Signature>> signatures;
  int64_t nodeCount = 0;
  /// Subgraphs being imported; with the functions in `active` at most `maxNesting`.
  size_t depth = 0;
  static constexpr size_t maxNesting = 96;
};

/// "" for the standard domain under either of its names.
llvm::StringRef canonicalDomain(llvm::StringRef domain);

/// Names that a graph uses and does not define, subgraphs included.
void collectFreeNames(const pb::GraphProto &graph, llvm::SetVector<llvm::StringRef> &names);

/// Brings a node to the newest form of its operator. Fails with an error; leaves what needs none.
mlir::LogicalResult upgradeNode(Node &node, mlir::OpBuilder &builder, mlir::Value none,
                                llvm::function_ref<GraphImporter::Error()> error);

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_GRAPHIMPORTER_H
