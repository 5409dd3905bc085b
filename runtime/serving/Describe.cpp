// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Description of a model from its manifest alone; works on machines that cannot run it.
#include "serving/Describe.h"

#include "abi/SlowTier.h"
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

runtime::Status readBudget(const Manifest &manifest, uint64_t kvBytes, const quire_slow_tier_options *slow, bool stableVa, Budget &out) {
  quire_model_info info = manifest.describe();
  runtime::Pool::Options options;
  options.bytes = kvBytes;
  options.stableVa = stableVa;
  if (slow && slow->page_rule == QUIRE_PAGES_BY_TRANSFER)
    return runtime::failure(QUIRE_INVALID_ARGUMENT, "--describe makes no tier, but block.auto: io chooses pages by measured transfers; give block.layers_per_block or block.auto: l2");
  QUIRE_TRY(runtime::readSlowTier(info, slow, options));
  Budget budget;
  budget.kvBytes = kvBytes;
  budget.blockBytes = runtime::blockBytesOf(info);
  budget.blockTokens = info.block_tokens;
  budget.slowBytes = slow ? slow->bytes : 0;
  for (const quire_lower_tier_options *lower = slow ? slow->lower : nullptr; lower; lower = lower->lower)
    budget.slowBytes += lower->bytes;
  QUIRE_TRY(runtime::Pool::plan(info, options, budget.plan));
  std::vector<int64_t> lengths = {128, 512, 2048, 8192, 32768};
  if (info.max_positions > 0) {
    lengths.push_back(info.max_positions);
    std::sort(lengths.begin(), lengths.end());
  }
  for (int64_t length : lengths) {
    if (info.max_positions > 0 && length > info.max_positions)
      continue;
    int64_t needed = (length + info.block_tokens - 1) / info.block_tokens;
    int64_t fit = budget.inStep(length) > 0 ? static_cast<int64_t>(budget.plan.blocks) / needed : 0; // each has to fit into a step
    if (budget.sequences.empty() || budget.sequences.back().first != length)
      budget.sequences.emplace_back(length, fit);
  }
  out = std::move(budget);
  return runtime::success();
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

static std::string counted(int64_t value, const char *what) { return number(value) + " " + what + (value == 1 ? "" : "s"); }

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

std::string describeText(const std::string &folder, const Manifest &manifest, const Budget &budget) {
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
  bool tiered = budget.slowBytes > 0;
  out += "with --kv-bytes of " + readableBytes(budget.kvBytes) + (tiered ? " and --slow-bytes of " + readableBytes(budget.slowBytes) : "") + ": " +
         counted(static_cast<int64_t>(budget.plan.blocks), "block") + ", " + counted(budget.tokens(), "token") + "\n";
  if (tiered) {
    line(out, "pages", number(static_cast<int64_t>(budget.plan.pageBytes)) + " bytes, " + number(static_cast<int64_t>(budget.plan.fastPages)) + " in the fast tier, " +
                           number(static_cast<int64_t>(budget.plan.slowPages)) + " in slow ones");
    line(out, "a step", counted(static_cast<int64_t>(budget.plan.stepBlocks), "block") + " of a layer, at most");
  }
  for (const auto &[length, count] : budget.sequences)
    line(out, (number(length) + " tokens").c_str(), counted(count, "sequence") + (tiered ? ", " + number(std::min(count, budget.inStep(length))) + " in a step" : ""));
  return out;
}

std::string describeJson(const std::string &folder, const Manifest &manifest, const Budget &budget) {
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
    sequences.push_back({{"tokens", length}, {"sequences", count}, {"in_step", std::min(count, budget.inStep(length))}});
  root["budget"] = {{"kv_bytes", budget.kvBytes}, {"slow_bytes", budget.slowBytes}, {"blocks", budget.plan.blocks}, {"tokens", budget.tokens()}, {"step_blocks", budget.plan.stepBlocks},
                    {"fits", std::move(sequences)}};
  if (budget.slowBytes > 0)
    root["budget"]["pages"] = {{"bytes", budget.plan.pageBytes}, {"fast", budget.plan.fastPages}, {"slow", budget.plan.slowPages}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace quire::serving
