// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compilation, from an ONNX file to a model folder.
#include "quire/Driver.h"
#include "quire/Register.h"

#include "dialects/KV/KVDialect.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "lib/Driver/Artefact.h"
#include "lib/Driver/Certificate.h"
#include "lib/Driver/FileOutput.h"
#include "lib/Driver/Inspect.h"
#include "lib/Driver/Progress.h"
#include "lib/Driver/Report.h"
#include "lib/Import/Import.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/CPU/ObjectEmission.h"
#include "lib/Target/CPU/WeightsWriter.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace quire {
namespace {

/// Prints diagnostics as `quirec: error: ...` with the node they are about, and keeps the first error. While held they wait for release() or drop().
class Messages {
public:
  explicit Messages(MLIRContext &context) : handler(&context, [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {}
  const std::string &firstError() const { return first; }
  void hold() { held = true; }
  void release() {
    llvm::errs() << waiting;
    drop();
  }
  void drop() {
    waiting.clear();
    held = false;
  }

private:
  LogicalResult handle(Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (auto name = diagnostic.getLocation()->findInstanceOf<NameLoc>())
      os << "node '" << name.getName().getValue() << "': ";
    os << diagnostic.str();
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && first.empty())
      first = text;
    llvm::raw_string_ostream lines(waiting);
    lines << "quirec: "
          << (diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error: " : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning: " : "") << text
          << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      lines << "quirec: note: " << note.str() << "\n";
    if (!held)
      release();
    return success();
  }

  std::string first, waiting;
  bool held = false;
  ScopedDiagnosticHandler handler;
};

class Compilation {
public:
  Compilation(const CompileOptions &options, MLIRContext &context, bool trial = false)
      : options(options), context(context), messages(context), trial(trial) {}
  ExitCode run();

private:
  ExitCode inspectOnly();
  ExitCode printPhase(Phase phase);
  ExitCode build();
  ExitCode tryElementsOfTheGraph();
  ExitCode refuse();
  ExitCode defect();
  LogicalResult runPhases(ModuleOp module, Phase from, Phase to);
  void takeRaiseReport();
  ExitCode afterFailure();
  ExitCode bad(const llvm::Twine &why) {
    llvm::errs() << "quirec: error: " << why << "\n";
    return ExitCode::BadInput;
  }
  /// The folder that holds the model's files.
  llvm::StringRef modelFolder() {
    llvm::StringRef folder = llvm::sys::path::parent_path(options.input);
    return folder.empty() ? "." : folder;
  }
  RaiseOptions raiseOptions() {
    RaiseOptions raising;
    raising.inputRoles = options.inputRoles;
    raising.weightFolder = modelFolder().str();
    return raising;
  }
  std::string folderFile(llvm::StringRef folder, llvm::StringRef name) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  const CompileOptions &options;
  MLIRContext &context;
  Messages messages;
  Progress progress;
  OwningOpRef<ModuleOp> module;
  std::shared_ptr<RaiseReport> raise = std::make_shared<RaiseReport>();
  Report report;
  cpu::CpuTarget target;
  bool trial; // for a certificate only: leaves no folder, and what is refused is told by the report
  std::optional<llvm::json::Object> ofGraphElements; // the certificate of such a compilation
};

LogicalResult Compilation::runPhases(ModuleOp module, Phase from, Phase to) {
  PipelineOptions pipeline;
  pipeline.from = from;
  pipeline.to = to;
  pipeline.blockTokens = options.blockTokens;
  pipeline.kvType = options.kvType;
  pipeline.prefetchDistance = options.prefetchDistance;
  pipeline.target = target;
  llvm::StringRef error = options.breakAttend;
  if (error.consume_front("stored-") && trial)
    error = "";
  pipeline.breakAttend = error.str();
  pipeline.raise = raiseOptions();
  pipeline.report = raise;
  PassManager pm(&context);
  if (failed(applyPassManagerCLOptions(pm)))
    return failure();
  applyDefaultTimingPassManagerCLOptions(pm);
  buildPipeline(pm, pipeline);
  messages.hold();
  LogicalResult result = pm.run(module);
  if (succeeded(result))
    messages.release();
  return result;
}

/// What raising found out, and what was asked for that changes what the model computes.
void Compilation::takeRaiseReport() {
  report.raise = *raise;
  report.kvType = options.kvType;
  if (options.kvType != "model")
    report.raise.assumptions.push_back("K and V are stored as " + options.kvType + " (--kv-type): logits may differ from the file's");
}

/// The model was not taken: the report says why, nothing else is written. The table has the reasons that were errors of a pass.
ExitCode Compilation::refuse() {
  takeRaiseReport();
  progress.clear();
  if (trial) {
    messages.drop();
    return ExitCode::Refused;
  }
  if (options.quiet) {
    messages.release();
  } else {
    messages.drop();
    printTable(report, llvm::errs());
  }
  std::string error;
  if (!options.reportPath.empty() && !writeReport(report, options.reportPath, error))
    return bad(error);
  return ExitCode::Refused;
}

ExitCode Compilation::defect() {
  for (const char *missing : {"cannot write", "cannot read", "cannot create a temporary file", "cannot find"})
    if (llvm::StringRef(messages.firstError()).contains(missing))
      return ExitCode::BadInput;
  llvm::errs() << "quirec: this is a defect of the compiler; --mlir-pass-pipeline-crash-reproducer=FILE writes what is needed to look into it\n";
  return ExitCode::Defect;
}

/// What a failed pipeline means: refused when it was not proved or is not implemented, else a defect.
ExitCode Compilation::afterFailure() {
  if (!raise->raised && !raise->reasons.empty())
    return refuse();
  if (llvm::StringRef(messages.firstError()).contains("not implemented")) {
    report.reason = messages.firstError();
    return refuse();
  }
  messages.release();
  if (!raise->raised && llvm::StringRef(messages.firstError()).contains("expected"))
    return ExitCode::BadInput;
  return defect();
}

/// A full disk or a closed reader is an error of this run, not of LLVM's stream.
static ExitCode finishOutput() {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return ExitCode::Done;
  llvm::errs() << "quirec: error: standard output: " << llvm::outs().error().message() << "\n";
  llvm::outs().clear_error();
  return ExitCode::BadInput;
}

/// What compiling would find out, up to where every operator has got its code.
ExitCode Compilation::inspectOnly() {
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>((*module)->clone()));
  bool done = succeeded(runPhases(*copy, Phase::Import, Phase::Resource));
  if (!done && !raise->raised && raise->reasons.empty())
    return afterFailure();
  messages.drop();
  takeRaiseReport();
  if (!done && raise->raised)
    report.reason = messages.firstError();
  inspect(*module, report, options.json, llvm::outs());
  return finishOutput();
}

ExitCode Compilation::printPhase(Phase phase) {
  if (failed(runPhases(*module, Phase::Import, phase)))
    return afterFailure();
  OpPrintingFlags flags;
  module->print(llvm::outs(), flags);
  llvm::outs() << "\n";
  return finishOutput();
}

/// The same model with K and V in the elements of the graph, as far as its certificate: from the first token on and with a strict bound it finds what the
/// roundings of a narrow type hide. It is not kept. A model that gets no certificate is left to the compilation itself.
ExitCode Compilation::tryElementsOfTheGraph() {
  CompileOptions asInGraph = options;
  asInGraph.kvType = "model";
  asInGraph.reportPath.clear();
  Compilation other(asInGraph, context, /*trial=*/true);
  ExitCode code = other.run();
  if (code == ExitCode::Refused && other.report.certificate) {
    *raise = *other.raise;
    report.blockTokens = other.report.blockTokens;
    report.certificate = std::move(other.report.certificate);
    report.reason = "with K and V in the elements of the graph: " + other.report.reason;
    return refuse();
  }
  ofGraphElements = std::move(other.report.certificate);
  return ExitCode::Done;
}

ExitCode Compilation::build() {
  std::string error, verified;
  bool strictElsewhere = options.verify && llvm::is_contained({"int4", "fp8_e4m3", "fp8_e5m2"}, options.kvType);
  if (ExitCode code = strictElsewhere ? tryElementsOfTheGraph() : ExitCode::Done; code != ExitCode::Done)
    return code;
  PendingFolder folder;
  OwningOpRef<ModuleOp> original(options.verify ? cast<ModuleOp>((*module)->clone()) : nullptr);
  progress.step("raising");
  if (failed(runPhases(*module, Phase::Import, Phase::Paged)))
    return afterFailure();
  progress.step("lowering");
  if (failed(runPhases(*module, Phase::Paged, Phase::Buffer)))
    return afterFailure();
  if (!folder.create(options.output, error))
    return bad(error);
  OwningOpRef<ModuleOp> weights(cast<ModuleOp>((*module)->clone()));
  if (failed(runPhases(*module, Phase::Buffer, Phase::Target)))
    return afterFailure();
  std::optional<ModelFacts> facts = modelFacts(*weights);
  if (!facts)
    return defect();
  report.blockTokens = facts->blockTokens;
  report.blockBytes = facts->blockBytes;
  takeRaiseReport();
  progress.step("generating code");
  if (failed(cpu::emitSharedObject(*module, target, folderFile(folder.path(), "model.so"), options.verbose)))
    return defect();
  progress.step("packing weights");
  if (failed(cpu::writeWeights(*weights, modelFolder(), folderFile(folder.path(), "weights.bin"))))
    return ExitCode::BadInput;
  auto finish = [&]() { return writeReport(report, folderFile(folder.path(), "report.json"), error) && writeManifest(folder.path(), *facts, target, error); };
  if (!finish())
    return bad(error);
  if (options.verify) {
    progress.step("verifying");
    CertificateOptions certificateOptions;
    certificateOptions.seed = options.verifySeed;
    certificateOptions.workLimit = options.verifyWork;
    Certificate certificate = certify(*original, modelFolder(), *raise, folder.path().str(), certificateOptions);
    if (ofGraphElements)
      certificate.document["with_elements_of_the_graph"] = std::move(*ofGraphElements);
    report.certificate = certificate.document;
    if (!certificate.holds) {
      report.reason = certificate.reason;
      return refuse();
    }
    verified = certificate.summary;
    if (!finish())
      return bad(error);
  }
  if (trial)
    return ExitCode::Done;
  if (!options.reportPath.empty() && !writeReport(report, options.reportPath, error))
    return bad(error);
  if (!folder.commit(error))
    return bad(error);
  progress.clear();
  if (!options.quiet) {
    printTable(report, llvm::errs());
    if (!verified.empty())
      llvm::errs() << "verified: " << verified << "\n";
  }
  return ExitCode::Done;
}

ExitCode Compilation::run() {
  std::optional<Phase> phase = parsePhase(options.compileTo);
  if (!options.compileTo.empty() && (!phase || *phase == Phase::Object))
    return bad("expected --compile-to=import|semantic|paged|resource|buffer|target, but got '" + options.compileTo + "'");
  report.model = llvm::sys::path::filename(options.input).str();
  if (!cpu::CpuTarget::isKnown(options.mcpu))
    return bad("expected a 64-bit processor by LLVM's name in --mcpu, but got '" + options.mcpu + "'");
  target = cpu::CpuTarget::named(options.mcpu, options.mattr);
  if (std::string missing = options.verify ? missingFeature(target) : ""; !missing.empty())
    return bad("--verify runs the compiled model, which may use " + missing + ", and this processor has none; verify on one that has it, or choose another --mcpu");
  if (!options.reportPath.empty() && llvm::sys::fs::equivalent(options.reportPath, options.input))
    return bad(options.reportPath + ": is the model, the report would replace it");
  progress.step("reading");
  FailureOr<OwningOpRef<ModuleOp>> imported = importOnnx(options.input, context);
  if (failed(imported))
    return ExitCode::BadInput;
  module = std::move(*imported);
  for (auto initializer : module->getOps<onnx::InitializerOp>())
    if (!options.reportPath.empty() && llvm::sys::fs::equivalent(options.reportPath, folderFile(modelFolder(), initializer.getFile())))
      return bad(options.reportPath + ": holds weights of the model, the report would replace it");
  if (options.inspect)
    return inspectOnly();
  if (phase)
    return printPhase(*phase);
  return build();
}

} // namespace

ExitCode compile(const CompileOptions &options) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<kv::KVDialect>();
  context.printOpOnDiagnostic(false); // a model's text is no help
  return Compilation(options, context).run();
}

} // namespace quire
