// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From keys to the structures of the C interface.
#include "serving/Tuning.h"

#include "model/ModelInfo.h"

namespace quire::serving {

static_assert(static_cast<int>(config::PrefetchStrategy::Hybrid) == QUIRE_PREFETCH_HYBRID, "the same numbers");

quire_status tunePool(quire_pool *pool, const config::Config &config) {
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  tuning.reserve_ratio = config.memory.reserveRatio;
  tuning.pin_budget = config.dialogue.pinBudget;
  tuning.prefetch_strategy = static_cast<int64_t>(config.prefetch.strategy);
  tuning.prefetch_predictor = config.prefetch.predictor == config::Predictor::SeedHotspot ? QUIRE_PREDICT_SEED_HOTSPOT : QUIRE_PREDICT_LAYER_AHEAD;
  tuning.prefetch_topk = config.prefetch.topk;
  tuning.prefetch_window = config.prefetch.windowSize;
  tuning.prefetch_bytes = config.prefetch.maxInflight;
  bool compresses = config.compress.quant != config::Quant::None || config.compress.sparse.ratio != 1;
  tuning.idle_steps = compresses ? config.compress.afterIdleSteps : 0;
  quire_dialogue_options dialogue = {};
  dialogue.struct_size = sizeof(dialogue);
  dialogue.recent_turns = config.dialogue.recentTurns;
  dialogue.recent_pages = config.dialogue.recentPages;
  dialogue.important_pages = config.dialogue.importantPages.data();
  dialogue.important_count = static_cast<int64_t>(config.dialogue.importantPages.size());
  quire_status status = quire_pool_set_tuning(pool, &tuning);
  return status == QUIRE_OK ? quire_pool_set_dialogue(pool, &dialogue) : status;
}

DocumentRules documentRules(const config::Config &config) {
  return {config.document.unloadProcessed, config.document.importance == config::PageImportance::Tfidf};
}

TurnRules turnRules(const config::Config &config) {
  const auto &dialogue = config.dialogue;
  return {dialogue.compression.method == config::CompressionMethod::Pruning, dialogue.compression.ratio, dialogue.recentTurns, dialogue.recentPages,
          dialogue.importantPages};
}

bool checkModel(const config::Config &config, const quire_model_info &model, std::string &why) {
  int64_t layer = runtime::layerOfPositions(model.layers, model.layer_count);
  if (config.dialogue.compression.method != config::CompressionMethod::Pruning || layer < 0)
    return true;
  why = "dialogue.compression.method: expected none, but got pruning: layer " + std::to_string(layer) +
        " of the model takes the place of a key for its position (a window, chunks or a bias by position)";
  return false;
}

quire_doctor_options doctorOptions(const config::Config &config, int64_t preemptions) {
  auto limit = [](double value) { return value == 0 ? -1 : value; };
  quire_doctor_options options = {};
  options.struct_size = sizeof(options);
  options.preemptions = preemptions;
  options.page_table_max = limit(config.doctor.pageTableMax);
  options.min_hit = limit(config.doctor.minHit);
  options.frag_max = limit(config.doctor.fragMax);
  return options;
}

} // namespace quire::serving
