// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs passes on MLIR text, with Quire's dialects and passes registered; `--import-onnx=FILE` prints an imported model.

#include "lib/Analysis/Testing/TestPasses.h"
#include "lib/Import/Import.h"
#include "quire/Register.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

// Prints the import of `path`, in the form that the other options of this tool read.
static int importOnnx(StringRef path, DialectRegistry &registry, bool debugInfo) {
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  FailureOr<OwningOpRef<ModuleOp>> module = quire::importOnnx(path, context, {});
  if (failed(module))
    return 1;
  OpPrintingFlags flags;
  flags.enableDebugInfo(debugInfo);
  (*module)->print(llvm::outs(), flags);
  llvm::outs() << "\n";
  return 0;
}

// The first words of --help; MlirOptMain adds the dialects.
static constexpr const char *overview = R"(Quire's passes on MLIR text: reads a module, runs the passes that are named in their order, and prints what became of it

  quire-opt --import-onnx=model.onnx > import.mlir                      the graph of a model, in the dialect onnx
  quire-opt --quire-pipeline='compile-to=paged' import.mlir             the passes between two phases, as quirec runs them: from
                                                                        import, semantic or paged, to any from there to target
  quire-opt --quire-pipeline='compile-from=paged compile-to=buffer' paged.mlir
  quire-opt --raise-attention --paginate='block-tokens=32' import.mlir  single passes: docs/Passes.md

quirec compiles a whole model; this tool is for looking at a pass, and for tests.
)";

int main(int argc, char **argv) {
  DialectRegistry registry;
  quire::registerAllDialects(registry);
  quire::registerAllPasses();
  quire::registerAnalysisTestPasses();
  registerTransformsPasses();

  StringRef prefix = "--import-onnx=";
  bool debugInfo = false;
  StringRef path;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument.consume_front(prefix))
      path = argument;
    else if (argument == "--mlir-print-debuginfo")
      debugInfo = true;
  }
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "quire-opt " QUIRE_VERSION " (LLVM " LLVM_VERSION_STRING ")\n"; });
  if (!path.empty())
    return importOnnx(path, registry, debugInfo);
  return asMainReturnCode(MlirOptMain(argc, argv, overview, registry));
}
