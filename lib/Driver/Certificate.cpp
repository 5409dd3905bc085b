// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Proof by execution: the original graph against the compiled paged model.
#include "lib/Driver/Certificate.h"

#include "lib/Driver/Reference.h"
#include "lib/Target/CPU/CpuTarget.h"
#include "quire/runtime.h"

#include "dialects/ONNX/ONNXOps.h"

#include "llvm/ADT/FloatingPointMode.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>

using namespace mlir;

namespace quire {
namespace {

/// Largest differences, as a fraction of the largest magnitude they are compared with.
struct Difference {
  double largest = 0;
  void add(double got, double want, double magnitude) {
    double error = std::abs(got - want) / std::max(magnitude, 1e-6);
    if (!(error <= largest) && !std::isnan(largest)) // NaN comes in, and stays
      largest = error;
  }
  /// False for NaN too.
  bool within(double tolerance) const { return largest <= tolerance; }
};

struct Sequence {
  std::vector<int64_t> tokens;
  ReferenceRun reference;
};

/// How the same sequences are given to the model.
struct Schedule {
  const char *name;
  bool chunked;     // random chunks, sequences mixed, single tokens at the end
  bool permuted;    // blocks handed out in a random order, free blocks poisoned
};

/// Bounds of what rounding does; docs/Rationale/KvTypes.md has what was measured.
double toleranceOf(int64_t element) {
  switch (element) {
  case QUIRE_ELEMENT_F32:
    return 2e-4;
  case QUIRE_ELEMENT_F16:
    return 2e-2;
  case QUIRE_ELEMENT_BF16:
  case QUIRE_ELEMENT_I8:
    return 5e-2;
  case QUIRE_ELEMENT_FP8_E4M3:
    return 1e-1;
  case QUIRE_ELEMENT_FP8_E5M2:
    return 2e-1;
  default: // I4
    return 3e-1;
  }
}

/// Elements whose roundings add up, from row to row, to more than many errors would change.
bool accumulatesErrors(int64_t element) {
  return element == QUIRE_ELEMENT_I4 || element == QUIRE_ELEMENT_FP8_E4M3 || element == QUIRE_ELEMENT_FP8_E5M2;
}

class Certifier {
public:
  Certifier(ModuleOp module, StringRef modelFolder, const RaiseReport &report, const CertificateOptions &options)
      : module(module), report(report), options(options), reference(module, modelFolder, report), random(options.seed) {}
  ~Certifier() { quire_model_destroy(model); }

  Certificate run(const std::string &folder);

private:
  bool chooseSequences();
  bool runReference();
  bool runSchedule(const Schedule &schedule);
  bool stepAll(quire_executor *executor, quire_pool *pool, ArrayRef<quire_sequence> handles, const Schedule &schedule);
  bool compareStates(const quire_pool *pool, ArrayRef<quire_sequence> handles);
  bool compareLastRows(const quire_pool *pool, ArrayRef<quire_sequence> handles);
  bool takePast(const quire_pool *pool, const int32_t *blocks, int64_t past, std::vector<eval::Tensor> &states);
  void compareLogits(Difference &difference, const float *got, const float *want) const;
  std::vector<int64_t> placesOf(size_t layer, bool key, int64_t position, const StateReport &state, ArrayRef<int64_t> shape) const;
  std::optional<size_t> stateOf(size_t layer, bool key) const;
  void compareLayer(const quire_pool *pool, size_t layer, const int32_t *blocks, int64_t from, int64_t to, ArrayRef<eval::Tensor> states);
  bool isEdge(const LayerReport &layer, int64_t position, int64_t row) const;
  bool makePast(const quire_pool *pool, const int32_t *blocks, int64_t past, std::vector<eval::Tensor> &states);
  bool runLong(int64_t length);
  bool runLong(quire_pool *pool, quire_executor *executor, int64_t length);
  double parameters();
  bool fail(const llvm::Twine &why) {
    if (certificate.reason.empty())
      certificate.reason = ("verify: " + why).str();
    return false;
  }
  bool failed(quire_status status) { return status != QUIRE_OK && !fail(quire_last_error()); }

  ModuleOp module;
  const RaiseReport &report;
  const CertificateOptions &options;
  Reference reference;
  std::mt19937_64 random;
  quire_model *model = nullptr;
  const quire_model_info *info = nullptr;
  std::vector<Sequence> sequences;
  Difference logits; // from the first token; where elements are narrow, of rows that follow what is stored
  Difference drift;  // where elements are narrow, from the first token
  std::vector<Difference> layers;
  double tolerance = 2e-4;
  bool narrow = false; // some elements accumulate errors
  std::vector<std::vector<float>> lastRows; // logits of each sequence in the schedule that runs, where elements are narrow
  int64_t rows = 0;
  std::vector<int64_t> longLengths, skipped; // left to runs with a random past; of those, too long for memory
  Certificate certificate;
};

double Certifier::parameters() {
  double count = 0;
  module.walk([&](onnx::InitializerOp op) { count += cast<ShapedType>(op.getType()).getNumElements(); });
  return count;
}

/// Lengths at which masks, positions or block tables change what they do.
bool Certifier::chooseSequences() {
  int64_t block = info->block_tokens;
  std::set<int64_t> lengths{1, 3, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1};
  for (const LayerReport &layer : report.layers)
    for (int64_t constant : {layer.window, layer.chunk})
      if (constant > 0)
        lengths.insert({constant - 1, constant, constant + 1, constant + block + 1});
  lengths.insert({cpu::attendPartTokens + 1, 2 * cpu::attendPartTokens + block + 1});
  if (report.maxPositions > 0)
    lengths.insert({report.maxPositions - 1, report.maxPositions});
  double weights = parameters(), width = 0;
  for (const LayerReport &layer : report.layers)
    width += double(layer.heads) * double(layer.keyDim + layer.valueDim);
  for (int64_t length : lengths) {
    if (length < 1 || (report.maxPositions > 0 && length > report.maxPositions))
      continue;
    if (double(length) * weights + double(length) * double(length) * width > options.workLimit) {
      longLengths.push_back(length);
      continue;
    }
    Sequence sequence;
    for (int64_t i = 0; i < length; ++i)
      sequence.tokens.push_back(int64_t(random() % uint64_t(info->token_limit)));
    sequences.push_back(std::move(sequence));
  }
  return !sequences.empty() || !longLengths.empty() || fail("no length fits the model");
}

bool Certifier::runReference() {
  for (Sequence &sequence : sequences) {
    llvm::Expected<ReferenceRun> result = reference.run(sequence.tokens);
    if (!result)
      return fail(llvm::toString(result.takeError()));
    sequence.reference = std::move(*result);
    if (sequence.reference.logits.size() != sequence.tokens.size() * size_t(info->vocabulary))
      return fail("the graph gives " + llvm::Twine(sequence.reference.logits.size()) + " logits for " + llvm::Twine(sequence.tokens.size()) + " tokens");
  }
  return true;
}

void Certifier::compareLogits(Difference &difference, const float *got, const float *want) const {
  double magnitude = 0;
  for (int64_t i = 0; i < info->vocabulary; ++i)
    magnitude = std::max(magnitude, double(std::abs(want[i])));
  for (int64_t i = 0; i < info->vocabulary; ++i)
    difference.add(got[i], want[i], magnitude);
}

/// Runs every sequence to its end and compares every row.
bool Certifier::stepAll(quire_executor *executor, quire_pool *pool, ArrayRef<quire_sequence> handles, const Schedule &schedule) {
  std::vector<size_t> done(sequences.size(), 0);
  while (true) {
    std::vector<quire_sequence> members;
    std::vector<int64_t> counts, tokens, selected;
    std::vector<std::pair<size_t, size_t>> origin; // sequence and position of every row
    for (size_t index = 0; index < sequences.size(); ++index) {
      size_t left = sequences[index].tokens.size() - done[index];
      if (left == 0 || (schedule.chunked && random() % 4 == 0))
        continue;
      size_t count = schedule.chunked ? 1 + random() % std::min<size_t>(left, random() % 2 ? 1 : 7) : left;
      members.push_back(handles[index]);
      counts.push_back(int64_t(count));
      for (size_t i = 0; i < count; ++i) {
        origin.push_back({index, done[index] + i});
        selected.push_back(int64_t(selected.size()));
        tokens.push_back(sequences[index].tokens[done[index] + i]);
      }
      done[index] += count;
    }
    if (members.empty()) {
      if (std::equal(done.begin(), done.end(), sequences.begin(), [](size_t n, const Sequence &s) { return n == s.tokens.size(); }))
        return true;
      continue;
    }
    quire_batch batch{sizeof(quire_batch), int64_t(members.size()), members.data(), counts.data(), tokens.data(), selected.data(), int64_t(selected.size())};
    std::vector<float> got(selected.size() * size_t(info->vocabulary));
    if (failed(quire_executor_step(executor, &batch, got.data())))
      return false;
    for (size_t row = 0; row < origin.size(); ++row) {
      const float *want = sequences[origin[row].first].reference.logits.data() + origin[row].second * size_t(info->vocabulary);
      const float *logitsOfRow = got.data() + row * size_t(info->vocabulary);
      compareLogits(narrow ? drift : logits, logitsOfRow, want);
      if (narrow && origin[row].second + 1 == sequences[origin[row].first].tokens.size())
        lastRows[origin[row].first].assign(logitsOfRow, logitsOfRow + info->vocabulary);
    }
    rows += int64_t(origin.size());
  }
}

/// The index in the state of each element of K or V of one position: [heads][features].
std::vector<int64_t> Certifier::placesOf(size_t layer, bool key, int64_t position, const StateReport &state, ArrayRef<int64_t> shape) const {
  int64_t heads = info->layers[layer].kv_heads, width = key ? info->layers[layer].key_dim : info->layers[layer].value_dim;
  // Other axes are heads, then features, row-major; the row axis may stand anywhere among them.
  int64_t inner = 1, stride = shape[state.rowAxis];
  for (int64_t axis = state.rowAxis + 1; axis < int64_t(shape.size()); ++axis)
    inner *= shape[axis];
  std::vector<int64_t> places;
  for (int64_t flat = 0; flat < heads * width; ++flat) // inner == 1: [.., features, rows]
    places.push_back((flat / inner * stride + position) * inner + flat % inner);
  return places;
}

/// One position of a layer in the pool: K and V as numbers, [heads][features] each.
struct StoredPosition {
  StoredPosition(const quire_model_info *info, const quire_pool *pool, size_t layer, const int32_t *blocks, int64_t position)
      : info(info), layer(int64_t(layer)), shape(info->layers[layer]), token(position % info->block_tokens), key(size_t(shape.kv_heads * shape.key_dim)),
        value(size_t(shape.kv_heads * shape.value_dim)) {
    if (quire_pool_block_address(pool, this->layer, blocks[position / info->block_tokens], &block) != QUIRE_OK)
      llvm_unreachable("the sequence has this block");
  }

  void load() {
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      (void)quire_block_load_row(info, layer, block, head, token, &key[size_t(head * shape.key_dim)], &value[size_t(head * shape.value_dim)]);
  }
  /// Keeps what is stored of the numbers.
  void store() {
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      (void)quire_block_store_row(info, layer, block, head, token, &key[size_t(head * shape.key_dim)], &value[size_t(head * shape.value_dim)]);
    load();
  }

  const quire_model_info *info;
  int64_t layer;
  const quire_model_layer &shape;
  int64_t token;
  void *block = nullptr;
  std::vector<float> key, value;
};

/// The index in the report of the state that holds K or V of a layer of the model; nothing where its rows have no axis of their own.
std::optional<size_t> Certifier::stateOf(size_t layer, bool key) const {
  const LayerReport *found = nullptr;
  size_t distinct = 0;
  std::set<std::string> seen; // layers that share a state have one entry in the model
  for (const LayerReport &candidate : report.layers)
    if (seen.insert(candidate.keyState + "/" + candidate.valueState).second && distinct++ == layer)
      found = &candidate;
  auto state = llvm::find_if(report.states, [&](const StateReport &s) { return s.name == (key ? found->keyState : found->valueState); });
  if (state == report.states.end() || state->rowAxis < 0)
    return std::nullopt;
  return size_t(state - report.states.begin());
}

/// The stored rows of one layer from `from` on against the graph's states, which may have their axes in any order.
void Certifier::compareLayer(const quire_pool *pool, size_t layer, const int32_t *blocks, int64_t from, int64_t to, ArrayRef<eval::Tensor> states) {
  const quire_model_layer &shape = info->layers[layer];
  for (bool key : {true, false}) {
    std::optional<size_t> index = stateOf(layer, key);
    if (!index)
      continue;
    const eval::Tensor &tensor = states[*index];
    if (tensor.count() == 0 || tensor.count() % (shape.kv_heads * (key ? shape.key_dim : shape.value_dim)) != 0)
      continue;
    eval::Numbers<float> values(tensor);
    double magnitude = 0;
    for (float value : values.all())
      magnitude = std::max(magnitude, double(std::abs(value)));
    for (int64_t position = from; position < to; ++position) {
      StoredPosition got(info, pool, layer, blocks, position);
      got.load();
      for (auto [number, place] : llvm::zip_equal(key ? got.key : got.value, placesOf(layer, key, position, report.states[*index], tensor.shape())))
        layers[layer].add(number, values[place], magnitude);
    }
  }
}

bool Certifier::compareStates(const quire_pool *pool, ArrayRef<quire_sequence> handles) {
  for (size_t index = 0; index < sequences.size(); ++index) {
    const int32_t *blocks = nullptr;
    int64_t count = 0;
    if (failed(quire_sequence_table(pool, handles[index], &blocks, &count)))
      return false;
    for (size_t layer = 0; layer < size_t(info->layer_count); ++layer)
      compareLayer(pool, layer, blocks, 0, int64_t(sequences[index].tokens.size()), sequences[index].reference.states);
  }
  return true;
}

/// The numbers that the pool has stored of `past` positions, as the graph's states. False where a state has no rows for them.
bool Certifier::takePast(const quire_pool *pool, const int32_t *blocks, int64_t past, std::vector<eval::Tensor> &states) {
  states = reference.statesOf(past);
  std::vector<std::vector<float>> values;
  for (const eval::Tensor &state : states)
    values.emplace_back(size_t(state.count()), 0.0f);
  std::set<size_t> filled;
  for (size_t layer = 0; layer < size_t(info->layer_count); ++layer)
    for (bool key : {true, false}) {
      std::optional<size_t> index = stateOf(layer, key);
      if (!index || states[*index].count() % (info->layers[layer].kv_heads * (key ? info->layers[layer].key_dim : info->layers[layer].value_dim)) != 0)
        return false;
      for (int64_t position = 0; position < past; ++position) {
        StoredPosition row(info, pool, layer, blocks, position);
        row.load();
        for (auto [number, place] : llvm::zip_equal(key ? row.key : row.value, placesOf(layer, key, position, report.states[*index], states[*index].shape())))
          values[*index][size_t(place)] = number;
      }
      filled.insert(*index);
    }
  if (filled.size() != states.size())
    return false;
  for (auto [state, contents] : llvm::zip_equal(states, values))
    state = eval::storeAs(state.kind(), state.shape(), std::move(contents));
  return true;
}

/// The last row of every sequence, with the graph on what is stored of those before: only the rounding of its own K and V is a difference.
bool Certifier::compareLastRows(const quire_pool *pool, ArrayRef<quire_sequence> handles) {
  for (size_t index = 0; index < sequences.size(); ++index) {
    const int32_t *blocks = nullptr;
    int64_t count = 0, past = int64_t(sequences[index].tokens.size()) - 1;
    std::vector<eval::Tensor> states;
    if (failed(quire_sequence_table(pool, handles[index], &blocks, &count)))
      return false;
    if (!takePast(pool, blocks, past, states))
      return fail("the last rows of a graph whose states have no row for each token cannot be compared");
    llvm::Expected<std::vector<float>> want = reference.continueFrom(states, past, ArrayRef(sequences[index].tokens).drop_front(size_t(past)));
    if (!want)
      return fail(llvm::toString(want.takeError()));
    compareLogits(logits, lastRows[index].data(), want->data());
    for (size_t layer = 0; layer < size_t(info->layer_count); ++layer)
      compareLayer(pool, layer, blocks, past, past + 1, states);
  }
  return true;
}

bool Certifier::runSchedule(const Schedule &schedule) {
  int64_t blocks = 0, tokens = 0;
  for (const Sequence &sequence : sequences) {
    blocks += (int64_t(sequence.tokens.size()) + info->block_tokens - 1) / info->block_tokens;
    tokens += int64_t(sequence.tokens.size());
  }
  quire_pool_options poolOptions{};
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = uint64_t((schedule.permuted ? blocks + 3 : blocks) * quire_model_block_bytes(info));
  poolOptions.shuffle = poolOptions.poison = schedule.permuted;
  poolOptions.shuffle_seed = options.seed + 1;
  quire_pool *pool = nullptr;
  quire_executor *executor = nullptr;
  quire_executor_options executorOptions{};
  executorOptions.struct_size = sizeof(executorOptions);
  executorOptions.max_tokens = tokens;
  executorOptions.max_sequences = int64_t(sequences.size());
  bool ok = !failed(quire_pool_create(info, &poolOptions, &pool)) && !failed(quire_executor_create(model, pool, &executorOptions, &executor));
  std::vector<quire_sequence> handles(sequences.size());
  for (quire_sequence &handle : handles)
    ok = ok && !failed(quire_sequence_create(pool, &handle));
  ok = ok && stepAll(executor, pool, handles, schedule) && (narrow ? compareLastRows(pool, handles) : compareStates(pool, handles));
  quire_executor_destroy(executor);
  quire_pool_destroy(pool);
  return ok;
}

/// Whether `row` is the first or last key that the query at `position` sees, or a neighbour of those.
bool Certifier::isEdge(const LayerReport &layer, int64_t position, int64_t row) const {
  int64_t first = 0;
  if (layer.window > 0)
    first = std::max(first, position - layer.window + 1);
  if (layer.chunk > 0)
    first = std::max(first, position / layer.chunk * layer.chunk);
  return std::abs(row - first) <= 1 || std::abs(row - position) <= 1;
}

/// Random K and V for `past` tokens, in the pool and as the graph's states. Values at the edges of what the new tokens see are large: among thousands
/// of keys one more or less would change nothing that can be measured.
bool Certifier::makePast(const quire_pool *pool, const int32_t *blocks, int64_t past, std::vector<eval::Tensor> &states) {
  states = reference.statesOf(past);
  std::vector<std::vector<float>> values;
  for (const eval::Tensor &state : states)
    values.emplace_back(size_t(state.count()), 0.0f);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::set<size_t> filled;
  for (size_t layer = 0; layer < size_t(info->layer_count); ++layer) {
    const quire_model_layer &shape = info->layers[layer];
    std::optional<size_t> keys = stateOf(layer, true), contents = stateOf(layer, false);
    auto fits = [&](std::optional<size_t> index, int64_t width) { return index && states[*index].count() % (shape.kv_heads * width) == 0; };
    if (!fits(keys, shape.key_dim) || !fits(contents, shape.value_dim))
      return false;
    auto rule = llvm::find_if(report.layers, [&](const LayerReport &l) { return l.keyState == report.states[*keys].name; });
    for (int64_t position = 0; position < past; ++position) {
      float size = isEdge(*rule, past, position) || isEdge(*rule, past + 1, position) ? 64.0f : 1.0f;
      StoredPosition row(info, pool, layer, blocks, position);
      for (float &number : row.key)
        number = uniform(random);
      for (float &number : row.value)
        number = uniform(random) * size;
      row.store();
      for (bool key : {true, false}) {
        size_t index = key ? *keys : *contents;
        for (auto [number, place] : llvm::zip_equal(key ? row.key : row.value, placesOf(layer, key, position, report.states[index], states[index].shape())))
          values[index][size_t(place)] = number;
      }
    }
    filled.insert({*keys, *contents});
  }
  if (filled.size() != states.size())
    return false; // states without rows: their contents follow from the tokens
  for (auto [state, contents] : llvm::zip_equal(states, values))
    state = eval::storeAs(state.kind(), state.shape(), std::move(contents));
  return true;
}

/// A sequence whose first `length` - 2 tokens exist as random K and V only, then a few new tokens: alone in the graph, in one step in the model.
bool Certifier::runLong(quire_pool *pool, quire_executor *executor, int64_t length) {
  int64_t count = report.maxPositions > 0 ? std::min<int64_t>(4, report.maxPositions - length + 2) : 4, past = length - 2;
  quire_sequence sequence;
  const int32_t *blocks = nullptr;
  int64_t blockCount = 0;
  if (failed(quire_sequence_create(pool, &sequence)) || failed(quire_sequence_reserve(pool, sequence, past + count)) ||
      failed(quire_sequence_commit(pool, sequence, past)) || failed(quire_sequence_table(pool, sequence, &blocks, &blockCount)))
    return false;
  std::vector<eval::Tensor> states;
  if (!makePast(pool, blocks, past, states)) {
    skipped.push_back(length);
    return true;
  }
  std::vector<int64_t> tokens, selected;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(int64_t(random() % uint64_t(info->token_limit)));
    selected.push_back(i);
  }
  llvm::Expected<std::vector<float>> want = reference.continueFrom(states, past, tokens);
  if (!want)
    return fail(llvm::toString(want.takeError()));
  quire_batch batch{sizeof(quire_batch), 1, &sequence, &count, tokens.data(), selected.data(), count};
  std::vector<float> got(size_t(count * info->vocabulary));
  if (want->size() != got.size())
    return fail("the graph gives " + llvm::Twine(want->size()) + " logits for " + llvm::Twine(count) + " tokens");
  if (failed(quire_executor_step(executor, &batch, got.data())))
    return false;
  for (int64_t row = 0; row < count; ++row)
    compareLogits(logits, got.data() + row * info->vocabulary, want->data() + row * info->vocabulary);
  for (size_t layer = 0; layer < size_t(info->layer_count); ++layer)
    compareLayer(pool, layer, blocks, past, past + count, states);
  rows += count;
  return true;
}

bool Certifier::runLong(int64_t length) {
  double numbers = 0;
  for (int64_t layer = 0; layer < info->layer_count; ++layer)
    numbers += double(info->layers[layer].kv_heads * (info->layers[layer].key_dim + info->layers[layer].value_dim));
  if (length < 3 || numbers * double(length) > options.memoryLimit) {
    skipped.push_back(length);
    return true;
  }
  quire_pool_options poolOptions{};
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = uint64_t((length + 4 + info->block_tokens) / info->block_tokens + 1) * uint64_t(quire_model_block_bytes(info));
  poolOptions.shuffle = poolOptions.poison = 1;
  poolOptions.shuffle_seed = options.seed + 2;
  quire_executor_options executorOptions{};
  executorOptions.struct_size = sizeof(executorOptions);
  executorOptions.max_tokens = 4;
  executorOptions.max_sequences = 1;
  quire_pool *pool = nullptr;
  quire_executor *executor = nullptr;
  bool ok = !failed(quire_pool_create(info, &poolOptions, &pool)) && !failed(quire_executor_create(model, pool, &executorOptions, &executor)) &&
            runLong(pool, executor, length);
  quire_executor_destroy(executor);
  quire_pool_destroy(pool);
  return ok;
}

Certificate Certifier::run(const std::string &folder) {
  const Schedule schedules[] = {{"whole", false, false}, {"whole, permuted blocks", false, true}, {"chunked", true, false}, {"chunked, permuted blocks", true, true}};
  llvm::json::Array done, lengths, layerErrors;
  if (!failed(quire_model_load(folder.c_str(), &model))) {
    info = quire_model_get_info(model);
    layers.resize(size_t(info->layer_count));
    for (int64_t layer = 0; layer < info->layer_count; ++layer) {
      tolerance = std::max(tolerance, toleranceOf(info->layers[layer].element));
      narrow |= accumulatesErrors(info->layers[layer].element);
    }
    bool ok = chooseSequences() && runReference();
    lastRows.resize(sequences.size());
    for (const Schedule &schedule : schedules)
      if (ok && !sequences.empty() && (ok = runSchedule(schedule)))
        done.push_back(schedule.name);
    for (int64_t length : longLengths)
      ok = ok && runLong(length);
  }
  for (const Sequence &sequence : sequences)
    lengths.push_back(int64_t(sequence.tokens.size()));
  llvm::json::Array seeded, tooLong(skipped);
  for (int64_t length : longLengths)
    if (!llvm::is_contained(skipped, length))
      seeded.push_back(length);
  bool within = logits.within(tolerance);
  for (auto [index, layer] : llvm::enumerate(layers)) {
    layerErrors.push_back(layer.largest);
    if (!layer.within(tolerance))
      fail("stored rows of layer " + llvm::Twine(index) + " differ by " + std::to_string(layer.largest) + " of their magnitude, allowed " + std::to_string(tolerance));
  }
  if (!within)
    fail("logits differ by " + std::to_string(logits.largest) + " of their magnitude, allowed " + std::to_string(tolerance));
  certificate.holds = certificate.reason.empty();
  certificate.summary = llvm::formatv("{0} rows of logits within {1:E1} of their magnitude (allowed {2:E0}), stored rows of {3} layers, {4} schedules", rows,
                                      logits.largest, tolerance, layers.size(), done.size())
                            .str();
  llvm::json::Array masks;
  for (const LayerReport &layer : report.layers)
    masks.push_back(layer.maskKind);
  certificate.document = llvm::json::Object{{"holds", certificate.holds},
                                            {"seed", int64_t(options.seed)},
                                            {"tolerance", tolerance},
                                            {"rows", rows},
                                            {"lengths", std::move(lengths)},
                                            {"lengths_after_random_past", std::move(seeded)},
                                            {"lengths_skipped", std::move(tooLong)},
                                            {"schedules", std::move(done)},
                                            {"logits_error", logits.largest},
                                            {"layer_errors", std::move(layerErrors)},
                                            {"masks", std::move(masks)}};
  if (narrow)
    certificate.document["drift"] = drift.largest;
  if (!certificate.holds)
    certificate.document["reason"] = certificate.reason;
  return std::move(certificate);
}

} // namespace

Certificate certify(ModuleOp module, StringRef modelFolder, const RaiseReport &report, const std::string &folder, const CertificateOptions &options) {
  return Certifier(module, modelFolder, report, options).run(folder);
}

} // namespace quire
