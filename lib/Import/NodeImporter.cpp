// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One node of a graph: its attributes, its operator or model function, its subgraphs.

#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXShapeOps.h"
#include "lib/Import/ElementTypes.h"
#include "lib/Import/ElementRules.h"
#include "lib/Import/GraphImporter.h"
#include "lib/Import/TypeInference.h"

using namespace mlir;
using namespace quire::import;

Attribute Node::attribute(StringRef name) const {
  for (const NamedAttribute &attribute : attributes)
    if (attribute.getName() == name)
      return attribute.getValue();
  return {};
}

Attribute Node::takeAttribute(StringRef name) {
  Attribute value = attribute(name);
  llvm::erase_if(attributes, [&](const NamedAttribute &attribute) { return attribute.getName() == name; });
  return value;
}

void Node::setAttribute(StringRef name, Attribute value) {
  takeAttribute(name);
  attributes.emplace_back(StringAttr::get(value.getContext(), name), value);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// The attribute's kind; files of the first IR version leave it out.
static pb::AttributeProto::AttributeType kindOf(const pb::AttributeProto &attribute) {
  if (attribute.type() != pb::AttributeProto::UNDEFINED)
    return attribute.type();
  return attribute.has_f()            ? pb::AttributeProto::FLOAT
         : attribute.has_i()          ? pb::AttributeProto::INT
         : attribute.has_s()          ? pb::AttributeProto::STRING
         : attribute.has_t()          ? pb::AttributeProto::TENSOR
         : attribute.has_g()          ? pb::AttributeProto::GRAPH
         : attribute.floats_size()    ? pb::AttributeProto::FLOATS
         : attribute.ints_size()      ? pb::AttributeProto::INTS
         : attribute.strings_size()   ? pb::AttributeProto::STRINGS
                                      : pb::AttributeProto::UNDEFINED;
}

FailureOr<Attribute> GraphImporter::readAttribute(Node &node, const pb::AttributeProto &attribute) {
  auto attributeError = [&] { return error(node.proto) << "attribute '" << attribute.name() << "': "; };
  switch (kindOf(attribute)) {
  case pb::AttributeProto::FLOAT:
    return Attribute(builder.getF32FloatAttr(attribute.f()));
  case pb::AttributeProto::INT:
    return Attribute(builder.getI64IntegerAttr(attribute.i()));
  case pb::AttributeProto::STRING:
    return Attribute(builder.getStringAttr(attribute.s()));
  case pb::AttributeProto::FLOATS:
    return Attribute(builder.getDenseF32ArrayAttr(ArrayRef(attribute.floats().data(), attribute.floats_size())));
  case pb::AttributeProto::INTS: {
    SmallVector<int64_t> ints(attribute.ints().begin(), attribute.ints().end());
    return Attribute(builder.getDenseI64ArrayAttr(ints));
  }
  case pb::AttributeProto::STRINGS: {
    SmallVector<StringRef> strings(attribute.strings().begin(), attribute.strings().end());
    return Attribute(builder.getStrArrayAttr(strings));
  }
  case pb::AttributeProto::TENSOR: {
    FailureOr<ElementsAttr> value = tensors.readValue(attribute.t(), attributeError);
    return failed(value) ? FailureOr<Attribute>(failure()) : FailureOr<Attribute>(*value);
  }
  case pb::AttributeProto::TYPE_PROTO: {
    std::string reason;
    Type type = valueType(context, attribute.tp(), reason);
    if (!type)
      return attributeError() << (reason.empty() ? "it has no type" : reason);
    return Attribute(TypeAttr::get(type));
  }
  default:
    return attributeError() << "not implemented: attributes of kind "
                            << pb::AttributeProto::AttributeType_Name(kindOf(attribute));
  }
}

/// Attributes that switch something: engines read values beyond 0 and 1 differently, so no meaning is theirs.
static bool isSwitch(StringRef name) {
  static const llvm::StringSet<> names = {"allowzero", "do_rotary", "exclusive", "fmod", "interleaved", "is_causal", "keepdims", "largest", "noop_with_empty_axes",
                                          "reverse", "rotary_interleaved", "select_last_index", "smooth_softmax", "sorted", "transA", "transB", "transBatchA",
                                          "transBatchB", "unidirectional", "upper"};
  return names.contains(name);
}

LogicalResult GraphImporter::checkAttributeValues(const Node &node) {
  if (!node.domain.empty() && node.domain != "com.microsoft")
    return success();
  for (const NamedAttribute &attribute : node.attributes) {
    auto value = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!value)
      continue;
    int64_t number = value.getInt();
    bool isDefault = attribute.getName() == "smooth_softmax" && number == -1;
    if (isSwitch(attribute.getName()) && number != 0 && number != 1 && !isDefault)
      return error(node.proto) << "attribute '" << attribute.getName().getValue() << "': expected 0 or 1, but got " << number;
    if (attribute.getName() == "local_window_size" && number != -1 && number < 1)
      return error(node.proto) << "attribute 'local_window_size': expected -1, or at least 1, but got " << number;
  }
  return success();
}

LogicalResult GraphImporter::readAttributes(Node &node, Scope &scope) {
  bool isConstant = node.domain.empty() && node.opType == "Constant";
  llvm::StringSet<> seen;
  for (const pb::AttributeProto &own : node.proto.attribute()) {
    const pb::AttributeProto *attribute = &own;
    if (own.name().empty())
      return error(node.proto) << "an attribute has no name";
    if (!seen.insert(own.name()).second)
      return error(node.proto) << "attribute '" << own.name() << "' is given twice";
    if (!own.ref_attr_name().empty()) {
      if (!scope.arguments)
        return error(node.proto) << "attribute '" << own.name() << "' refers to an attribute outside of a function";
      auto argument = scope.arguments->find(own.ref_attr_name());
      // An optional attribute that the call does not give is not given here either.
      if (argument == scope.arguments->end())
        continue;
      attribute = argument->second;
    }
    if (kindOf(*attribute) == pb::AttributeProto::GRAPH) {
      node.graphs.emplace_back(own.name(), &attribute->g());
      continue;
    }
    // Constants may be large: createConstant reads them.
    if (isConstant && (kindOf(*attribute) == pb::AttributeProto::TENSOR ||
                       kindOf(*attribute) == pb::AttributeProto::SPARSE_TENSOR))
      continue;
    FailureOr<Attribute> value = readAttribute(node, *attribute);
    if (failed(value))
      return failure();
    node.setAttribute(own.name(), *value);
  }
  return checkAttributeValues(node);
}

static StringRef storageOf(Attribute value) {
  if (isa<IntegerAttr>(value))
    return "IntegerAttr";
  if (isa<FloatAttr>(value))
    return "FloatAttr";
  if (isa<StringAttr>(value))
    return "StringAttr";
  if (isa<DenseI64ArrayAttr>(value))
    return "DenseI64ArrayAttr";
  if (isa<DenseF32ArrayAttr>(value))
    return "DenseF32ArrayAttr";
  if (isa<ArrayAttr>(value))
    return "ArrayAttr";
  if (isa<TypeAttr>(value))
    return "TypeAttr";
  return "ElementsAttr";
}

static StringRef kindName(StringRef storage) {
  return llvm::StringSwitch<StringRef>(storage)
      .Case("IntegerAttr", "an integer")
      .Case("FloatAttr", "a float")
      .Case("StringAttr", "a string")
      .Case("DenseI64ArrayAttr", "integers")
      .Case("DenseF32ArrayAttr", "floats")
      .Case("ArrayAttr", "strings")
      .Case("TypeAttr", "a type")
      .Default("a tensor");
}

// The attribute as the operation stores it; null where it says "as the operands".
FailureOr<Attribute> GraphImporter::convertAttribute(Node &node, const Signature::Field &field, Attribute value) {
  StringRef storage = storageOf(value);
  if (field.storage == "TypeAttr" && storage == "IntegerAttr") {
    int64_t dataType = cast<IntegerAttr>(value).getInt();
    if (dataType == 0 && !field.required)
      return Attribute();
    Type type = elementType(context, dataType);
    if (!type)
      return error(node.proto) << "attribute '" << field.name << "': expected a known element type, but got "
                               << dataType;
    return Attribute(TypeAttr::get(type));
  }
  // An empty list has no kind of its own in files that leave the kind out.
  if (storage != field.storage)
    return error(node.proto) << "attribute '" << field.name << "': expected " << kindName(field.storage)
                             << ", but got " << kindName(storage);
  return value;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::readOperands(Node &node, Scope &scope) {
  for (const std::string &input : node.proto.input()) {
    if (input.empty()) {
      node.operands.push_back(none());
      continue;
    }
    FailureOr<Value> value = lookup(input, scope);
    if (failed(value))
      return failure();
    if (!*value)
      return error(node.proto) << "input '" << input << "' is not defined";
    node.operands.push_back(*value);
  }
  return success();
}

LogicalResult GraphImporter::importNode(const pb::NodeProto &proto, Scope &scope) {
  if (++nodeCount > options.maxNodes)
    return error(proto) << "expected at most " << options.maxNodes << " nodes after inlining model functions";
  if (proto.op_type().empty())
    return error(proto) << "the node has no operator";
  std::string name = scope.prefix;
  name += !proto.name().empty() ? proto.name() : proto.output_size() ? proto.output(0) : proto.op_type();
  Node node(proto, NameLoc::get(builder.getStringAttr(name)));
  node.opType = proto.op_type();
  node.domain = canonicalDomain(proto.domain()).str();
  auto version = scope.versions->find(node.domain);
  if (version != scope.versions->end())
    node.version = version->second;
  else if (node.domain.empty())
    return error(proto) << "the model imports no operator set for the standard domain";

  if (failed(readOperands(node, scope)) || failed(readAttributes(node, scope)))
    return failure();
  if (node.domain.empty() && node.opType == "Constant")
    return createConstant(node, scope);
  if (failed(upgradeNode(node, builder, none(), [&] { return error(proto); })))
    return failure();
  auto [signature, isNew] = signatures.try_emplace(node.domain + ":" + node.opType);
  if (isNew)
    signature->second = lookupSignature(context, node.domain, node.opType);
  if (signature->second)
    return createOperator(node, *signature->second, scope);
  auto function = functions.find(std::make_tuple(node.domain, node.opType, proto.overload()));
  if (function != functions.end())
    return inlineFunction(node, *function->second, scope);
  return createCustom(node, scope);
}

// What keeps a node from being the operator that the dialect knows, or "".
std::string GraphImporter::unsupported(const Node &node, const Signature &signature) {
  if (!Signature::accepts(signature.operands, node.operands.size()))
    return "it has " + std::to_string(node.operands.size()) + " inputs";
  if (!Signature::accepts(signature.results, node.proto.output_size()))
    return "it has " + std::to_string(node.proto.output_size()) + " outputs";
  for (const NamedAttribute &attribute : node.attributes)
    if (!signature.findAttribute(attribute.getName()))
      return "it has the attribute '" + attribute.getName().str() + "'";
  for (auto [name, graph] : node.graphs)
    if (!signature.hasRegion(name))
      return "it has the subgraph '" + name.str() + "'";
  return {};
}

// The types that the file states for the outputs of a node; null where it states none.
FailureOr<SmallVector<Type>> GraphImporter::declaredTypes(Node &node, Scope &scope) {
  SmallVector<Type> types;
  for (const std::string &output : node.proto.output()) {
    auto declared = scope.types.find(output);
    std::string reason;
    types.push_back(declared == scope.types.end() ? Type() : valueType(context, *declared->second, reason));
    if (!reason.empty())
      return error(node.proto) << "output '" << output << "': " << reason;
  }
  return types;
}

LogicalResult GraphImporter::bindResults(Node &node, ValueRange results, Scope &scope) {
  for (auto [output, value] : llvm::zip(node.proto.output(), results))
    if (!output.empty())
      scope.values[output] = value;
  return success();
}

LogicalResult GraphImporter::createOperator(Node &node, const Signature &signature, Scope &scope) {
  std::string reason = unsupported(node, signature);
  if (!reason.empty()) {
    emitWarning(builder.getUnknownLoc()) << file.path() << ": node '" << cast<NameLoc>(node.loc).getName().getValue()
                                         << "' (" << node.opType << "): " << reason
                                         << ", which this operator does not have; it is kept as onnx.custom";
    return createCustom(node, scope);
  }
  OperationState state(node.loc, signature.operation);
  for (auto [i, slot] : llvm::enumerate(signature.operands)) {
    if (slot.presence == Signature::Presence::Variadic)
      break;
    if (i >= node.operands.size())
      node.operands.push_back(none());
    if (slot.presence == Signature::Presence::Required && isa<NoneType>(node.operands[i].getType()))
      return error(node.proto) << "expected input '" << slot.name << "'";
  }
  if (std::string mismatch = node.domain.empty() ? elementMismatch(node.opType, llvm::to_vector(ValueRange(node.operands).getTypes())) : std::string();
      !mismatch.empty())
    return error(node.proto) << mismatch;
  state.addOperands(node.operands);
  for (const Signature::Field &field : signature.attributes) {
    Attribute given = node.attribute(field.name);
    if (!given && field.required)
      return error(node.proto) << "expected attribute '" << field.name << "'";
    if (!given)
      continue;
    FailureOr<Attribute> value = convertAttribute(node, field, given);
    if (failed(value))
      return failure();
    if (*value)
      state.addAttribute(field.name, *value);
  }
  FailureOr<SmallVector<Type>> types = declaredTypes(node, scope);
  if (failed(types))
    return failure();
  // One result for each slot; a variadic one takes what the node lists.
  Type unknown = unrankedTensor(quire::onnx::UnknownType::get(context));
  size_t count = signature.results.size();
  if (count && signature.results.back().presence == Signature::Presence::Variadic)
    count = std::max<size_t>(count - 1, types->size());
  types->resize(count);
  for (auto [i, type] : llvm::enumerate(*types)) {
    const Signature::Slot &slot = signature.results[std::min(i, signature.results.size() - 1)];
    bool named = i < static_cast<size_t>(node.proto.output_size()) && !node.proto.output(i).empty();
    if (!named && slot.presence == Signature::Presence::Optional)
      type = builder.getNoneType();
    else if (!type)
      type = unknown;
  }
  state.addTypes(*types);
  for (size_t i = 0; i < signature.regions.size(); ++i)
    state.addRegion();
  Operation *op = builder.create(state);
  for (auto [i, name] : llvm::enumerate(signature.regions)) {
    auto graph = llvm::find_if(node.graphs, [&, name = name](auto &entry) { return entry.first == name; });
    if (graph == node.graphs.end() && signature.operation.getStringRef() != "onnx.preview.FlexAttention")
      return error(node.proto) << "expected subgraph '" << name << "'";
  }
  if (failed(importRegions(node, op, scope)))
    return failure();
  inferResultTypes(op);
  if (node.reshapeTo)
    return bindResults(node, restoreShape(node, op->getResult(0)), scope);
  return bindResults(node, op->getResults(), scope);
}

// Undoes the flattening of an upgraded operator.
Value GraphImporter::restoreShape(Node &node, Value value) {
  auto type = cast<RankedTensorType>(node.reshapeTo.getType());
  auto shapeType = RankedTensorType::get({type.getRank()}, builder.getI64Type());
  Value shape = quire::onnx::ShapeOp::create(builder, node.loc, shapeType, node.reshapeTo, IntegerAttr());
  return quire::onnx::ReshapeOp::create(builder, node.loc, type, value, shape);
}

// One slice of a scanned operand.
static Type sliceType(Type type, int64_t axis) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || ranked.getRank() == 0)
    return type;
  axis = axis < 0 ? axis + ranked.getRank() : axis;
  SmallVector<int64_t> shape(ranked.getShape());
  if (axis < 0 || axis >= ranked.getRank())
    return unrankedTensor(ranked.getElementType());
  shape.erase(shape.begin() + axis);
  return RankedTensorType::get(shape, ranked.getElementType());
}

// A carried value keeps its element type; a Loop may change its shape.
static Type carriedType(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor ? unrankedTensor(tensor.getElementType()) : type;
}

// The types of a subgraph's arguments that follow from the operands.
static SmallVector<Type> argumentTypes(Operation *op) {
  Builder builder(op->getContext());
  SmallVector<Type> types;
  if (auto loop = dyn_cast<quire::onnx::LoopOp>(op)) {
    types.push_back(RankedTensorType::get({}, builder.getI64Type()));
    types.push_back(RankedTensorType::get({}, builder.getI1Type()));
    for (Value initial : loop.getVInitial())
      types.push_back(carriedType(initial.getType()));
  }
  if (auto scan = dyn_cast<quire::onnx::ScanOp>(op)) {
    int64_t states = static_cast<int64_t>(op->getNumOperands()) - scan.getNumScanInputs();
    std::optional<ArrayRef<int64_t>> axes = scan.getScanInputAxes();
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      int64_t slice = static_cast<int64_t>(i) - states;
      if (slice < 0)
        types.push_back(operand.getType());
      else
        types.push_back(sliceType(operand.getType(),
                                  axes && slice < static_cast<int64_t>(axes->size()) ? (*axes)[slice] : 0));
    }
  }
  if (isa<quire::onnx::PreviewFlexAttentionOp>(op))
    if (auto query = dyn_cast<TensorType>(op->getOperand(0).getType()))
      types.push_back(
          RankedTensorType::get(SmallVector<int64_t>(4, ShapedType::kDynamic), query.getElementType()));
  return types;
}

LogicalResult GraphImporter::importRegions(Node &node, Operation *op, Scope &scope) {
  auto custom = dyn_cast<quire::onnx::CustomOp>(op);
  SmallVector<Type> types = argumentTypes(op);
  OpBuilder::InsertionGuard guard(builder);
  for (auto [name, graph] : node.graphs) {
    unsigned index = 0;
    if (custom)
      index = llvm::find(node.graphs, std::pair(name, graph)) - node.graphs.begin();
    else {
      const Signature &signature = *signatures.find(node.domain + ":" + node.opType)->second;
      index = llvm::find(signature.regions, name) - signature.regions.begin();
    }
    if (failed(importSubgraph(node, *graph, name, scope, op->getRegion(index), types)))
      return failure();
  }
  return success();
}

LogicalResult GraphImporter::createCustom(Node &node, Scope &scope) {
  FailureOr<SmallVector<Type>> types = declaredTypes(node, scope);
  if (failed(types))
    return failure();
  for (auto [output, type] : llvm::zip_equal(node.proto.output(), *types))
    if (output.empty())
      type = builder.getNoneType();
    else if (!type)
      type = unrankedTensor(quire::onnx::UnknownType::get(context));
  SmallVector<StringRef> regions;
  for (auto [name, graph] : node.graphs)
    regions.push_back(name);
  auto op = quire::onnx::CustomOp::create(
      builder, node.loc, *types, builder.getStringAttr(node.domain), builder.getStringAttr(node.opType),
      builder.getI64IntegerAttr(node.version),
      node.attributes.empty() ? DictionaryAttr() : builder.getDictionaryAttr(node.attributes),
      regions.empty() ? ArrayAttr() : builder.getStrArrayAttr(regions), node.operands,
      static_cast<unsigned>(regions.size()));
  if (failed(importRegions(node, op, scope)))
    return failure();
  return bindResults(node, op->getResults(), scope);
}

//===----------------------------------------------------------------------===//
// Constants and functions
//===----------------------------------------------------------------------===//

static DenseElementsAttr constantElements(Builder &builder, StringRef name, Attribute value) {
  auto vector = [](int64_t count, Type element) { return RankedTensorType::get({count}, element); };
  auto scalar = [](Type element) { return RankedTensorType::get({}, element); };
  if (auto number = dyn_cast<FloatAttr>(value); number && name == "value_float")
    return DenseElementsAttr::get(scalar(builder.getF32Type()), static_cast<float>(number.getValueAsDouble()));
  if (auto number = dyn_cast<IntegerAttr>(value); number && name == "value_int")
    return DenseElementsAttr::get(scalar(builder.getI64Type()), number.getInt());
  if (auto floats = dyn_cast<DenseF32ArrayAttr>(value); floats && name == "value_floats")
    return DenseElementsAttr::get(vector(floats.size(), builder.getF32Type()), floats.asArrayRef());
  if (auto ints = dyn_cast<DenseI64ArrayAttr>(value); ints && name == "value_ints")
    return DenseElementsAttr::get(vector(ints.size(), builder.getI64Type()), ints.asArrayRef());
  Type string = quire::onnx::StringType::get(builder.getContext());
  if (auto text = dyn_cast<StringAttr>(value); text && name == "value_string")
    return DenseStringElementsAttr::get(scalar(string), {text.getValue()});
  if (auto texts = dyn_cast<ArrayAttr>(value); texts && name == "value_strings") {
    SmallVector<StringRef> strings(texts.getAsValueRange<StringAttr>());
    return DenseStringElementsAttr::get(vector(strings.size(), string), strings);
  }
  return {};
}

LogicalResult GraphImporter::createConstant(Node &node, Scope &scope) {
  if (node.proto.output_size() != 1 || node.proto.output(0).empty())
    return error(node.proto) << "expected one output";
  auto constantError = [&] { return error(node.proto) << "attribute 'value': "; };
  FailureOr<TensorData> data = failure();
  const void *identity = nullptr;
  int given = static_cast<int>(node.attributes.size());
  for (const pb::AttributeProto &own : node.proto.attribute()) {
    const pb::AttributeProto *attribute = &own;
    if (!own.ref_attr_name().empty() && scope.arguments) {
      auto argument = scope.arguments->find(own.ref_attr_name());
      attribute = argument == scope.arguments->end() ? &own : argument->second;
    }
    bool dense = kindOf(*attribute) == pb::AttributeProto::TENSOR;
    if (!dense && kindOf(*attribute) != pb::AttributeProto::SPARSE_TENSOR)
      continue;
    ++given;
    identity = attribute;
    data = dense ? tensors.read(attribute->t(), constantError) : tensors.read(attribute->sparse_tensor(), constantError);
    if (failed(data))
      return failure();
  }
  if (given != 1)
    return error(node.proto) << "expected exactly one value, but got " << given;
  if (!identity) {
    NamedAttribute attribute = node.attributes.front();
    DenseElementsAttr value = constantElements(builder, attribute.getName(), attribute.getValue());
    if (!value)
      return error(node.proto) << "attribute '" << attribute.getName().getValue() << "': expected a value, but got "
                               << kindName(storageOf(attribute.getValue()));
    data = TensorData();
    data->type = cast<RankedTensorType>(value.getType());
    data->value = value;
  }
  Value value = constant(*data, node.proto.output(0), node.loc, identity);
  return bindResults(node, value, scope);
}

LogicalResult GraphImporter::inlineFunction(Node &node, const pb::FunctionProto &function, Scope &scope) {
  if (llvm::is_contained(active, &function))
    return error(node.proto) << "model function '" << function.name() << "' calls itself";
  if (active.size() + depth >= maxNesting)
    return error(node.proto) << "expected model functions and subgraphs to be nested at most " << maxNesting << " deep";
  Scope body(Scope::Kind::Function, nullptr);
  llvm::StringMap<int64_t> versions;
  if (failed(readVersions(function.opset_import(), versions)))
    return failure();
  body.versions = &versions;
  body.block = builder.getInsertionBlock();
  // Long names would be repeated for every node of the function.
  body.prefix = (cast<NameLoc>(node.loc).getName().getValue().take_front(256) + "/").str();
  std::map<std::string, const pb::AttributeProto *> arguments;
  for (const pb::AttributeProto &attribute : function.attribute_proto())
    arguments[attribute.name()] = &attribute;
  for (const pb::AttributeProto &attribute : node.proto.attribute()) {
    const pb::AttributeProto *value = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      auto outer = scope.arguments ? scope.arguments->find(attribute.ref_attr_name()) : arguments.end();
      if (!scope.arguments || outer == scope.arguments->end())
        continue;
      value = outer->second;
    }
    arguments[attribute.name()] = value;
  }
  body.arguments = &arguments;

  if (static_cast<int>(node.operands.size()) > function.input_size())
    return error(node.proto) << "expected at most " << function.input_size() << " inputs, but got "
                             << node.operands.size();
  for (int i = 0; i < function.input_size(); ++i) {
    bool given = i < static_cast<int>(node.operands.size());
    if (!body.values.try_emplace(function.input(i), given ? node.operands[i] : none()).second)
      return error(node.proto) << "input '" << function.input(i) << "' of the model function is listed twice";
  }
  if (node.proto.output_size() > function.output_size())
    return error(node.proto) << "expected at most " << function.output_size() << " outputs, but got "
                             << node.proto.output_size();
  for (const pb::ValueInfoProto &value : function.value_info())
    body.types[value.name()] = &value.type();
  active.push_back(&function);
  if (failed(declareOutputs(function.node(), body)) || failed(importNodes(function.node(), body)))
    return failure();
  active.pop_back();
  SmallVector<Value> results;
  for (int i = 0; i < node.proto.output_size(); ++i) {
    FailureOr<Value> value = lookup(function.output(i), body);
    if (failed(value))
      return failure();
    if (!*value)
      return error(node.proto) << "output '" << function.output(i) << "' of the model function is not defined";
    results.push_back(*value);
  }
  return bindResults(node, results, scope);
}
