// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of the codecs that store every value: groups with scale and zero, and fp8.
#ifndef QUIRE_RUNTIME_COMPRESS_GROUPLOOPS_H
#define QUIRE_RUNTIME_COMPRESS_GROUPLOOPS_H

#include "compress/Codec.h"
#include "compress/SmallFloat.h"

namespace quire::runtime {

constexpr int64_t groupValues = 128;
constexpr int64_t groupParameterBytes = 4; // f16 scale, f16 zero
constexpr float largestF16 = 65504.0f;

/// One head of K or V in a block.
struct Segment {
  int64_t tokens; // of a block
  int64_t stored; // tokens that count, at least 1
  int64_t channels;
  int64_t lanes;

  int64_t values() const { return tokens * channels; }
  QUIRE_LOOP int64_t tokenOf(const Segment &segment, int64_t value) {
    int64_t chunk = segment.channels * segment.lanes;
    return value / chunk * segment.lanes + value % segment.lanes;
  }
};

template <typename Element>
QUIRE_LOOP float loadValue(const char *segment, int64_t index) {
  typename Element::Bits bits;
  std::memcpy(&bits, segment + index * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
  return Element::widen(bits);
}

template <typename Element>
QUIRE_LOOP void storeValue(char *segment, int64_t index, float value) {
  typename Element::Bits bits = Element::narrow(value);
  std::memcpy(segment + index * static_cast<int64_t>(sizeof(bits)), &bits, sizeof(bits));
}

/// Values that are not stored take that of a stored neighbour in the group, or 0 where
/// there is none, so that they change neither its least nor its largest value.
QUIRE_LOOP void replaceUnstored(const Segment &segment, int64_t first, int64_t count, float *x) {
  int64_t last = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (Segment::tokenOf(segment, first + i) < segment.stored) {
      if (last < 0)
        for (int64_t j = 0; j < i; ++j)
          x[j] = x[i];
      last = i;
    } else {
      x[i] = last < 0 ? 0.0f : x[last];
    }
  }
}

/// Group `first` .. `first + count` into x, the rest of x filled with its first value.
template <typename Element>
QUIRE_LOOP void loadGroup(const Segment &segment, const char *in, int64_t first, int64_t count, float *x) {
  if (count == groupValues)
    for (int64_t i = 0; i < groupValues; ++i)
      x[i] = loadValue<Element>(in, first + i);
  else
    for (int64_t i = 0; i < count; ++i)
      x[i] = loadValue<Element>(in, first + i);
  if (segment.stored < segment.tokens)
    replaceUnstored(segment, first, count, x);
  for (int64_t i = count; i < groupValues; ++i)
    x[i] = x[0];
}

template <typename Element>
QUIRE_LOOP void storeGroup(char *out, int64_t first, int64_t count, const float *x) {
  if (count == groupValues)
    for (int64_t i = 0; i < groupValues; ++i)
      storeValue<Element>(out, first + i, x[i]);
  else
    for (int64_t i = 0; i < count; ++i)
      storeValue<Element>(out, first + i, x[i]);
}

QUIRE_LOOP EncodeResult checkMagnitudes(const float *x, float largest) {
  uint32_t most = 0;
  for (int64_t i = 0; i < groupValues; ++i) {
    uint32_t magnitude = bitsOf(x[i]) & 0x7fffffffu;
    most = magnitude > most ? magnitude : most;
  }
  if (most >= 0x7f800000u)
    return EncodeResult::NotFinite;
  return most > bitsOf(largest) ? EncodeResult::OutOfRange : EncodeResult::Encoded;
}

/// Numbers in the order of these integers, infinities and NaN at the ends: minima of
/// integers vectorise, those of floats may not.
QUIRE_LOOP int32_t orderedBits(float value) {
  int32_t bits = static_cast<int32_t>(bitsOf(value));
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
QUIRE_LOOP float valueOfOrdered(int32_t ordered) {
  return floatOf(static_cast<uint32_t>(ordered ^ ((ordered >> 31) & 0x7fffffff)));
}

/// The least and the largest of a group, both within the range of f16.
QUIRE_LOOP EncodeResult rangeOf(const float *x, float &low, float &high) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  for (int64_t i = 0; i < groupValues; ++i) {
    int32_t ordered = orderedBits(x[i]);
    least = ordered < least ? ordered : least;
    most = ordered > most ? ordered : most;
  }
  low = valueOfOrdered(least);
  high = valueOfOrdered(most);
  if (least >= orderedBits(-largestF16) && most <= orderedBits(largestF16))
    return EncodeResult::Encoded;
  bool finite = (bitsOf(low) & 0x7fffffffu) < 0x7f800000u && (bitsOf(high) & 0x7fffffffu) < 0x7f800000u;
  return finite ? EncodeResult::OutOfRange : EncodeResult::NotFinite;
}

template <int bits>
struct IntegerGroups {
  static constexpr int64_t parameterBytes = groupParameterBytes;
  static constexpr int32_t levels = (1 << bits) - 1;
  static constexpr int64_t codeBytes(int64_t count) { return bits == 8 ? count : (count + 1) / 2; }

  QUIRE_LOOP EncodeResult encode(const float *x, int64_t count, char *parameters, char *codes) {
    float low, high;
    EncodeResult result = rangeOf(x, low, high);
    if (result != EncodeResult::Encoded)
      return result;
    uint16_t zeroBits = f16Below(low);
    float zero = F16::widen(zeroBits);
    uint16_t scaleBits = f16Above((high - zero) / static_cast<float>(levels));
    scaleBits &= 0x7fff; // of -0
    float inverse = scaleBits == 0 ? 0.0f : 1.0f / F16::widen(scaleBits);
    std::memcpy(parameters, &scaleBits, 2);
    std::memcpy(parameters + 2, &zeroBits, 2);
    uint8_t quantised[groupValues];
    for (int64_t i = 0; i < groupValues; ++i) {
      int32_t code = static_cast<int32_t>((x[i] - zero) * inverse + 0.5f);
      quantised[i] = static_cast<uint8_t>(code > levels ? levels : code);
    }
    if (bits == 8) {
      std::memcpy(codes, quantised, static_cast<size_t>(count));
    } else {
      int64_t half = (count + 1) / 2;
      if (count % 2)
        quantised[count] = 0;
      if (count == groupValues)
        half = groupValues / 2;
      for (int64_t i = 0; i < half; ++i)
        codes[i] = static_cast<char>(quantised[i] | (quantised[half + i] << 4));
    }
    return EncodeResult::Encoded;
  }

  /// At most the largest f16, so that no number becomes infinity in a page of f16.
  QUIRE_LOOP void decode(const char *parameters, const char *codes, int64_t count, float *x) {
    uint16_t scaleBits, zeroBits;
    std::memcpy(&scaleBits, parameters, 2);
    std::memcpy(&zeroBits, parameters + 2, 2);
    float scale = F16::widen(scaleBits), zero = F16::widen(zeroBits);
    uint8_t quantised[groupValues] = {};
    if (bits == 8) {
      std::memcpy(quantised, codes, static_cast<size_t>(count));
    } else {
      int64_t half = count == groupValues ? groupValues / 2 : (count + 1) / 2;
      for (int64_t i = 0; i < half; ++i) {
        quantised[i] = static_cast<uint8_t>(codes[i] & 15);
        quantised[half + i] = static_cast<uint8_t>(static_cast<uint8_t>(codes[i]) >> 4);
      }
    }
    for (int64_t i = 0; i < groupValues; ++i) {
      float value = zero + scale * static_cast<float>(quantised[i]);
      x[i] = value > largestF16 ? largestF16 : value;
    }
  }
};

template <typename Format>
struct FloatCodes {
  static constexpr int64_t parameterBytes = 0;
  static constexpr int64_t codeBytes(int64_t count) { return count; }

  QUIRE_LOOP EncodeResult encode(const float *x, int64_t count, char *, char *codes) {
    EncodeResult result = checkMagnitudes(x, Format::widen(Format::largest));
    if (result != EncodeResult::Encoded)
      return result;
    uint8_t narrowed[groupValues];
    for (int64_t i = 0; i < groupValues; ++i)
      narrowed[i] = Format::narrow(x[i]);
    std::memcpy(codes, narrowed, static_cast<size_t>(count));
    return result;
  }

  QUIRE_LOOP void decode(const char *, const char *codes, int64_t count, float *x) {
    uint8_t narrowed[groupValues] = {};
    std::memcpy(narrowed, codes, static_cast<size_t>(count));
    for (int64_t i = 0; i < groupValues; ++i)
      x[i] = Format::widen(narrowed[i]);
  }
};

template <typename Groups, typename Element>
QUIRE_LOOP EncodeResult encodeGroups(const Segment &segment, const char *in, char *out) {
  int64_t values = segment.values(), groups = (values + groupValues - 1) / groupValues;
  char *codes = out + groups * Groups::parameterBytes;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t first = group * groupValues;
    int64_t count = values - first < groupValues ? values - first : groupValues;
    float x[groupValues];
    loadGroup<Element>(segment, in, first, count, x);
    EncodeResult result = Groups::encode(x, count, out + group * Groups::parameterBytes, codes);
    if (result != EncodeResult::Encoded)
      return result;
    codes += Groups::codeBytes(count);
  }
  return EncodeResult::Encoded;
}

template <typename Groups, typename Element>
QUIRE_LOOP void decodeGroups(const Segment &segment, const char *in, char *out) {
  int64_t values = segment.values(), groups = (values + groupValues - 1) / groupValues;
  const char *codes = in + groups * Groups::parameterBytes;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t first = group * groupValues;
    int64_t count = values - first < groupValues ? values - first : groupValues;
    float x[groupValues];
    Groups::decode(in + group * Groups::parameterBytes, codes, count, x);
    storeGroup<Element>(out, first, count, x);
    codes += Groups::codeBytes(count);
  }
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_GROUPLOOPS_H
