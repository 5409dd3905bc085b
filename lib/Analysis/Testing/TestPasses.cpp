// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the elements of values, and the attention of a model.

#include "lib/Analysis/Testing/TestPasses.h"
#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/Interp.h"
#include "lib/Analysis/StatePairing/RaisedModel.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Format.h"

using namespace llvm;
using namespace mlir;

namespace quire {
namespace {

struct PrintElementPass
    : PassWrapper<PrintElementPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintElementPass)
  StringRef getArgument() const override { return "test-print-element"; }
  StringRef getDescription() const override {
    return "prints extents and element of every value";
  }

  void runOnOperation() override {
    Interp in(getOperation(), {});
    raw_ostream &os = llvm::outs();
    os << "@" << getOperation().getName() << "\n";
    if (!in.run())
      os << "refused: " << in.refusal << "\n";
    for (const std::string &a : in.assumptions)
      os << "assume " << a << "\n";
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value v : op->getResults())
        if (const SymbolicTensor *t = in.find(v)) {
          os << in.label(v) << " [";
          llvm::interleaveComma(t->extents, os,
                                [&](Expr d) { in.ctx.print(d, os); });
          os << "] ";
          in.ctx.print(t->element, os);
          os << "\n";
        }
    });
    markAllAnalysesPreserved();
  }
};

StringRef axisName(AxisKind kind) {
  static constexpr StringLiteral names[] = {
      "batch", "token",      "head",        "feature", "batch-head",
      "batch-token", "head-feature", "pack", "key",     "other"};
  return names[size_t(kind)];
}

void printAxes(raw_ostream &os, const RoledValue &v) {
  os << "[";
  llvm::interleaveComma(v.axes, os, [&](const AxisRole &r) {
    os << axisName(r.kind);
    if (r.extent >= 0)
      os << " " << r.extent;
  });
  os << "]";
}

struct PrintScorePass
    : PassWrapper<PrintScorePass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintScorePass)
  PrintScorePass() = default;
  PrintScorePass(const PrintScorePass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "test-print-score"; }
  StringRef getDescription() const override {
    return "prints states and attention of a model, or why there is none";
  }
  Option<std::string> folder{*this, "folder",
                             llvm::cl::desc("folder of the weights")};

  void runOnOperation() override {
    AnalysisOptions options;
    options.weightFolder = folder;
    FailureOr<RaisedModel> model = analyzeModel(getOperation(), options);
    if (failed(model))
      return signalPassFailure();
    raw_ostream &os = llvm::outs();
    os << "@" << getOperation().getName() << ": "
       << (model->raised() ? "raised" : "refused")
       << (model->oneTokenOnly ? " for one token" : "") << "\n";
    for (const std::string &r : model->reasons)
      os << "reason " << r << "\n";
    for (const std::string &r : model->flags)
      os << "flag " << r << "\n";
    for (const std::string &r : model->assumptions)
      os << "assume " << r << "\n";
    if (model->maxPositions)
      os << "positions < " << model->maxPositions << "\n";
    for (const State &s : model->states)
      printState(os, *model, s);
    for (const AttentionSite &s : model->sites)
      printSite(os, *model, s);
    markAllAnalysesPreserved();
  }

  void printState(raw_ostream &os, const RaisedModel &m, const State &s) {
    static constexpr StringLiteral kinds[] = {"grow", "static", "constant",
                                              "unused"};
    static constexpr StringLiteral contents[] = {"unknown", "keys", "values",
                                                 "packed"};
    os << "state " << s.name << " " << kinds[size_t(s.kind)] << " "
       << contents[size_t(s.content)] << " output " << s.outputIndex
       << " heads " << s.kvHeads << " dim " << s.dim << " rows ";
    printAxes(os, s.newRows);
    os << "\n";
  }

  void printSite(raw_ostream &os, const RaisedModel &m,
                 const AttentionSite &s) {
    os << "site " << s.node;
    if (!s.reason.empty()) {
      os << " refused: " << s.reason << "\n";
      return;
    }
    os << " mask " << stringifyMaskKind(s.mask);
    if (s.maskSize)
      os << " " << s.maskSize;
    os << " scale " << format("%.6g", s.scale);
    if (s.softcap != 0)
      os << " softcap " << format("%.6g", s.softcap);
    if (s.resultScale != 1)
      os << " result-scale " << format("%.6g", s.resultScale);
    os << " heads " << s.heads << "/" << s.kvHeads << " keys "
       << m.states[s.keyState].name << " values " << m.states[s.valueState].name
       << " query ";
    printAxes(os, s.query);
    os << " result ";
    printAxes(os, s.result);
    if (s.biasKind == BiasKind::Alibi) {
      os << " slopes";
      for (double d : s.slopes)
        os << " " << format("%.6g", d);
    }
    if (s.biasKind == BiasKind::Region)
      os << " bias " << m.context().str(s.bias);
    if (s.hasSinks) {
      os << " sinks";
      for (double d : s.sinks)
        os << " " << format("%.6g", d);
    }
    os << "\n";
  }
};
} // namespace

void registerAnalysisTestPasses() {
  PassRegistration<PrintElementPass>();
  PassRegistration<PrintScorePass>();
}

} // namespace quire
