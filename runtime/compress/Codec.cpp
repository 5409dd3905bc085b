// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes of encoded blocks, and the choice of loops by codec, element and instruction set.
#include "compress/Codec.h"

#include "compress/SparseLoops.h"
#include "model/CpuFeatures.h"
#include "model/ModelInfo.h"

#include <cassert>

namespace quire::runtime {
namespace {

constexpr const char *names[codecCount] = {"none",     "int8_g128",         "int4_g128",       "fp8_e4m3",
                                           "fp8_e5m2", "sparse_8_1_bitmap", "sparse_8_1_index"};

int64_t groupedBytes(int64_t values, int64_t parameterBytes, int bits) {
  int64_t whole = values / groupValues, rest = values % groupValues;
  int64_t groups = whole + (rest != 0);
  return groups * parameterBytes + whole * (groupValues * bits / 8) + (rest * bits + 7) / 8;
}

struct EncodeTask {
  const char *in;
  char *out;
  EncodeResult result;

  template <typename Groups, typename Element>
  QUIRE_LOOP bool grouped(EncodeTask &task, const Segment &segment) {
    task.result = encodeGroups<Groups, Element>(segment, task.in, task.out);
    return task.result == EncodeResult::Encoded;
  }
  template <template <typename> class Form, typename Element>
  QUIRE_LOOP bool sparse(EncodeTask &task, const Segment &segment) {
    task.result = encodeSparse<Form, Element>(segment, task.in, task.out);
    return task.result == EncodeResult::Encoded;
  }
  void advance(int64_t blockBytes, int64_t encodedBytes) {
    in += blockBytes;
    out += encodedBytes;
  }
};

struct DecodeTask {
  const char *in;
  char *out;

  template <typename Groups, typename Element>
  QUIRE_LOOP bool grouped(DecodeTask &task, const Segment &segment) {
    decodeGroups<Groups, Element>(segment, task.in, task.out);
    return true;
  }
  template <template <typename> class Form, typename Element>
  QUIRE_LOOP bool sparse(DecodeTask &task, const Segment &segment) {
    decodeSparse<Form, Element>(segment, task.in, task.out);
    return true;
  }
  void advance(int64_t blockBytes, int64_t encodedBytes) {
    in += encodedBytes;
    out += blockBytes;
  }
};

/// Runs the task on one segment. False: stop.
template <typename Task, typename Element>
QUIRE_LOOP bool runSegment(Codec codec, Task &task, const Segment &segment) {
  switch (codec) {
  case Codec::Int8G128:
    return Task::template grouped<IntegerGroups<8>, Element>(task, segment);
  case Codec::Int4G128:
    return Task::template grouped<IntegerGroups<4>, Element>(task, segment);
  case Codec::Fp8E4M3:
    return Task::template grouped<FloatCodes<E4M3>, Element>(task, segment);
  case Codec::Fp8E5M2:
    return Task::template grouped<FloatCodes<E5M2>, Element>(task, segment);
  case Codec::Sparse8Bitmap:
    return Task::template sparse<BitmapForm, Element>(task, segment);
  case Codec::Sparse8Index:
    return Task::template sparse<IndexForm, Element>(task, segment);
  case Codec::None:
    break;
  }
  return false;
}

template <typename Task>
QUIRE_LOOP bool runElement(Codec codec, int64_t element, Task &task, const Segment &segment) {
  if (element == QUIRE_ELEMENT_F16)
    return runSegment<Task, F16>(codec, task, segment);
  if (element == QUIRE_ELEMENT_BF16)
    return runSegment<Task, BF16>(codec, task, segment);
  return runSegment<Task, F32>(codec, task, segment);
}

using EncodeSegment = bool (*)(Codec, int64_t, EncodeTask &, const Segment &);
using DecodeSegment = bool (*)(Codec, int64_t, DecodeTask &, const Segment &);

bool encodePlain(Codec codec, int64_t element, EncodeTask &task, const Segment &segment) {
  return runElement(codec, element, task, segment);
}
bool decodePlain(Codec codec, int64_t element, DecodeTask &task, const Segment &segment) {
  return runElement(codec, element, task, segment);
}
#if defined(__x86_64__)
// Without FMA: a contracted multiply-add would round otherwise than on other machines.
__attribute__((target("avx2"))) bool encodeWide(Codec codec, int64_t element, EncodeTask &task,
                                                const Segment &segment) {
  return runElement(codec, element, task, segment);
}
__attribute__((target("avx2"))) bool decodeWide(Codec codec, int64_t element, DecodeTask &task,
                                                const Segment &segment) {
  return runElement(codec, element, task, segment);
}
constexpr EncodeSegment widestEncode = encodeWide;
constexpr DecodeSegment widestDecode = decodeWide;
#else
constexpr EncodeSegment widestEncode = encodePlain;
constexpr DecodeSegment widestDecode = decodePlain;
#endif

/// Heads of K, then heads of V, until one says stop. `starts` of the task are those of
/// the block and of its encoded form.
template <typename Task, typename Run>
void forSegments(Codec codec, const quire_model_layer &layer, int64_t blockTokens, int64_t stored, Task &task,
                 Run run) {
  int64_t element = storedBytes(layer.element, 1);
  for (bool value : {false, true}) {
    int64_t channels = value ? layer.value_dim : layer.key_dim;
    Segment segment{blockTokens, stored, channels, value ? 1 : layer.lanes};
    int64_t encoded = segmentLayout(codec, layer, blockTokens, value).headBytes;
    if (value) // the padding before V has no encoded form
      task.advance(layer.value_offset - layer.kv_heads * blockTokens * layer.key_dim * element, 0);
    for (int64_t head = 0; head < layer.kv_heads; ++head) {
      if (!run(codec, layer.element, task, segment))
        return;
      task.advance(segment.values() * element, encoded);
    }
  }
}

template <EncodeSegment run>
EncodeResult encodeWith(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *block,
                        int64_t tokens, char *out) {
  assert(tokens >= 1 && tokens <= blockTokens);
  if (codec == Codec::None) {
    std::memcpy(out, block, static_cast<size_t>(layer.block_bytes));
    return EncodeResult::Encoded;
  }
  EncodeTask task{block, out, EncodeResult::Encoded};
  forSegments(codec, layer, blockTokens, tokens, task, run);
  return task.result;
}

template <DecodeSegment run>
void decodeWith(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *in, char *block) {
  if (codec == Codec::None) {
    std::memcpy(block, in, static_cast<size_t>(layer.block_bytes));
    return;
  }
  DecodeTask task{in, block};
  forSegments(codec, layer, blockTokens, blockTokens, task, run);
}

constexpr CodecLoops plainLoops{encodeWith<encodePlain>, decodeWith<decodePlain>};
constexpr CodecLoops wideLoops{encodeWith<widestEncode>, decodeWith<widestDecode>};

bool hasWideVectors() {
#if defined(__x86_64__)
  static const bool has = cpuFeature("avx2") == FeatureSupport::Present;
  return has;
#else
  return false;
#endif
}

} // namespace

const CodecLoops &codecLoops(bool wide) { return wide && hasWideVectors() ? wideLoops : plainLoops; }

const char *codecName(Codec codec) { return names[static_cast<int>(codec)]; }

bool parseCodec(std::string_view name, Codec &out) {
  for (int i = 0; i < codecCount; ++i)
    if (name == names[i]) {
      out = static_cast<Codec>(i);
      return true;
    }
  return false;
}

const char *encodeResultName(EncodeResult result) {
  switch (result) {
  case EncodeResult::Encoded:
    return "encoded";
  case EncodeResult::NotFinite:
    return "not finite";
  case EncodeResult::OutOfRange:
    return "out of range";
  case EncodeResult::Codes:
    return "codes already";
  }
  return "unknown result";
}

SegmentLayout segmentLayout(Codec codec, const quire_model_layer &layer, int64_t blockTokens, bool value) {
  int64_t channels = value ? layer.value_dim : layer.key_dim;
  SegmentLayout layout{};
  layout.values = blockTokens * channels;
  int64_t groups = (layout.values + groupValues - 1) / groupValues;
  int64_t keptBytes = blockTokens * storedBytes(layer.element, keptValues(channels));
  switch (codec) {
  case Codec::None:
    assert(false && "a block that is stored as it is has no segments");
    break;
  case Codec::Int8G128:
  case Codec::Int4G128:
    layout.codesOffset = groups * groupParameterBytes;
    layout.headBytes = groupedBytes(layout.values, groupParameterBytes, codec == Codec::Int8G128 ? 8 : 4);
    break;
  case Codec::Fp8E4M3:
  case Codec::Fp8E5M2:
    layout.headBytes = layout.values;
    break;
  case Codec::Sparse8Bitmap:
    layout.codesOffset = keptBytes;
    layout.headBytes = keptBytes + blockTokens * bitmapBytes(channels);
    break;
  case Codec::Sparse8Index:
    layout.codesOffset = keptBytes;
    layout.headBytes = keptBytes + blockTokens * indexBytes(channels);
    break;
  }
  if (value)
    layout.offset = layer.kv_heads * segmentLayout(codec, layer, blockTokens, false).headBytes;
  return layout;
}

int64_t encodedBytes(Codec codec, const quire_model_layer &layer, int64_t blockTokens) {
  if (codec == Codec::None)
    return layer.block_bytes;
  SegmentLayout value = segmentLayout(codec, layer, blockTokens, true);
  return value.offset + layer.kv_heads * value.headBytes;
}

EncodeResult encode(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *block, int64_t tokens,
                    char *out) {
  if (codec != Codec::None && elementBits(layer.element) <= 8)
    return EncodeResult::Codes;
  return codecLoops(true).encode(codec, layer, blockTokens, block, tokens, out);
}

void decode(Codec codec, const quire_model_layer &layer, int64_t blockTokens, const char *in, char *block) {
  codecLoops(true).decode(codec, layer, blockTokens, in, block);
}

int64_t encodedBytes(Codec codec, const PageLayers &page) {
  int64_t bytes = 0;
  for (int64_t layer = 0; layer < page.count; ++layer)
    bytes += encodedBytes(codec, page.layers[layer], page.blockTokens);
  return bytes;
}

EncodeResult encode(Codec codec, const PageLayers &page, const char *bytes, int64_t tokens, char *out) {
  for (int64_t layer = 0; layer < page.count; ++layer) {
    EncodeResult result = encode(codec, page.layers[layer], page.blockTokens, bytes + page.starts[layer], tokens, out);
    if (result != EncodeResult::Encoded)
      return result;
    out += encodedBytes(codec, page.layers[layer], page.blockTokens);
  }
  return EncodeResult::Encoded;
}

void decode(Codec codec, const PageLayers &page, const char *in, char *bytes) {
  for (int64_t layer = 0; layer < page.count; ++layer) {
    decode(codec, page.layers[layer], page.blockTokens, in, bytes + page.starts[layer]);
    in += encodedBytes(codec, page.layers[layer], page.blockTokens);
  }
}

} // namespace quire::runtime
