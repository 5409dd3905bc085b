// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules, pages and the reference of the attention tests.
#include "test/Unit/Target/AttendFixture.h"
#include "lib/Target/CPU/FloatFormats.h"
#include "quire/runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace quire;
using namespace quire::test;

static int64_t bytesOf(const std::string &element) { return element == "f32" ? 4 : 2; }

static void writeElement(char *to, const std::string &element, float value) {
  uint16_t narrow = element == "f16" ? cpu::halfFromFloat(value) : cpu::bfloatFromFloat(value);
  if (element == "f32")
    std::memcpy(to, &value, 4);
  else
    std::memcpy(to, &narrow, 2);
}

static float readElement(const char *from, const std::string &element) {
  float value;
  uint16_t narrow;
  std::memcpy(&value, from, element == "f32" ? 4 : 0);
  std::memcpy(&narrow, from, 2);
  return element == "f32" ? value : element == "f16" ? cpu::floatFromHalf(narrow) : cpu::floatFromBfloat(narrow);
}

static float rounded(const std::string &element, float value) {
  char bytes[4];
  writeElement(bytes, element, value);
  return readElement(bytes, element);
}

static AttendCase withLanes(AttendCase c) {
  if (c.lanes == 0)
    c.lanes = std::min(cpu::CpuTarget::host().lanes(), c.block);
  return c;
}

AttendFixture::AttendFixture(const AttendCase &parameters)
    : c(withLanes(parameters)), model(moduleText(), c.target ? *c.target : cpu::CpuTarget::host()), runtime(model.info) {}

static std::string number(int64_t value) { return std::to_string(value); }

std::string AttendFixture::moduleText() const {
  std::string state = "!kvrt.state<heads = " + number(c.heads) + ", key = " + number(c.key) +
                      ", value = " + number(c.value) + ", element = " + c.element + ", block = " + number(c.block) +
                      ", lanes = " + number(c.lanes) + ">";
  std::string symbols, views;
  int64_t offset = 0;
  auto input = [&](const std::string &name, int64_t heads, int64_t features) {
    std::string tail = number(heads) + "x" + number(features) + "x" + c.activation;
    std::string all = number(maxRows) + "x" + tail;
    std::string rows =
        "memref<?x" + tail + ", strided<[" + number(heads * features) + ", " + number(features) + ", 1]>>";
    symbols += "kvrt.raw @" + name + " {source = @source, offset = " + number(offset) + "} : tensor<" + all + ">\n";
    views += "  %" + name + "_all = kvrt.weight %batch, @" + name + " : memref<" + all + ">\n  %" + name +
             " = memref.subview %" + name + "_all[0, 0, 0] [%rows, " + number(heads) + ", " + number(features) +
             "] [1, 1, 1] : memref<" + all + "> to " + rows + "\n";
    offset += maxRows * heads * features * 4;
    return rows;
  };
  std::string key = input("k", c.heads, c.key), value = input("v", c.heads, c.value);
  std::string query = input("q", c.queryHeads, c.key), sinks = "memref<" + number(c.queryHeads) + "xf32>";
  symbols += "kvrt.raw @sinks {source = @source, offset = " + number(offset) + "} : tensor<" + number(c.queryHeads) +
             "xf32>\n";
  std::string tail = number(c.queryHeads) + "x" + number(c.value) + "xf32>";
  std::string attributes = "scale = 0.125 : f32, window = " + number(c.window) + ", chunk = " + number(c.chunk) +
                           ", causal = " + (c.causal ? "true" : "false") + ", softcap = " + std::to_string(c.softcap) +
                           " : f32" + (c.observe ? ", observe" : "");
  if (c.alibi) {
    attributes += ", alibi_slopes = array<f32: ";
    for (int64_t head = 0; head < c.queryHeads; ++head)
      attributes += (head ? ", " : "") + std::to_string(slope(head));
    attributes += ">";
  }
  int64_t group = c.queryHeads / c.heads;
  std::string parts = "memref<" + number(c.places) + "x" + number(group) + "x" + number(c.value + 2) + "xf32>";
  return "kvrt.raw @source {source = @source} : tensor<1xf32>\n" + symbols +
         "kvrt.model @step {vocabulary = " + number(rowSize()) +
         ", token_limit = 1, max_positions = -1, block_tokens = " + number(c.block) + ", layers = [" + state +
         "], scratch_fixed = " + number(c.places * group * (c.value + 2) * 4) + "}\n" +
         "func.func @step(%batch: !kvrt.batch) {\n  %rows = kvrt.extent %batch[tokens]\n" + views +
         "  %sinks = kvrt.weight %batch, @sinks : " + sinks + "\n  %flat = kvrt.logits %batch : memref<?x" +
         number(rowSize()) + "xf32>\n  %o = memref.expand_shape %flat [[0], [1, 2]] output_shape [%rows, " +
         number(c.queryHeads) + ", " + number(c.value) + "] : memref<?x" + number(rowSize()) + "xf32> into memref<?x" +
         tail + "\n" + (c.places ? "  %parts = kvrt.scratch %batch : " + parts + "\n" : "") +
         "  %s = kvrt.acquire %batch, 0 : " + state + "\n  kvrt.append %k, %v into %s, %batch : " + key +
         ", " + value + ", " + state + "\n  kvrt.attend ins(%q, %s, %batch" + (c.sinks ? ", sinks %sinks" : "") +
         " : " + query + ", " + state + (c.sinks ? ", " + sinks : "") + ")" +
         (c.places ? " parts(%parts : " + parts + ")" : "") + " outs(%o : memref<?x" + tail + ") {" +
         attributes + "}\n  kvrt.release %s, %batch : " + state + "\n  return\n}\n";
}

float AttendFixture::datum(Kind kind, int64_t sequence, int64_t position, int64_t head, int64_t feature) const {
  uint64_t x = ((((kind * 64ull + sequence) * 16384 + position) * 64 + head) * 512 + feature) * 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 32;
  float value = static_cast<float>(x & 0xffff) / 32768.0f - 1.0f;
  if (kind == c.strangeKind && position == c.strangePosition && feature == 3)
    return c.strange;
  if (kind == valueKind && c.values)
    return c.values(sequence, head, feature);
  return rounded(c.activation, kind == queryKind ? 2.0f * value : value);
}

static char *blockOf(const std::vector<char> &arena, const quire_model_info &info, int64_t block) {
  char *base = const_cast<char *>(arena.data());
  return base + (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64 + block * info.layers[0].block_bytes;
}

void AttendFixture::store(std::vector<char> &arena, const Piece &piece, int64_t position, int32_t block) const {
  std::vector<float> key(c.key), value(c.value);
  for (int64_t head = 0; head < c.heads; ++head) {
    for (int64_t feature = 0; feature < c.key; ++feature)
      key[feature] = datum(keyKind, piece.id, position, head, feature);
    for (int64_t feature = 0; feature < c.value; ++feature)
      value[feature] = datum(valueKind, piece.id, position, head, feature);
    EXPECT_EQ(quire_block_store_row(model.info, 0, blockOf(arena, *model.info, block), head, position % c.block,
                                    key.data(), value.data()),
              QUIRE_OK);
  }
}

std::vector<float> AttendFixture::stored(Kind kind, const Piece &piece) const {
  int64_t length = piece.past + piece.rows, features = kind == keyKind ? c.key : c.value;
  std::vector<char> arena(model.info->layers[0].block_bytes + 64);
  std::vector<float> rows(c.heads * length * features), key(c.key), value(c.value);
  for (int64_t position = 0; position < length; ++position) {
    store(arena, piece, position, 0);
    for (int64_t head = 0; head < c.heads; ++head) {
      EXPECT_EQ(quire_block_load_row(model.info, 0, blockOf(arena, *model.info, 0), head, position % c.block, key.data(),
                                     value.data()),
                QUIRE_OK);
      const std::vector<float> &row = kind == keyKind ? key : value;
      std::copy(row.begin(), row.end(), rows.begin() + (head * length + position) * features);
    }
  }
  return rows;
}

std::vector<char> AttendFixture::inputs(const std::vector<Piece> &pieces) const {
  int64_t size = bytesOf(c.activation);
  std::vector<char> bytes;
  auto add = [&](Kind kind, int64_t heads, int64_t features) {
    size_t start = bytes.size();
    bytes.resize(start + maxRows * heads * features * 4);
    char *to = bytes.data() + start;
    for (const Piece &piece : pieces)
      for (int64_t position = piece.past; position < piece.past + piece.rows; ++position)
        for (int64_t head = 0; head < heads; ++head)
          for (int64_t feature = 0; feature < features; ++feature, to += size)
            writeElement(to, c.activation, datum(kind, piece.id, position, head, feature));
  };
  add(keyKind, c.heads, c.key);
  add(valueKind, c.heads, c.value);
  add(queryKind, c.queryHeads, c.key);
  for (int64_t head = 0; head < c.queryHeads; ++head) {
    float value = sink(head);
    bytes.insert(bytes.end(), reinterpret_cast<char *>(&value), reinterpret_cast<char *>(&value) + 4);
  }
  return bytes;
}

std::vector<float> AttendFixture::run(const std::vector<Piece> &pieces) {
  last = pieces;
  lastRows.clear();
  blockCount = 3;
  for (const Piece &piece : pieces)
    blockCount += (piece.past + piece.rows + c.block - 1) / c.block;
  std::vector<int32_t> free(blockCount);
  for (int64_t block = 0; block < blockCount; ++block)
    free[block] = block;
  std::shuffle(free.begin(), free.end(), std::mt19937(pieces.size()));
  runtime.allocate(blockCount, /*fill=*/static_cast<char>(0xff));
  int64_t rows = 0;
  for (const Piece &piece : pieces) {
    SequenceRows sequence = {piece.past, piece.rows, {}};
    rows += piece.rows;
    for (int64_t position = 0; position < piece.past + piece.rows; position += c.block) {
      sequence.blocks.push_back(free.back());
      free.pop_back();
    }
    for (int64_t position = 0; position < piece.past; ++position)
      store(runtime.arenas[0], piece, position, sequence.blocks[position / c.block]);
    lastRows.push_back(sequence);
  }
  std::vector<int64_t> selected(rows);
  std::vector<char> bytes = inputs(pieces);
  return runtime.step(lastRows, selected, bytes.data());
}

void AttendFixture::checkPages() const {
  const std::vector<char> &arena = runtime.arenas[0];
  std::vector<char> wanted(arena.size() + 64, static_cast<char>(0xff));
  for (size_t s = 0; s < last.size(); ++s)
    for (int64_t position = 0; position < last[s].past + last[s].rows; ++position)
      store(wanted, last[s], position, lastRows[s].blocks[position / c.block]);
  const char *from = blockOf(arena, *model.info, 0), *to = blockOf(wanted, *model.info, 0);
  int64_t bytes = blockCount * model.info->layers[0].block_bytes;
  auto [at, differs] = std::mismatch(from, from + bytes, to);
  ASSERT_EQ(at, from + bytes) << "byte " << (at - from) % model.info->layers[0].block_bytes << " of block "
                              << (at - from) / model.info->layers[0].block_bytes << " is " << int(*at) << ", not "
                              << int(*differs);
}

std::vector<double> AttendFixture::weights(const Piece &piece, const std::vector<float> &keys, int64_t position,
                                           int64_t head, double &sum) const {
  int64_t kvHead = head / (c.queryHeads / c.heads), length = piece.past + piece.rows;
  std::vector<double> scores(length, -INFINITY);
  double maximum = c.sinks ? sink(head) : -INFINITY;
  for (int64_t key = 0; key < length; ++key) {
    if ((c.causal && key > position) || (c.window && position - key >= c.window) ||
        (c.chunk && key / c.chunk != position / c.chunk))
      continue;
    double score = 0.0;
    for (int64_t feature = 0; feature < c.key; ++feature)
      score += static_cast<double>(datum(queryKind, piece.id, position, head, feature)) *
               keys[(kvHead * length + key) * c.key + feature];
    score *= 0.125;
    if (c.softcap > 0.0f)
      score = c.softcap * std::tanh(score / c.softcap);
    if (c.alibi)
      score += static_cast<double>(slope(head)) * key;
    scores[key] = score;
    maximum = std::max(maximum, score);
  }
  sum = c.sinks ? std::exp(sink(head) - maximum) : 0.0;
  for (double &score : scores)
    sum += score = score == -INFINITY ? 0.0 : std::exp(score - maximum);
  return scores;
}

void AttendFixture::attendRow(const Piece &piece, const std::vector<float> &keys, const std::vector<float> &values,
                              int64_t position, int64_t head, double *output) const {
  int64_t kvHead = head / (c.queryHeads / c.heads), length = piece.past + piece.rows;
  double sum;
  std::vector<double> weight = weights(piece, keys, position, head, sum);
  for (int64_t key = 0; key < length; ++key)
    for (int64_t feature = 0; weight[key] != 0 && feature < c.value; ++feature)
      output[feature] += weight[key] * values[(kvHead * length + key) * c.value + feature];
  for (int64_t feature = 0; feature < c.value; ++feature)
    output[feature] = sum == 0.0 ? 0.0 : output[feature] / sum;
}

std::vector<double> AttendFixture::expectedShares(const std::vector<Piece> &pieces, int64_t stride) const {
  std::vector<double> shares(pieces.size() * c.queryHeads * stride);
  for (size_t p = 0; p < pieces.size(); ++p) {
    std::vector<float> keys = stored(keyKind, pieces[p]);
    for (int64_t head = 0; head < c.queryHeads; ++head) {
      double sum, seen = 0.0;
      std::vector<double> weight = weights(pieces[p], keys, pieces[p].past + pieces[p].rows - 1, head, sum);
      for (double w : weight)
        seen += w;
      for (size_t key = 0; key < weight.size(); ++key)
        shares[(p * c.queryHeads + head) * stride + key / c.block] += weight[key] / seen;
    }
  }
  return shares;
}

std::vector<double> AttendFixture::expected(const std::vector<Piece> &pieces) const {
  std::vector<double> output;
  for (const Piece &piece : pieces) {
    std::vector<float> keys = stored(keyKind, piece), values = stored(valueKind, piece);
    for (int64_t position = piece.past; position < piece.past + piece.rows; ++position)
      for (int64_t head = 0; head < c.queryHeads; ++head) {
        output.resize(output.size() + c.value);
        attendRow(piece, keys, values, position, head, output.data() + output.size() - c.value);
      }
  }
  return output;
}
