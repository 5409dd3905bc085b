// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Syntax and verification of the operations that call the runtime.
#include "dialects/KVRT/KVRT.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace quire::kvrt;

void ParallelOp::build(OpBuilder &builder, OperationState &state, Value count, Value batch, int64_t grain,
                       function_ref<void(OpBuilder &, Location, Value, Value)> body) {
  state.addOperands({count, batch});
  state.addAttribute(getGrainAttrName(state.name), builder.getI64IntegerAttr(grain));
  Region *region = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  Type index = builder.getIndexType();
  Block *block = builder.createBlock(region, {}, {index, index}, {state.location, state.location});
  if (body)
    body(builder, state.location, block->getArgument(0), block->getArgument(1));
  ensureTerminator(*region, builder, state.location);
}

ParseResult ParallelOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument begin, end;
  OpAsmParser::UnresolvedOperand count, batch;
  IntegerAttr grain;
  Builder &builder = parser.getBuilder();
  begin.type = end.type = builder.getIndexType();
  if (parser.parseLParen() || parser.parseArgument(begin) || parser.parseComma() || parser.parseArgument(end) ||
      parser.parseRParen() || parser.parseEqual() || parser.parseOperand(count) || parser.parseKeyword("on") ||
      parser.parseOperand(batch) || parser.parseKeyword("grain") ||
      parser.parseAttribute(grain, builder.getI64Type(), getGrainAttrName(result.name), result.attributes) ||
      parser.resolveOperand(count, builder.getIndexType(), result.operands) ||
      parser.resolveOperand(batch, BatchType::get(builder.getContext()), result.operands))
    return failure();
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, {begin, end}) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  ensureTerminator(*region, builder, result.location);
  return success();
}

void ParallelOp::print(OpAsmPrinter &printer) {
  printer << " (" << getBegin() << ", " << getEnd() << ") = " << getCount() << " on " << getBatch() << " grain "
          << getGrain() << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(), {getGrainAttrName()});
}

LogicalResult ParallelOp::verify() {
  TypeRange arguments = getBody().getArgumentTypes();
  if (arguments.size() != 2 || !arguments[0].isIndex() || !arguments[1].isIndex())
    return emitOpError("expected a region with two index arguments");
  if ((*this)->getParentOfType<ParallelOp>())
    return emitOpError("expected no parallel region around it");
  return success();
}

LogicalResult ParallelCallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("expected a function, but got ") << getCalleeAttr();
  SmallVector<Type> expected(2, IndexType::get(getContext()));
  llvm::append_range(expected, getCaptures().getTypes());
  // After the callee's conversion its types are the target's.
  if (callee->getDialect()->getNamespace() == "func" && callee.getArgumentTypes() != ArrayRef<Type>(expected))
    return emitOpError("expected the callee to take begin, end and the captures");
  return success();
}
