// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of the proof that a model can be raised.

#ifndef QUIRE_ANALYSIS_STATEPAIRING_PAIRING_H
#define QUIRE_ANALYSIS_STATEPAIRING_PAIRING_H

#include "lib/Analysis/Element/Interp.h"
#include "lib/Analysis/StatePairing/RaisedModel.h"

namespace quire {

/// The present of a state, as an element.
struct PresentRows {
  unsigned state;
  unsigned output;
  const SymbolicTensor *tensor;
};

class Pairing {
public:
  Pairing(Interp &in, RaisedModel &model) : in(in), ctx(in.ctx), model(model) {}

  void run();

private:
  // States.
  void listStates();
  void pairOutputs();
  void pairPresent(unsigned output, mlir::Value v, const SymbolicTensor &t,
                   const Leaves &l);
  std::string presentKind(unsigned state, const std::string &output,
                          const SymbolicTensor &t, StateKind &kind);
  std::string newRowsReason(const SymbolicTensor &present, unsigned axis);
  void locateNewRows(unsigned state);
  bool appends(mlir::Value rows, llvm::ArrayRef<int> axes, State &state);
  bool findAppended(mlir::Value v, llvm::SmallVector<int> axes, State &state);

  // Attention.
  std::string crossReason(const State &state);
  void readSites();
  void readSite(const ValueSite &site, AttentionSite &out);
  bool readScore(const ValueSite &site, const SoftmaxSite &softmax,
                 AttentionSite &out, ScoreRow &row, Expr dot);
  struct Operand {
    int state = -1;
    llvm::SmallVector<Expr, 4> index; // of the cached row, key index included
    double factor = 1;
  };
  std::optional<Operand> readOperand(Expr e, Expr keyVar, llvm::StringRef what,
                                     AttentionSite &out);
  bool readHeads(const Operand &operand, llvm::ArrayRef<Expr> headVars,
                 unsigned heads, Expr feature, AttentionSite &out,
                 llvm::SmallVectorImpl<int> &map, StateContent content);
  bool roleQuery(const DotSite &site, Expr dot, const ScoreRow &row,
                 AttentionSite &out);
  bool roleResult(const ValueSite &site, const SoftmaxSite &softmax,
                  const ScoreRow &row, const Operand &value,
                  AttentionSite &out, llvm::SmallVectorImpl<Expr> &headVars,
                  Expr &feature);
  Substitution headDigits(llvm::ArrayRef<Expr> headVars, unsigned head);
  Expr withOneSequence(Expr e);
  llvm::SmallVector<AxisRole, 4>
  rolesOf(const SymbolicTensor &t, Expr token, llvm::ArrayRef<Expr> heads,
          Expr feature);

  // Outputs.
  void readOutputs();
  void finish();

  bool fail(AttentionSite &site, const llvm::Twine &why);
  void reason(const llvm::Twine &why);
  void reasonOfOutput(const std::string &output, llvm::StringRef why);
  Expr oldRow() { return ctx.index("ko", in.P); }
  Expr newRow() {
    return ctx.isConst(in.L, 1) ? ctx.num(0) : ctx.index("kn", in.L);
  }

  Interp &in;
  ExprContext &ctx;
  RaisedModel &model;
  llvm::SmallVector<std::optional<PresentRows>> presents; // per state
  llvm::StringMap<std::string> unpaired; // why an output is no present of it
  /// Outputs that one cause has made reasons of.
  struct OutputReason {
    std::string first; // of the outputs
    size_t at = 0;     // in model.reasons
    unsigned count = 0;
  };
  llvm::StringMap<OutputReason> outputReasons; // by cause
};

} // namespace quire

#endif // QUIRE_ANALYSIS_STATEPAIRING_PAIRING_H
