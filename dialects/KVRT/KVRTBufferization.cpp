// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bufferization and memory effects of the `kvrt` dialect.
#include "dialects/KVRT/KVRTBufferization.h"
#include "dialects/KVRT/KVRT.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace quire::kvrt;

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

MemRefType quire::kvrt::bufferTypeOfView(Type type) {
  auto shaped = cast<ShapedType>(type);
  return MemRefType::get(shaped.getShape(), shaped.getElementType());
}

LogicalResult quire::kvrt::bufferizeView(RewriterBase &rewriter, Operation *view) {
  if (!isa<RankedTensorType>(view->getResult(0).getType()))
    return success();
  OperationState state(view->getLoc(), view->getName(), view->getOperands(),
                       TypeRange{bufferTypeOfView(view->getResult(0).getType())},
                       llvm::to_vector(view->getDiscardableAttrs()));
  state.propertiesAttr = view->getPropertiesAsAttribute();
  replaceOpWithBufferizedValues(rewriter, view, rewriter.create(state)->getResults());
  return success();
}

// The operands of `op` with buffers in place of tensors.
static FailureOr<SmallVector<Value>> bufferOperands(RewriterBase &rewriter, Operation *op,
                                                    const BufferizationOptions &options, BufferizationState &state) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  return operands;
}

LogicalResult quire::kvrt::bufferizeKernel(RewriterBase &rewriter, Operation *kernel,
                                           const BufferizationOptions &options, BufferizationState &state) {
  FailureOr<SmallVector<Value>> operands = bufferOperands(rewriter, kernel, options, state);
  if (failed(operands))
    return failure();
  OperationState created(kernel->getLoc(), kernel->getName(), *operands, TypeRange{},
                         llvm::to_vector(kernel->getDiscardableAttrs()));
  created.propertiesAttr = kernel->getPropertiesAsAttribute();
  rewriter.create(created);
  if (kernel->getNumResults() == 1)
    replaceOpWithBufferizedValues(rewriter, kernel, operands->back());
  else
    rewriter.eraseOp(kernel);
  return success();
}

static void memrefEffects(Operation *op, bool writesLast, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (writesLast && operand.getOperandNumber() + 1 == op->getNumOperands())
      effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
  }
}

void quire::kvrt::kernelEffects(Operation *kernel, Effects &effects) {
  memrefEffects(kernel, /*writesLast=*/true, effects);
  if (auto attend = dyn_cast<AttendOp>(kernel); attend && attend.getParts())
    effects.emplace_back(MemoryEffects::Write::get(), &attend.getPartsMutable()[0], SideEffects::DefaultResource::get());
  if (llvm::any_of(kernel->getOperandTypes(), llvm::IsaPred<StateType>))
    effects.emplace_back(MemoryEffects::Read::get(), KVResource::get());
}

void AppendOp::getEffects(Effects &effects) {
  memrefEffects(*this, /*writesLast=*/false, effects);
  effects.emplace_back(MemoryEffects::Read::get(), KVResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), KVResource::get());
}

bool AppendOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return true; }
bool AppendOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }
AliasingValueList AppendOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }
LogicalResult AppendOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                  BufferizationState &state) {
  return bufferizeKernel(rewriter, *this, options, state);
}

bool WriteOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return true; }
bool WriteOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }
AliasingValueList WriteOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }
LogicalResult WriteOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                 BufferizationState &state) {
  return bufferizeKernel(rewriter, *this, options, state);
}
