// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Translation to LLVM IR, optimisation, object code and the link.
#include "lib/Target/CPU/ObjectEmission.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace quire::cpu;

// memcpy and its kin, which LLVM calls whatever it compiles. Hidden: they serve this object only. `no-builtins` keeps
// LLVM from finding a memcpy in memcpy.
static constexpr llvm::StringLiteral memoryFunctions = R"ir(
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %n) #0 {
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %to, i64 %i
  %byte = load i8, ptr %source
  store i8 %byte, ptr %target
  %next = add nuw i64 %i, 1
  %last = icmp eq i64 %next, %n
  br i1 %last, label %done, label %body
done:
  ret ptr %to
}
define hidden ptr @memmove(ptr %to, ptr %from, i64 %n) #0 {
entry:
  %below = icmp ult ptr %to, %from
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %choose
choose:
  br i1 %below, label %forward, label %backward
forward:
  %copied = call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret ptr %copied
backward:
  %i = phi i64 [ %n, %choose ], [ %next, %backward ]
  %next = sub nuw i64 %i, 1
  %source = getelementptr i8, ptr %from, i64 %next
  %target = getelementptr i8, ptr %to, i64 %next
  %byte = load i8, ptr %source
  store i8 %byte, ptr %target
  %first = icmp eq i64 %next, 0
  br i1 %first, label %done, label %backward
done:
  ret ptr %to
}
define hidden ptr @memset(ptr %to, i32 %value, i64 %n) #0 {
entry:
  %byte = trunc i32 %value to i8
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %target = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %target
  %next = add nuw i64 %i, 1
  %last = icmp eq i64 %next, %n
  br i1 %last, label %done, label %body
done:
  ret ptr %to
}
attributes #0 = { nounwind "no-builtins" }
)ir";

static std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target, Location loc) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string error;
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) {
    emitError(loc) << "no code generator for " << target.triple << ": " << error;
    return nullptr;
  }
  llvm::TargetOptions options; // fuses llvm.fmuladd only: what a row computes is what the kernels say
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(triple, target.cpu, target.featureString(),
                                                                            options, llvm::Reloc::PIC_, std::nullopt,
                                                                            llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    emitError(loc) << "no code generator for " << target.cpu;
  return machine;
}

// The standard pipeline without the search for vectors in straight-line code: kernels come as vectors.
static void optimise(llvm::Module &code, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(code, modules);
}

// Optimises `code` and appends its object or assembly to `output`.
static void generate(llvm::Module &code, llvm::TargetMachine &machine, llvm::CodeGenFileType kind, llvm::raw_pwrite_stream &output) {
  code.setTargetTriple(machine.getTargetTriple());
  code.setDataLayout(machine.createDataLayout());
  optimise(code, machine);
  llvm::legacy::PassManager passes;
  // createMachine() has registered the printer of the native target, the only one that it gives.
  if (machine.addPassesToEmitFile(passes, output, nullptr, kind))
    llvm::reportFatalInternalError("a native target writes neither assembly nor objects");
  passes.run(code);
}

static std::unique_ptr<llvm::Module> translate(ModuleOp module, llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "quire_model");
  if (!code)
    module.emitError("translation to LLVM IR failed");
  return code;
}

static LogicalResult writeFile(StringRef path, StringRef bytes, Location loc) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return emitError(loc) << "cannot write " << path << ": " << error.message();
  stream << bytes;
  stream.close();
  error = stream.error();
  stream.clear_error();
  if (error)
    return emitError(loc) << "cannot write " << path << ": " << error.message();
  return success();
}

FailureOr<std::string> quire::cpu::findLinker(StringRef folder, Location loc) {
  llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName("ld.lld", {folder});
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld");
  if (!linker)
    return emitError(loc) << "cannot find ld.lld in " << folder << " or in PATH";
  return *linker;
}

static LogicalResult link(ArrayRef<StringRef> objects, StringRef soPath, bool verbose, Location loc) {
  FailureOr<std::string> linker = findLinker(QUIRE_LLVM_TOOLS_DIR, loc);
  if (failed(linker))
    return failure();
  SmallVector<StringRef> command = {*linker, "-shared",     "-Bsymbolic", "--gc-sections",
                                    "-z",    "noexecstack", "-o",         soPath};
  command.append(objects.begin(), objects.end());
  if (verbose) {
    llvm::interleave(command, llvm::errs(), " ");
    llvm::errs() << "\n";
  }
  std::string error;
  int code = llvm::sys::ExecuteAndWait(*linker, command, std::nullopt, {}, 0, 0, &error);
  if (code != 0)
    return emitError(loc) << "ld.lld failed with code " << code << (error.empty() ? "" : ": ") << error;
  return success();
}

// The object may need functions of libm, and nothing else.
static bool isInLibm(StringRef name) {
  static const llvm::StringSet<> functions = {
      "acos",  "acosh",     "asin", "asinh", "atan",  "atan2", "atanh", "cbrt",      "ceil",  "copysign",
      "cos",   "cosh",      "erf",  "erfc",  "exp",   "exp2",  "expm1", "fabs",      "floor", "fma",
      "fmax",  "fmin",      "fmod", "log",   "log1p", "log10", "log2",  "nearbyint", "pow",   "rint",
      "round", "roundeven", "sin",  "sinh",  "sqrt",  "tan",   "tanh",  "trunc"};
  return functions.contains(name) || (name.consume_back("f") && functions.contains(name));
}

static LogicalResult checkNeeds(StringRef soPath, Location loc) {
  auto buffer = llvm::MemoryBuffer::getFile(soPath);
  if (!buffer)
    return emitError(loc) << "cannot read " << soPath << ": " << buffer.getError().message();
  auto object = llvm::object::ObjectFile::createELFObjectFile((*buffer)->getMemBufferRef());
  if (!object)
    return emitError(loc) << llvm::toString(object.takeError());
  for (const auto &symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**object).getDynamicSymbolIterators()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<StringRef> name = symbol.getName();
    if (!flags || !name)
      return emitError(loc) << llvm::toString(llvm::joinErrors(flags.takeError(), name.takeError()));
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() && !isInLibm(*name))
      return emitError(loc) << "not implemented: " << *name << ", which the code needs on this processor";
  }
  return success();
}

LogicalResult quire::cpu::emitAssembly(ModuleOp module, const CpuTarget &target, llvm::raw_ostream &output) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, module.getLoc());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = machine ? translate(module, context) : nullptr;
  if (!code)
    return failure();
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  generate(*code, *machine, llvm::CodeGenFileType::AssemblyFile, stream);
  output << text;
  return success();
}

LogicalResult quire::cpu::emitSharedObject(ModuleOp module, const CpuTarget &target, StringRef soPath, bool verbose) {
  Location loc = module.getLoc();
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = machine ? translate(module, context) : nullptr;
  if (!code)
    return failure();
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> memory =
      llvm::parseIR(llvm::MemoryBufferRef(memoryFunctions, "memory"), diagnostic, context);
  if (!memory)
    return emitError(loc) << diagnostic.getMessage();

  SmallVector<SmallString<128>> paths;
  SmallVector<StringRef> objects;
  SmallVector<std::unique_ptr<llvm::FileRemover>> removers;
  for (llvm::Module *part : {code.get(), memory.get()}) {
    SmallString<0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    generate(*part, *machine, llvm::CodeGenFileType::ObjectFile, stream);
    SmallString<128> path;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("quire-model", "o", path))
      return emitError(loc) << "cannot create a temporary file: " << error.message();
    removers.push_back(std::make_unique<llvm::FileRemover>(path));
    if (failed(writeFile(path, bytes, loc)))
      return failure();
    paths.push_back(path);
  }
  for (const auto &path : paths)
    objects.push_back(path);
  if (failed(link(objects, soPath, verbose, loc)))
    return failure();
  return checkNeeds(soPath, loc);
}
