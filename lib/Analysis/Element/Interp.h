// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Abstract interpretation of a function of `onnx` operators: one forward pass
// that gives every tensor its extents and its element.
//
// Reference semantics: one sequence alone, P rows cached, L new tokens, mask
// all ones, positions P..P+L-1; the batch size B stays symbolic.

#ifndef QUIRE_ANALYSIS_ELEMENT_INTERP_H
#define QUIRE_ANALYSIS_ELEMENT_INTERP_H

#include "dialects/ONNX/ONNXControlOps.h"
#include "lib/Analysis/Element/InputRole.h"
#include "lib/Analysis/Element/SymbolicTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include <functional>

namespace quire {
class Interp;
}

#include "lib/Analysis/Element/ElementOpInterface.h.inc"

namespace quire {

/// Whether an element of `type` holds what `e` counts, for lengths up to 2^22
/// tokens: no integer wraps, no position is rounded. True for data and for what
/// has no bound that is known.
bool isRepresentable(ExprContext &ctx, Expr e, mlir::Type type);

/// How many positions, from 0 on, have an index in [-rows, rows), whatever the
/// other axes of the index are: INT64_MAX if all have. The first token of a
/// call stands for all, so the index must be a function of the position. Where
/// nothing is known in closed form, the first 2^17 positions are tried, fewer
/// for an index with large axes, and no others are allowed. None if the index
/// has no value that can be computed; data has none.
std::optional<int64_t> positionsInside(ExprContext &ctx, Expr index,
                                       int64_t rows);

/// How a state grows, found by a forward walk from the input.
enum class Growth {
  None,    // no growth found
  Concat,  // past rows, then new rows
  Scatter, // rows written into a buffer
};

struct StateInput {
  mlir::BlockArgument arg;
  std::string name;
  int axis = -1; // of the rows
  Growth growth = Growth::None;
  llvm::SmallVector<Expr, 4> extents;
};

/// A raw score: which product made it, and which operand is the query.
struct DotSite {
  mlir::Operation *op = nullptr;
  unsigned queryOperand = 0;
  double queryFactor = 1; // taken out of the query's element
};

struct SoftmaxSite {
  mlir::Operation *op = nullptr;
  Expr element = nullptr; // the softmax input
  unsigned axis = 0;
  llvm::SmallVector<Expr, 4> extents, vars;
  Expr queryToken = nullptr, queryBatch = nullptr;
};

struct ValueSite {
  mlir::Operation *op = nullptr; // makes softmax . v
  std::string softmax;           // its label
  Expr prob = nullptr;           // as read by the product
  Expr value = nullptr;          // element of the value operand
  Expr bound = nullptr;          // the key index
  double factor = 1;             // of the result
  bool guarded = false;          // Where(IsNaN(p), 0, p)
};

struct InterpOptions {
  llvm::StringMap<InputRole> inputRoles;
  /// Bytes of a weight, or nothing; absent: weights stay opaque.
  std::function<std::optional<llvm::ArrayRef<char>>(onnx::InitializerOp)>
      readWeight;
  bool oneToken = false;
  unsigned maxRestarts = 80;
};

class Interp {
public:
  Interp(mlir::func::FuncOp fn, InterpOptions options);

  /// Restarts until nothing more is learnt. False if refused: see `refusal`.
  bool run();

  //===--- for transfer rules ---------------------------------------------===//
  ExprContext ctx;
  Expr B, L, P, position;

  /// The tensor of an operand; null for an absent one or a value that has
  /// none (then a refusal is pending).
  const SymbolicTensor *get(mlir::Value v);
  /// Null unless the operand is given.
  const SymbolicTensor *getOptional(mlir::Value v);
  void set(mlir::Value v, SymbolicTensor t);

  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why);
  std::string where(mlir::Operation *op) const;
  Expr bad(mlir::Operation *op, const llvm::Twine &why);
  /// Unique name of a value's opaque leaf.
  llvm::StringRef label(mlir::Value v);

  /// Extents that must be equal: learns an unknown one, or refuses.
  mlir::LogicalResult unify(mlir::Operation *op, Expr a, Expr b);
  std::optional<llvm::SmallVector<Expr, 4>>
  broadcast(mlir::Operation *op, llvm::ArrayRef<const SymbolicTensor *> ts);
  /// Element of t at the generic index of a shape it broadcasts to.
  Expr atBroadcast(const SymbolicTensor &t, llvm::ArrayRef<Expr> extents);
  Expr at(const SymbolicTensor &t, llvm::ArrayRef<Expr> index) {
    return elementAt(ctx, t, index);
  }
  llvm::SmallVector<Expr, 4> generic(llvm::ArrayRef<Expr> extents) {
    return genericIndices(ctx, extents);
  }
  Expr index(unsigned axis, Expr extent) {
    return genericIndex(ctx, axis, extent);
  }
  Expr productOf(llvm::ArrayRef<Expr> extents) { return ctx.product(extents); }
  Expr fresh(Expr extent);
  /// A vector of known length as expressions, or a refusal.
  std::optional<llvm::SmallVector<Expr, 4>> elements(mlir::Operation *op,
                                                     mlir::Value v);
  std::optional<llvm::SmallVector<int64_t, 4>> integers(mlir::Operation *op,
                                                        mlir::Value v);
  SymbolicTensor vector(llvm::ArrayRef<Expr> xs);
  SymbolicTensor constant(llvm::StringRef name, ConstantTable table);
  SymbolicTensor weight(onnx::WeightOp op);

  /// Element with the given axes bound to fresh variables (reported).
  Expr bindAxes(const SymbolicTensor &t, llvm::ArrayRef<unsigned> axes,
                llvm::SmallVectorImpl<Expr> &bound);
  /// Opaque result of an op that reads `parts`: proved token-wise, or bad.
  Expr leaf(mlir::Operation *op, llvm::StringRef name,
            llvm::ArrayRef<Expr> extents, llvm::ArrayRef<Expr> parts,
            ElementType type, llvm::ArrayRef<Expr> bound = {});
  Expr dataLeaf(llvm::StringRef name, ElementType type, Expr token, Expr batch,
                llvm::ArrayRef<Expr> extents);

  /// Empty if every part is a function of the token's position only.
  std::string notOfPosition(llvm::ArrayRef<Expr> parts, Expr token);
  /// Element with the token's position put for P and the token index.
  Expr atPosition(Expr e, Expr token);
  /// A table that is chosen by the total length: raise for the short side.
  bool assumeShortSide(Expr e);
  /// P + L <= n, then restart.
  void assume(int64_t n, llvm::StringRef why);
  /// A table of n rows is indexed by a position: there are no more positions
  /// than stay inside. Does nothing where positionsInside does not know.
  void boundPositions(Expr index, Expr rows);

  /// sum over c of a * b.
  Expr contract(mlir::Operation *op, mlir::Value result,
                llvm::ArrayRef<Expr> extents, Expr c, Expr a, Expr b,
                double alpha);
  /// Constant factor common to all terms, and the rest.
  std::pair<double, Expr> takeFactor(Expr e);

  mlir::LogicalResult interpretBlock(mlir::Block &block);
  void flag(const llvm::Twine &text) { flags.insert({text.str(), 0}); }

  //===--- results --------------------------------------------------------===//
  const SymbolicTensor *find(mlir::Value v) const;
  mlir::func::FuncOp function() const { return fn; }
  const StateInput *state(llvm::StringRef name) const;
  std::string inputName(unsigned i) const;
  std::string outputName(unsigned i) const;

  llvm::SmallVector<InputRole> roles;
  std::vector<StateInput> states;
  llvm::StringMap<DotSite> dots;
  llvm::StringMap<SoftmaxSite> softmaxes;
  std::vector<ValueSite> attentions;
  llvm::StringMap<std::string> rotations; // of RotaryEmbedding results
  llvm::StringMap<SymbolicTensor> coordinates; // what a NonZero looked at
  llvm::StringMap<char> flags;
  std::vector<std::string> assumptions, roleTies;
  std::optional<int64_t> maxPositions;
  std::string refusal;
  unsigned restarts = 0;
  unsigned interpreted = 0;

private:
  struct Pending {
    Expr var = nullptr, value = nullptr; // rebinding
    std::optional<int64_t> bound;        // assumption
    std::string why;
    explicit operator bool() const { return var || bound; }
  };

  void reset();
  mlir::LogicalResult interpretOp(mlir::Operation *op);
  void setUnknown(mlir::Operation *op);
  void bindInputs();
  void bindInput(unsigned i);
  Expr inputSymbol(unsigned input, unsigned axis);
  bool learn();
  bool learnFromRefusal();
  bool learnMaskLength(bool onlyIfUsed);
  void collapse(mlir::Value v, SymbolicTensor &t);
  Expr attentionResult(mlir::Operation *op, mlir::Value result,
                       llvm::ArrayRef<Expr> extents, Expr c, Expr p, Expr v,
                       double factor);
  Expr opaqueOfPosition(llvm::StringRef name, ElementType type,
                        llvm::ArrayRef<Expr> extents,
                        llvm::ArrayRef<Expr> parts);
  bool onTokenAxis(const Leaves &l, Expr c) const;

  mlir::func::FuncOp fn;
  InterpOptions options;
  mutable onnx::EntryOp entry;
  /// Tensors keep their address while rules set others.
  llvm::DenseMap<mlir::Value, std::unique_ptr<SymbolicTensor>> env;
  llvm::DenseMap<mlir::Value, llvm::StringRef> labels;
  llvm::StringSet<> usedLabels;
  llvm::DenseMap<Expr, Expr> bindings;
  Pending pending;
  unsigned freshCount = 0;
  struct LoadedWeight {
    SymbolicTensor tensor;
    std::optional<int64_t> positions; // bound by a closed form
  };
  llvm::StringMap<LoadedWeight> weights;
};

/// Roles of the function's inputs by what they feed; names break ties only.
void findInputRoles(Interp &interp, const InterpOptions &options);

/// A rule as an external model of the interface.
template <typename OpT, mlir::LogicalResult (*rule)(OpT, Interp &)>
struct RuleModel
    : ElementOpInterface::ExternalModel<RuleModel<OpT, rule>, OpT> {
  mlir::LogicalResult interpretElements(mlir::Operation *op,
                                        Interp &interp) const {
    return rule(mlir::cast<OpT>(op), interp);
  }
};

/// Attaches the transfer rules of all families to the `onnx` dialect.
void registerElementExternalModels(mlir::DialectRegistry &registry);

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_INTERP_H
