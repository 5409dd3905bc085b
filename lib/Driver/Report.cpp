// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The account of a compilation, as JSON and as a table.
#include "lib/Driver/Report.h"

#include "lib/Driver/FileOutput.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

namespace quire {

static llvm::json::Object maskToJson(const LayerReport &layer) {
  llvm::json::Object mask{{"kind", layer.maskKind}};
  if (layer.window > 0)
    mask["window"] = layer.window;
  if (layer.chunk > 0)
    mask["chunk"] = layer.chunk;
  if (layer.alibi)
    mask["alibi"] = true;
  if (layer.softcap != 0)
    mask["softcap"] = layer.softcap;
  if (layer.sinks)
    mask["sinks"] = true;
  return mask;
}

llvm::json::Object toJson(const Report &report) {
  llvm::json::Array layers, assumptions;
  for (auto [index, layer] : llvm::enumerate(report.raise.layers)) {
    bool paged = report.paged();
    llvm::json::Object entry{{"index", int64_t(index)},
                             {"node", layer.node},
                             {"idiom", layer.idiom},
                             {"decision", paged ? "paged" : "refused"},
                             {"mask", maskToJson(layer)},
                             {"positions", layer.positions},
                             {"scale", layer.scale},
                             {"heads", layer.heads},
                             {"kv_heads", layer.kvHeads},
                             {"key_dim", layer.keyDim},
                             {"value_dim", layer.valueDim},
                             {"key_state", layer.keyState},
                             {"value_state", layer.valueState}};
    if (!paged)
      entry["reason"] = !layer.reason.empty() ? layer.reason : "all layers are paged or none: another part of the model was refused";
    layers.push_back(std::move(entry));
  }
  for (const std::string &text : report.raise.assumptions)
    assumptions.push_back(text);
  llvm::json::Object object{{"model", report.model},
                            {"status", report.paged() ? "paged" : "refused"},
                            {"kv_type", report.kvType},
                            {"block_tokens", report.blockTokens},
                            {"kv_bytes_per_token", report.blockTokens > 0 ? report.blockBytes / report.blockTokens : 0},
                            {"max_positions", report.raise.maxPositions},
                            {"assumptions", std::move(assumptions)},
                            {"layers", std::move(layers)}};
  if (!report.paged())
    object["reason"] = !report.reason.empty() ? report.reason : llvm::join(report.raise.reasons, "; ");
  if (report.certificate)
    object["certificate"] = llvm::json::Value(llvm::json::Object(*report.certificate));
  return object;
}

/// What was not found in a refused layer is 0 or empty.
static std::string known(int64_t number) { return number == 0 ? "?" : std::to_string(number); }
static std::string known(const std::string &text) { return text.empty() ? "?" : text; }

void printTable(const Report &report, llvm::raw_ostream &os) {
  os << report.model << ": " << (report.paged() ? "paged" : "refused") << "\n";
  if (!report.raise.layers.empty())
    os << llvm::formatv("{0,5}  {1,-10} {2,-14} {3,11} {4,9}  {5}\n", "layer", "idiom", "mask", "heads", "features", "node");
  for (auto [index, layer] : llvm::enumerate(report.raise.layers)) {
    std::string mask = layer.maskKind;
    if (layer.window > 0)
      mask += " " + std::to_string(layer.window);
    if (layer.chunk > 0)
      mask += " " + std::to_string(layer.chunk);
    mask += layer.alibi ? " alibi" : "";
    mask += layer.softcap != 0 ? " softcap" : "";
    mask += layer.sinks ? " sinks" : "";
    std::string heads = known(layer.heads) + " on " + known(layer.kvHeads);
    std::string features = known(layer.keyDim) + (layer.keyDim == layer.valueDim ? "" : "/" + known(layer.valueDim));
    os << llvm::formatv("{0,5}  {1,-10} {2,-14} {3,11} {4,9}  {5}\n", index, known(layer.idiom), known(mask), heads, features, layer.node);
    if (!layer.reason.empty())
      os << "       " << layer.reason << "\n";
  }
  if (report.paged() && report.blockTokens > 0) // unknown when nothing was built
    os << "block " << report.blockTokens << " tokens, " << report.blockBytes / report.blockTokens << " bytes of KV a token, "
       << (report.raise.maxPositions > 0 ? "at most " + std::to_string(report.raise.maxPositions) + " positions" : std::string("no limit of positions known"))
       << "\n";
  for (const std::string &text : report.raise.assumptions)
    os << "assumed: " << text << "\n";
  if (!report.paged()) {
    auto isOfLayer = [&](const std::string &text) { return llvm::any_of(report.raise.layers, [&](const LayerReport &layer) { return text == layer.reason || text == "node '" + layer.node + "': " + layer.reason; }); };
    for (const std::string &text : report.raise.reasons)
      if (!isOfLayer(text))
        os << "refused: " << text << "\n";
    if (!report.reason.empty())
      os << "refused: " << report.reason << "\n";
  }
}

bool writeReport(const Report &report, llvm::StringRef path, std::string &error) {
  return writeFileAtomically(path, error, [&](llvm::raw_ostream &os) { os << llvm::formatv("{0:2}\n", llvm::json::Value(toJson(report))); });
}

} // namespace quire
