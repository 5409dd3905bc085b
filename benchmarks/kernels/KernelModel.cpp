// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text of the modules, their compilation, and steps on them.
#include "benchmarks/kernels/KernelModel.h"

#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/CpuTarget.h"
#include "lib/Target/CPU/ObjectEmission.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"

#include <dlfcn.h>
#include <sys/mman.h>

using namespace mlir;

namespace quire::bench {

static std::string number(int64_t value) { return std::to_string(value); }
static int64_t bytesOf(const std::string &element) { return element == "f32" ? 4 : 2; }
static int64_t alignTo64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t panelColumnsHere() { return cpu::CpuTarget::host().panelWidth(); }
int64_t lanesHere() { return cpu::CpuTarget::host().lanes(); }

int64_t ProductShape::weightBytes() const { return (n + panelColumns - 1) / panelColumns * panelColumns * k * bytesOf(element); }
int64_t AttendShape::tokenBytes() const {
  int64_t rowBytes = element == "i4" ? (features + 1) / 2 : element.find("8") != std::string::npos ? features : features * bytesOf(element);
  int64_t groups = element[0] == 'i' ? (features + kvrt::StateType::groupFeatures - 1) / kvrt::StateType::groupFeatures : 0;
  return 2 * layers * kvHeads * (rowBytes + groups * 2 * static_cast<int64_t>(sizeof(float)));
}

std::string productModule(const ProductShape &shape, int64_t maxRows) {
  std::string panels = number((shape.n + shape.panelColumns - 1) / shape.panelColumns) + "x" + number(shape.k) + "x" + number(shape.panelColumns) + "x" + shape.element;
  std::string input = number(maxRows) + "x" + number(shape.k) + "xf32", rows = "memref<?x" + number(shape.k) + "xf32, strided<[" + number(shape.k) + ", 1]>>";
  std::string output = "memref<?x" + number(shape.n) + "xf32>";
  std::string symbols = "kvrt.raw @source {source = @source} : tensor<1xf32>\n", body;
  int64_t offset = 0;
  for (int64_t i = 0; i < shape.count; ++i) {
    std::string name = "w" + number(i);
    symbols += "kvrt.packed @" + name + " {source = @source, layout = #kvrt.panels<nr = " + number(shape.panelColumns) + ">, k = " + number(shape.k) + ", n = " + number(shape.n) +
               ", offset = " + number(offset) + "} : tensor<" + panels + ">\n";
    body += "  %" + name + " = kvrt.weight %batch, @" + name + " : memref<" + panels + ">\n  kvrt.product ins(%x, %" + name + ", %batch : " + rows + ", memref<" + panels +
            ">) outs(%y" + number(i % 2) + " : " + output + ")\n  memref.store %zero, %mark[%c0] : memref<1xf32>\n"; // what follows is a loop of its own
    offset += alignTo64(shape.weightBytes());
  }
  symbols += "kvrt.raw @x {source = @source, offset = " + number(offset) + "} : tensor<" + input + ">\n";
  offset += alignTo64(maxRows * shape.k * 4);
  int64_t rowBytes = alignTo64(shape.n * 4);
  return symbols + "kvrt.model @step {vocabulary = 1, token_limit = 1, max_positions = -1, block_tokens = 16, "
         "layers = [!kvrt.state<heads = 1, key = 4, value = 4, element = f32, block = 16, lanes = 4>], weights_bytes = " + number(offset) +
         ", scratch_fixed = 64, scratch_per_token = " + number(2 * rowBytes) + "}\nfunc.func @step(%batch: !kvrt.batch) {\n  %rows = kvrt.extent %batch[tokens]\n" +
         "  %c0 = arith.constant 0 : index\n  %zero = arith.constant 0.0 : f32\n  %mark = kvrt.scratch %batch : memref<1xf32>\n  %all = kvrt.weight %batch, @x : memref<" + input +
         ">\n  %x = memref.subview %all[0, 0] [%rows, " + number(shape.k) + "] [1, 1] : memref<" + input + "> to " + rows + "\n  %y0 = kvrt.scratch %batch[%rows] {fixed = 64} : " + output +
         "\n  %y1 = kvrt.scratch %batch[%rows] {fixed = 64, per_token = " + number(rowBytes) + "} : " + output + "\n" + body + "  return\n}\n";
}

std::string attendModule(const AttendShape &shape, int64_t maxRows) {
  std::string state = "!kvrt.state<heads = " + number(shape.kvHeads) + ", key = " + number(shape.features) + ", value = " + number(shape.features) + ", element = " + shape.element +
                      ", block = " + number(shape.blockTokens) + ", lanes = " + number(shape.lanes) + ">";
  std::string tail = number(shape.heads) + "x" + number(shape.features) + "xf32", all = number(maxRows) + "x" + tail;
  std::string rows = "memref<?x" + tail + ", strided<[" + number(shape.heads * shape.features) + ", " + number(shape.features) + ", 1]>>";
  int64_t rowBytes = alignTo64(shape.heads * shape.features * 4);
  constexpr int64_t places = 512;
  int64_t group = shape.heads / shape.kvHeads;
  std::string parts = "memref<" + number(places) + "x" + number(group) + "x" + number(shape.features + 2) + "xf32>";
  std::string states, body;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    std::string name = "%s" + number(layer);
    states += (layer ? ", " : "") + state;
    body += "  " + name + " = kvrt.acquire %batch, " + number(layer) + " : " + state + "\n  kvrt.attend ins(%q, " + name + ", %batch : " + rows + ", " + state + ") parts(%parts : " + parts + ") outs(%o : memref<?x" + tail +
            ">) {scale = 0.125 : f32, window = 0, chunk = 0, causal = true, softcap = 0.0 : f32}\n  kvrt.release " + name + ", %batch : " + state + "\n";
  }
  return "kvrt.raw @q {source = @q, offset = 0} : tensor<" + all + ">\nkvrt.model @step {vocabulary = 1, token_limit = 1, max_positions = -1, block_tokens = " + number(shape.blockTokens) +
         ", layers = [" + states + "], weights_bytes = " + number(alignTo64(maxRows * shape.heads * shape.features * 4)) + ", scratch_per_token = " + number(rowBytes) +
         ", scratch_fixed = " + number(alignTo64(places * group * (shape.features + 2) * 4)) + "}\nfunc.func @step(%batch: !kvrt.batch) {\n  %rows = kvrt.extent %batch[tokens]\n" +
         "  %parts = kvrt.scratch %batch : " + parts + "\n  %all = kvrt.weight %batch, @q : memref<" + all +
         ">\n  %q = memref.subview %all[0, 0, 0] [%rows, " + number(shape.heads) + ", " + number(shape.features) + "] [1, 1, 1] : memref<" + all + "> to " + rows +
         "\n  %o = kvrt.scratch %batch[%rows] {fixed = " + number(alignTo64(places * group * (shape.features + 2) * 4)) + "} : memref<?x" + tail + ">\n" + body + "  return\n}\n";
}

[[noreturn]] static void giveUp(const llvm::Twine &what) {
  llvm::errs() << "quire-kernel-bench: error: " << what << "\n";
  std::exit(1);
}

static void check(quire_status status) {
  if (status != QUIRE_OK)
    giveUp(quire_last_error());
}

static void *compile(const std::string &text) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<kvrt::KVRTDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  cpu::CpuTarget target = cpu::CpuTarget::host();
  PassManager passes(&context);
  cpu::buildCpuTargetPipeline(passes, target);
  llvm::SmallString<128> path;
  if (!module || failed(passes.run(*module)) || llvm::sys::fs::createTemporaryFile("quire-bench", "so", path) ||
      failed(cpu::emitSharedObject(*module, target, path, /*verbose=*/false)))
    giveUp("a kernel does not compile");
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  llvm::sys::fs::remove(path);
  if (!library)
    giveUp(::dlerror());
  return library;
}

KernelModel::KernelModel(const std::string &text, int64_t maxTokens, int64_t sequences, int64_t kvTokens, int64_t threads, bool shuffle) : library_(compile(text)) {
  auto query = reinterpret_cast<quire_model_query_fn>(::dlsym(library_, "quire_model_query"));
  info_ = query ? query(QUIRE_MODEL_ABI_VERSION) : nullptr;
  if (!info_)
    giveUp("a kernel does not load");
  constexpr size_t hugePage = size_t(2) << 20;
  weights_.resize(static_cast<size_t>(info_->weights_bytes) + 2 * hugePage);
  char *weights = weights_.data() + (hugePage - reinterpret_cast<uintptr_t>(weights_.data()) % hugePage) % hugePage;
  ::madvise(weights, static_cast<size_t>(info_->weights_bytes) / hugePage * hugePage, MADV_HUGEPAGE);
  std::fill(weights, weights + info_->weights_bytes, 0x3c); // 0.0115 in f32, 1.06 in f16
  check(quire_model_from_info(info_, weights, &model_));
  quire_pool_options poolOptions = {};
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = static_cast<uint64_t>(std::max<int64_t>(1, quire_model_block_bytes(info_))) * static_cast<uint64_t>((kvTokens + maxTokens) / info_->block_tokens + 2 * sequences + 1);
  poolOptions.shuffle = shuffle;
  check(quire_pool_create(info_, &poolOptions, &pool_));
  quire_executor_options executorOptions = {};
  executorOptions.struct_size = sizeof(executorOptions);
  executorOptions.threads = threads;
  executorOptions.max_tokens = maxTokens;
  executorOptions.max_sequences = sequences;
  check(quire_executor_create(model_, pool_, &executorOptions, &executor_));
}

KernelModel::~KernelModel() {
  quire_executor_destroy(executor_);
  quire_pool_destroy(pool_);
  quire_model_destroy(model_);
  ::dlclose(library_);
}

void KernelModel::fill(int64_t count, int64_t length) {
  for (quire_sequence sequence : sequences_)
    check(quire_sequence_release(pool_, sequence));
  sequences_.assign(static_cast<size_t>(count), 0);
  length_ = length;
  uint64_t state = 1;
  for (quire_sequence &sequence : sequences_) {
    check(quire_sequence_create(pool_, &sequence));
    if (length == 0)
      continue;
    check(quire_sequence_reserve(pool_, sequence, length));
    check(quire_sequence_commit(pool_, sequence, length));
    const int32_t *blocks;
    int64_t blockCount;
    check(quire_sequence_table(pool_, sequence, &blocks, &blockCount));
    for (int64_t i = 0; i < blockCount; ++i)
      for (int64_t layer = 0; layer < info_->layer_count; ++layer) {
        void *address;
        check(quire_pool_block_address(pool_, layer, blocks[i], &address));
        auto *halves = static_cast<uint16_t *>(address);
        for (int64_t at = 0; at < info_->layers[layer].block_bytes / 2; ++at) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          // Sign and fraction vary; as f32, f16 or bf16 a number below 1 in magnitude.
          halves[at] = static_cast<uint16_t>(0x3000 | (state >> 48 & 0x80ff));
        }
      }
  }
}

void KernelModel::step(int64_t rows) {
  counts_.assign(sequences_.size(), rows);
  tokens_.assign(sequences_.size() * static_cast<size_t>(rows), 0);
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = static_cast<int64_t>(sequences_.size());
  batch.sequences = sequences_.data();
  batch.token_counts = counts_.data();
  batch.tokens = tokens_.data();
  check(quire_executor_step(executor_, &batch, nullptr));
  for (quire_sequence sequence : sequences_)
    check(quire_sequence_truncate(pool_, sequence, length_));
}

} // namespace quire::bench
