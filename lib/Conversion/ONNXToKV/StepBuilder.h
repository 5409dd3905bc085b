// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Re-emits the row-wise part of an analysed decoder for a ragged step.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOKV_STEPBUILDER_H
#define QUIRE_LIB_CONVERSION_ONNXTOKV_STEPBUILDER_H

#include "dialects/KV/KVDialect.h"
#include "lib/Analysis/StatePairing/RaisedModel.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace quire {

/// Builds `@step` beside an analysed function. Every value that the logits, the queries and the stored rows need is emitted again with the
/// rows of the step in place of the tokens of one sequence; each must be proved row-wise, or the build fails with its node's name.
/// The source function is not changed.
class StepBuilder {
public:
  StepBuilder(mlir::func::FuncOp source, const RaisedModel &model);

  /// Inserts `@step` after the source. Null when something cannot be emitted: `reason()` says what and where.
  mlir::func::FuncOp build();
  llvm::StringRef reason() const { return failureReason; }
  /// Token ids are in [0, tokenLimit()).
  int64_t tokenLimit();

private:
  /// How a value of the source comes to be in the step.
  enum class Source {
    Ids,          // the token ids
    Integer,      // an exact integer function of the position and of indices
    RowsOfTable,  // rows of a table, taken at the position
    Attention,    // the result of an attention site
    LastRow,      // the row of the last token: the selected rows
    SameAs,       // another value of the source
    Clone,        // the same op on the emitted operands
  };
  struct Plan {
    Source source = Source::Clone;
    llvm::SmallVector<mlir::Value, 4> needs; // values of the source
    const AttentionSite *site = nullptr;
    int64_t offset = 0;
    unsigned axis = 0;
  };

  // Planning.
  bool plan(mlir::Value root);
  bool planValue(mlir::Value value, Plan &plan);
  bool planClone(mlir::Operation *op, mlir::Value value, Plan &plan);
  bool planPartsOfRows(mlir::Operation *op, mlir::Value value);
  bool planGather(mlir::Operation *op, mlir::Value value, Plan &plan);
  bool planSlice(mlir::Operation *op, mlir::Value value, Plan &plan);
  mlir::Value withoutPrefixSlices(mlir::Value table, unsigned axis);

  // Emission.
  mlir::Value emit(mlir::Value value);
  mlir::Value emitNow(mlir::Value value, const Plan &plan);
  mlir::Value emitClone(mlir::Operation *op, mlir::Value value);
  mlir::Value emitCopy(mlir::Operation *op, mlir::Value value);
  mlir::Value emitReshape(mlir::Location loc, mlir::Value input, mlir::RankedTensorType type);
  mlir::Value emitSlice(mlir::Operation *op, mlir::Value value);
  mlir::Value emitInteger(mlir::Value value);
  mlir::Value emitExpr(mlir::Location loc, Expr e, llvm::ArrayRef<Expr> extents, int tokenAxis);
  mlir::Value emitAttention(const AttentionSite &site);
  mlir::Value emitAttend(const AttentionSite &site, mlir::Value query, mlir::Value state);
  mlir::Value emitResult(const AttentionSite &site, mlir::Value result);
  mlir::Value emitRows(mlir::Location loc, const RoledValue &rows, int64_t heads, int64_t features);
  mlir::Value emitLogits(mlir::Location loc, mlir::Value value, bool selected);
  mlir::Value positions(mlir::Location loc);
  mlir::Value zeroOfEachRow(mlir::Location loc);
  mlir::Value repeatRow(mlir::Location loc, mlir::Value row, mlir::RankedTensorType type);
  mlir::Value constant(mlir::Location loc, llvm::ArrayRef<int64_t> values, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  mlir::Value vectorConstant(mlir::Location loc, llvm::ArrayRef<int64_t> values);

  // Facts of the source.
  std::optional<mlir::RankedTensorType> stepType(mlir::Value value);
  std::optional<int64_t> rowsPerToken(Expr extent);
  bool isEmpty(mlir::Value value);
  bool isTokenIds(mlir::Value value);
  bool indexesByData(mlir::Operation *op);
  bool indexesFromOutside(mlir::Operation *op);
  bool isOfLastToken(mlir::Value value);
  bool movesSelectedRows(mlir::Operation *op, mlir::Value value);
  bool countsPartsOfRows(mlir::Value value);
  std::optional<llvm::SmallVector<int64_t>> constantElements(mlir::Value value);
  const ModelOutput *logitsOutput();
  bool selectsLastRow(mlir::Operation *op, mlir::Value data, mlir::Value result);
  bool pairStates();

  bool fail(mlir::Operation *op, const llvm::Twine &why);
  bool fail(mlir::Location loc, const llvm::Twine &why);

  mlir::func::FuncOp source, step;
  const RaisedModel &model;
  ExprContext &exprs;
  mlir::OpBuilder builder;
  std::string failureReason;

  mlir::Value ids, batch, positionRows, zeroRows;
  /// (key state, value state) -> the state's value in the step, and whether the step's rows are appended.
  struct StepState {
    mlir::Value value;
    bool appended = false;
  };
  llvm::MapVector<std::pair<unsigned, unsigned>, StepState> states;
  llvm::DenseMap<mlir::Value, const AttentionSite *> siteOfResult;
  llvm::DenseMap<mlir::Value, Plan> plans;
  llvm::DenseMap<mlir::Value, mlir::Value> emitted;
};

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOKV_STEPBUILDER_H
