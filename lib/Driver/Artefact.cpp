// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model folder's manifest.
#include "lib/Driver/Artefact.h"

#include "dialects/KVRT/KVRT.h"
#include "lib/Driver/FileOutput.h"
#include "quire/runtime.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace quire {

std::optional<ModelFacts> modelFacts(ModuleOp module) {
  auto models = module.getOps<kvrt::ModelOp>();
  if (models.empty())
    return std::nullopt;
  kvrt::ModelOp model = *models.begin();
  ModelFacts facts;
  facts.vocabulary = model.getVocabulary();
  facts.tokenLimit = model.getTokenLimit();
  facts.maxPositions = model.getMaxPositions();
  facts.blockTokens = model.getBlockTokens();
  facts.scratchFixed = model.getScratchFixed();
  facts.scratchPerToken = model.getScratchPerToken();
  facts.scratchPerSelected = model.getScratchPerSelected();
  ArrayRef<int64_t> queryHeads = model.getQueryHeads(), windows = model.getWindows(), places = model.getPlaceIsPosition();
  for (auto [index, attribute] : llvm::enumerate(model.getLayers())) {
    auto state = cast<kvrt::StateType>(cast<TypeAttr>(attribute).getValue());
    facts.layers.push_back({state.getHeads(), state.getKey(), state.getValue(), state.getLanes(), state.getValueOffset(), state.getBlockBytes(),
                            queryHeads.empty() ? 0 : queryHeads[index], windows.empty() ? 0 : windows[index], places.empty() ? 0 : places[index], state.getElementName().str()});
    facts.blockBytes += state.getBlockBytes();
  }
  return facts;
}

/// Features that a compiler turns into instructions of arithmetic. Others of the processor (page keys, cache control) are not used.
static bool isUsedByCode(llvm::StringRef feature) {
  return feature.starts_with("sse") || feature.starts_with("ssse") || feature.starts_with("avx") || feature.starts_with("amx") ||
         llvm::is_contained({"fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "movbe", "cx16", "gfni"}, feature);
}

/// The features that the loader checks: those that the code may use, without the signs of -mattr.
static llvm::json::Array featureNames(const cpu::CpuTarget &target) {
  llvm::json::Array names;
  for (llvm::StringRef feature : target.features)
    if (feature.consume_front("+") && isUsedByCode(feature) && quire_cpu_has_feature(feature.str().c_str()) >= 0)
      names.push_back(feature);
  return names;
}

std::string missingFeature(const cpu::CpuTarget &target) {
  for (const llvm::json::Value &name : featureNames(target))
    if (quire_cpu_has_feature(name.getAsString()->str().c_str()) == 0)
      return name.getAsString()->str();
  return {};
}

bool writeManifest(llvm::StringRef folder, const ModelFacts &facts, const cpu::CpuTarget &target, std::string &error) {
  llvm::json::Object files;
  for (llvm::StringRef name : {"model.so", "weights.bin", "report.json"}) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, name);
    uint64_t hash = 0, bytes = 0;
    if (quire_checksum_file(path.c_str(), &hash, &bytes) != QUIRE_OK) {
      error = quire_last_error();
      return false;
    }
    std::string digits;
    llvm::raw_string_ostream(digits) << llvm::format_hex_no_prefix(hash, 16);
    files[name] = llvm::json::Object{{"bytes", int64_t(bytes)}, {"xxh3_64", digits}};
  }
  llvm::json::Array layers;
  for (const ModelFacts::Layer &layer : facts.layers)
    layers.push_back(llvm::json::Object{{"kv_heads", layer.heads},
                                        {"key_dim", layer.key},
                                        {"value_dim", layer.value},
                                        {"element", layer.element},
                                        {"lanes", layer.lanes},
                                        {"value_offset", layer.valueOffset},
                                        {"block_bytes", layer.blockBytes},
                                        {"query_heads", layer.queryHeads},
                                        {"window", layer.window},
                                        {"place_is_position", layer.placeIsPosition}});
  llvm::json::Object manifest{
      {"format", "quire-model"},
      {"version", 2},
      {"producer", std::string("quire ") + quire_runtime_version()},
      {"target", llvm::json::Object{{"triple", target.triple}, {"cpu", target.cpu}, {"features", featureNames(target)}}},
      {"files", std::move(files)},
      {"block_tokens", facts.blockTokens},
      {"kv_bytes_per_token", facts.blockBytes / facts.blockTokens},
      {"max_positions", facts.maxPositions},
      {"vocabulary", facts.vocabulary},
      {"token_limit", facts.tokenLimit},
      {"layers", std::move(layers)},
      {"scratch", llvm::json::Object{{"fixed", facts.scratchFixed}, {"per_token", facts.scratchPerToken}, {"per_selected", facts.scratchPerSelected}}}};
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, "manifest.json");
  return writeFileAtomically(path, error, [&](llvm::raw_ostream &os) { os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(manifest))); });
}

} // namespace quire
