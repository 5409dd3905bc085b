// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores pages in fewer bytes: sizes, encoding and decoding, on memory of the caller and without allocation.
#ifndef QUIRE_RUNTIME_COMPRESS_CODEC_H
#define QUIRE_RUNTIME_COMPRESS_CODEC_H

#include "quire/model.h"

#include <cstdint>
#include <string_view>

namespace quire::runtime {

/// A segment is K or V of one head. Its values are taken in the order in which they
/// lie in the block; V is as K with one lane: [tokens / lanes][channels][lanes].
enum class Codec : uint8_t {
  /// The block as it is, padding included.
  None,
  /// Groups of 128 values of a segment, the last one shorter. Each has two f16 numbers,
  /// scale and zero, and a code of 8 bits a value: value = zero + scale * code. With 16
  /// lanes a group of K is 8 channels of 16 tokens, so that a channel of large values
  /// costs precision to its neighbours only. Zero is the least value, rounded down;
  /// scale is rounded up. Constant groups have scale 0 and are exact where f16 holds
  /// the value.
  Int8G128,
  /// The same with 4 bits. Byte i of a group of n has the code of value i in its lower
  /// half and that of value i + (n + 1) / 2 in its upper half.
  Int4G128,
  /// One byte a value, OCP E4M3 (largest 448), without scale.
  Fp8E4M3,
  /// One byte a value, OCP E5M2 (largest 57344), without scale.
  Fp8E5M2,
  /// Of 64 channels of a token the 8 largest magnitudes, exact, and a bit a channel;
  /// the others become 0. Of n < 64 channels ceil(n / 8) are kept. Of equal ones the
  /// first.
  Sparse8Bitmap,
  /// Of 8 channels of a token the largest magnitude, exact, and its index in 3 bits.
  /// More is lost than with the bitmap, in fewer bytes.
  Sparse8Index,
};
constexpr int codecCount = 7;
/// Keeps some values, and 0 for the others.
constexpr bool isSparse(Codec codec) { return codec == Codec::Sparse8Bitmap || codec == Codec::Sparse8Index; }

/// "none", "int8_g128", "int4_g128", "fp8_e4m3", "fp8_e5m2", "sparse_8_1_bitmap",
/// "sparse_8_1_index".
const char *codecName(Codec codec);
/// False: no codec has that name.
bool parseCodec(std::string_view name, Codec &out);

/// Codecs other than `none` store numbers only, and only those that they can keep
/// within their bound; a page that they refuse is for `none`.
enum class EncodeResult : uint8_t {
  Encoded,
  NotFinite,  // infinity or NaN among the stored tokens
  OutOfRange, // beyond 65504 for the groups, beyond the largest number for fp8
  Codes,      // elements are codes or numbers of 8 bits already
};
const char *encodeResultName(EncodeResult result);

/// Bytes of one encoded block of a layer. Depends on nothing else. Encoded bytes have
/// no alignment.
int64_t encodedBytes(Codec codec, const quire_model_layer &layer, int64_t blockTokens);

/// Writes encodedBytes of `block`, whose first `tokens` positions are stored. What lies
/// in the others influences nothing and is never an error. Equal bytes on every machine.
/// After a refusal `out` is undefined.
EncodeResult encode(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *block, int64_t tokens,
                    char *out);

/// Writes K and V of a whole block, for `none` the padding too. Positions that were not
/// stored become numbers without meaning; for `none` they come back as they were. Bytes
/// that no encoder wrote give wrong values, but nothing is touched beyond the block.
void decode(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *in, char *block);

/// Where a codec has the segments of a layer: encoded heads of K, then those of V.
struct SegmentLayout {
  int64_t values;      // of a segment
  int64_t offset;      // of head 0
  int64_t headBytes;   // from one head to the next
  int64_t codesOffset; // in a head: after scales and zeros, or after the kept values of a sparse codec
};
/// Not for `none`.
SegmentLayout segmentLayout(Codec codec, const quire_model_layer &layer, int64_t blockTokens, bool value);

/// The layers of one page, as the pager lays them out.
struct PageLayers {
  const quire_model_layer *layers = nullptr; // [count]
  const uint64_t *starts = nullptr;          // [count] bytes from the start of the page
  int64_t count = 0;
  int64_t blockTokens = 0;
};
/// The layers' encoded blocks follow each other.
int64_t encodedBytes(Codec codec, const PageLayers &page);
EncodeResult encode(Codec codec, const PageLayers &page, const char *bytes, int64_t tokens, char *out);
void decode(Codec codec, const PageLayers &page, const char *in, char *bytes);

/// The loops for one instruction set. Both sets give the same bytes.
struct CodecLoops {
  EncodeResult (*encode)(Codec, const quire_model_layer &, int64_t blockTokens, const char *block, int64_t tokens,
                         char *out);
  void (*decode)(Codec, const quire_model_layer &, int64_t blockTokens, const char *in, char *block);
};
/// `wide`: the widest that this machine has, which encode() and decode() use; otherwise
/// those that every machine runs.
const CodecLoops &codecLoops(bool wide);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_CODEC_H
