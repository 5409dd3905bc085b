// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a model's shared object exports and needs, what it says of itself, and which calls of the runtime it makes.
#include "dialects/KVRT/KVRT.h"
#include "test/Unit/Target/CompiledModel.h"

#include "lib/Target/CPU/ObjectEmission.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <set>

using namespace quire;
using namespace quire::test;

namespace {

// Touches every call of the runtime, libm, and enough memory for LLVM to want memcpy and memset.
constexpr const char *everyCall = R"(
!state = !kvrt.state<heads = 2, key = 8, value = 8, element = f16, block = 16, lanes = 8>
kvrt.model @step {vocabulary = 512, token_limit = 500, max_positions = 2048, block_tokens = 16, layers = [!state, !state],
                  weights_bytes = 64, scratch_fixed = 128, scratch_per_token = 2048, scratch_per_selected = 64}
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f32
  %rows = kvrt.extent %batch[tokens]
  kvrt.prefetch %batch {layer = 1, first = 2, count = 3}
  %s = kvrt.acquire %batch, 1 : !state
  %x = kvrt.scratch %batch[%rows] {fixed = 128} : memref<?x512xf32>
  %y = kvrt.logits %batch : memref<?x512xf32>
  kvrt.parallel (%begin, %end) = %rows on %batch grain 2 {
    scf.for %i = %begin to %end step %c1 {
      scf.for %j = %c0 to %c512 step %c1 {
        memref.store %zero, %x[%i, %j] : memref<?x512xf32>
      }
      %row = arith.index_cast %i : index to i64
      %value = arith.sitofp %row : i64 to f32
      %angle = math.cos %value : f32
      memref.store %angle, %x[%i, %i] : memref<?x512xf32>
    }
  }
  memref.copy %x, %y : memref<?x512xf32> to memref<?x512xf32>
  kvrt.release %s, %batch : !state
  return
}
)";

TEST(Object, DescribesTheModel) {
  CompiledModel model(everyCall);
  ASSERT_NE(model.info, nullptr);
  const quire_model_info &info = *model.info;
  EXPECT_EQ(info.struct_size, static_cast<int64_t>(sizeof(quire_model_info)));
  EXPECT_EQ(info.abi_version, QUIRE_MODEL_ABI_VERSION);
  EXPECT_EQ(info.vocabulary, 512);
  EXPECT_EQ(info.token_limit, 500);
  EXPECT_EQ(info.max_positions, 2048);
  EXPECT_EQ(info.block_tokens, 16);
  EXPECT_EQ(info.weights_bytes, 64);
  EXPECT_EQ(info.scratch_fixed, 128);
  EXPECT_EQ(info.scratch_per_token, 2048);
  EXPECT_EQ(info.scratch_per_selected, 64);
  ASSERT_EQ(info.layer_count, 2);
  const quire_model_layer &layer = info.layers[1];
  EXPECT_EQ(layer.kv_heads, 2);
  EXPECT_EQ(layer.key_dim, 8);
  EXPECT_EQ(layer.value_dim, 8);
  EXPECT_EQ(layer.element, QUIRE_ELEMENT_F16);
  EXPECT_EQ(layer.lanes, 8);
  EXPECT_EQ(layer.value_offset, 512);
  EXPECT_EQ(layer.block_bytes, 1024);
}

TEST(Object, CallsTheRuntime) {
  CompiledModel model(everyCall);
  ASSERT_NE(model.info, nullptr);
  TestRuntime runtime(model.info);
  runtime.allocate(4, 0);
  std::vector<float> logits = runtime.step({{0, 3, {0}}}, {0, 1, 2}, nullptr);
  EXPECT_EQ(runtime.log.calls, (std::vector<std::string>{"prefetch 1 2 3", "acquire 1", "release 1"}));
  EXPECT_EQ(logits[0], 1.0f);
  EXPECT_NEAR(logits[513], std::cos(1.0), 1e-6);
  EXPECT_EQ(logits[514], 0.0f);
}

TEST(Object, NeedsLibmOnly) {
  CompiledModel model(everyCall);
  ASSERT_NE(model.info, nullptr);
  auto buffer = llvm::MemoryBuffer::getFile(model.path);
  ASSERT_TRUE(static_cast<bool>(buffer));
  auto object = llvm::object::ObjectFile::createELFObjectFile((*buffer)->getMemBufferRef());
  ASSERT_TRUE(static_cast<bool>(object));
  std::set<std::string> needed, exported;
  for (const auto &symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**object).getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    ASSERT_TRUE(name && flags);
    if (!name->empty())
      (*flags & llvm::object::SymbolRef::SF_Undefined ? needed : exported).insert(name->str());
  }
  EXPECT_EQ(exported, std::set<std::string>{"quire_model_query"});
  std::set<std::string> libm = {"cosf", "sinf", "expf", "logf", "powf", "tanhf", "erff"};
  for (const std::string &name : needed)
    EXPECT_TRUE(libm.count(name)) << name;
}

// Without conversions of f16 in the processor, LLVM wants a library that is not libm.
TEST(Object, RefusesOtherNeeds) {
  std::string text = R"(
    func.func @convert(%m: memref<?xf16>, %i: index) {
      %x = memref.load %m[%i] : memref<?xf16>
      %y = arith.addf %x, %x : f16
      memref.store %y, %m[%i] : memref<?xf16>
      return
    }
    kvrt.model @step {vocabulary = 512, token_limit = 500, max_positions = 2048, block_tokens = 16, layers = []}
    func.func @step(%batch: !kvrt.batch) {
      %c0 = arith.constant 0 : index
      %m = kvrt.scratch %batch {fixed = 0} : memref<64xf16>
      %d = memref.cast %m : memref<64xf16> to memref<?xf16>
      func.call @convert(%d, %c0) : (memref<?xf16>, index) -> ()
      return
    }
  )";
  std::string error = emissionError(text, cpu::CpuTarget::named("x86-64"));
  EXPECT_TRUE(llvm::StringRef(error).starts_with("not implemented: __") && llvm::StringRef(error).ends_with(", which the code needs on this processor")) << error;
  EXPECT_EQ(emissionError(text, cpu::CpuTarget::named("haswell")), "");
}

TEST(Object, SaysWhatWentWrong) {
  cpu::CpuTarget target = cpu::CpuTarget::host();
  EXPECT_NE(emissionError(everyCall, target, "/nonexistent/model.so").find("ld.lld failed with code"),
            std::string::npos);
  target.triple = "nosuch-cpu";
  EXPECT_NE(emissionError(everyCall, target).find("no code generator for nosuch-cpu"), std::string::npos);
}

/// Sets a variable of the environment until the end of a test.
class Setting {
public:
  Setting(const char *name, const char *value) : name(name) {
    if (const char *old = getenv(name))
      before = old;
    setenv(name, value, 1);
  }
  ~Setting() { before ? setenv(name, before->c_str(), 1) : unsetenv(name); }

private:
  const char *name;
  std::optional<std::string> before;
};

TEST(Object, SaysWhatTheMachineLacks) {
  {
    Setting folder("TMPDIR", "/dev/null/no-folder");
    std::string error = emissionError(everyCall, cpu::CpuTarget::host(), "model.so");
    EXPECT_TRUE(llvm::StringRef(error).starts_with("cannot create a temporary file: ")) << error;
  }
  Setting path("PATH", "/dev/null");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    error += diagnostic.str();
    return mlir::success();
  });
  EXPECT_TRUE(failed(cpu::findLinker("/no-tools", mlir::UnknownLoc::get(&context))));
  EXPECT_EQ(error, "cannot find ld.lld in /no-tools or in PATH");
}

TEST(Object, NeedsTheDialectOfLLVM) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<kvrt::KVRTDialect>();
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    error += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>("kvrt.raw @r {source = @r, offset = 0} : tensor<1xf32>", &context);
  ASSERT_TRUE(module);
  EXPECT_TRUE(failed(cpu::emitSharedObject(*module, cpu::CpuTarget::host(), "model.so", /*verbose=*/false)));
  EXPECT_NE(error.find("translation to LLVM IR failed"), std::string::npos) << error;
}

// Every entry of the table is one operation, and every operation that calls is one entry.
TEST(RuntimeTable, IsOneToOneWithOperations) {
  mlir::MLIRContext context;
  context.loadDialect<kvrt::KVRTDialect>();
  std::multiset<size_t> entries;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (auto *call = name.getInterface<kvrt::RuntimeCallOpInterface>())
      entries.insert(static_cast<size_t>(call->getRuntimeEntry()));
  size_t header = offsetof(quire_runtime_table, parallel) / 8, total = sizeof(quire_runtime_table) / 8;
  std::multiset<size_t> expected;
  for (size_t entry = header; entry < total; ++entry)
    expected.insert(entry);
  EXPECT_EQ(entries, expected);
  auto entry = [](kvrt::RuntimeEntry value) { return static_cast<size_t>(value); };
  EXPECT_EQ(entry(kvrt::RuntimeEntry::parallel), offsetof(quire_runtime_table, parallel) / 8);
  EXPECT_EQ(entry(kvrt::RuntimeEntry::acquire), offsetof(quire_runtime_table, acquire) / 8);
  EXPECT_EQ(entry(kvrt::RuntimeEntry::release), offsetof(quire_runtime_table, release) / 8);
  EXPECT_EQ(entry(kvrt::RuntimeEntry::prefetch), offsetof(quire_runtime_table, prefetch) / 8);
}

// Fields of the step are where the enums of the dialect say.
TEST(StepFields, AreWhereTheDialectSays) {
  auto field = [](auto value) { return static_cast<size_t>(value) * 8; };
  EXPECT_EQ(field(kvrt::Field::ids), offsetof(quire_step, ids));
  EXPECT_EQ(field(kvrt::Field::positions), offsetof(quire_step, positions));
  EXPECT_EQ(field(kvrt::Field::sequence_of), offsetof(quire_step, sequence_of));
  EXPECT_EQ(field(kvrt::Field::query_starts), offsetof(quire_step, query_starts));
  EXPECT_EQ(field(kvrt::Field::past_lens), offsetof(quire_step, past_lens));
  EXPECT_EQ(field(kvrt::Field::selected), offsetof(quire_step, selected));
  EXPECT_EQ(field(kvrt::Field::places), offsetof(quire_step, places));
  EXPECT_EQ(field(kvrt::Extent::tokens), offsetof(quire_step, tokens));
  EXPECT_EQ(field(kvrt::Extent::sequences), offsetof(quire_step, sequences));
  EXPECT_EQ(field(kvrt::Extent::table_stride), offsetof(quire_step, table_stride));
  EXPECT_EQ(field(kvrt::Extent::selected), offsetof(quire_step, selected_count));
  EXPECT_EQ(field(kvrt::Extent::threads), offsetof(quire_step, threads));
}

} // namespace
