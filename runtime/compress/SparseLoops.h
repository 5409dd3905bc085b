// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of the codecs that keep one value of eight: a bit for each channel, or an index for each eight.
#ifndef QUIRE_RUNTIME_COMPRESS_SPARSELOOPS_H
#define QUIRE_RUNTIME_COMPRESS_SPARSELOOPS_H

#include "compress/GroupLoops.h"

namespace quire::runtime {

constexpr int64_t sparseRatio = 8;
constexpr int64_t bitmapRun = 64;

/// Kept values of one token, and the bytes that say where they belong. Values of all
/// tokens of a segment come first, then those bytes.
constexpr int64_t keptValues(int64_t channels) { return (channels + sparseRatio - 1) / sparseRatio; }
constexpr int64_t bitmapBytes(int64_t channels) { return (channels + 7) / 8; }
constexpr int64_t indexBytes(int64_t channels) { return (keptValues(channels) * 3 + 7) / 8; }

/// Places of one token's channels in a segment.
struct TokenRow {
  int64_t first;  // index of channel 0
  int64_t stride; // to the next channel
};
QUIRE_LOOP TokenRow rowOf(const Segment &segment, int64_t token) {
  return {token / segment.lanes * segment.channels * segment.lanes + token % segment.lanes, segment.lanes};
}

template <typename Bits>
QUIRE_LOOP Bits loadBits(const char *segment, int64_t index) {
  Bits bits;
  std::memcpy(&bits, segment + index * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
  return bits;
}
template <typename Bits>
QUIRE_LOOP void storeBits(char *segment, int64_t index, Bits bits) {
  std::memcpy(segment + index * static_cast<int64_t>(sizeof(bits)), &bits, sizeof(bits));
}

/// The bits of infinity; larger magnitudes are NaN.
template <typename Element>
constexpr typename Element::Bits infinityBits() {
  if constexpr (std::is_same_v<Element, F32>)
    return 0x7f800000u;
  else if constexpr (std::is_same_v<Element, BF16>)
    return 0x7f80u;
  else
    return static_cast<typename Element::Bits>(Element::infinity);
}

template <typename Bits>
constexpr Bits magnitudeMask() {
  return static_cast<Bits>(~Bits(0)) >> 1;
}

template <typename Element>
struct IndexForm {
  using Bits = typename Element::Bits;
  using Key = std::conditional_t<sizeof(Bits) == 2, uint32_t, uint64_t>;
  static constexpr int64_t placeBytes(int64_t channels) { return indexBytes(channels); }

  QUIRE_LOOP Key keyOf(Bits bits, int64_t index) {
    return static_cast<Key>(bits & magnitudeMask<Bits>()) * sparseRatio + static_cast<Key>(sparseRatio - 1 - index);
  }
  QUIRE_LOOP Key larger(Key a, Key b) { return a > b ? a : b; }

  QUIRE_LOOP bool encodeRow(const char *in, TokenRow row, int64_t channels, char *kept, char *places) {
    Bits most = 0;
    for (int64_t run = 0; run < keptValues(channels); ++run) {
      int64_t first = run * sparseRatio, count = channels - first < sparseRatio ? channels - first : sparseRatio;
      // Larger magnitudes have larger keys, and of equal ones the first.
      Key runMost = 0;
      if (count == sparseRatio)
        for (int64_t i = 0; i < sparseRatio; ++i)
          runMost = larger(runMost, keyOf(loadBits<Bits>(in, row.first + (first + i) * row.stride), i));
      else
        for (int64_t i = 0; i < count; ++i)
          runMost = larger(runMost, keyOf(loadBits<Bits>(in, row.first + (first + i) * row.stride), i));
      int64_t best = sparseRatio - 1 - static_cast<int64_t>(runMost % sparseRatio);
      Bits bestBits = loadBits<Bits>(in, row.first + (first + best) * row.stride);
      Bits magnitude = bestBits & magnitudeMask<Bits>();
      most = magnitude > most ? magnitude : most;
      storeBits<Bits>(kept, run, bestBits);
      int64_t bit = run * 3;
      uint32_t placed = static_cast<uint32_t>(best) << (bit % 8);
      places[bit / 8] = static_cast<char>(places[bit / 8] | placed);
      if (bit % 8 > 5)
        places[bit / 8 + 1] = static_cast<char>(placed >> 8);
    }
    return most < infinityBits<Element>();
  }

  QUIRE_LOOP void decodeRow(const char *kept, const char *places, int64_t channels, TokenRow row, char *out) {
    for (int64_t run = 0; run < keptValues(channels); ++run) {
      int64_t bit = run * 3;
      uint32_t pair = static_cast<uint8_t>(places[bit / 8]);
      if (bit % 8 > 5)
        pair |= static_cast<uint32_t>(static_cast<uint8_t>(places[bit / 8 + 1])) << 8;
      int64_t channel = run * sparseRatio + ((pair >> (bit % 8)) & 7);
      if (channel < channels)
        storeBits<Bits>(out, row.first + channel * row.stride, loadBits<Bits>(kept, run));
    }
  }
};

template <typename Element>
struct BitmapForm {
  using Bits = typename Element::Bits;
  static constexpr int64_t placeBytes(int64_t channels) { return bitmapBytes(channels); }

  /// The largest magnitude that at least `keep` of them reach, bit by bit from the top.
  QUIRE_LOOP Bits threshold(const Bits *magnitudes, int64_t keep) {
    Bits found = 0;
    for (int bit = static_cast<int>(sizeof(Bits)) * 8 - 2; bit >= 0; --bit) {
      Bits tried = static_cast<Bits>(found | (Bits(1) << bit));
      Bits reached = 0;
      for (int64_t i = 0; i < bitmapRun; ++i)
        reached = static_cast<Bits>(reached + (magnitudes[i] >= tried));
      found = reached >= keep ? tried : found;
    }
    return found;
  }

  QUIRE_LOOP bool encodeRow(const char *in, TokenRow row, int64_t channels, char *kept, char *places) {
    Bits most = 0;
    int64_t keptCount = 0;
    for (int64_t first = 0; first < channels; first += bitmapRun) {
      int64_t count = channels - first < bitmapRun ? channels - first : bitmapRun, keep = keptValues(count);
      Bits magnitudes[bitmapRun] = {};
      for (int64_t i = 0; i < count; ++i)
        magnitudes[i] = loadBits<Bits>(in, row.first + (first + i) * row.stride) & magnitudeMask<Bits>();
      Bits least = threshold(magnitudes, keep);
      uint64_t above = 0, equal = 0;
      for (int64_t i = 0; i < bitmapRun; ++i) {
        above |= static_cast<uint64_t>(magnitudes[i] > least) << i;
        equal |= static_cast<uint64_t>(magnitudes[i] == least) << i;
      }
      if (count < bitmapRun)
        equal &= (uint64_t(1) << count) - 1;
      uint64_t chosen = above;
      for (int64_t ties = keep - __builtin_popcountll(above); ties > 0; --ties, equal &= equal - 1)
        chosen |= equal & (~equal + 1);
      std::memcpy(places + first / 8, &chosen, static_cast<size_t>(bitmapBytes(count)));
      for (; chosen != 0; chosen &= chosen - 1) {
        int64_t i = __builtin_ctzll(chosen);
        most = magnitudes[i] > most ? magnitudes[i] : most;
        storeBits<Bits>(kept, keptCount++, loadBits<Bits>(in, row.first + (first + i) * row.stride));
      }
    }
    return most < infinityBits<Element>();
  }

  QUIRE_LOOP void decodeRow(const char *kept, const char *places, int64_t channels, TokenRow row, char *out) {
    int64_t keptCount = 0, most = keptValues(channels);
    for (int64_t byte = 0; byte < bitmapBytes(channels); ++byte)
      for (uint32_t set = static_cast<uint8_t>(places[byte]); set != 0; set &= set - 1) {
        int64_t channel = byte * 8 + __builtin_ctz(set);
        if (channel < channels && keptCount < most)
          storeBits<Bits>(out, row.first + channel * row.stride, loadBits<Bits>(kept, keptCount++));
      }
  }
};

template <template <typename> class Form, typename Element>
QUIRE_LOOP EncodeResult encodeSparse(const Segment &segment, const char *in, char *out) {
  int64_t rowBytes = keptValues(segment.channels) * static_cast<int64_t>(sizeof(typename Element::Bits));
  int64_t placeBytes = Form<Element>::placeBytes(segment.channels);
  char *places = out + segment.tokens * rowBytes;
  std::memset(out, 0, static_cast<size_t>(segment.tokens * (rowBytes + placeBytes)));
  for (int64_t token = 0; token < segment.stored; ++token)
    if (!Form<Element>::encodeRow(in, rowOf(segment, token), segment.channels, out + token * rowBytes,
                                  places + token * placeBytes))
      return EncodeResult::NotFinite;
  return EncodeResult::Encoded;
}

template <template <typename> class Form, typename Element>
QUIRE_LOOP void decodeSparse(const Segment &segment, const char *in, char *out) {
  int64_t elementBytes = static_cast<int64_t>(sizeof(typename Element::Bits));
  int64_t rowBytes = keptValues(segment.channels) * elementBytes;
  int64_t placeBytes = Form<Element>::placeBytes(segment.channels);
  const char *places = in + segment.tokens * rowBytes;
  std::memset(out, 0, static_cast<size_t>(segment.values() * elementBytes));
  for (int64_t token = 0; token < segment.tokens; ++token)
    Form<Element>::decodeRow(in + token * rowBytes, places + token * placeBytes, segment.channels,
                             rowOf(segment, token), out);
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_SPARSELOOPS_H
