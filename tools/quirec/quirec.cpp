// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler's command line.
#include "quire/Driver.h"
#include "quire/runtime.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

#include <csignal>

namespace cl = llvm::cl;

static cl::OptionCategory category("quirec options");

static cl::opt<std::string> input(cl::Positional, cl::desc("MODEL.onnx"), cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("the model folder to write, such as model.quire"), cl::value_desc("folder"), cl::cat(category));
static cl::opt<std::string> target("target", cl::desc("what to generate code for: cpu"), cl::init("cpu"), cl::cat(category));
static cl::opt<std::string> mcpu("mcpu", cl::desc("CPU to compile for, by LLVM's name; host: this machine's"), cl::init("host"), cl::cat(category));
static cl::list<std::string> mattr("mattr", cl::desc("CPU features to add or remove: +avx2, -avx512f"), cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string> kvType("kv-type", cl::desc("how K and V are stored: model (as in the file), f16, bf16, int8, int4, fp8_e4m3, fp8_e5m2; others than model round, so that logits differ from the file's (model)"),
                                   cl::value_desc("TYPE"), cl::init("model"), cl::cat(category));
static cl::opt<int64_t> blockTokens("block-tokens", cl::desc("tokens of a KV block, a power of two from 4 (16)"), cl::init(16), cl::cat(category));
static cl::opt<int64_t> prefetchDistance("kv-prefetch-distance", cl::desc("layers that KV blocks are requested ahead (1)"), cl::init(1), cl::cat(category));
static cl::list<std::string> inputRoles("input-role", cl::desc("what an input is for, where its uses leave a doubt; roles: input-ids, position-ids, attention-mask, encoder-mask, cache-position, past-lengths, total-lengths, last-positions, total-length, past-length, use-cache-branch, state, caller-mask, prefix-length, unused"), cl::value_desc("NAME=ROLE"), cl::cat(category));
static cl::opt<bool> inspect("inspect", cl::desc("describe the file: inputs by role, layers, operators; build nothing"), cl::cat(category));
static cl::opt<bool> json("json", cl::desc("with --inspect: JSON"), cl::cat(category));
static cl::opt<std::string> compileTo("compile-to", cl::desc("print the IR after a phase: import, semantic, paged, resource, buffer, target"), cl::value_desc("phase"), cl::cat(category));
static cl::opt<std::string> reportPath("report", cl::desc("write what was found and decided, per layer, as JSON"), cl::value_desc("file"), cl::cat(category));
static cl::opt<bool> verify("verify", cl::desc("run the original graph against the compiled model and keep the result as a certificate"), cl::cat(category));
static cl::opt<uint64_t> verifySeed("verify-seed", cl::desc("seed of the certificate's batches (0)"), cl::init(0), cl::cat(category));
static cl::opt<double> verifyWork("verify-work", cl::desc("multiply-adds that the original graph may take for one sequence of the certificate; longer ones start from random K and V (4e10)"), cl::init(4e10), cl::value_desc("number"), cl::cat(category));
static cl::opt<std::string> breakAttend("break-attend", cl::desc("tests of --verify: causal, window, scale, heads, block or parts; with stored- before it, only where K and V are stored as --kv-type asks"), cl::Hidden, cl::cat(category));
static cl::opt<bool> verbose("v", cl::desc("echo the commands that are run"), cl::cat(category));
static cl::opt<bool> quiet("quiet", cl::desc("no table on the terminal"), cl::cat(category));

static const char overview[] =
    "Quire: compiles an exported ONNX decoder into a model that serves ragged batches from paged KV blocks\n\n"
    "  quirec model.onnx -o model.quire            compile; quire-run serves the result\n"
    "  quirec model.onnx --inspect                 what is in the file\n"
    "  quirec model.onnx --compile-to=paged        the IR after a phase\n"
    "  quirec model.onnx -o m.quire --verify       compile, and compare with the original graph\n\n"
    "MLIR's own options work too (--mlir-timing, --mlir-print-ir-after-all, --mlir-pass-pipeline-crash-reproducer=FILE): see --help-hidden.\n"
    "Exit codes: 0 done, 1 bad usage or input, 3 refused (the report says why, nothing else is written), others are defects.\n";

static int usage(const llvm::Twine &why) {
  llvm::errs() << "quirec: error: " << why << "; see quirec --help\n";
  return int(quire::ExitCode::BadInput);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of its write
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "quirec " << quire_runtime_version() << "\n"; });
  cl::HideUnrelatedOptions(category);
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errorStream)) {
    llvm::errs() << errors;
    return int(quire::ExitCode::BadInput);
  }
  if (input.empty())
    return usage("expected an ONNX file");
  if (target != "cpu")
    return usage("not implemented: target '" + target + "'");
  quire::CompileOptions options;
  options.input = input;
  options.output = output;
  options.reportPath = reportPath;
  options.mcpu = mcpu;
  options.mattr.assign(mattr.begin(), mattr.end());
  options.inputRoles.assign(inputRoles.begin(), inputRoles.end());
  options.blockTokens = blockTokens;
  options.kvType = kvType;
  options.prefetchDistance = prefetchDistance;
  options.inspect = inspect;
  options.json = json;
  options.verify = verify;
  options.verifySeed = verifySeed;
  options.verifyWork = verifyWork;
  options.verbose = verbose;
  options.quiet = quiet;
  options.compileTo = compileTo;
  options.breakAttend = breakAttend;
  if (!llvm::is_contained({"model", "f16", "bf16", "int8", "int4", "fp8_e4m3", "fp8_e5m2"}, kvType.getValue()))
    return usage("expected --kv-type=model, f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2, but got '" + kvType + "'");
  if (blockTokens < 4 || blockTokens > 4096 || (blockTokens & (blockTokens - 1)) != 0)
    return usage("expected --block-tokens of a power of two from 4 to 4096, but got " + llvm::Twine(blockTokens));
  if (prefetchDistance < 0)
    return usage("expected --kv-prefetch-distance of at least 0, but got " + llvm::Twine(prefetchDistance));
  if (!compileTo.empty() && (!output.empty() || !reportPath.empty() || verify || inspect))
    return usage("--compile-to prints IR and builds nothing: it does not go with -o, --report, --verify or --inspect");
  if (inspect && (!output.empty() || !reportPath.empty() || verify))
    return usage("--inspect builds nothing: it does not go with -o, --report or --verify");
  if (json && !inspect)
    return usage("--json goes with --inspect");
  if (verify && output.empty())
    return usage("--verify needs a model to compare: -o FOLDER");
  if (output.empty() && compileTo.empty() && !inspect)
    return usage("expected -o FOLDER, --inspect or --compile-to=PHASE");
  return int(quire::compile(options));
}
