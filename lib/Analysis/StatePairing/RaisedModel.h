// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a decoder graph means: its states, its attention and its outputs, as
// proved from the elements of its tensors.

#ifndef QUIRE_ANALYSIS_STATEPAIRING_RAISEDMODEL_H
#define QUIRE_ANALYSIS_STATEPAIRING_RAISEDMODEL_H

#include "lib/Analysis/Element/InputRole.h"
#include "lib/Analysis/Element/SymbolicTensor.h"
#include "lib/Analysis/Score/Score.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <string>

namespace quire {

class Interp;

/// What one axis of a value counts. Reference semantics: one sequence, so a
/// batch axis has extent 1 or B, and B = 1 after the proof.
enum class AxisKind {
  Batch,     // extent 1 or B: the sequences of the call
  Token,     // extent L: the new tokens of the call
  Head,      // heads; several Head axes count row-major (group innermost)
  Feature,   // contracted in q.k, or the features of a value row
  BatchHead, // B * heads folded, batch outermost
  BatchToken, // B * L folded, batch outermost
  HeadFeature, // heads * features folded, head outermost
  Pack,      // 2: keys then values
  Key,       // extent P + L or the buffer: rows of a state
  Other,     // none of these; constant extent
};

struct AxisRole {
  AxisKind kind = AxisKind::Other;
  /// Extent with B = 1; -1 for Token, BatchToken and Key axes of open extent.
  int64_t extent = 1;
};

/// A graph value and what its axes mean.
struct RoledValue {
  mlir::Value value;
  llvm::SmallVector<AxisRole, 4> axes;

  explicit operator bool() const { return static_cast<bool>(value); }
  /// First axis of this kind, -1 if there is none.
  int axisOf(AxisKind kind) const {
    for (auto [a, role] : llvm::enumerate(axes))
      if (role.kind == kind)
        return int(a);
    return -1;
  }
};

/// One softmax(q . k) v over a cached state.
struct AttentionSite {
  mlir::Operation *scoreProduct = nullptr; // makes q . k
  unsigned queryOperand = 0;               // which operand of it is the query
  mlir::Operation *softmax = nullptr;
  mlir::Operation *valueProduct = nullptr; // makes softmax . v

  /// Emit this value as it is; `scale` is what multiplies it further.
  RoledValue query;
  /// `resultScale` * (softmax . v). 1 unless factors sit on the values.
  RoledValue result;

  static constexpr unsigned noState = ~0u;
  /// Indices into RaisedModel::states; noState in a site that is refused
  /// before they are known.
  unsigned keyState = noState, valueState = noState;
  bool cross = false; // over a state that never grows (encoder): no paging

  unsigned heads = 0, kvHeads = 0;
  int64_t keyDim = 0, valueDim = 0;
  /// Per query head. A site whose map is not h / (heads / kvHeads) is refused.
  llvm::SmallVector<int> kvHeadOfQueryHead;

  double scale = 1;
  double softcap = 0; // 0: none; cap * tanh(scale * q.k / cap)
  double resultScale = 1;
  MaskKind mask = MaskKind::Causal;
  int64_t maskSize = 0;
  /// Visibility over the symbols `p`, `k` of the context.
  Expr visible = nullptr;

  BiasKind biasKind = BiasKind::None;
  llvm::SmallVector<double> slopes; // per query head
  /// Over `headVar`, `p` and `k`; null if biasKind is None.
  Expr bias = nullptr;
  Expr headVar = nullptr;

  bool hasSinks = false;
  llvm::SmallVector<double> sinks; // per query head
  /// A fully masked row gives 0 in the graph too.
  bool zeroWhenMasked = false;

  std::string node;      // name of the node that makes the result
  std::string idiom;     // "concat", "static", "cross"; empty if unknown
  std::string positions; // rotation of the query, for reports
  /// Empty if the site is raised.
  std::string reason;
};

enum class StateKind {
  Grow,     // present = past rows, then the new rows
  Static,   // a buffer written at P..P+L-1
  Constant, // returned or read unchanged (encoder keys and values)
  Unused,   // neither read nor returned
};

enum class StateContent { Unknown, Keys, Values, Packed };

struct State {
  mlir::BlockArgument input;
  int outputIndex = -1; // operand of the return; -1: none
  StateKind kind = StateKind::Unused;
  StateContent content = StateContent::Unknown;
  /// Axes of the state itself, as of the input.
  llvm::SmallVector<AxisRole, 4> axes;
  /// What the present appends; null unless Grow or Static.
  RoledValue newRows;
  /// The state's axis that each axis of `newRows` is.
  llvm::SmallVector<int, 4> newRowsAxes;
  unsigned kvHeads = 0;
  int64_t dim = 0;
  /// Rows of the buffer of a Static state, 0 if open.
  int64_t bufferRows = 0;
  std::string name;
};

enum class OutputKind {
  TokenWise, // one row per token
  LastToken, // the row of the last token of the call
  Present,   // a state
  NoData,    // depends on lengths and weights only
};

struct ModelOutput {
  OutputKind kind = OutputKind::NoData;
  int state = -1;
  RoledValue value;
};

/// How long an axis is.
enum class ExtentKind { Constant, Batch, Length, Total, Past, Other };

struct AnalysisOptions {
  /// `name=role` overrides of inputs, as in --input-role.
  llvm::StringMap<InputRole> inputRoles;
  unsigned maxRestarts = 80;
  /// Folder of the model, where the files of `onnx.initializer` lie. Without
  /// it, weights stay opaque and masks made of them are not understood.
  std::string weightFolder;
};

/// Result of the analysis. Owns the interpretation, so expressions stay valid
/// as long as the model does.
class RaisedModel {
public:
  RaisedModel();
  ~RaisedModel();
  RaisedModel(RaisedModel &&);
  RaisedModel &operator=(RaisedModel &&);

  llvm::SmallVector<InputRole> inputRoles; // per function argument
  std::vector<AttentionSite> sites;        // in program order
  std::vector<State> states;               // in order of the arguments
  std::vector<ModelOutput> outputs;        // per result
  std::vector<std::string> assumptions, flags;
  /// Positions that every constant table covers; 0: no bound.
  int64_t maxPositions = 0;
  /// The cached branch is right for calls of one token only.
  bool oneTokenOnly = false;
  unsigned restarts = 0;
  /// Empty exactly if all layers are raised; each names a node.
  std::vector<std::string> reasons;
  bool raised() const { return reasons.empty(); }

  // Questions of the rewriter. Every answer is a proof; "no" may also mean
  // "not known".
  ExprContext &context() const;
  /// The symbols for the query position and the key position.
  Expr positionSymbol() const;
  Expr keySymbol() const;
  /// Null for values that were never interpreted (other branch of an If).
  const SymbolicTensor *elementOf(mlir::Value v) const;
  /// Axis that enumerates the tokens of the call, -1 if there is none.
  int tokenAxis(mlir::Value v) const;
  /// With t := p - P neither P nor L remains in the element, and all data is
  /// of the row's own token. Values without data that are functions of the
  /// position or of constants only are token-wise too. `why` names the node.
  bool isTokenWise(mlir::Value v, std::string *why = nullptr) const;
  /// Integer tensor whose element is an exact function of the row's position
  /// alone (and of other indices): that function over `positionSymbol()`.
  Expr asIntegerOfPosition(mlir::Value v) const;
  ExtentKind extentKind(Expr extent) const;
  /// For a Slice: its start along `axis` is P + c with L rows taken, step 1.
  std::optional<int64_t> sliceFromPosition(mlir::Operation *slice,
                                           unsigned axis) const;

  Interp &interp() const { return *interpretation; }
  void adopt(std::shared_ptr<Interp> interp);

private:
  std::shared_ptr<Interp> interpretation;
};

/// Interprets `fn` and proves what it means. Never mutates it. Fails only on
/// malformed IR; a refusal is a model with reasons.
mlir::FailureOr<RaisedModel> analyzeModel(mlir::func::FuncOp fn,
                                          const AnalysisOptions &options = {});

} // namespace quire

#endif // QUIRE_ANALYSIS_STATEPAIRING_RAISEDMODEL_H
