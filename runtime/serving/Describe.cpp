// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Description of a model from its manifest alone; works on machines that cannot run it.
#include "serving/Describe.h"

#include "model/CpuFeatures.h"
#include "model/ModelInfo.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

namespace quire::serving {

using runtime::FeatureSupport;
using runtime::Manifest;
using Json = nlohmann::ordered_json;

namespace {

/// A pool of some budget, in numbers.
struct Budget {
  uint64_t bytes;
  int64_t blockBytes;
  int64_t blocks;
  int64_t tokens;
  std::vector<std::pair<int64_t, int64_t>> sequences; // length, how many fit
};

} // namespace

static Budget budgetOf(const Manifest &manifest, uint64_t bytes) {
  quire_model_info info = manifest.describe();
  Budget budget = {};
  budget.bytes = bytes;
  budget.blockBytes = runtime::blockBytesOf(info);
  budget.blocks = static_cast<int64_t>(std::min<uint64_t>(bytes / static_cast<uint64_t>(budget.blockBytes), INT32_MAX));
  budget.tokens = budget.blocks * info.block_tokens;
  std::vector<int64_t> lengths = {128, 512, 2048, 8192, 32768};
  if (info.max_positions > 0) {
    lengths.push_back(info.max_positions);
    std::sort(lengths.begin(), lengths.end());
  }
  for (int64_t length : lengths) {
    if (info.max_positions > 0 && length > info.max_positions)
      continue;
    int64_t needed = (length + info.block_tokens - 1) / info.block_tokens;
    if (budget.sequences.empty() || budget.sequences.back().first != length)
      budget.sequences.emplace_back(length, budget.blocks / needed);
  }
  return budget;
}

static bool runsHere(const Manifest &manifest) { return runtime::checkTarget("", manifest).ok(); }

std::string readableBytes(uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  std::snprintf(text, sizeof(text), whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

static std::string number(int64_t value) { return std::to_string(value); }

static void line(std::string &out, const char *name, const std::string &value) {
  char start[32];
  std::snprintf(start, sizeof(start), "  %-18s", name);
  out += start + value + "\n";
}

static void describeLayers(std::string &out, const Manifest &manifest) {
  const std::vector<quire_model_layer> &layers = manifest.layers;
  for (size_t first = 0; first < layers.size();) {
    size_t end = first + 1;
    while (end < layers.size() && std::memcmp(&layers[first], &layers[end], sizeof(quire_model_layer)) == 0)
      ++end;
    const quire_model_layer &l = layers[first];
    std::string name = end - first == 1 ? "layer " + std::to_string(first)
                                        : "layers " + std::to_string(first) + "-" + std::to_string(end - 1);
    line(out, name.c_str(),
         number(l.kv_heads) + " kv heads, key " + number(l.key_dim) + ", value " + number(l.value_dim) + ", " +
             runtime::elementName(l.element) + ", " + number(l.lanes) + " lanes, " +
             readableBytes(static_cast<uint64_t>(l.block_bytes)) + " a block");
    first = end;
  }
}

std::string describeText(const std::string &folder, const Manifest &manifest, uint64_t kvBytes) {
  Budget budget = budgetOf(manifest, kvBytes);
  const quire_model_info &info = manifest.info;
  std::string out = folder + "\n";
  line(out, "written by", manifest.producer);
  line(out, "code",
       readableBytes(manifest.files[Manifest::Code].bytes) + " for " + manifest.cpu + " (" + manifest.triple + ")" +
           (runsHere(manifest) ? "" : ", does not run on this machine"));
  line(out, "weights", readableBytes(manifest.files[Manifest::Weights].bytes));
  line(out, "vocabulary", number(info.vocabulary) + " logits, token ids 0 to " + number(info.token_limit - 1));
  line(out, "positions", info.max_positions < 0 ? "no limit known" : "at most " + number(info.max_positions));
  describeLayers(out, manifest);
  line(out, "kv",
       number(manifest.kvBytesPerToken) + " bytes a token, blocks of " + number(info.block_tokens) + " tokens, " +
           number(budget.blockBytes) + " bytes a block");
  line(out, "scratch",
       readableBytes(static_cast<uint64_t>(info.scratch_fixed)) + " and " +
           readableBytes(static_cast<uint64_t>(info.scratch_per_token)) + " a token of a step");
  std::string features;
  for (const std::string &feature : manifest.features)
    features += (features.empty() ? "" : " ") + feature +
                (runtime::cpuFeature(feature) == FeatureSupport::Present ? "" : " (missing here)");
  line(out, "cpu features", features.empty() ? "none beyond the architecture's" : features);
  out += "with --kv-bytes of " + readableBytes(budget.bytes) + ": " + number(budget.blocks) + " blocks, " +
         number(budget.tokens) + " tokens\n";
  for (const auto &[length, count] : budget.sequences)
    line(out, (number(length) + " tokens").c_str(), number(count) + (count == 1 ? " sequence" : " sequences"));
  return out;
}

std::string describeJson(const std::string &folder, const Manifest &manifest, uint64_t kvBytes) {
  Budget budget = budgetOf(manifest, kvBytes);
  const quire_model_info &info = manifest.info;
  Json root;
  root["model"] = folder;
  root["producer"] = manifest.producer;
  Json features = Json::array();
  for (const std::string &feature : manifest.features)
    features.push_back({{"name", feature}, {"present", runtime::cpuFeature(feature) == FeatureSupport::Present}});
  root["target"] = {{"triple", manifest.triple},
                    {"cpu", manifest.cpu},
                    {"features", std::move(features)},
                    {"runs_here", runsHere(manifest)}};
  root["machine"] = {{"architecture", runtime::hostArchitecture()}, {"features", runtime::cpuFeatures()}};
  root["code_bytes"] = manifest.files[Manifest::Code].bytes;
  root["weights_bytes"] = manifest.files[Manifest::Weights].bytes;
  root["vocabulary"] = info.vocabulary;
  root["token_limit"] = info.token_limit;
  root["max_positions"] = info.max_positions;
  root["block_tokens"] = info.block_tokens;
  root["block_bytes"] = budget.blockBytes;
  root["kv_bytes_per_token"] = manifest.kvBytesPerToken;
  Json layers = Json::array();
  for (const quire_model_layer &l : manifest.layers)
    layers.push_back({{"kv_heads", l.kv_heads},
                      {"key_dim", l.key_dim},
                      {"value_dim", l.value_dim},
                      {"element", runtime::elementName(l.element)},
                      {"lanes", l.lanes},
                      {"block_bytes", l.block_bytes},
                      {"query_heads", l.query_heads},
                      {"window", l.window},
                      {"place_is_position", l.place_is_position}});
  root["layers"] = std::move(layers);
  root["scratch"] = {{"fixed", info.scratch_fixed},
                     {"per_token", info.scratch_per_token},
                     {"per_selected", info.scratch_per_selected}};
  Json sequences = Json::array();
  for (const auto &[length, count] : budget.sequences)
    sequences.push_back({{"tokens", length}, {"sequences", count}});
  root["budget"] = {
      {"kv_bytes", budget.bytes}, {"blocks", budget.blocks}, {"tokens", budget.tokens}, {"fits", std::move(sequences)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace quire::serving
