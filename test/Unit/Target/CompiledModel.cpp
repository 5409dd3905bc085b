// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compilation and the runtime of tests: pieces run one by one, the last first.
#include "test/Unit/Target/CompiledModel.h"
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/ObjectEmission.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <regex>
#include <sstream>
#include <thread>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace quire::test;

// The module after the pipeline; null after a reported failure.
static OwningOpRef<ModuleOp> lower(MLIRContext &context, const std::string &text, const quire::cpu::CpuTarget &target) {
  context.loadDialect<quire::kvrt::KVRTDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect,
                      memref::MemRefDialect, scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "the module does not parse";
    return nullptr;
  }
  PassManager passes(&context);
  quire::cpu::buildCpuTargetPipeline(passes, target);
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << "the pipeline failed";
    return nullptr;
  }
  return module;
}

std::vector<std::string> quire::test::multiplyAddLoopsOf(const std::string &assembly) {
  std::vector<std::string> loops;
  std::string label, block;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".LBB", 0) == 0) {
      label = line.substr(0, line.find(':'));
      block.clear();
      continue;
    }
    block += line + "\n";
    bool jumpsBack = line.rfind("\tj", 0) == 0 && !label.empty() && line.substr(line.find_last_of("\t ") + 1) == label;
    if (jumpsBack && block.find("vfmadd") != std::string::npos)
      loops.push_back(block);
  }
  return loops;
}

bool quire::test::spillsResults(const std::string &loop) {
  return std::regex_search(loop, std::regex("%[yz]mm[0-9]+, [0-9]*\\(%rsp\\)\\n"));
}

bool quire::test::spillsVectors(const std::string &loop) {
  static const std::regex spill("[^,(]*[0-9]*\\(%rsp\\)");
  std::istringstream lines(loop);
  for (std::string line; std::getline(lines, line);)
    if ((line.find("%ymm") != std::string::npos || line.find("%zmm") != std::string::npos) && std::regex_search(line, spill))
      return true;
  return false;
}

std::string quire::test::assemblyOf(const std::string &text, const cpu::CpuTarget &target) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = lower(context, text, target);
  std::string assembly;
  llvm::raw_string_ostream stream(assembly);
  if (module && failed(cpu::emitAssembly(*module, target, stream)))
    ADD_FAILURE() << "no assembly";
  return assembly;
}

std::string quire::test::emissionError(const std::string &text, const cpu::CpuTarget &target, const std::string &path) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = lower(context, text, target);
  if (!module)
    return "no module";
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error += diagnostic.str();
    return success();
  });
  llvm::SmallString<128> file(path);
  if (path.empty() && llvm::sys::fs::createTemporaryFile("quire-test", "so", file))
    return "no temporary file";
  bool failed = mlir::failed(cpu::emitSharedObject(*module, target, file, /*verbose=*/false));
  if (path.empty())
    llvm::sys::fs::remove(file);
  return failed ? error : "";
}

CompiledModel::CompiledModel(const std::string &text, const cpu::CpuTarget &target) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = lower(context, text, target);
  if (!module)
    return;
  llvm::SmallString<128> file;
  if (llvm::sys::fs::createTemporaryFile("quire-test", "so", file)) {
    ADD_FAILURE() << "no temporary file";
    return;
  }
  path = file.str().str();
  if (failed(cpu::emitSharedObject(*module, target, path, /*verbose=*/false))) {
    ADD_FAILURE() << "no shared object";
    return;
  }
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return;
  }
  auto query = reinterpret_cast<quire_model_query_fn>(dlsym(handle, "quire_model_query"));
  if (!query) {
    ADD_FAILURE() << dlerror();
    return;
  }
  EXPECT_EQ(query(QUIRE_MODEL_ABI_VERSION + 1), nullptr);
  info = query(QUIRE_MODEL_ABI_VERSION);
}

CompiledModel::~CompiledModel() {
  if (handle)
    dlclose(handle);
  if (!path.empty())
    llvm::sys::fs::remove(path);
}

static TestRuntime &self(void *context) { return *static_cast<TestRuntime *>(context); }

// The last piece first.
static void runParallel(void *context, int64_t count, int64_t grain, quire_task_fn task, void *env) {
  TestRuntime &runtime = self(context);
  runtime.loops.push_back(count);
  int64_t size = grain * runtime.pieceGrains;
  std::atomic<int64_t> left((count + size - 1) / size);
  auto work = [&] {
    for (int64_t piece; (piece = --left) >= 0;)
      task(env, piece * size, std::min(count, (piece + 1) * size));
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < runtime.threads; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

static void acquire(void *context, int64_t layer, quire_kv_view *out) {
  TestRuntime &runtime = self(context);
  runtime.log.calls.push_back("acquire " + std::to_string(layer));
  out->base = runtime.arenas[layer].data();
  out->base += (64 - reinterpret_cast<uintptr_t>(out->base) % 64) % 64;
  out->block_stride = runtime.info->layers[layer].block_bytes;
  out->tables = runtime.tables.data();
  out->observed = runtime.observed.empty() ? nullptr : runtime.observed.data();
}

static void release(void *context, int64_t layer) {
  self(context).log.calls.push_back("release " + std::to_string(layer));
}

static void prefetch(void *context, int64_t layer, int64_t first, int64_t count) {
  self(context).log.calls.push_back("prefetch " + std::to_string(layer) + " " + std::to_string(first) + " " +
                                    std::to_string(count));
}

void TestRuntime::allocate(int64_t blocks, char fill) {
  for (size_t layer = 0; layer < arenas.size(); ++layer)
    arenas[layer].assign(blocks * info->layers[layer].block_bytes + 64, fill);
}

std::vector<float> TestRuntime::step(const std::vector<SequenceRows> &sequences, const std::vector<int64_t> &selected,
                                     const char *weights) {
  std::vector<int64_t> ids, positions, places, sequenceOf, starts = {0}, pastLengths;
  tables.clear();
  size_t stride = 1;
  for (const SequenceRows &sequence : sequences)
    stride = std::max(stride, sequence.blocks.size());
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (int64_t row = 0; row < sequences[s].rows; ++row) {
      ids.push_back(0);
      places.push_back(sequences[s].past + row);
      positions.push_back(places.back() + dropped);
      sequenceOf.push_back(s);
    }
    starts.push_back(positions.size());
    pastLengths.push_back(sequences[s].past);
    std::vector<int32_t> table = sequences[s].blocks;
    table.resize(stride, -1);
    tables.insert(tables.end(), table.begin(), table.end());
  }
  int64_t tokens = positions.size(), count = selected.size();
  int64_t bytes = info->scratch_fixed + info->scratch_per_token * tokens + info->scratch_per_selected * count;
  std::vector<char> scratch(bytes + 128, static_cast<char>(0xff)); // as a number, none
  loops.clear();
  std::vector<float> logits(count * info->vocabulary, -1.0f);
  quire_runtime_table table = {
      sizeof(quire_runtime_table), QUIRE_MODEL_ABI_VERSION, runParallel, acquire, release, prefetch};
  quire_step step = {};
  step.ids = ids.data();
  step.positions = positions.data();
  step.places = places.data();
  step.sequence_of = sequenceOf.data();
  step.query_starts = starts.data();
  step.past_lens = pastLengths.data();
  step.selected = selected.data();
  step.logits = logits.data();
  step.weights = weights;
  step.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  step.runtime = &table;
  step.context = this;
  step.tokens = tokens;
  step.sequences = sequences.size();
  step.table_stride = stride;
  step.selected_count = count;
  step.threads = toldThreads;
  info->step(&step);
  return logits;
}
