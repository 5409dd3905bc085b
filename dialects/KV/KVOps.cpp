// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and interface methods of the `kv` operations.
#include "dialects/KV/KVDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace quire::kv;

#define GET_OP_CLASSES
#include "dialects/KV/KVOps.cpp.inc"

/// Rows are `[rows, heads, features]`, one extent of rows unknown at most.
static LogicalResult verifyRows(Operation *op, StringRef what, Value rows, int64_t heads, int64_t features) {
  auto type = cast<RankedTensorType>(rows.getType());
  if (type.getRank() != 3 || type.getDimSize(1) != heads || type.getDimSize(2) != features)
    return op->emitOpError() << "expected " << what << " of type [rows, " << heads << ", " << features << "], but got " << type;
  return success();
}

LogicalResult PositionsOp::verify() {
  auto type = cast<RankedTensorType>(getPositions().getType());
  if (type.getRank() != 2 || type.getDimSize(0) != 1)
    return emitOpError() << "expected positions of type [1, rows], but got " << type;
  return success();
}

OpOperand &AppendOp::getConsumedState() { return getStateMutable(); }

Value AppendOp::getTiedState() { return getNext(); }

LogicalResult AppendOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyRows(*this, "key", getKey(), state.getHeads(), state.getKey())))
    return failure();
  return verifyRows(*this, "value", getValue(), state.getHeads(), state.getValue());
}

OpOperand &AttendOp::getReadState() { return getStateMutable(); }

bool AttendOp::needsRows() { return true; }

LogicalResult AttendOp::verify() {
  StateType state = getState().getType();
  auto query = cast<RankedTensorType>(getQuery().getType());
  if (query.getRank() != 3 || query.getDimSize(2) != state.getKey())
    return emitOpError() << "expected query of type [rows, heads, " << state.getKey() << "], but got " << query;
  int64_t heads = query.getDimSize(1);
  if (heads < 1 || heads % state.getHeads() != 0)
    return emitOpError() << "expected query heads that are a multiple of " << state.getHeads() << ", but got " << heads;
  if (failed(verifyRows(*this, "result", getResult(), heads, state.getValue())))
    return failure();
  if (getWindow() && int64_t(*getWindow()) < 1)
    return emitOpError() << "expected a window of at least 1, but got " << int64_t(*getWindow());
  if (getChunk() && int64_t(*getChunk()) < 1)
    return emitOpError() << "expected a chunk of at least 1, but got " << int64_t(*getChunk());
  if (getSoftcap() && !(getSoftcapAttr().getValueAsDouble() > 0))
    return emitOpError() << "expected a softcap above 0, but got " << getSoftcapAttr().getValueAsDouble();
  if (getAlibi() && int64_t(getAlibi()->size()) != heads)
    return emitOpError() << "expected " << heads << " alibi slopes, but got " << getAlibi()->size();
  if (getSinks() && cast<RankedTensorType>(getSinks().getType()).getShape() != ArrayRef<int64_t>{heads})
    return emitOpError() << "expected sinks of type [" << heads << "], but got " << getSinks().getType();
  return success();
}

LogicalResult SelectOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  if (input.getNumDynamicDims() != 1)
    return emitOpError() << "expected one extent '?', that of the rows, but got " << input;
  return success();
}

int64_t SelectOp::getRowAxis() {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getInput().getType()).getShape();
  return llvm::find(shape, ShapedType::kDynamic) - shape.begin();
}

OpOperand &PrefetchOp::getReadState() { return getStateMutable(); }

bool PrefetchOp::needsRows() { return false; }

OpOperand &ObserveOp::getReadState() { return getStateMutable(); }

bool ObserveOp::needsRows() { return true; }

LogicalResult PrefetchOp::verify() {
  if (int64_t(getFirst()) < 0)
    return emitOpError() << "expected a first block that is not negative, but got " << int64_t(getFirst());
  if (int64_t(getCount()) == 0)
    return emitOpError() << "expected a count of blocks that is not 0";
  return success();
}

LogicalResult EntryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getFunctionAttr());
  if (!function)
    return emitOpError() << "expected a function, but got '" << getFunction() << "'";
  return success();
}
