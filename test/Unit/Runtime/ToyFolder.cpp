// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The folder layout of docs/Runtime.md, written independently of its reader.
#include "ToyFolder.h"

#include "ToyReference.h"
#include "quire/runtime.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace quire::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "quire-test-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void writeFile(const std::filesystem::path &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

static quire_model_info infoOf(const std::filesystem::path &code, std::vector<quire_model_layer> &layers) {
  void *library = ::dlopen(code.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto query = library ? reinterpret_cast<quire_model_query_fn>(::dlsym(library, "quire_model_query")) : nullptr;
  quire_model_info info = query ? *query(QUIRE_MODEL_ABI_VERSION) : toyInfo();
  layers.assign(info.layers, info.layers + info.layer_count);
  if (library)
    ::dlclose(library);
  return info;
}

nlohmann::ordered_json toyManifest(const std::filesystem::path &folder) {
  std::vector<quire_model_layer> layers;
  quire_model_info info = infoOf(folder / "model.so", layers);
  nlohmann::ordered_json root;
  root["format"] = "quire-model";
  root["version"] = 2;
  root["producer"] = "toy";
#if defined(__x86_64__)
  root["target"] = {{"triple", "x86_64-unknown-linux-gnu"}, {"cpu", "x86-64"}, {"features", {"sse2"}}};
#else
  root["target"] = {{"triple", "aarch64-unknown-linux-gnu"}, {"cpu", "generic"}, {"features", {"neon"}}};
#endif
  for (const char *name : {"model.so", "weights.bin", "report.json"}) {
    uint64_t hash, bytes;
    if (quire_checksum_file((folder / name).c_str(), &hash, &bytes) != QUIRE_OK)
      throw std::runtime_error(quire_last_error());
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
    root["files"][name] = {{"bytes", bytes}, {"xxh3_64", digits}};
  }
  int64_t block = 0;
  root["block_tokens"] = info.block_tokens;
  root["layers"] = nlohmann::ordered_json::array();
  for (const quire_model_layer &l : layers) {
    root["layers"].push_back({{"kv_heads", l.kv_heads},
                              {"key_dim", l.key_dim},
                              {"value_dim", l.value_dim},
                              {"element", "f32"},
                              {"lanes", l.lanes},
                              {"value_offset", l.value_offset},
                              {"block_bytes", l.block_bytes},
                              {"query_heads", l.query_heads},
                              {"window", l.window},
                              {"place_is_position", l.place_is_position}});
    block += l.block_bytes;
  }
  root["kv_bytes_per_token"] = block / info.block_tokens;
  root["max_positions"] = info.max_positions;
  root["vocabulary"] = info.vocabulary;
  root["token_limit"] = info.token_limit;
  root["scratch"] = {{"fixed", info.scratch_fixed},
                     {"per_token", info.scratch_per_token},
                     {"per_selected", info.scratch_per_selected}};
  return root;
}

void writeToyFolder(const std::filesystem::path &folder, const std::string &code) {
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(code, folder / "model.so");
  writeFile(folder / "weights.bin",
            std::string(static_cast<const char *>(toyWeights()), static_cast<size_t>(toyInfo().weights_bytes)));
  writeFile(folder / "report.json", "{\"status\": \"paged\"}\n");
  writeFile(folder / "manifest.json", toyManifest(folder).dump(2) + "\n");
}

} // namespace quire::test
