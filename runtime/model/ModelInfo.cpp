// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Range checks of model descriptions; bounds keep every derived size inside 64 bits.
#include "model/ModelInfo.h"

namespace quire::runtime {

static constexpr int64_t maxExtent = int64_t(1) << 24; // heads, dims, tokens of a block
static constexpr int64_t maxLayers = int64_t(1) << 16;
static constexpr int64_t maxBytes = int64_t(1) << 44;
static constexpr int64_t scaleBytes = 2 * sizeof(float); // scale and zero of a group
static constexpr int64_t maxCount = int64_t(1) << 40; // vocabulary, positions

namespace {

struct ElementType {
  int64_t element;
  const char *name;
  int64_t bits;
};

constexpr ElementType elementTypes[] = {{QUIRE_ELEMENT_F32, "f32", 32},          {QUIRE_ELEMENT_F16, "f16", 16},
                                        {QUIRE_ELEMENT_BF16, "bf16", 16},        {QUIRE_ELEMENT_I8, "i8", 8},
                                        {QUIRE_ELEMENT_I4, "i4", 4},             {QUIRE_ELEMENT_FP8_E4M3, "fp8_e4m3", 8},
                                        {QUIRE_ELEMENT_FP8_E5M2, "fp8_e5m2", 8}};

const ElementType *typeOf(int64_t element) {
  for (const ElementType &type : elementTypes)
    if (type.element == element)
      return &type;
  return nullptr;
}

} // namespace

int64_t elementBits(int64_t element) {
  const ElementType *type = typeOf(element);
  return type ? type->bits : 0;
}

const char *elementName(int64_t element) {
  const ElementType *type = typeOf(element);
  return type ? type->name : nullptr;
}

bool parseElement(std::string_view name, int64_t &out) {
  for (const ElementType &type : elementTypes)
    if (name == type.name) {
      out = type.element;
      return true;
    }
  return false;
}

bool isQuantized(int64_t element) { return element == QUIRE_ELEMENT_I8 || element == QUIRE_ELEMENT_I4; }

int64_t storedBytes(int64_t element, int64_t features) { return (features * elementBits(element) + 7) / 8; }

static Status checkRange(const char *what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high)
    return success();
  return failure(QUIRE_BAD_ARTEFACT, "%s: expected %lld to %lld, but got %lld", what, static_cast<long long>(low),
                 static_cast<long long>(high), static_cast<long long>(value));
}

int64_t scalesOffset(const quire_model_layer &layer, int64_t blockTokens, bool value) {
  int64_t codes = layer.kv_heads * blockTokens * storedBytes(layer.element, value ? layer.value_dim : layer.key_dim);
  return (value ? layer.value_offset : 0) + (codes + 63) / 64 * 64;
}

int64_t rowBytes(const quire_model_layer &layer, bool value) {
  int64_t features = value ? layer.value_dim : layer.key_dim;
  int64_t scales = isQuantized(layer.element) ? codeGroups(features) * scaleBytes : 0;
  return layer.kv_heads * (storedBytes(layer.element, features) + scales);
}

/// Bytes of K or V of a block; false: beyond 64 bits.
static bool partBytes(const quire_model_layer &layer, int64_t blockTokens, int64_t features, int64_t &out) {
  int64_t rows, scales;
  if (__builtin_mul_overflow(layer.kv_heads, blockTokens, &rows) ||
      __builtin_mul_overflow(rows, storedBytes(layer.element, features), &out))
    return false;
  if (!isQuantized(layer.element))
    return true;
  return !__builtin_mul_overflow(rows, codeGroups(features) * scaleBytes, &scales) &&
         !__builtin_add_overflow(out, 63, &out) && !__builtin_add_overflow(out / 64 * 64, scales, &out);
}

static Status checkLayer(const quire_model_info &info, int64_t index) {
  const quire_model_layer &layer = info.layers[index];
  QUIRE_TRY(checkRange("layer kv_heads", layer.kv_heads, 1, maxExtent));
  QUIRE_TRY(checkRange("layer key_dim", layer.key_dim, 1, maxExtent));
  QUIRE_TRY(checkRange("layer value_dim", layer.value_dim, 1, maxExtent));
  QUIRE_TRY(checkRange("layer lanes", layer.lanes, 1, info.block_tokens));
  QUIRE_TRY(checkRange("layer block_bytes", layer.block_bytes, 1, maxBytes));
  QUIRE_TRY(checkRange("layer value_offset", layer.value_offset, 1, layer.block_bytes));
  QUIRE_TRY(checkRange("layer query_heads", layer.query_heads, 0, maxExtent));
  QUIRE_TRY(checkRange("layer window", layer.window, 0, maxCount));
  QUIRE_TRY(checkRange("layer place_is_position", layer.place_is_position, 0, 1));
  if (elementBits(layer.element) == 0)
    return failure(QUIRE_BAD_ARTEFACT, "layer element: unknown value %lld", static_cast<long long>(layer.element));
  if (info.block_tokens % layer.lanes != 0)
    return failure(QUIRE_BAD_ARTEFACT, "layer lanes: %lld does not divide block_tokens %lld",
                   static_cast<long long>(layer.lanes), static_cast<long long>(info.block_tokens));
  int64_t keys, values;
  if (!partBytes(layer, info.block_tokens, layer.key_dim, keys) ||
      !partBytes(layer, info.block_tokens, layer.value_dim, values) || keys > layer.value_offset ||
      values > layer.block_bytes - layer.value_offset)
    return failure(QUIRE_BAD_ARTEFACT, "layer block_bytes: keys and values do not fit into %lld bytes",
                   static_cast<long long>(layer.block_bytes));
  return success();
}

Status checkModelInfo(const quire_model_info &info) {
  QUIRE_TRY(checkRange("vocabulary", info.vocabulary, 1, maxCount));
  QUIRE_TRY(checkRange("token_limit", info.token_limit, 1, maxCount));
  QUIRE_TRY(checkRange("block_tokens", info.block_tokens, 1, maxExtent));
  QUIRE_TRY(checkRange("layer_count", info.layer_count, 1, maxLayers));
  QUIRE_TRY(checkRange("weights_bytes", info.weights_bytes, 0, maxBytes));
  QUIRE_TRY(checkRange("scratch_fixed", info.scratch_fixed, 0, maxBytes));
  QUIRE_TRY(checkRange("scratch_per_token", info.scratch_per_token, 0, maxBytes));
  QUIRE_TRY(checkRange("scratch_per_selected", info.scratch_per_selected, 0, maxBytes));
  if (info.max_positions != -1)
    QUIRE_TRY(checkRange("max_positions", info.max_positions, 1, maxCount));
  if (!info.layers)
    return failure(QUIRE_BAD_ARTEFACT, "layers: missing");
  for (int64_t layer = 0; layer < info.layer_count; ++layer)
    QUIRE_TRY(checkLayer(info, layer));
  return success();
}

int64_t layerOfPositions(const quire_model_layer *layers, int64_t count) {
  for (int64_t layer = 0; layer < count; ++layer)
    if (layers[layer].place_is_position)
      return layer;
  return -1;
}

int64_t blockBytesOf(const quire_model_info &info) {
  int64_t bytes = 0; // maxLayers * maxBytes fits
  for (int64_t layer = 0; layer < info.layer_count; ++layer)
    bytes += info.layers[layer].block_bytes;
  return bytes;
}

int64_t scratchBytes(const quire_model_info &info, int64_t tokens, int64_t selected) {
  int64_t bytes = info.scratch_fixed + info.scratch_per_token * tokens + info.scratch_per_selected * selected;
  return (bytes + 63) & ~int64_t(63);
}

} // namespace quire::runtime
