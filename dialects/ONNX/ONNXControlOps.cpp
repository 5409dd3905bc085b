// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: constants, structure and operators with subgraphs.

#include "dialects/ONNX/ONNXControlOps.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace quire::onnx;

OpFoldResult NoneOp::fold(FoldAdaptor) { return UnitAttr::get(getContext()); }

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

static LogicalResult checkBytes(InitializerOp op, int64_t expected) {
  if (op.getBytes() == expected)
    return success();
  return op.emitOpError() << "expected " << expected << " bytes, but got " << op.getBytes();
}

LogicalResult InitializerOp::verify() {
  if (getOffset() < 0)
    return emitOpError() << "expected a non-negative offset, but got " << getOffset();
  auto type = cast<ShapedType>(getType());
  Type element = type.getElementType();
  if (auto complex = dyn_cast<ComplexType>(element)) {
    int64_t expected = type.getNumElements() * (complex.getElementType().getIntOrFloatBitWidth() / 4);
    return checkBytes(*this, expected);
  }
  if (!element.isIntOrFloat())
    return emitOpError() << "expected an element type of fixed width, but got " << element;
  unsigned width = element.getIntOrFloatBitWidth();
  int64_t bits = type.getNumElements() * (width == 1 ? 8 : width);
  return checkBytes(*this, (bits + 7) / 8);
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto symbol = symbols.lookupNearestSymbolFrom<InitializerOp>(*this, getInitializerAttr());
  if (!symbol)
    return emitOpError() << "expected the name of an onnx.initializer, but got " << getInitializerAttr();
  if (symbol.getType() != getResult().getType())
    return emitOpError() << "expected the type of the initializer, " << symbol.getType() << ", but got "
                         << getResult().getType();
  return success();
}

static LogicalResult checkDims(EntryOp entry, std::optional<ArrayAttr> dims, ArrayAttr names, TypeRange types,
                               StringRef what) {
  if (names.size() != types.size())
    return entry.emitOpError() << "expected " << types.size() << " names of " << what << ", but got " << names.size();
  if (!dims)
    return success();
  if (dims->size() != names.size())
    return entry.emitOpError() << "expected dimension names of " << names.size() << " " << what << ", but got "
                               << dims->size();
  for (auto [list, type] : llvm::zip_equal(*dims, types))
    if (auto ranked = dyn_cast<RankedTensorType>(type))
      if (static_cast<size_t>(ranked.getRank()) != cast<ArrayAttr>(list).size())
        return entry.emitOpError() << "expected " << ranked.getRank() << " dimension names for " << type << ", but got "
                                   << cast<ArrayAttr>(list).size();
  return success();
}

LogicalResult EntryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getFunctionAttr());
  if (!function)
    return emitOpError() << "expected the name of a function, but got " << getFunctionAttr();
  if (failed(checkDims(*this, getInputDims(), getInputs(), function.getArgumentTypes(), "inputs")))
    return failure();
  return checkDims(*this, getOutputDims(), getOutputs(), function.getResultTypes(), "outputs");
}

LogicalResult CustomOp::verify() {
  if (getOpType().empty())
    return emitOpError("expected a non-empty operator name");
  size_t names = getRegionNames() ? getRegionNames()->size() : 0;
  if (names != getBodies().size())
    return emitOpError() << "expected " << getBodies().size() << " region names, but got " << names;
  return success();
}

static LogicalResult checkBody(Operation *op, Region &region, int64_t arguments, int64_t results) {
  Block &block = region.front();
  if (static_cast<int64_t>(block.getNumArguments()) != arguments)
    return op->emitOpError() << "expected " << arguments << " arguments of the subgraph, but got "
                             << block.getNumArguments();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError("expected the subgraph to end in onnx.yield");
  if (static_cast<int64_t>(yield.getNumOperands()) != results)
    return op->emitOpError() << "expected the subgraph to yield " << results << " values, but got "
                             << yield.getNumOperands();
  return success();
}

LogicalResult IfOp::verify() {
  if (failed(checkBody(*this, getThenBranch(), 0, getNumResults())))
    return failure();
  return checkBody(*this, getElseBranch(), 0, getNumResults());
}

LogicalResult LoopOp::verify() {
  int64_t carried = getVInitial().size();
  if (static_cast<int64_t>(getNumResults()) < carried)
    return emitOpError() << "expected at least " << carried << " results, but got " << getNumResults();
  return checkBody(*this, getBody(), carried + 2, getNumResults() + 1);
}

LogicalResult ScanOp::verify() {
  int64_t operands = getNumOperands(), scanned = getNumScanInputs();
  if (scanned < 1 || scanned > operands)
    return emitOpError() << "expected 1 to " << operands << " scan inputs, but got " << scanned;
  if (static_cast<int64_t>(getNumResults()) < operands - scanned)
    return emitOpError() << "expected at least " << operands - scanned << " results, but got " << getNumResults();
  return checkBody(*this, getBody(), operands, getNumResults());
}

void ONNXDialect::addControlOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXControlOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXControlOps.cpp.inc"
