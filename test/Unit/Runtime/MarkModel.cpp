// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The step of the model of marks.
#include "MarkModel.h"

#include "core/Random.h"

#include <cmath>
#include <cstring>

namespace quire::test {

// Keys at the beginning of a block, values at its end: one number for a position, which two floats have room for.
static constexpr int64_t markBytes = 8;
static constexpr quire_model_layer layerOf(int64_t blockBytes) {
  return {1, 2, 2, QUIRE_ELEMENT_F32, 1, blockBytes - markBlockTokens * markBytes, blockBytes, 1, 0, 0};
}
static constexpr quire_model_layer layers[markLayers] = {layerOf(64), layerOf(128), layerOf(64)};

static uint64_t mixed(uint64_t value) { return runtime::splitMix(value); }

uint64_t markHistory(uint64_t before, int64_t token) { return mixed(before ^ mixed(static_cast<uint64_t>(token))); }

static MarkForm markForm = MarkForm::Bits;

void setMarkForm(MarkForm form) { markForm = form; }

/// 8 to 15 times a power of two from 1/16 to 8, or the same below 0: of 7 bits.
static float fp8Of(uint64_t bits) {
  float number = std::ldexp(static_cast<float>(8 + bits % 8), static_cast<int>(bits / 8 % 8) - 4);
  return bits & 64 ? -number : number;
}

uint64_t markOf(uint64_t history, int64_t layer, bool value) {
  uint64_t bits = mixed(history + static_cast<uint64_t>(2 * layer + value));
  if (markForm == MarkForm::Bits)
    return bits;
  float numbers[2] = {fp8Of(bits), fp8Of(bits >> 32)};
  if (markForm == MarkForm::OneOfTwo) {
    numbers[0] = 1 + static_cast<float>(bits >> 40);
    numbers[1] = 0;
  }
  std::memcpy(&bits, numbers, sizeof(bits));
  return bits;
}

void writeMarks(char *block, int64_t layer, int64_t slot, uint64_t history) {
  for (bool value : {false, true}) {
    uint64_t mark = markOf(history, layer, value);
    std::memcpy(block + (value ? layers[layer].value_offset : 0) + slot * markBytes, &mark, markBytes);
  }
}

bool holdsMarks(const char *block, int64_t layer, int64_t slot, uint64_t history) {
  for (bool value : {false, true}) {
    uint64_t found;
    std::memcpy(&found, block + (value ? layers[layer].value_offset : 0) + slot * markBytes, markBytes);
    if (found != markOf(history, layer, value))
      return false;
  }
  return true;
}

namespace {

/// One layer of a step.
struct LayerRows {
  const quire_step &step;
  MarkScript &script;
  int64_t layer;
  quire_kv_view view;

  char *block(int64_t sequence, int64_t place) const {
    int64_t block = view.tables[sequence * step.table_stride + place / markBlockTokens];
    return view.base + block * view.block_stride;
  }
  void read(int64_t sequence, int64_t end) const {
    for (int64_t place = 0; place < end && script.mismatch.empty(); ++place)
      if (!holdsMarks(block(sequence, place), layer, place % markBlockTokens, script.histories[static_cast<size_t>(sequence)][place]))
        script.mismatch = "layer " + std::to_string(layer) + ", place " + std::to_string(place) + " of sequence " + std::to_string(sequence) + " in the step";
  }
  void run() const {
    for (int64_t sequence = 0; sequence < step.sequences; ++sequence)
      read(sequence, step.past_lens[sequence]);
    for (int64_t row = 0; row < step.tokens; ++row) {
      int64_t sequence = step.sequence_of[row], place = step.places[row];
      writeMarks(block(sequence, place), layer, place % markBlockTokens, script.histories[static_cast<size_t>(sequence)][place]);
      if (step.positions[row] != script.positions[static_cast<size_t>(sequence)] + row - step.query_starts[sequence])
        script.mismatch = "row " + std::to_string(row) + " has position " + std::to_string(step.positions[row]);
    }
    for (int64_t sequence = 0; sequence < step.sequences; ++sequence) {
      int64_t next = sequence + 1 < step.sequences ? step.query_starts[sequence + 1] : step.tokens;
      read(sequence, step.past_lens[sequence] + next - step.query_starts[sequence]);
    }
  }
};

} // namespace

/// The next layer, all of it or a part, sometimes not or twice, and sometimes a layer that is not next.
static void prefetch(const quire_step &step, uint64_t choice, int64_t layer) {
  auto ask = [&](int64_t which, int64_t first, int64_t count) {
    step.runtime->prefetch(step.context, which, first, count);
  };
  switch (choice % 8) {
  case 0:
  case 1:
  case 2:
    return ask(layer + 1, 0, -1);
  case 3:
    ask(layer + 1, 0, 1 + static_cast<int64_t>(choice / 8 % 4));
    return ask(layer + 1, 2, -1);
  case 4:
    return ask(layer + 2, static_cast<int64_t>(choice / 8 % 3), -1);
  case 5:
    return ask(layer, 0, -1);
  default:
    return;
  }
}

/// Any shares: what is looked at decides what is fetched, and nothing else.
static void observe(const quire_step &step, const quire_kv_view &view, uint64_t choice) {
  for (int64_t s = 0; view.observed && s < step.sequences; ++s) {
    int64_t length = step.places[step.query_starts[s + 1] - 1] + 1;
    for (int64_t i = 0; i * markBlockTokens < length; ++i) {
      float *to = view.observed + (s * step.table_stride + i) * 2;
      uint64_t bits = mixed(choice + static_cast<uint64_t>(8 * s + i));
      to[0] = static_cast<float>(1 + bits % 4);
      to[1] = static_cast<float>(bits / 4 % 8);
    }
  }
}

static void markStep(const quire_step *step) {
  MarkScript &script = *const_cast<MarkScript *>(reinterpret_cast<const MarkScript *>(step->weights));
  const quire_runtime_table &calls = *step->runtime;
  uint64_t state = script.choices;
  bool together = script.choices % 4 == 3; // the layers of a page are held at the same time
  for (int64_t layer = 0; layer < markLayers; ++layer) {
    uint64_t choice = script.choices ? runtime::splitMix(state) : 0;
    LayerRows rows{*step, script, layer, {}};
    calls.acquire(step->context, layer, &rows.view);
    bool early = choice & 16;
    if (early)
      prefetch(*step, choice >> 8, layer);
    if (layer == script.abortIn)
      return;
    rows.run();
    observe(*step, rows.view, choice);
    if (!early)
      prefetch(*step, choice >> 8, layer);
    bool last = !together || (layer + 1) % script.layersPerPage == 0 || layer + 1 == markLayers;
    for (int64_t held = together ? layer - layer % script.layersPerPage : layer; last && held <= layer; ++held)
      calls.release(step->context, held);
  }
  for (int64_t i = 0; i < step->selected_count * markVocabulary; ++i)
    step->logits[i] = 0;
}

const quire_model_info &markInfo() {
  static const quire_model_info info = {sizeof(quire_model_info), QUIRE_MODEL_ABI_VERSION, markVocabulary, markVocabulary,
                                        markPositions, markBlockTokens, markLayers, layers, sizeof(MarkScript), 64, 0, 0, markStep};
  return info;
}

} // namespace quire::test
