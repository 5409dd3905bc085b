// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading: a good folder, and every kind of damage, each named by file and reason.
#include "TestPool.h"
#include "ToyFolder.h"
#include "model/CpuFeatures.h"
#include "model/Manifest.h"

#include <functional>
#include <sstream>

using namespace quire::test;
using Json = nlohmann::ordered_json;

namespace {

class Load : public ::testing::Test {
protected:
  Load() { writeToyFolder(folder, QUIRE_TOY_MODEL); }

  quire_status load() {
    quire_model *model = nullptr;
    quire_status status = quire_model_load(folder.c_str(), &model);
    EXPECT_EQ(status == QUIRE_OK, model != nullptr);
    loaded.reset(model);
    return status;
  }

  void expectRefused(quire_status status, const std::string &text) {
    EXPECT_EQ(load(), status) << text;
    EXPECT_NE(std::string(quire_last_error()).find(text), std::string::npos)
        << "got: " << quire_last_error() << "\nexpected: " << text;
  }

  void editManifest(const std::function<void(Json &)> &edit) {
    Json manifest = toyManifest(folder);
    edit(manifest);
    writeFile(folder / "manifest.json", manifest.dump());
  }

  /// The value at a path such as "layers/0/lanes".
  static Json &member(Json &root, const std::string &path) {
    Json *value = &root;
    std::istringstream keys(path);
    for (std::string key; std::getline(keys, key, '/');)
      value = value->is_array() ? &value->at(std::stoul(key)) : &value->at(key);
    return *value;
  }

  TemporaryFolder temporary;
  std::filesystem::path folder = temporary / "toy.quire";
  quire::serving::ModelPointer loaded;
};

} // namespace

TEST_F(Load, GoodFolderRuns) {
  ASSERT_EQ(load(), QUIRE_OK) << quire_last_error();
  const quire_model_info *info = quire_model_get_info(loaded.get());
  EXPECT_EQ(info->vocabulary, toyInfo().vocabulary);
  quire::serving::PoolPointer pool = makePool();
  quire::serving::ExecutorPointer executor = makeExecutor(loaded.get(), pool.get());
  loaded.reset(); // the executor keeps it
  quire_sequence sequence;
  ASSERT_EQ(quire_sequence_create(pool.get(), &sequence), QUIRE_OK);
  int64_t ids[] = {3, 1, 4}, count = 3, selected = 2;
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = 1;
  batch.sequences = &sequence;
  batch.token_counts = &count;
  batch.tokens = ids;
  batch.selected = &selected;
  batch.selected_count = 1;
  std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
  ASSERT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(logits, toyLogits({3, 1, 4}));
}

TEST_F(Load, FolderMovesAsAWhole) {
  std::filesystem::path moved = temporary / "moved";
  std::filesystem::rename(folder, moved);
  folder = moved;
  EXPECT_EQ(load(), QUIRE_OK) << quire_last_error();
}

TEST_F(Load, MissingFiles) {
  for (const char *name : {"model.so", "weights.bin", "report.json"}) {
    std::filesystem::rename(folder / name, folder / "away");
    expectRefused(QUIRE_BAD_ARTEFACT, std::string(name) + ": No such file");
    std::filesystem::rename(folder / "away", folder / name);
  }
  std::filesystem::remove(folder / "manifest.json");
  expectRefused(QUIRE_IO_ERROR, "manifest.json: No such file");
  std::filesystem::create_directory(folder / "manifest.json");
  expectRefused(QUIRE_IO_ERROR, "manifest.json: not a regular file");
  std::filesystem::remove_all(folder);
  expectRefused(QUIRE_IO_ERROR, "toy.quire: No such file");
  writeFile(folder, "a file");
  expectRefused(QUIRE_IO_ERROR, "toy.quire: expected a model folder, but got a file; quirec makes such folders of ONNX files");
}

TEST_F(Load, EveryTruncationOfTheManifest) {
  std::string text = toyManifest(folder).dump(1);
  for (size_t length = 0; length < text.size(); ++length) {
    writeFile(folder / "manifest.json", text.substr(0, length));
    ASSERT_EQ(load(), QUIRE_BAD_ARTEFACT) << length;
  }
}

/// A changed byte either does not matter or is noticed; it never crashes.
TEST_F(Load, EveryChangedByteOfTheManifest) {
  std::string text = toyManifest(folder).dump();
  size_t noticed = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 7));
    writeFile(folder / "manifest.json", changed);
    quire_status status = load();
    noticed += status != QUIRE_OK;
    if (status == QUIRE_OK) {
      // Only the names of producer, cpu and system are free text.
      std::string before = text.substr(0, i);
      size_t key = before.rfind("\":");
      std::string rest = before.substr(before.rfind('"', key - 1), 12);
      EXPECT_TRUE(rest.find("producer") != std::string::npos || rest.find("cpu") != std::string::npos ||
                  rest.find("triple") != std::string::npos)
          << "unnoticed change at " << i << ": " << changed;
    }
  }
  EXPECT_GT(noticed, text.size() * 8 / 10);
}

TEST_F(Load, WhatIsNotAManifestIsTold) {
  std::string path = (std::filesystem::canonical(folder) / "manifest.json").string() + ": ";
  writeFile(folder / "manifest.json", "");
  expectRefused(QUIRE_BAD_ARTEFACT,
                path + "not valid JSON: column 1: expected '[', '{', or a literal, but got end of input");
  writeFile(folder / "manifest.json", "{\n  \"format\" 1\n}\n");
  expectRefused(QUIRE_BAD_ARTEFACT, path + "not valid JSON: line 2, column 12: expected ':', but got number literal");
  writeFile(folder / "manifest.json", "{\n  \"format\": quire\n}\n");
  expectRefused(QUIRE_BAD_ARTEFACT, path + "not valid JSON: line 2, column 13: expected a value, but got 'q'");
  writeFile(folder / "manifest.json", "{\"version\": 1e999}");
  expectRefused(QUIRE_BAD_ARTEFACT, "expected a number within the range of double precision, but got 1e999");
  EXPECT_EQ(std::string(quire_last_error()).find("json.exception"), std::string::npos) << quire_last_error();
  writeFile(folder / "manifest.json", "{\"version\": 1, \"version\": 2}");
  expectRefused(QUIRE_BAD_ARTEFACT, path + "key \"version\" comes twice");
}

TEST_F(Load, DeepManifest) {
  std::string lists(1 << 20, '['), ends(1 << 20, ']'), objects;
  for (int i = 0; i < 200000; ++i)
    objects += "{\"a\":";
  for (const std::string &deep : {lists, lists + ends, objects, "{\"format\":" + lists + ends + "}"}) {
    writeFile(folder / "manifest.json", deep);
    expectRefused(QUIRE_BAD_ARTEFACT, "manifest.json: expected at most 32 levels of arrays and objects, but got more");
  }
}

TEST_F(Load, TruncatedGrownAndChangedFiles) {
  for (const char *name : {"model.so", "weights.bin", "report.json"}) {
    std::string text = readFile(folder / name);
    writeFile(folder / name, text.substr(0, text.size() - 1));
    expectRefused(QUIRE_BAD_ARTEFACT, "the file is truncated");
    writeFile(folder / name, "");
    expectRefused(QUIRE_BAD_ARTEFACT, std::string(name) + ": expected ");
    writeFile(folder / name, text + "x");
    expectRefused(QUIRE_BAD_ARTEFACT, "not the one that was written");
    for (size_t place : {size_t(0), text.size() / 2, text.size() - 1}) {
      std::string changed = text;
      changed[place] = static_cast<char>(changed[place] ^ 1);
      writeFile(folder / name, changed);
      expectRefused(QUIRE_BAD_ARTEFACT, std::string(name) + ": checksum ");
    }
    writeFile(folder / name, text);
  }
  EXPECT_EQ(load(), QUIRE_OK) << quire_last_error();
}

TEST_F(Load, Versions) {
  editManifest([](Json &m) { m["version"] = 3; });
  expectRefused(QUIRE_WRONG_VERSION, "manifest.json: format version 3, but this program reads version 2");
  editManifest([](Json &m) { m["version"] = "1"; });
  expectRefused(QUIRE_BAD_ARTEFACT, "version: expected an integer, but got \"1\"");
  editManifest([](Json &m) { m["format"] = "zip"; });
  expectRefused(QUIRE_BAD_ARTEFACT, "format: expected \"quire-model\", but got \"zip\"");
  writeFile(folder / "manifest.json", "[]");
  expectRefused(QUIRE_BAD_ARTEFACT, "expected an object, but got []");
}

TEST_F(Load, CodeOfAnotherInterface) {
  std::filesystem::remove(folder / "model.so");
  std::filesystem::copy_file(QUIRE_TOY_MODEL_OLD, folder / "model.so");
  editManifest([](Json &) {});
  expectRefused(QUIRE_WRONG_VERSION, "model.so: speaks version " + std::to_string(QUIRE_MODEL_ABI_VERSION + 1) +
                                         " of the model interface, but this program speaks " + std::to_string(QUIRE_MODEL_ABI_VERSION));
  std::filesystem::remove(folder / "model.so");
  std::filesystem::copy_file(QUIRE_TOY_MODEL_WITHOUT_QUERY, folder / "model.so");
  editManifest([](Json &) {});
  expectRefused(QUIRE_BAD_ARTEFACT, "model.so: has no quire_model_query");
  writeFile(folder / "model.so", "not an object");
  editManifest([](Json &) {});
  expectRefused(QUIRE_BAD_ARTEFACT, "model.so: cannot be loaded");
}

TEST_F(Load, CodeOfAnotherModel) {
  Json manifest = toyManifest(folder);
  std::filesystem::remove(folder / "model.so");
  std::filesystem::copy_file(QUIRE_TOY_MODEL_BLOCK8, folder / "model.so");
  Json other = toyManifest(folder);
  manifest["files"] = other["files"];
  writeFile(folder / "manifest.json", manifest.dump());
  expectRefused(QUIRE_BAD_ARTEFACT, "block_tokens is 16 in the manifest, but 8 in model.so");
}

TEST_F(Load, ManifestAgainstCode) {
  struct Case {
    const char *path;
    Json value;
    const char *text;
  };
  const Case cases[] = {
      {"vocabulary", 98, "vocabulary is 98 in the manifest, but 97 in model.so"},
      {"token_limit", 96, "token_limit is 96"},
      {"max_positions", 255, "max_positions is 255"},
      {"max_positions", 0, "max_positions: expected 1 to"},
      {"max_positions", -2, "max_positions: expected 1 to"},
      {"vocabulary", 0, "vocabulary: expected 1 to"},
      {"vocabulary", 97.0, "vocabulary: expected an integer, but got 97.0"},
      {"vocabulary", 18446744073709551615u, "vocabulary: expected an integer"},
      {"block_tokens", -16, "block_tokens: expected 1 to"},
      {"block_tokens", 32, "keys and values do not fit"},
      {"kv_bytes_per_token", 201, "kv_bytes_per_token times block_tokens: expected 3200"},
      {"kv_bytes_per_token", 9223372036854775807, "kv_bytes_per_token times block_tokens"},
      {"scratch/per_token", 9, "scratch.per_token is 9"},
      {"scratch/fixed", -1, "scratch_fixed: expected 0 to"},
      {"layers", Json::array(), "layer_count: expected 1 to"},
      {"layers/1/kv_heads", 2, "keys and values do not fit into 640 bytes"},
      {"layers/0/lanes", 3, "lanes: 3 does not divide block_tokens 16"},
      {"layers/0/lanes", 8, "layer 0 differs"},
      {"layers/0/element", "f64", "layers[0].element: expected f32, f16, bf16, i8, i4, fp8_e4m3 or fp8_e5m2, but got \"f64\""},
      {"layers/0/element", "f16", "layer 0 differs"},
      {"layers/2/value_offset", 0, "value_offset: expected 1 to"},
      {"layers/2", 5, "layers[2]: expected an object, but got 5"},
      {"target/features", {1}, "target.features: expected strings, but got 1"},
      {"files/weights.bin/xxh3_64", "12", "files.weights.bin.xxh3_64: expected 16 hexadecimal digits"},
      {"files/weights.bin/bytes", -4, "files.weights.bin.bytes: expected a size, but got -4"},
  };
  for (const Case &c : cases) {
    editManifest([&](Json &m) { member(m, c.path) = c.value; });
    expectRefused(QUIRE_BAD_ARTEFACT, c.text);
  }
  for (const char *key : {"format", "version", "producer", "target", "files", "block_tokens", "kv_bytes_per_token",
                          "max_positions", "vocabulary", "token_limit", "layers", "scratch"}) {
    editManifest([&](Json &m) { m.erase(key); });
    expectRefused(QUIRE_BAD_ARTEFACT, std::string("missing '") + key + "'");
  }
}

TEST_F(Load, Machine) {
  editManifest([](Json &m) { m["target"]["features"].push_back("no-such-thing"); });
  expectRefused(QUIRE_UNSUPPORTED_CPU, "'no-such-thing', which this program does not know");
  editManifest([](Json &m) { m["target"]["triple"] = "riscv64-unknown-linux-gnu"; });
  expectRefused(QUIRE_UNSUPPORTED_CPU, "the model is for riscv64, but this machine is ");
  for (const char *feature : {"amx-fp16", "avx512fp16", "xop", "sve2"}) {
    if (quire_cpu_has_feature(feature) != 0)
      continue;
    editManifest([&](Json &m) { m["target"]["features"].push_back(feature); });
    expectRefused(QUIRE_UNSUPPORTED_CPU, std::string("needs ") + feature + ", which this machine lacks");
  }
}

TEST(CpuFeatures, KnownNames) {
  EXPECT_EQ(quire_cpu_has_feature("nonsense"), -1);
  EXPECT_EQ(quire_cpu_has_feature(nullptr), -1);
#if defined(__x86_64__)
  EXPECT_EQ(quire_cpu_has_feature("sse2"), 1);
  EXPECT_EQ(quire_cpu_has_feature("avx2"), __builtin_cpu_supports("avx2") ? 1 : 0);
  EXPECT_EQ(quire_cpu_has_feature("fma"), __builtin_cpu_supports("fma") ? 1 : 0);
  EXPECT_EQ(quire_cpu_has_feature("avx512f"), __builtin_cpu_supports("avx512f") ? 1 : 0);
  EXPECT_EQ(quire_cpu_has_feature("avx512vnni"), __builtin_cpu_supports("avx512vnni") ? 1 : 0);
  for (const char *name : {"sse4.2", "avx", "f16c", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512bf16",
                           "amx-tile", "amx-int8", "amx-bf16"})
    EXPECT_NE(quire_cpu_has_feature(name), -1) << name;
#endif
}

TEST(Checksum, KnownValues) {
  TemporaryFolder temporary;
  uint64_t hash, bytes;
  writeFile(temporary / "empty", "");
  ASSERT_EQ(quire_checksum_file((temporary / "empty").c_str(), &hash, &bytes), QUIRE_OK);
  EXPECT_EQ(hash, 0x2d06800538d394c2u); // XXH3_64bits of nothing, from the xxHash specification
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(quire_checksum_file((temporary / "none").c_str(), &hash, &bytes), QUIRE_IO_ERROR);
  EXPECT_EQ(quire_checksum_file("/", &hash, &bytes), QUIRE_IO_ERROR);
}
