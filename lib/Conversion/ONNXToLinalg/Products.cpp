// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for matrix products: with a weight that is packed, and of small or batched activations.
#include "dialects/ONNX/ONNXShapeOps.h"
#include "dialects/ONNX/ONNXLogicOps.h"
#include "dialects/ONNX/ONNXMathOps.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/KVRT/KVRT.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"
#include "lib/Conversion/ONNXToLinalg/Weights.h"

using namespace mlir;

namespace quire {
namespace {

/// A matrix in weights.bin: an initializer [K, N], or [N, K] when transposed.
struct PackedMatrix {
  FlatSymbolRefAttr initializer;
  bool transposed = false;
  int64_t k = 0, n = 0;
  Type element;
};

/// Looks from an operand through what packing can absorb (identities, transposes, widening casts) at an initializer.
std::optional<PackedMatrix> packedMatrixOf(Value value, bool transposed) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 2 || !type.hasStaticShape())
    return std::nullopt;
  while (Operation *op = value.getDefiningOp()) {
    if (auto weight = dyn_cast<onnx::WeightOp>(op)) {
      auto stored = dyn_cast<RankedTensorType>(weight.getType());
      if (!stored || stored.getRank() != 2 || !isa<Float32Type, Float16Type, BFloat16Type>(stored.getElementType()))
        return std::nullopt;
      int64_t rows = stored.getDimSize(0), columns = stored.getDimSize(1);
      return PackedMatrix{weight.getInitializerAttr(), transposed, transposed ? columns : rows, transposed ? rows : columns, stored.getElementType()};
    }
    if (isa<onnx::TransposeOp>(op)) {
      auto perm = cast<onnx::TransposeOp>(op).getPerm();
      transposed ^= !perm || (*perm)[0] == 1;
    } else if (isa<onnx::CastOp>(op)) {
      auto source = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
      auto from = source ? dyn_cast<FloatType>(source.getElementType()) : FloatType();
      if (!from || !rankedType(value).getElementType().isF32())
        return std::nullopt;
    } else if (!isa<onnx::IdentityOp>(op)) {
      return std::nullopt;
    }
    value = op->getOperand(0);
    if (auto source = dyn_cast<RankedTensorType>(value.getType()); !source || source.getRank() != 2)
      return std::nullopt;
  }
  return std::nullopt;
}

/// [rows, K] of a value [1, ..., rows, K]; a null type when other extents are not 1.
RankedTensorType flatRows(RankedTensorType type) {
  if (type.getRank() < 1 || type.isDynamicDim(type.getRank() - 1))
    return {};
  int64_t rows = 1;
  for (int64_t extent : type.getShape().drop_back()) {
    if (extent == 1)
      continue;
    if (rows != 1)
      return {};
    rows = extent;
  }
  return RankedTensorType::get({rows, type.getShape().back()}, type.getElementType());
}

/// True when the rule below can take the product of `input` with `matrix`.
bool isPackable(Value input, const PackedMatrix &matrix) {
  auto type = dyn_cast<RankedTensorType>(input.getType());
  RankedTensorType flat = type ? flatRows(type) : RankedTensorType();
  return flat && flat.getDimSize(1) == matrix.k;
}

/// The vector that a one-use MatMul in f32 gets added at once, and that the product can take as its bias.
struct BiasedProduct {
  Operation *product = nullptr;
  Value bias;
};

BiasedProduct biasedProductOf(onnx::AddOp add) {
  auto type = dyn_cast<RankedTensorType>(add->getResult(0).getType());
  if (!type || !type.getElementType().isF32())
    return {};
  for (unsigned side : {0u, 1u}) {
    Value product = add->getOperand(side), bias = add->getOperand(1 - side);
    auto matmul = product.getDefiningOp<onnx::MatMulOp>();
    auto biasType = dyn_cast<RankedTensorType>(bias.getType());
    if (!matmul || !matmul->hasOneUse() || product.getType() != type || !biasType || biasType.getRank() != 1)
      continue;
    if (biasType.getDimSize(0) != type.getShape().back() || !bias.getDefiningOp<onnx::WeightOp>())
      continue;
    auto matrix = packedMatrixOf(matmul->getOperand(1), false);
    if (matrix && isPackable(matmul->getOperand(0), *matrix))
      return {matmul, bias};
  }
  return {};
}

/// Emits the product; `result` has the shape of the operator's result.
Value emitProduct(RuleContext &context, Value input, const PackedMatrix &matrix, Value bias, RankedTensorType result) {
  RankedTensorType flat = flatRows(rankedType(input));
  Value rows = context.rowsOf(ValueRange(input));
  Value x = context.reshape(input, flat);
  Value weight = packedWeight(context, matrix.initializer, matrix.transposed, matrix.k, matrix.n, matrix.element);
  auto type = RankedTensorType::get({flat.getDimSize(0), matrix.n}, result.getElementType());
  Value target = context.empty(type, rows);
  auto product = kvrt::ProductOp::create(context.builder, context.loc, TypeRange(type), x, weight, context.state.batch, bias, target);
  return context.reshape(product->getResult(0), result);
}

LogicalResult convertPackedMatMul(onnx::MatMulOp op, RuleContext &context, MutableArrayRef<Value> results) {
  auto matrix = packedMatrixOf(op->getOperand(1), false);
  if (!context.state.batch || !matrix || !isPackable(op->getOperand(0), *matrix))
    return failure();
  if (op->hasOneUse())
    if (auto add = dyn_cast<onnx::AddOp>(*op->user_begin()); add && biasedProductOf(add).product == op)
      return failure();
  results[0] = emitProduct(context, op->getOperand(0), *matrix, {}, rankedType(op->getResult(0)));
  return success();
}

LogicalResult convertBiasedMatMul(onnx::AddOp op, RuleContext &context, MutableArrayRef<Value> results) {
  BiasedProduct product = biasedProductOf(op);
  if (!context.state.batch || !product.product)
    return failure();
  auto matrix = packedMatrixOf(product.product->getOperand(1), false);
  Value bias = rawWeight(context, product.bias.getDefiningOp<onnx::WeightOp>());
  results[0] = emitProduct(context, product.product->getOperand(0), *matrix, bias, rankedType(op->getResult(0)));
  return success();
}

LogicalResult convertPackedGemm(onnx::GemmOp op, RuleContext &context, MutableArrayRef<Value> results) {
  auto matrix = packedMatrixOf(op->getOperand(1), op.getTransB() != 0);
  if (!context.state.batch || !matrix || op.getTransA() != 0 || op.getAlpha() != 1.0f || !isPackable(op->getOperand(0), *matrix))
    return failure();
  RankedTensorType type = rankedType(op->getResult(0));
  Value addend = op->getOperand(2);
  Value bias;
  if (isPresent(addend) && op.getBeta() == 1.0f && rankedType(addend).getRank() == 1 && rankedType(addend).getDimSize(0) == matrix->n &&
      type.getElementType().isF32())
    if (auto weight = addend.getDefiningOp<onnx::WeightOp>())
      bias = rawWeight(context, weight);
  Value product = emitProduct(context, op->getOperand(0), *matrix, bias, type);
  if (isPresent(addend) && !bias) {
    double beta = op.getBeta();
    product = context.map({product, addend}, type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
      Value scaled = beta == 1 ? v[1] : arith::MulFOp::create(b, loc, v[1], Emitter::scalar(b, loc, v[1].getType(), beta));
      return arith::AddFOp::create(b, loc, v[0], scaled);
    });
  }
  results[0] = product;
  return success();
}

LogicalResult convertPackedFusedMatMul(onnx::MSFusedMatMulOp op, RuleContext &context, MutableArrayRef<Value> results) {
  auto matrix = packedMatrixOf(op->getOperand(1), op.getTransB() != 0);
  bool plain = op.getTransA() == 0 && op.getTransBatchA() == 0 && op.getTransBatchB() == 0;
  if (!context.state.batch || !matrix || !plain || !isPackable(op->getOperand(0), *matrix))
    return failure();
  RankedTensorType type = rankedType(op->getResult(0));
  Value product = emitProduct(context, op->getOperand(0), *matrix, {}, type);
  double alpha = op.getAlpha();
  results[0] = alpha == 1 ? product : context.map(product, type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    return arith::MulFOp::create(b, loc, v[0], Emitter::scalar(b, loc, v[0].getType(), alpha));
  });
  return success();
}

/// Which axes of a stack of matrices an operand is read at. Loops: batch axes, rows, columns, depth.
AffineMap matrixMap(RankedTensorType type, int64_t batchAxes, AffineExpr row, AffineExpr column, RankedTensorType result) {
  MLIRContext *context = type.getContext();
  SmallVector<AffineExpr> reads;
  int64_t offset = batchAxes - (type.getRank() - 2);
  for (int64_t axis = 0; axis < type.getRank() - 2; ++axis) {
    bool single = type.getDimSize(axis) == 1 && result.getDimSize(axis + offset) != 1;
    reads.push_back(single ? getAffineConstantExpr(0, context) : getAffineDimExpr(axis + offset, context));
  }
  reads.push_back(row);
  reads.push_back(column);
  return AffineMap::get(batchAxes + 3, 0, reads, context);
}

/// A product of stacks of matrices, in f32, in ascending order of the depth. A transposed operand has its last two axes exchanged.
LogicalResult emitPlainProduct(RuleContext &context, Value a, Value b, bool transA, bool transB, RankedTensorType type, Value &result) {
  RankedTensorType aType = rankedType(a), bType = rankedType(b);
  if (aType.getRank() < 2 || bType.getRank() < 2)
    return context.refuse("an operand of rank 1");
  int64_t depth = aType.getShape()[aType.getRank() - (transA ? 2 : 1)];
  if (ShapedType::isDynamic(depth))
    return context.refuse("it sums over rows");
  if (isa<IntegerType>(type.getElementType()))
    return context.refuse("integer elements");
  OpBuilder &builder = context.builder;
  if (depth == 1 && !transA && !transB) {
    result = context.map({a, b}, type, [](OpBuilder &nested, Location loc, ValueRange v) { return arith::MulFOp::create(nested, loc, v[0], v[1]); });
    return success();
  }
  int64_t batchAxes = type.getRank() - 2;
  AffineExpr row = builder.getAffineDimExpr(batchAxes), column = builder.getAffineDimExpr(batchAxes + 1), k = builder.getAffineDimExpr(batchAxes + 2);
  SmallVector<AffineExpr> writes;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    writes.push_back(builder.getAffineDimExpr(axis));
  AffineMap maps[] = {matrixMap(aType, batchAxes, transA ? k : row, transA ? row : k, type), matrixMap(bType, batchAxes, transB ? column : k, transB ? k : column, type),
                      AffineMap::get(batchAxes + 3, 0, writes, builder.getContext())};
  SmallVector<utils::IteratorType> iterators(batchAxes + 2, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Type accumulator = computeType(type.getElementType());
  RankedTensorType sumType = withElement(type, accumulator);
  Value start = context.filled(sumType, context.rowsOf({a, b}), builder.getZeroAttr(accumulator) ? cast<TypedAttr>(builder.getZeroAttr(accumulator)) : TypedAttr());
  Value sum = linalg::GenericOp::create(builder, context.loc, sumType, ValueRange{a, b}, start, maps, iterators,
                                        [&](OpBuilder &nested, Location loc, ValueRange v) {
                                          Value x = Emitter::castElement(nested, loc, v[0], accumulator);
                                          Value y = Emitter::castElement(nested, loc, v[1], accumulator);
                                          Value product = arith::MulFOp::create(nested, loc, x, y);
                                          linalg::YieldOp::create(nested, loc, arith::AddFOp::create(nested, loc, v[2], product).getResult());
                                        })
                  .getResult(0);
  result = context.convert(sum, type.getElementType());
  return success();
}

/// A product with a weight that could not be packed is right, but slow.
void remarkUnpacked(RuleContext &context, Value weight) {
  if (!rankedType(weight).hasStaticShape() || rankedType(weight).getNumElements() < 4096)
    return;
  context.op->emitRemark("the weight is not packed: it is computed in the step, or has another form than [K, N]");
}

LogicalResult convertMatMul(onnx::MatMulOp op, RuleContext &context, MutableArrayRef<Value> results) {
  remarkUnpacked(context, op->getOperand(1));
  return emitPlainProduct(context, op->getOperand(0), op->getOperand(1), false, false, rankedType(op->getResult(0)), results[0]);
}

LogicalResult convertGemm(onnx::GemmOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op->getResult(0));
  remarkUnpacked(context, op->getOperand(1));
  if (failed(emitPlainProduct(context, op->getOperand(0), op->getOperand(1), op.getTransA() != 0, op.getTransB() != 0, type, results[0])))
    return failure();
  SmallVector<Value> inputs = {results[0]};
  if (isPresent(op->getOperand(2)))
    inputs.push_back(op->getOperand(2));
  double alpha = op.getAlpha(), beta = op.getBeta();
  results[0] = context.map(inputs, type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    Value sum = alpha == 1 ? v[0] : arith::MulFOp::create(b, loc, v[0], Emitter::scalar(b, loc, v[0].getType(), alpha));
    if (v.size() == 1)
      return sum;
    Value addend = beta == 1 ? v[1] : arith::MulFOp::create(b, loc, v[1], Emitter::scalar(b, loc, v[1].getType(), beta));
    return arith::AddFOp::create(b, loc, sum, addend);
  });
  return success();
}

LogicalResult convertFusedMatMul(onnx::MSFusedMatMulOp op, RuleContext &context, MutableArrayRef<Value> results) {
  if (op.getTransBatchA() != 0 || op.getTransBatchB() != 0)
    return context.refuse("transBatchA or transBatchB");
  RankedTensorType type = rankedType(op->getResult(0));
  remarkUnpacked(context, op->getOperand(1));
  if (failed(emitPlainProduct(context, op->getOperand(0), op->getOperand(1), op.getTransA() != 0, op.getTransB() != 0, type, results[0])))
    return failure();
  double alpha = op.getAlpha();
  if (alpha != 1)
    results[0] = context.map(results[0], type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
      return arith::MulFOp::create(b, loc, v[0], Emitter::scalar(b, loc, v[0].getType(), alpha));
    });
  return success();
}

} // namespace

void addPackedProductRules(RuleSet &rules) {
  rules.add<onnx::MatMulOp>(convertPackedMatMul);
  rules.add<onnx::AddOp>(convertBiasedMatMul);
  rules.add<onnx::GemmOp>(convertPackedGemm);
  rules.add<onnx::MSFusedMatMulOp>(convertPackedFusedMatMul);
}

void addProductRules(RuleSet &rules) {
  rules.add<onnx::MatMulOp>(convertMatMul);
  rules.add<onnx::GemmOp>(convertGemm);
  rules.add<onnx::MSFusedMatMulOp>(convertFusedMatMul);
}

} // namespace quire
