// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operators on concrete tensors: ONNX as of 1.23, com.microsoft as ONNX Runtime's CPU kernels compute it.
// An absent optional operand is a null pointer; an absent optional result is a Tensor that is false.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_KERNELS_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_KERNELS_H

#include "Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace quire::eval {

using Operand = const Tensor *;
using Operands = llvm::ArrayRef<Operand>;
using Ints = llvm::ArrayRef<int64_t>;

//===--- Shapes and loops (Loops.cpp) -----------------------------------------------------------------------------===//

/// `axis` in [0, rank), counted from the end when negative.
llvm::Expected<int64_t> normalAxis(int64_t axis, int64_t rank);
/// Sorted, distinct, normalised axes.
llvm::Expected<Shape> normalAxes(Ints axes, int64_t rank);
llvm::Expected<Shape> broadcastShape(llvm::ArrayRef<Ints> shapes);

/// A loop over a broadcast shape with adjacent dimensions merged. `body(out, offsets, n)` handles n elements of the
/// innermost dimension: operand i starts at offsets[i] and advances by step(i) (0 or 1).
class BroadcastLoop {
public:
  BroadcastLoop(Ints out, llvm::ArrayRef<Ints> operands);
  int64_t step(unsigned operand) const { return innerStep[operand]; }
  void run(llvm::function_ref<void(int64_t out, const int64_t *offsets, int64_t n)> body) const;

private:
  llvm::SmallVector<int64_t, 6> extents;
  llvm::SmallVector<llvm::SmallVector<int64_t, 6>, 3> strides;
  llvm::SmallVector<int64_t, 3> innerStep;
};

/// Element [i0, i1, ...] of the result is element offset + i0*strides[0] + ... of `input`.
Tensor stridedCopy(const Tensor &input, Ints shape, Ints strides, int64_t offset);
/// Applies `move` to a tensor whose elements take whole bytes: packed kinds are unpacked around it.
Result onWholeBytes(const Tensor &input, llvm::function_ref<Result(const Tensor &)> move);
/// Runs `body(begin, end)` over [0, count) on the available cores when `work` (in elementary operations) is worth it.
void parallelRanges(int64_t count, int64_t work, llvm::function_ref<void(int64_t begin, int64_t end)> body);

//===--- Math (KernelsMath.cpp) -----------------------------------------------------------------------------------===//

enum class UnaryKind {
  Abs,
  Neg,
  Sign,
  Ceil,
  Floor,
  Round,
  Sqrt,
  Reciprocal,
  Exp,
  Log,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Sigmoid,
  Relu,
  Softplus,
  Softsign,
  HardSwish,
  Mish,
  GeluErf,
  GeluTanh,
  // with alpha (and beta)
  LeakyRelu,
  Elu,
  Celu,
  Selu,
  HardSigmoid,
  ThresholdedRelu,
  Shrink,
  Swish
};
Result unary(UnaryKind kind, const Tensor &x, double alpha = 0, double beta = 0);
Result isNaN(const Tensor &x);
Result isInf(const Tensor &x, bool positive, bool negative);
Result logicalNot(const Tensor &x);
Result bitwiseNot(const Tensor &x);

enum class BinaryKind {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  FMod,
  Pow,
  Max,
  Min,
  PRelu,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  // to bool
  Equal,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
  And,
  Or,
  Xor
};
Result binary(BinaryKind kind, const Tensor &a, const Tensor &b);
/// Max, Min or Add over one or more operands.
Result fold(BinaryKind kind, Operands operands);
Result mean(Operands operands);
Result where(const Tensor &condition, const Tensor &a, const Tensor &b);
Result clip(const Tensor &x, Operand low, Operand high);
Result castTo(const Tensor &x, ElementKind to, bool saturate = true);
Result bitCast(const Tensor &x, ElementKind to);
/// gate * sigmoid(alpha * gate) * value.
Result swiGlu(const Tensor &gate, const Tensor &value, double alpha);

//===--- Reductions (KernelsReduce.cpp) ---------------------------------------------------------------------------===//

enum class ReduceKind { Sum, Mean, Max, Min, Prod, SumSquare, L1, L2, LogSum, LogSumExp };
Result reduce(ReduceKind kind, const Tensor &x, std::optional<Ints> axes, bool keepDims, bool noopWithEmptyAxes);
Result argExtreme(const Tensor &x, int64_t axis, bool keepDims, bool lastIndex, bool largest);
Result cumulative(const Tensor &x, int64_t axis, bool exclusive, bool reverse, bool product);
/// Values and indices. Equal values keep the order of their indices.
Results topK(const Tensor &x, int64_t k, int64_t axis, bool largest);
enum class SoftmaxKind { Softmax, LogSoftmax, Hardmax };
Result softmax(SoftmaxKind kind, const Tensor &x, int64_t axis);

//===--- Movement (KernelsShape.cpp) ------------------------------------------------------------------------------===//

Result reshape(const Tensor &x, Ints shape, bool allowZero);
Result flatten(const Tensor &x, int64_t axis);
Result squeeze(const Tensor &x, std::optional<Ints> axes);
Result unsqueeze(const Tensor &x, Ints axes);
Result shapeOf(const Tensor &x, int64_t start, std::optional<int64_t> end);
Result transpose(const Tensor &x, std::optional<Ints> permutation);
Result expand(const Tensor &x, Ints shape);
Result tile(const Tensor &x, Ints repeats);
Result concat(Operands operands, int64_t axis);
Results split(const Tensor &x, int64_t axis, std::optional<Ints> sizes, unsigned outputs);
Result slice(const Tensor &x, Ints starts, Ints ends, std::optional<Ints> axes, std::optional<Ints> steps);
enum class PadMode { Constant, Reflect, Edge, Wrap };
Result pad(const Tensor &x, Ints pads, Operand value, std::optional<Ints> axes, PadMode mode);
Result constantOfShape(Ints shape, const Tensor &value);
Result range(const Tensor &start, const Tensor &limit, const Tensor &delta);
Result trilu(const Tensor &x, int64_t k, bool upper);
Result eyeLike(const Tensor &x, std::optional<ElementKind> kind, int64_t k);
Result depthToSpace(const Tensor &x, int64_t block, bool columnRowDepth);
Result spaceToDepth(const Tensor &x, int64_t block, bool columnRowDepth);
Result reverseSequence(const Tensor &x, Ints lengths, int64_t batchAxis, int64_t timeAxis);

//===--- Indexing (KernelsIndex.cpp) ------------------------------------------------------------------------------===//

Result gather(const Tensor &x, const Tensor &indices, int64_t axis);
Result gatherElements(const Tensor &x, const Tensor &indices, int64_t axis);
Result gatherND(const Tensor &x, const Tensor &indices, int64_t batchDims);
enum class Reduction { None, Add, Mul, Max, Min };
Result scatterElements(const Tensor &x, const Tensor &indices, const Tensor &updates, int64_t axis,
                       Reduction reduction);
Result scatterND(const Tensor &x, const Tensor &indices, const Tensor &updates, Reduction reduction);
Result tensorScatter(const Tensor &past, const Tensor &update, Operand writeIndices, int64_t axis, bool circular);
Result oneHot(const Tensor &indices, int64_t depth, const Tensor &values, int64_t axis);
Result nonZero(const Tensor &x);
Result compress(const Tensor &x, const Tensor &condition, std::optional<int64_t> axis);

//===--- Products (KernelsMatMul.cpp, KernelsConv.cpp)
//--------------------------------------------------------------===//

/// c[m,n] += a[m,k] * b[k,n] with row strides; sums in f32 within blocks of 64 and in double over them.
void gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
          int64_t ldc);
void gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb, double *c,
          int64_t ldc);
/// NumPy matmul, scaled by alpha.
Result matMul(const Tensor &a, const Tensor &b, double alpha = 1.0);
/// The last two dimensions swapped (a copy).
Result swapLastTwo(const Tensor &x);
/// com.microsoft.FusedMatMul: transBatch moves dimension 0 behind the batch dimensions before the product.
Result fusedMatMul(const Tensor &a, const Tensor &b, bool transA, bool transB, bool transBatchA, bool transBatchB,
                   double alpha);
Result gemmOp(const Tensor &a, const Tensor &b, Operand c, double alpha, double beta, bool transA, bool transB);
Result matMulInteger(const Tensor &a, const Tensor &b, Operand aZero, Operand bZero);
Result einsum(llvm::StringRef equation, Operands operands);

struct ConvAttributes {
  llvm::SmallVector<int64_t, 3> dilations, pads, strides; // empty: ones, zeros, ones
  llvm::StringRef autoPad = "NOTSET";
  int64_t group = 1;
};
Result conv(const Tensor &x, const Tensor &weight, Operand bias, const ConvAttributes &attributes);

//===--- Normalisation (KernelsNorm.cpp) --------------------------------------------------------------------------===//

/// Y, Mean, InvStdDev over the axes from `axis` on, computed in f32 (f64 for f64).
Results layerNormalization(const Tensor &x, const Tensor &scale, Operand bias, int64_t axis, double epsilon);
/// Y and (for com.microsoft) InvStdDev; no mean.
Results rmsNormalization(const Tensor &x, const Tensor &scale, int64_t axis, double epsilon);
struct SkipNormAttributes {
  double epsilon = 1e-12;
  bool simplified = false; // SkipSimplifiedLayerNormalization
};
/// out, mean, inverse deviation, input+skip(+bias).
Results skipLayerNormalization(const Tensor &x, const Tensor &skip, const Tensor &gamma, Operand beta, Operand bias,
                               const SkipNormAttributes &attributes);
/// out, mask index, embedding sum.
Results embedLayerNormalization(const Tensor &ids, Operand segments, const Tensor &words, const Tensor &positionTable,
                                Operand segmentTable, const Tensor &gamma, const Tensor &beta, Operand mask,
                                Operand positions, double epsilon);
Result groupNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, int64_t groups, double epsilon);
Result instanceNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, double epsilon);
Result batchNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &mean,
                          const Tensor &variance, double epsilon);
Result lpNormalization(const Tensor &x, int64_t axis, int64_t p);
Result biasGelu(const Tensor &x, Operand bias, bool tanhForm);

//===--- Attention (KernelsAttention.cpp, KernelsAttentionMs.cpp) -------------------------------------------------===//

struct AttentionAttributes {
  std::optional<double> scale;
  bool isCausal = false;
  int64_t qHeads = 0, kvHeads = 0; // 0: from the 4-D operands
  std::optional<ElementKind> softmaxPrecision;
  double softcap = 0;
  int64_t qkOutputMode = 0;
  int64_t leftWindow = -1, rightWindow = -1;
  bool wantQkOutput = false;
};
/// ONNX Attention 23 to 25: Y, present_key, present_value, qk_matmul_output.
Results attention(const Tensor &q, const Tensor &k, const Tensor &v, Operand mask, Operand pastKey, Operand pastValue,
                  Operand nonpadKvSeqlen, const AttentionAttributes &attributes);

struct RotaryAttributes {
  bool interleaved = false;
  int64_t heads = 0, rotaryDim = 0;
  double scale = 1.0; // com.microsoft only
};
/// ONNX RotaryEmbedding: caches are [positions, dim/2] with position ids, or [batch, sequence, dim/2] without.
Result rotaryEmbedding(const Tensor &x, const Tensor &cosCache, const Tensor &sinCache, Operand positions,
                       const RotaryAttributes &attributes);
/// com.microsoft.RotaryEmbedding: position ids are [1] (an offset) or [batch, sequence].
Result msRotaryEmbedding(const Tensor &x, const Tensor &positions, const Tensor &cosCache, const Tensor &sinCache,
                         const RotaryAttributes &attributes);

struct GroupQueryAttributes {
  int64_t heads = 0, kvHeads = 0;
  std::optional<double> scale;
  double softcap = 0;
  int64_t localWindow = -1;
  bool doRotary = false, rotaryInterleaved = false, smoothSoftmax = false, causal = true;
  int64_t qkOutput = 0; // 0 none, 1 before softmax, 2 after
  double qNormEpsilon = 1e-6, kNormEpsilon = 1e-6;
};
struct GroupQueryOperands {
  Operand query = nullptr, key = nullptr, value = nullptr, pastKey = nullptr, pastValue = nullptr, seqlensK = nullptr,
          totalLength = nullptr, cosCache = nullptr, sinCache = nullptr, positions = nullptr, bias = nullptr,
          sink = nullptr, kScale = nullptr, vScale = nullptr, qNorm = nullptr, kNorm = nullptr;
};
/// com.microsoft.GroupQueryAttention: output, present_key, present_value, output_qk.
Results groupQueryAttention(const GroupQueryOperands &operands, const GroupQueryAttributes &attributes);

struct MultiHeadAttributes {
  int64_t heads = 0;
  std::optional<double> scale;
  double maskFilterValue = -10000.0;
  bool unidirectional = false;
  llvm::SmallVector<int64_t, 3> qkvHiddenSizes; // com.microsoft.Attention only
  bool doRotary = false;
  int64_t rotaryDim = 0;
};
/// com.microsoft.MultiHeadAttention: output, present_key, present_value, qk.
Results multiHeadAttention(const Tensor &query, Operand key, Operand value, Operand bias, Operand keyPaddingMask,
                           Operand attentionBias, Operand pastKey, Operand pastValue,
                           const MultiHeadAttributes &attributes);
/// com.microsoft.Attention: output, present ([2, batch, heads, total, size]).
Results msAttention(const Tensor &input, const Tensor &weights, Operand bias, Operand maskIndex, Operand past,
                    Operand attentionBias, const MultiHeadAttributes &attributes);

//===--- Recurrent state (KernelsRecurrent.cpp) -------------------------------------------------------------------===//

enum class UpdateRule { Linear, Gated, Delta, GatedDelta };
/// Output and present state, for ONNX LinearAttention 27 and com.microsoft.LinearAttention.
Results linearAttention(const Tensor &q, const Tensor &k, const Tensor &v, Operand pastState, Operand decay,
                        Operand beta, int64_t qHeads, int64_t kvHeads, double scale, UpdateRule rule);
/// Output and present state, for ONNX CausalConvWithState 27 and com.microsoft.CausalConvWithState.
Results causalConvWithState(const Tensor &x, const Tensor &weight, Operand bias, Operand pastState, bool silu);

//===--- Quantisation (KernelsQuant.cpp) --------------------------------------------------------------------------===//

Result dequantizeLinear(const Tensor &x, const Tensor &scale, Operand zero, int64_t axis, int64_t blockSize,
                        std::optional<ElementKind> outputKind);
Result quantizeLinear(const Tensor &x, const Tensor &scale, Operand zero, int64_t axis, int64_t blockSize,
                      ElementKind outputKind, bool saturate);
/// y (ui8), scale, zero point.
Results dynamicQuantizeLinear(const Tensor &x);

struct NBitsAttributes {
  int64_t k = 0, n = 0, bits = 4, blockSize = 32;
};
/// com.microsoft.MatMulNBits: weights ui8 [n, blocks, blockSize*bits/8], low bits first.
Result matMulNBits(const Tensor &a, const Tensor &b, const Tensor &scales, Operand zeros, Operand groupIndex,
                   Operand bias, const NBitsAttributes &attributes);
/// The f32 matrix [n, k] that MatMulNBits multiplies by.
llvm::Expected<std::vector<float>> dequantizeNBits(const Tensor &b, const Tensor &scales, Operand zeros,
                                                   Operand groupIndex, const NBitsAttributes &attributes);
struct GatherQuantAttributes {
  int64_t bits = 4, blockSize = 128, gatherAxis = 0, quantizeAxis = 1;
};
Result gatherBlockQuantized(const Tensor &data, const Tensor &indices, const Tensor &scales, Operand zeros,
                            const GatherQuantAttributes &attributes);

//===--- Mixture of experts (KernelsMoE.cpp) ----------------------------------------------------------------------===//

struct MoEAttributes {
  enum Activation { Relu, Gelu, Silu, Identity, SwiGlu } activation = Relu;
  int64_t k = 1;
  bool normalizeRouting = false;
  int64_t swigluFusion = 0; // 0 separate fc3, 1 interleaved, 2 halves
  double alpha = 1.0, beta = 0.0;
  std::optional<double> swigluLimit;
  bool quantized = false; // QMoE, with the two below
  int64_t bits = 4, blockSize = 0;
};
/// Weights of one projection: [experts, out, in] (or packed ui8 for QMoE), scales, bias, zero points.
struct MoEProjection {
  Operand weights = nullptr, scales = nullptr, bias = nullptr, zeros = nullptr;
};
Result mixtureOfExperts(const Tensor &x, const Tensor &routerLogits, const MoEProjection &fc1, const MoEProjection &fc2,
                        const MoEProjection &fc3, Operand routerWeights, const MoEAttributes &attributes);

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_KERNELS_H
