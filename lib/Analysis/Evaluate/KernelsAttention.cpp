// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX Attention (23 to 25, with the errata of ONNX 1.23) and RotaryEmbedding.
#include "AttentionCore.h"
#include "FloatFormats.h"

using namespace llvm;

namespace quire::eval {

static Error checkHeads(const Tensor &x, int64_t heads, StringRef name) {
  if (x.rank() == 4 || (x.rank() == 3 && heads > 0 && x.shape()[2] % heads == 0))
    return Error::success();
  return fail("expected " + name + " of rank 4, or of rank 3 with a number of heads, but got " + textOf(x.shape()));
}

namespace {
/// The additive bias of a score: attention mask, causal rule, window and padding.
struct BiasRules {
  std::vector<float> mask; // expanded to [maskBatch, maskHeads, maskQueries, maskKeys], empty when there is none
  Shape maskShape;         // rank 4
  bool isCausal = false;
  int64_t left = -1, right = -1;
  std::vector<int64_t> offsets; // per batch: keys before the first query
  std::vector<int64_t> valid;   // per batch: keys that exist, empty when all do

  /// The bias of one row; true when it is -inf for every key.
  template <typename T>
  bool rowOf(int64_t b, int64_t h, int64_t i, int64_t keys, T *row) const {
    constexpr T none = -std::numeric_limits<T>::infinity();
    const float *from = nullptr;
    if (!mask.empty()) {
      auto pick = [&](int axis, int64_t at) { return maskShape[axis] == 1 ? 0 : at; };
      from = mask.data() + ((pick(0, b) * maskShape[1] + pick(1, h)) * maskShape[2] + pick(2, i)) * maskShape[3];
    }
    bool all = true;
    for (int64_t j = 0; j < keys; ++j) {
      int64_t position = i + offsets[b];
      bool hidden = (isCausal && j > position) || (left >= 0 && position - j > left) ||
                    (right >= 0 && j - position > right) || (!valid.empty() && j >= valid[b]) ||
                    (from && j >= maskShape[3]);
      row[j] = hidden ? none : from ? static_cast<T>(from[j]) : T(0);
      all = all && row[j] == none;
    }
    return all;
  }
};
} // namespace

static Expected<BiasRules> biasRules(Operand mask, Operand nonpad, int64_t batch, int64_t heads, int64_t queries,
                                     int64_t keys, int64_t past, bool hasPast, const AttentionAttributes &attributes) {
  BiasRules rules;
  rules.isCausal = attributes.isCausal;
  rules.left = attributes.leftWindow;
  rules.right = attributes.rightWindow;
  rules.offsets.assign(static_cast<size_t>(batch), past);
  if (nonpad) {
    if (hasPast)
      return fail("expected either nonpad_kv_seqlen or a past, but got both");
    auto lengths = integersOf(*nonpad);
    if (static_cast<int64_t>(lengths.size()) != batch)
      return fail("expected " + Twine(batch) + " lengths, but got " + Twine(lengths.size()));
    rules.valid.assign(lengths.begin(), lengths.end());
    for (int64_t b = 0; b < batch; ++b)
      rules.offsets[b] = lengths[b] - queries;
  }
  if (mask) {
    if (mask->rank() > 4 || mask->rank() < 1)
      return fail("expected a mask of rank 1 to 4, but got " + textOf(mask->shape()));
    rules.maskShape.assign(4 - mask->rank(), 1);
    rules.maskShape.append(mask->shape().begin(), mask->shape().end());
    int64_t full[4] = {batch, heads, queries, keys};
    for (int axis = 0; axis < 3; ++axis)
      if (rules.maskShape[axis] != 1 && rules.maskShape[axis] != full[axis])
        return fail("expected a mask that broadcasts to " + textOf(full) + ", but got " + textOf(mask->shape()));
    if (rules.maskShape[3] > keys)
      return fail("expected a mask of at most " + Twine(keys) + " keys, but got " + textOf(mask->shape()));
    Numbers<float> values(*mask);
    rules.mask.assign(values.all().begin(), values.all().end());
    if (mask->kind() == ElementKind::Bool)
      for (float &value : rules.mask)
        value = value != 0 ? 0.0f : -std::numeric_limits<float>::infinity();
  }
  return rules;
}

template <typename T>
static Results attentionOn(const Tensor &q, const Tensor &k, const Tensor &v, Operand mask, Operand pastKey,
                           Operand pastValue, Operand nonpad, const AttentionAttributes &attributes) {
  Heads<T> queries = headsOf<T>(q, attributes.qHeads), keys = headsOf<T>(k, attributes.kvHeads),
           values = headsOf<T>(v, attributes.kvHeads);
  int64_t past = 0;
  if (pastKey && pastValue) {
    Heads<T> oldKeys = headsOf<T>(*pastKey, 0), oldValues = headsOf<T>(*pastValue, 0);
    if (oldKeys.heads != keys.heads || oldKeys.size != keys.size || oldKeys.batch != keys.batch ||
        oldKeys.rows != oldValues.rows || oldValues.heads != values.heads || oldValues.size != values.size)
      return fail("expected a past like the new keys " + textOf(keys.shape()) + ", but got " +
                  textOf(pastKey->shape()));
    past = oldKeys.rows;
    keys = joinRows(oldKeys, keys);
    values = joinRows(oldValues, values);
  }
  if (keys.size != queries.size || keys.rows != values.rows || keys.heads != values.heads || keys.heads == 0 ||
      queries.heads % keys.heads || keys.batch != queries.batch)
    return fail("expected operands that fit, but got query " + textOf(queries.shape()) + ", key " +
                textOf(keys.shape()) + " and value " + textOf(values.shape()));
  Expected<BiasRules> rules = biasRules(mask, nonpad, queries.batch, queries.heads, queries.rows, keys.rows, past,
                                        pastKey != nullptr, attributes);
  if (!rules)
    return rules.takeError();
  T scale = static_cast<T>(attributes.scale.value_or(1.0 / std::sqrt(static_cast<double>(queries.size))));
  int64_t total = keys.rows;
  std::vector<T> bias(static_cast<size_t>(total)), shown;
  if (attributes.wantQkOutput)
    shown.resize(static_cast<size_t>(queries.batch * queries.heads * queries.rows * total));
  Heads<T> out = attend<T>(queries, keys, values, scale, [&](int64_t b, int64_t h, int64_t i, T *row) {
    T *show = shown.empty() ? nullptr : shown.data() + ((b * queries.heads + h) * queries.rows + i) * total;
    auto capture = [&](int64_t mode) {
      if (show && attributes.qkOutputMode == mode)
        std::copy_n(row, total, show);
    };
    capture(0);
    if (attributes.softcap > 0) {
      T cap = static_cast<T>(attributes.softcap);
      for (int64_t j = 0; j < total; ++j)
        row[j] = cap * std::tanh(row[j] / cap);
    }
    capture(1);
    bool allMasked = rules->rowOf(b, h, i, total, bias.data());
    for (int64_t j = 0; j < total; ++j)
      row[j] += bias[j];
    capture(2);
    if (attributes.softmaxPrecision && bitWidth(*attributes.softmaxPrecision) < 32)
      for (int64_t j = 0; j < total; ++j)
        row[j] = static_cast<T>(roundTo(*attributes.softmaxPrecision, static_cast<float>(row[j])));
    if (allMasked)
      std::fill_n(row, total, T(0));
    else
      softmaxInPlace(row, total);
    capture(3);
  });
  Shape outShape(q.rank() == 4 ? out.shape() : Shape({out.batch, out.rows, out.heads * out.size}));
  Tensors results;
  results.push_back(storeAs(q.kind(), outShape, q.rank() == 4 ? std::move(out.values) : mergeHeads(out)));
  results.push_back(storeAs(k.kind(), keys.shape(), std::move(keys.values)));
  results.push_back(storeAs(v.kind(), values.shape(), std::move(values.values)));
  results.push_back(shown.empty() && !attributes.wantQkOutput
                        ? Tensor()
                        : storeAs(q.kind(), {queries.batch, queries.heads, queries.rows, total}, std::move(shown)));
  return results;
}

Results attention(const Tensor &q, const Tensor &k, const Tensor &v, Operand mask, Operand pastKey, Operand pastValue,
                  Operand nonpad, const AttentionAttributes &attributes) {
  if (Error error = checkHeads(q, attributes.qHeads, "query"))
    return error;
  if (Error error = checkHeads(k, attributes.kvHeads, "key"))
    return error;
  if (Error error = checkHeads(v, attributes.kvHeads, "value"))
    return error;
  if ((pastKey == nullptr) != (pastValue == nullptr))
    return fail("expected past_key and past_value together");
  if (pastKey && (pastKey->rank() != 4 || pastValue->rank() != 4))
    return fail("expected a past of rank 4, but got " + textOf(pastKey->shape()));
  if (q.kind() == ElementKind::F64)
    return attentionOn<double>(q, k, v, mask, pastKey, pastValue, nonpad, attributes);
  return attentionOn<float>(q, k, v, mask, pastKey, pastValue, nonpad, attributes);
}

//===--- RotaryEmbedding ------------------------------------------------------------------------------------------===//

/// Rotates all heads of x; `rowOf(b, s)` is the row of the caches for a token, or -1 when there is none.
template <typename T>
static Result rotateAll(const Tensor &x, const Tensor &cosCache, const Tensor &sinCache,
                        const RotaryAttributes &attributes, function_ref<int64_t(int64_t, int64_t)> rowOf) {
  bool byHead = x.rank() == 4; // [batch, heads, sequence, size]
  int64_t half = cosCache.extent(-1), cacheRows = cosCache.count() / std::max<int64_t>(half, 1);
  int64_t heads = byHead ? x.shape()[1] : attributes.heads;
  if (!byHead && heads == 0) // com.microsoft leaves the head size to the caches then
    heads = attributes.rotaryDim > 0 ? 0 : x.shape()[2] / (2 * half);
  if (x.rank() < 3 || x.rank() > 4 || heads < 1 || (!byHead && x.shape()[2] % heads) ||
      cosCache.shape() != sinCache.shape())
    return fail("expected a 4-D operand, or a 3-D one with a number of heads, but got " + textOf(x.shape()));
  int64_t size = byHead ? x.shape()[3] : x.shape()[2] / heads,
          dim = attributes.rotaryDim > 0 ? attributes.rotaryDim : size;
  if (dim > size || dim % 2 || dim / 2 != half)
    return fail("expected caches of " + Twine(dim / 2) + " angles, but got " + textOf(cosCache.shape()));
  int64_t batch = x.shape()[0], sequence = byHead ? x.shape()[2] : x.shape()[1];
  Numbers<T> in(x), cosine(cosCache), sine(sinCache);
  std::vector<T> out(in.all().begin(), in.all().end());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t s = 0; s < sequence; ++s) {
      int64_t row = rowOf(b, s);
      if (row < 0 || row >= cacheRows)
        return fail("expected a position below " + Twine(cacheRows) + ", but got " + Twine(row));
      for (int64_t h = 0; h < heads; ++h) {
        int64_t at = byHead ? ((b * heads + h) * sequence + s) * size : ((b * sequence + s) * heads + h) * size;
        rotate(out.data() + at, cosine.data() + row * half, sine.data() + row * half, dim, attributes.interleaved);
      }
    }
  return storeAs(x.kind(), x.shape(), std::move(out));
}

static Result rotateAny(const Tensor &x, const Tensor &cosCache, const Tensor &sinCache,
                        const RotaryAttributes &attributes, function_ref<int64_t(int64_t, int64_t)> rowOf) {
  if (x.kind() == ElementKind::F64)
    return rotateAll<double>(x, cosCache, sinCache, attributes, rowOf);
  return rotateAll<float>(x, cosCache, sinCache, attributes, rowOf);
}

Result rotaryEmbedding(const Tensor &x, const Tensor &cosCache, const Tensor &sinCache, Operand positions,
                       const RotaryAttributes &attributes) {
  if (x.rank() < 3 || cosCache.rank() < 2)
    return fail("expected an operand of rank 3 or 4 and caches of rank 2 or 3");
  int64_t sequence = x.rank() == 4 ? x.shape()[2] : x.shape()[1];
  if (!positions) {
    if (cosCache.rank() != 3 || cosCache.shape()[0] != x.shape()[0] || cosCache.shape()[1] != sequence)
      return fail("expected caches [batch,sequence,angles] without position ids, but got " + textOf(cosCache.shape()));
    return rotateAny(x, cosCache, sinCache, attributes, [&](int64_t b, int64_t s) { return b * sequence + s; });
  }
  auto ids = integersOf(*positions);
  if (cosCache.rank() != 2 || static_cast<int64_t>(ids.size()) != x.shape()[0] * sequence)
    return fail("expected position ids [batch,sequence], but got " + textOf(positions->shape()));
  int64_t rows = cosCache.shape()[0];
  return rotateAny(x, cosCache, sinCache, attributes, [&](int64_t b, int64_t s) {
    int64_t id = ids[b * sequence + s];
    return id < 0 ? id + rows : id;
  });
}

Result msRotaryEmbedding(const Tensor &x, const Tensor &positions, const Tensor &cosCache, const Tensor &sinCache,
                         const RotaryAttributes &attributes) {
  if (x.rank() < 3 || cosCache.rank() != 2)
    return fail("expected an operand of rank 3 or 4 and caches [positions,angles], but got " +
                textOf(cosCache.shape()));
  int64_t sequence = x.rank() == 4 ? x.shape()[2] : x.shape()[1];
  auto ids = integersOf(positions);
  bool offset = ids.size() == 1 && positions.rank() == 1;
  if (!offset && static_cast<int64_t>(ids.size()) != x.shape()[0] * sequence)
    return fail("expected position ids [1] or [batch,sequence], but got " + textOf(positions.shape()));
  return rotateAny(x, cosCache, sinCache, attributes,
                   [&](int64_t b, int64_t s) { return offset ? ids[0] + s : ids[b * sequence + s]; });
}

} // namespace quire::eval
