// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter's walk over blocks, its weights and the lifetime of its values.
#include "Evaluator.h"
#include "Rules.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace quire::eval {

std::string nodeName(Operation *op) {
  auto custom = dyn_cast<onnx::CustomOp>(op);
  std::string kind = ("(" + op->getName().getStringRef() + (custom ? " " + custom.getOpType() : Twine()) + ")").str();
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return ("node '" + name.getName().getValue() + "' " + kind).str();
  return "node " + kind;
}

Evaluator::Evaluator(ModuleOp module, StringRef modelFolder) : module(module), folder(modelFolder.str()) {
  auto names = [](ArrayAttr list, std::vector<std::string> &out) {
    for (auto name : list.getAsRange<StringAttr>())
      out.push_back(name.str());
  };
  for (auto op : module.getOps<onnx::EntryOp>()) {
    entry = module.lookupSymbol<func::FuncOp>(op.getFunction());
    names(op.getInputs(), inputs);
    names(op.getOutputs(), outputs);
    break;
  }
  if (!entry)
    entry = module.lookupSymbol<func::FuncOp>("main");
}

llvm::Error Evaluator::checkArgument(unsigned index, const Tensor &argument) {
  std::string name = index < inputs.size() ? "input '" + inputs[index] + "'" : "argument " + std::to_string(index);
  auto type = dyn_cast<ShapedType>(entry.getArgumentTypes()[index]);
  if (!type || !argument)
    return argument ? llvm::Error::success() : fail("expected a tensor for " + name);
  std::optional<ElementKind> kind = kindOf(type.getElementType());
  if (!kind || *kind != argument.kind()) {
    std::string expected;
    llvm::raw_string_ostream(expected) << type.getElementType();
    return fail(name + ": expected elements of type " + expected + ", but got " + nameOf(argument.kind()));
  }
  if (!type.hasRank())
    return llvm::Error::success();
  bool fits = type.getRank() == argument.rank();
  for (int64_t axis = 0; fits && axis < argument.rank(); ++axis)
    fits = type.isDynamicDim(axis) || type.getDimSize(axis) == argument.shape()[axis];
  if (fits)
    return llvm::Error::success();
  Shape shape(type.getShape());
  for (int64_t &extent : shape)
    extent = ShapedType::isDynamic(extent) ? -1 : extent;
  return fail(name + ": expected shape " + textOf(shape) + ", but got " + textOf(argument.shape()));
}

llvm::Error Evaluator::checkArguments(ArrayRef<Tensor> arguments) {
  if (!entry)
    return fail("expected a function @main");
  if (arguments.size() != entry.getNumArguments())
    return fail("expected " + Twine(entry.getNumArguments()) + " arguments, but got " + Twine(arguments.size()));
  for (auto [index, argument] : llvm::enumerate(arguments))
    if (llvm::Error error = checkArgument(static_cast<unsigned>(index), argument))
      return error;
  return llvm::Error::success();
}

llvm::Expected<Tensors> Evaluator::run(ArrayRef<Tensor> arguments) {
  if (llvm::Error error = checkArguments(arguments))
    return error;
  Tensors results;
  llvm::Error error = runBlock(entry.getBody().front(), arguments, results);
  values.clear();
  if (error)
    return error;
  return results;
}

Result Evaluator::valueOf(Value value, ArrayRef<Tensor> arguments) {
  if (llvm::Error error = checkArguments(arguments))
    return error;
  Block &body = entry.getBody().front();
  if (value.getParentBlock() != &body)
    return fail("expected a value of the function's body");
  if (auto argument = dyn_cast<BlockArgument>(value))
    return arguments[argument.getArgNumber()];
  llvm::DenseSet<Operation *> needed;
  SmallVector<Operation *> open{value.getDefiningOp()};
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    op->walk([&](Operation *inner) { // what subgraphs capture counts too
      for (Value operand : inner->getOperands())
        if (Operation *definition = operand.getDefiningOp(); definition && definition->getBlock() == &body)
          open.push_back(definition);
    });
  }
  for (auto [argument, tensor] : llvm::zip_equal(body.getArguments(), arguments))
    values[argument] = tensor;
  auto runNeeded = [&]() -> llvm::Error {
    for (Operation &op : body)
      if (needed.contains(&op))
        if (llvm::Error error = runOperation(op))
          return error;
    return llvm::Error::success();
  };
  llvm::Error error = runNeeded();
  Tensor result = values.lookup(value);
  values.clear();
  if (error)
    return error;
  return result;
}

llvm::Expected<llvm::StringMap<Tensor>> Evaluator::run(const llvm::StringMap<Tensor> &arguments) {
  SmallVector<Tensor> ordered;
  for (const std::string &name : inputs) {
    auto found = arguments.find(name);
    if (found == arguments.end())
      return fail("expected a value for input '" + name + "'");
    ordered.push_back(found->second);
  }
  if (arguments.size() != inputs.size())
    for (const auto &given : arguments)
      if (!llvm::is_contained(inputs, given.getKey().str()))
        return fail("expected the name of an input, but got '" + given.getKey() + "'");
  auto results = run(ordered);
  if (!results)
    return results.takeError();
  llvm::StringMap<Tensor> named;
  for (auto [name, result] : llvm::zip_equal(outputs, *results))
    named[name] = result;
  return named;
}

const Evaluator::LastUses &Evaluator::lastUsesOf(Block &block) {
  auto [found, fresh] = lastUses.try_emplace(&block);
  if (!fresh)
    return found->second;
  LastUses uses;
  auto note = [&](Value value, Operation *definition) {
    Operation *last = definition;
    for (Operation *user : value.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (here && (!last || last->isBeforeInBlock(here)))
        last = here;
    }
    if (last)
      uses[last].push_back(value);
  };
  for (BlockArgument argument : block.getArguments())
    note(argument, nullptr);
  for (Operation &op : block)
    for (Value result : op.getResults())
      note(result, &op);
  return lastUses[&block] = std::move(uses);
}

llvm::Error Evaluator::runOperation(Operation &op) {
  if (op.getNumResults() == 1) // constants and weights are converted once
    if (auto kept = constants.find(&op); kept != constants.end()) {
      values[op.getResult(0)] = kept->second;
      return llvm::Error::success();
    }
  auto evaluated = dyn_cast<EvaluateOpInterface>(op);
  if (!evaluated)
    return fail(nodeName(&op) + ": not implemented: evaluation of this operator");
  SmallVector<const Tensor *, 8> operands;
  for (Value operand : op.getOperands()) {
    auto found = values.find(operand);
    if (found == values.end())
      return fail(nodeName(&op) + ": expected a value for each operand");
    operands.push_back(found->second ? &found->second : nullptr);
  }
  SmallVector<Tensor> results;
  if (op.getNumRegions()) { // a region adds values: the operands must not move
    SmallVector<Tensor> copies;
    for (const Tensor *operand : operands)
      copies.push_back(operand ? *operand : Tensor());
    for (auto [pointer, copy] : llvm::zip_equal(operands, copies))
      pointer = pointer ? &copy : nullptr;
    if (llvm::Error error = evaluated.evaluate(operands, *this, results))
      return fail(nodeName(&op) + ": " + llvm::toString(std::move(error)));
  } else if (llvm::Error error = evaluated.evaluate(operands, *this, results)) {
    return fail(nodeName(&op) + ": " + llvm::toString(std::move(error)));
  }
  if (results.size() != op.getNumResults())
    return fail(nodeName(&op) + ": expected " + Twine(op.getNumResults()) + " results, but got " +
                Twine(results.size()));
  for (auto [value, result] : llvm::zip_equal(op.getResults(), results)) {
    if (!result && !isa<NoneType>(value.getType()))
      return fail(nodeName(&op) + ": not implemented: result " + Twine(value.getResultNumber()));
    values[value] = result;
  }
  if (isa<onnx::ConstantOp, onnx::WeightOp>(op))
    constants[&op] = results.front();
  return llvm::Error::success();
}

llvm::Error Evaluator::runBlock(Block &block, ArrayRef<Tensor> arguments, SmallVectorImpl<Tensor> &results) {
  if (arguments.size() != block.getNumArguments())
    return fail("expected " + Twine(block.getNumArguments()) + " arguments of a subgraph, but got " +
                Twine(arguments.size()));
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      for (Value operand : op.getOperands())
        results.push_back(values[operand]);
    } else if (llvm::Error error = runOperation(op)) {
      return error;
    }
    const LastUses &uses = lastUsesOf(block);
    if (auto dead = uses.find(&op); dead != uses.end())
      for (Value value : dead->second)
        values.erase(value);
  }
  return llvm::Error::success();
}

llvm::Error Evaluator::runRegion(Region &region, ArrayRef<Tensor> arguments, SmallVectorImpl<Tensor> &results) {
  return runBlock(region.front(), arguments, results);
}

Result Evaluator::weight(FlatSymbolRefAttr symbol) {
  if (auto kept = weights.find(symbol); kept != weights.end())
    return kept->second;
  auto initializer = module.lookupSymbol<onnx::InitializerOp>(symbol);
  if (!initializer)
    return fail("expected an initializer " + symbol.getValue());
  auto type = cast<ShapedType>(initializer.getType());
  llvm::Expected<ElementKind> kind = kindOrError(type.getElementType());
  if (!kind)
    return kind.takeError();
  SmallString<256> path(folder);
  llvm::sys::path::append(path, initializer.getFile());
  auto [file, fresh] = files.try_emplace(path);
  if (fresh) {
    auto opened = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened) {
      files.erase(path);
      return fail("cannot read '" + path + "': " + opened.getError().message());
    }
    file->second = std::move(*opened);
  }
  StringRef bytes = file->second->getBuffer();
  auto offset = static_cast<uint64_t>(initializer.getOffset()), size = static_cast<uint64_t>(initializer.getBytes());
  if (offset > bytes.size() || size > bytes.size() - offset)
    return fail("expected " + Twine(size) + " bytes at " + Twine(offset) + " of '" + path + "', but it has " +
                Twine(bytes.size()));
  Tensor tensor = Tensor::view(*kind, type.getShape(), bytes.data() + offset, file->second);
  if (static_cast<uint64_t>(tensor.byteCount()) != size)
    return fail("expected " + Twine(tensor.byteCount()) + " bytes of '" + symbol.getValue() + "', but got " +
                Twine(size));
  // Kernels read whole elements: a copy where the file does not align them.
  size_t alignment = std::max<size_t>(1, bitWidth(*kind) / 8);
  if (reinterpret_cast<uintptr_t>(tensor.bytes()) % alignment) {
    Tensor aligned = Tensor::zeros(*kind, type.getShape());
    std::memcpy(aligned.writableBytes(), tensor.bytes(), size);
    tensor = aligned;
  }
  weights[symbol] = tensor;
  return tensor;
}

//===--- Folding --------------------------------------------------------------------------------------------------===//

std::optional<DenseElementsAttr> attributeOf(const Tensor &tensor, MLIRContext *context) {
  Type element = elementTypeOf(tensor.kind(), context);
  auto type = RankedTensorType::get(tensor.shape(), element);
  unsigned bits = bitWidth(tensor.kind());
  if (tensor.kind() == ElementKind::Bool) {
    SmallVector<bool> flags;
    for (uint8_t flag : tensor.stored<uint8_t>())
      flags.push_back(flag != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(flags));
  }
  if (bits >= 8)
    return DenseElementsAttr::getFromRawBuffer(type,
                                               ArrayRef<char>(tensor.bytes(), static_cast<size_t>(tensor.byteCount())));
  if (isa<FloatType>(element))
    return std::nullopt;
  SmallVector<APInt> wide;
  for (uint8_t value : unpackNibbles(tensor))
    wide.push_back(APInt(bits, value & ((1u << bits) - 1)));
  return DenseElementsAttr::get(type, wide);
}

namespace {
/// Folding looks at single operations: there is neither a region nor a file. Its errors end in foldConstant().
class NoContext final : public EvaluateContext {
public:
  llvm::Error runRegion(Region &, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &) override { return fail("a subgraph is not folded"); }
  Result weight(FlatSymbolRefAttr) override { return fail("a weight is not folded"); }
};
} // namespace

std::optional<DenseElementsAttr> foldConstant(Operation *op, int64_t limit) {
  auto evaluated = dyn_cast<EvaluateOpInterface>(op);
  if (!evaluated || op->getNumResults() != 1 || op->getNumRegions() || !isMemoryEffectFree(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return std::nullopt;
  if (auto type = dyn_cast<ShapedType>(op->getResult(0).getType());
      type && type.hasStaticShape() && type.getNumElements() > limit)
    return std::nullopt;
  SmallVector<Tensor> held;
  for (Value operand : op->getOperands()) {
    if (operand.getDefiningOp<onnx::NoneOp>()) {
      held.emplace_back();
      continue;
    }
    auto constant = operand.getDefiningOp<onnx::ConstantOp>();
    if (!constant)
      return std::nullopt;
    Result value = tensorOf(constant.getValue());
    if (!value) {
      llvm::consumeError(value.takeError());
      return std::nullopt;
    }
    held.push_back(*value);
  }
  SmallVector<const Tensor *, 8> operands;
  for (const Tensor &tensor : held)
    operands.push_back(tensor ? &tensor : nullptr);
  NoContext context;
  SmallVector<Tensor> results;
  if (llvm::Error error = evaluated.evaluate(operands, context, results)) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  if (results.size() != 1 || !results.front() || results.front().count() > limit)
    return std::nullopt;
  return attributeOf(results.front(), op->getContext());
}

} // namespace quire::eval
