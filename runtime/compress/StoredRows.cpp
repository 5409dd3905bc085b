// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses of elements, scales and zeros in a block.
#include "compress/StoredRows.h"

#include "compress/SmallFloat.h"
#include "model/ModelInfo.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quire::runtime {

int64_t scaleOffset(const StoredRow &row, int64_t group) {
  int64_t groups = codeGroups(row.features());
  int64_t floats = ((row.head * groups + group) * 2) * row.blockTokens + row.token;
  return scalesOffset(*row.layer, row.blockTokens, row.value) + floats * static_cast<int64_t>(sizeof(float));
}

namespace {

/// Where the elements of a row lie, counted in places from the start of K or V. A place is an element or, with elements I4, a byte of two.
struct Elements {
  explicit Elements(const StoredRow &row) {
    int64_t lanes = row.value ? 1 : row.layer->lanes;
    int64_t places = row.layer->element == QUIRE_ELEMENT_I4 ? storedBytes(QUIRE_ELEMENT_I4, row.features()) : row.features();
    first = row.head * row.blockTokens * places + row.token / lanes * places * lanes + row.token % lanes;
    stride = lanes;
  }
  int64_t at(int64_t place) const { return first + place * stride; }

  int64_t first, stride;
};

template <typename Byte>
Byte *partOf(const StoredRow &row, Byte *block) {
  return block + (row.value ? row.layer->value_offset : 0);
}

template <typename Visit>
void eachGroup(const StoredRow &row, Visit visit) {
  for (int64_t first = 0; first < row.features(); first += QUIRE_CODE_GROUP)
    visit(first / QUIRE_CODE_GROUP, first, std::min<int64_t>(first + QUIRE_CODE_GROUP, row.features()));
}

/// The codes of a row, of 8 bits or of 4.
class Codes {
public:
  Codes(const StoredRow &row, bool halves) : elements_(row), halves_(halves) {}

  static float largest(bool halves) { return halves ? 15.0f : 255.0f; }

  /// Feature `feature` of the group that is [first, end).
  int32_t get(const char *codes, int64_t first, int64_t end, int64_t feature) const {
    Place place = placeOf(first, end, feature);
    int32_t byte = static_cast<unsigned char>(codes[place.at]);
    return !halves_ ? byte : place.upper ? byte >> 4 : byte & 15;
  }

  void set(char *codes, int64_t first, int64_t end, int64_t feature, int32_t code) const {
    Place place = placeOf(first, end, feature);
    int32_t byte = static_cast<unsigned char>(codes[place.at]);
    if (halves_) // the lower half comes first
      code = place.upper ? (byte & 15) | code << 4 : code;
    codes[place.at] = static_cast<char>(static_cast<unsigned char>(code));
  }

private:
  struct Place {
    int64_t at;
    bool upper;
  };
  Place placeOf(int64_t first, int64_t end, int64_t feature) const {
    if (!halves_)
      return {elements_.at(feature), false};
    int64_t half = (end - first + 1) / 2, inGroup = feature - first;
    bool upper = inGroup >= half;
    return {elements_.at(first / 2 + (upper ? inGroup - half : inGroup)), upper};
  }

  Elements elements_;
  bool halves_;
};

void loadCodes(const StoredRow &row, const char *block, float *numbers) {
  Codes stored(row, row.layer->element == QUIRE_ELEMENT_I4);
  const char *codes = partOf(row, block);
  eachGroup(row, [&](int64_t group, int64_t first, int64_t end) {
    float scale, zero;
    std::memcpy(&scale, block + scaleOffset(row, group), sizeof(scale));
    std::memcpy(&zero, block + scaleOffset(row, group) + row.blockTokens * sizeof(float), sizeof(zero));
    for (int64_t i = first; i < end; ++i)
      numbers[i] = zero + scale * static_cast<float>(stored.get(codes, first, end, i));
  });
}

void storeCodes(const StoredRow &row, const float *numbers, char *block) {
  bool halves = row.layer->element == QUIRE_ELEMENT_I4;
  float largest = Codes::largest(halves);
  Codes stored(row, halves);
  char *codes = partOf(row, block);
  eachGroup(row, [&](int64_t group, int64_t first, int64_t end) {
    auto [least, most] = std::minmax_element(numbers + first, numbers + end);
    bool finite = std::all_of(numbers + first, numbers + end, [](float x) { return std::isfinite(x); });
    float zero = *least, scale = (*most - zero) * (1.0f / largest), inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (int64_t i = first; i < end; ++i) {
      float code = (numbers[i] - zero) * inverse + 0.5f;
      stored.set(codes, first, end, i, finite ? static_cast<int32_t>(std::min(code, largest)) : 0);
    }
    if (!finite)
      scale = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(block + scaleOffset(row, group), &scale, sizeof(scale));
    std::memcpy(block + scaleOffset(row, group) + row.blockTokens * sizeof(float), &zero, sizeof(zero));
  });
}

template <typename Element>
void loadFloats(const StoredRow &row, const char *block, float *numbers) {
  Elements elements(row);
  for (int64_t i = 0; i < row.features(); ++i) {
    typename Element::Bits bits;
    std::memcpy(&bits, partOf(row, block) + elements.at(i) * sizeof(bits), sizeof(bits));
    numbers[i] = Element::widen(bits);
  }
}

template <typename Element>
void storeFloats(const StoredRow &row, const float *numbers, char *block) {
  Elements elements(row);
  for (int64_t i = 0; i < row.features(); ++i) {
    typename Element::Bits bits;
    if constexpr (sizeof(bits) == 1)
      bits = Element::narrowOrNaN(numbers[i]);
    else
      bits = Element::narrow(numbers[i]);
    std::memcpy(partOf(row, block) + elements.at(i) * sizeof(bits), &bits, sizeof(bits));
  }
}

} // namespace

void loadRow(const StoredRow &row, const char *block, float *numbers) {
  switch (row.layer->element) {
  case QUIRE_ELEMENT_F32:
    return loadFloats<F32>(row, block, numbers);
  case QUIRE_ELEMENT_F16:
    return loadFloats<F16>(row, block, numbers);
  case QUIRE_ELEMENT_BF16:
    return loadFloats<BF16>(row, block, numbers);
  case QUIRE_ELEMENT_FP8_E4M3:
    return loadFloats<E4M3>(row, block, numbers);
  case QUIRE_ELEMENT_FP8_E5M2:
    return loadFloats<E5M2>(row, block, numbers);
  default:
    return loadCodes(row, block, numbers);
  }
}

void storeRow(const StoredRow &row, const float *numbers, char *block) {
  switch (row.layer->element) {
  case QUIRE_ELEMENT_F32:
    return storeFloats<F32>(row, numbers, block);
  case QUIRE_ELEMENT_F16:
    return storeFloats<F16>(row, numbers, block);
  case QUIRE_ELEMENT_BF16:
    return storeFloats<BF16>(row, numbers, block);
  case QUIRE_ELEMENT_FP8_E4M3:
    return storeFloats<E4M3>(row, numbers, block);
  case QUIRE_ELEMENT_FP8_E5M2:
    return storeFloats<E5M2>(row, numbers, block);
  default:
    return storeCodes(row, numbers, block);
  }
}

} // namespace quire::runtime
