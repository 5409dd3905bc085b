// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// com.microsoft attention: GroupQueryAttention, MultiHeadAttention and Attention, as ONNX Runtime's CPU kernels compute
// them.
#include "AttentionCore.h"

using namespace llvm;

namespace quire::eval {

//===--- GroupQueryAttention --------------------------------------------------------------------------------------===//

namespace {
struct GroupQueryPlan {
  int64_t batch = 0, sequence = 0, size = 0, pastRows = 0, presentRows = 0;
  bool packed = false;
  SmallVector<int64_t, 4> totals, pasts; // per sequence: keys with and without the new ones
};
} // namespace

static Expected<GroupQueryPlan> planGroupQuery(const GroupQueryOperands &in, const GroupQueryAttributes &attributes) {
  GroupQueryPlan plan;
  const Tensor &query = *in.query;
  int64_t heads = attributes.heads, kvHeads = attributes.kvHeads;
  if (query.rank() != 3 || heads < 1 || kvHeads < 1 || heads % kvHeads)
    return fail("expected a query [batch,sequence,features] and heads a multiple of key heads, but got " +
                textOf(query.shape()));
  plan.batch = query.shape()[0];
  plan.sequence = query.shape()[1];
  plan.packed = in.key == nullptr;
  int64_t parts = plan.packed ? heads + 2 * kvHeads : heads;
  if (query.shape()[2] % parts || (in.key == nullptr) != (in.value == nullptr))
    return fail("expected " + Twine(parts) + " heads in the query, but got " + textOf(query.shape()));
  plan.size = query.shape()[2] / parts;
  if (in.key &&
      (in.key->rank() != 3 || in.key->shape()[2] != kvHeads * plan.size || in.key->shape()[1] != plan.sequence))
    return fail("expected keys [batch,sequence," + Twine(kvHeads * plan.size) + "], but got " +
                textOf(in.key->shape()));
  if (in.pastKey) {
    if (!in.pastValue || in.pastValue->shape() != in.pastKey->shape() || in.pastKey->rank() != 4 ||
        in.pastKey->shape()[0] != plan.batch || in.pastKey->shape()[1] != kvHeads ||
        in.pastKey->shape()[3] != plan.size)
      return fail("expected a past [batch," + Twine(kvHeads) + ",past," + Twine(plan.size) + "], but got " +
                  textOf(in.pastKey->shape()));
    plan.pastRows = in.pastKey->shape()[2];
  }
  auto fits = [](Operand operand, int64_t count) { return !operand || operand->count() == count; };
  if (!fits(in.sink, heads) || !fits(in.qNorm, plan.size) || !fits(in.kNorm, plan.size) ||
      !fits(in.positions, plan.batch * plan.sequence) || (in.value && in.value->shape() != in.key->shape()))
    return fail("expected a value like the key, one sink a head, norms of " + Twine(plan.size) +
                " and a position a token");
  if (attributes.doRotary && (!in.cosCache || !in.sinCache || in.cosCache->rank() != 2 ||
                              in.cosCache->shape() != in.sinCache->shape() || 2 * in.cosCache->shape()[1] > plan.size))
    return fail("expected cos_cache and sin_cache [positions," + Twine(plan.size / 2) + "] with do_rotary");
  auto last = integersOf(*in.seqlensK);
  auto total = static_cast<int64_t>(scalarOf(*in.totalLength));
  if (static_cast<int64_t>(last.size()) != plan.batch)
    return fail("expected " + Twine(plan.batch) + " lengths, but got " + textOf(in.seqlensK->shape()));
  plan.presentRows = std::max(total, plan.pastRows);
  bool prompt = plan.sequence == total;
  for (int64_t length : last) {
    int64_t keys = length + 1;
    if (keys < 0 || keys > plan.presentRows)
      return fail("expected a length of at most " + Twine(plan.presentRows) + ", but got " + Twine(keys));
    plan.totals.push_back(keys);
    plan.pasts.push_back(prompt ? 0 : std::max<int64_t>(keys - plan.sequence, 0));
    if (plan.pasts.back() > plan.pastRows)
      return fail("expected a past of at least " + Twine(plan.pasts.back()) + " rows, but got " + Twine(plan.pastRows));
  }
  return plan;
}

/// RMS normalisation of each head in place.
static void normalizeHeads(Heads<float> &x, Operand weight, double epsilon) {
  if (!weight)
    return;
  Numbers<float> factors(*weight);
  for (size_t at = 0; at < x.values.size(); at += x.size) {
    double squares = 0;
    for (int64_t i = 0; i < x.size; ++i)
      squares += static_cast<double>(x.values[at + i]) * x.values[at + i];
    double inverse = 1.0 / std::sqrt(squares / static_cast<double>(x.size) + epsilon);
    for (int64_t i = 0; i < x.size; ++i)
      x.values[at + i] = static_cast<float>(x.values[at + i] * inverse * factors[i]);
  }
}

static Error rotateNew(Heads<float> &x, const GroupQueryPlan &plan, const GroupQueryOperands &in, bool interleaved) {
  Numbers<float> cosine(*in.cosCache), sine(*in.sinCache);
  SmallVector<int64_t, 8> ids;
  if (in.positions)
    ids = integersOf(*in.positions);
  int64_t half = in.cosCache->extent(-1);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t s = 0; s < x.rows; ++s) {
      int64_t position = in.positions ? ids[b * x.rows + s] : plan.pasts[b] + s;
      if (position < 0 || position >= in.cosCache->shape()[0])
        return fail("expected a position below " + Twine(in.cosCache->shape()[0]) + ", but got " + Twine(position));
      for (int64_t h = 0; h < x.heads; ++h)
        rotate(x.at(b, h, s), cosine.data() + position * half, sine.data() + position * half, 2 * half, interleaved);
    }
  return Error::success();
}

/// The cache after this step: past rows, then the new rows of each sequence at its own past length.
static Heads<float> presentOf(const GroupQueryPlan &plan, Operand past, const Heads<float> &fresh) {
  Heads<float> out(plan.batch, fresh.heads, plan.presentRows, plan.size);
  if (past && plan.pastRows) {
    Heads<float> old = headsOf<float>(*past, 0);
    for (int64_t b = 0; b < plan.batch; ++b)
      for (int64_t h = 0; h < fresh.heads; ++h)
        std::copy_n(old.at(b, h), old.rows * old.size, out.at(b, h));
  }
  for (int64_t b = 0; b < plan.batch; ++b)
    for (int64_t h = 0; h < fresh.heads; ++h) {
      int64_t rows = std::min(fresh.rows, plan.presentRows - plan.pasts[b]);
      std::copy_n(fresh.at(b, h), rows * plan.size, out.at(b, h, plan.pasts[b]));
    }
  return out;
}

static Expected<std::vector<float>> fullBias(Operand bias, int64_t batch, int64_t heads, int64_t queries,
                                             int64_t keys) {
  if (!bias)
    return std::vector<float>();
  if (bias->rank() != 4 || bias->shape()[3] < keys)
    return fail("expected a bias [batch,heads," + Twine(queries) + "," + Twine(keys) + "], but got " +
                textOf(bias->shape()));
  Result spread = expand(*bias, {batch, heads, queries, bias->shape()[3]});
  if (!spread)
    return spread.takeError();
  Numbers<float> values(*spread);
  return std::vector<float>(values.all().begin(), values.all().end());
}

Results groupQueryAttention(const GroupQueryOperands &in, const GroupQueryAttributes &attributes) {
  Expected<GroupQueryPlan> made = planGroupQuery(in, attributes);
  if (!made)
    return made.takeError();
  const GroupQueryPlan &plan = *made;
  int64_t heads = attributes.heads, kvHeads = attributes.kvHeads, size = plan.size, row = in.query->shape()[2];
  Numbers<float> packed(*in.query);
  auto part = [&](Operand own, int64_t count, int64_t first) {
    if (own)
      return headsOf<float>(*own, count);
    return splitHeads<float>(packed.data(), plan.batch, plan.sequence, row, count, size, first * size, size);
  };
  Heads<float> q = part(plan.packed ? nullptr : in.query, heads, 0), k = part(in.key, kvHeads, heads),
               v = part(in.value, kvHeads, heads + kvHeads);
  normalizeHeads(q, in.qNorm, attributes.qNormEpsilon);
  normalizeHeads(k, in.kNorm, attributes.kNormEpsilon);
  if (attributes.doRotary) {
    if (Error error = rotateNew(q, plan, in, attributes.rotaryInterleaved))
      return error;
    if (Error error = rotateNew(k, plan, in, attributes.rotaryInterleaved))
      return error;
  }
  Heads<float> keys = presentOf(plan, in.pastKey, k), values = presentOf(plan, in.pastValue, v);
  int64_t total = plan.presentRows;
  int64_t biasKeys = in.bias ? in.bias->extent(-1) : 0;
  auto biasRows = fullBias(in.bias, plan.batch, heads, plan.sequence, *llvm::max_element(plan.totals));
  if (!biasRows)
    return biasRows.takeError();
  std::vector<float> sinks, shown;
  if (in.sink) {
    Numbers<float> given(*in.sink);
    sinks.assign(given.all().begin(), given.all().end());
  }
  if (attributes.qkOutput)
    shown.resize(static_cast<size_t>(plan.batch * heads * plan.sequence * total));
  float scale = static_cast<float>(attributes.scale.value_or(1.0 / std::sqrt(static_cast<double>(size))));
  constexpr float none = -std::numeric_limits<float>::infinity();
  Heads<float> out = attend<float>(q, keys, values, scale, [&](int64_t b, int64_t h, int64_t i, float *scores) {
    int64_t position = plan.pasts[b] + i;
    for (int64_t j = 0; j < total; ++j) {
      bool hidden = j >= plan.totals[b] || (attributes.causal && j > position) ||
                    (attributes.localWindow >= 0 && j <= position - attributes.localWindow);
      if (attributes.softcap > 0)
        scores[j] =
            static_cast<float>(attributes.softcap) * std::tanh(scores[j] / static_cast<float>(attributes.softcap));
      if (!biasRows->empty() && j < biasKeys)
        scores[j] += (*biasRows)[((b * heads + h) * plan.sequence + i) * biasKeys + j];
      scores[j] = hidden ? none : scores[j];
    }
    float *show = shown.empty() ? nullptr : shown.data() + ((b * heads + h) * plan.sequence + i) * total;
    if (show && attributes.qkOutput == 1)
      std::transform(scores, scores + total, show, [](float score) { return score == none ? 0.0f : score; });
    std::optional<float> sink;
    if (!sinks.empty())
      sink = sinks[h];
    else if (attributes.smoothSoftmax)
      sink = 0.0f;
    softmaxInPlace(scores, total, sink);
    if (show && attributes.qkOutput == 2)
      std::copy_n(scores, total, show);
  });
  ElementKind kind = in.query->kind();
  Tensors results{storeAs(kind, {plan.batch, plan.sequence, heads * size}, mergeHeads(out)),
                  storeAs(kind, keys.shape(), std::move(keys.values)),
                  storeAs(kind, values.shape(), std::move(values.values))};
  results.push_back(shown.empty() ? Tensor()
                                  : storeAs(kind, {plan.batch, heads, plan.sequence, total}, std::move(shown)));
  return results;
}

//===--- Masks of MultiHeadAttention and Attention ----------------------------------------------------------------===//

namespace {
/// The additive mask [batch, queries, keys] of the integer mask forms, empty when there is none.
struct PaddingMask {
  std::vector<float> values;
  int64_t queries = 0, keys = 0;
  float at(int64_t b, int64_t i, int64_t j) const {
    return values.empty() ? 0.0f : values[(b * queries + i) * keys + j];
  }
};
} // namespace

static Expected<PaddingMask> paddingMask(Operand mask, int64_t batch, int64_t queries, int64_t keys, float filter) {
  PaddingMask out;
  if (!mask)
    return out;
  out.queries = queries;
  out.keys = keys;
  out.values.assign(static_cast<size_t>(batch * queries * keys), 0.0f);
  auto bits = integersOf(*mask);
  bool lengths = mask->rank() == 1, perQuery = mask->rank() == 3;
  bool ranges = lengths && mask->count() == 2 * batch, known = lengths && (mask->count() == batch || ranges);
  if (mask->rank() == 2 && (mask->shape()[0] != batch || mask->shape()[1] != keys))
    return fail("expected a mask [" + Twine(batch) + "," + Twine(keys) + "], but got " + textOf(mask->shape()));
  if ((lengths && !known) || mask->rank() > 3 || mask->rank() < 1)
    return fail("not implemented: a mask of shape " + textOf(mask->shape()));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        bool kept;
        if (lengths)
          kept = j < bits[b] && (!ranges || j >= bits[batch + b]);
        else
          kept = bits[perQuery ? (b * queries + i) * keys + j : b * keys + j] > 0;
        out.values[(b * queries + i) * keys + j] = kept ? 0.0f : filter;
      }
  return out;
}

/// Attention with a padding mask, a bias and the causal rule, and the four results of MultiHeadAttention.
static Expected<Heads<float>> attendMasked(const Heads<float> &q, const Heads<float> &k, const Heads<float> &v,
                                           Operand mask, Operand bias, const MultiHeadAttributes &attributes,
                                           std::vector<float> *shown) {
  if (k.batch != q.batch || k.size != q.size || v.rows != k.rows || k.heads == 0 || q.heads % k.heads)
    return fail("expected operands that fit, but got query " + textOf(q.shape()) + " and key " + textOf(k.shape()));
  auto padding = paddingMask(mask, q.batch, q.rows, k.rows, static_cast<float>(attributes.maskFilterValue));
  if (!padding)
    return padding.takeError();
  auto biasRows = fullBias(bias, q.batch, q.heads, q.rows, k.rows);
  if (!biasRows)
    return biasRows.takeError();
  float scale = static_cast<float>(attributes.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size))));
  int64_t past = k.rows - q.rows;
  return attend<float>(q, k, v, scale, [&](int64_t b, int64_t h, int64_t i, float *scores) {
    for (int64_t j = 0; j < k.rows; ++j) {
      scores[j] += padding->at(b, i, j);
      if (!biasRows->empty())
        scores[j] += (*biasRows)[((b * q.heads + h) * q.rows + i) * k.rows + j];
      if (attributes.unidirectional && j > past + i)
        scores[j] = std::numeric_limits<float>::lowest();
    }
    if (shown)
      std::copy_n(scores, k.rows, shown->data() + ((b * q.heads + h) * q.rows + i) * k.rows);
    softmaxInPlace(scores, k.rows);
  });
}

//===--- MultiHeadAttention ---------------------------------------------------------------------------------------===//

namespace {
struct QueryKeyValue {
  Heads<float> q, k, v;
};
} // namespace

static Expected<QueryKeyValue> projectedHeads(const Tensor &query, Operand key, Operand value, Operand bias,
                                              int64_t heads) {
  QueryKeyValue out;
  Numbers<float> first(query);
  std::vector<float> offsets;
  if (bias) {
    Numbers<float> given(*bias);
    offsets.assign(given.all().begin(), given.all().end());
  }
  auto offset = [&](size_t at) { return offsets.empty() ? nullptr : offsets.data() + at; };
  if (query.rank() == 5) { // [batch, sequence, heads, 3, size]
    int64_t size = query.shape()[4], rows = query.shape()[1], row = heads * 3 * size;
    auto part = [&](int64_t which) {
      return splitHeads<float>(first.data(), query.shape()[0], rows, row, heads, size, which * size, 3 * size);
    };
    out = {part(0), part(1), part(2)};
    return out;
  }
  if (query.rank() != 3 || !key || heads < 1 || query.shape()[2] % heads)
    return fail("expected a query [batch,sequence,features], but got " + textOf(query.shape()));
  int64_t size = query.shape()[2] / heads;
  out.q = splitHeads<float>(first.data(), query.shape()[0], query.shape()[1], query.shape()[2], heads, size, 0, size,
                            offset(0));
  Numbers<float> second(*key);
  if (key->rank() == 5) { // [batch, keys, heads, 2, size]
    auto part = [&](int64_t which) {
      return splitHeads<float>(second.data(), key->shape()[0], key->shape()[1], heads * 2 * size, heads, size,
                               which * size, 2 * size);
    };
    out.k = part(0);
    out.v = part(1);
    return out;
  }
  if (!value)
    return fail("expected a value");
  if (key->rank() == 4) { // the heads of a cross attention, as cached
    out.k = headsOf<float>(*key, heads);
    out.v = headsOf<float>(*value, heads);
    return out;
  }
  int64_t valueSize = value->shape()[2] / heads;
  Numbers<float> third(*value);
  size_t width = static_cast<size_t>(heads * size);
  out.k = splitHeads<float>(second.data(), key->shape()[0], key->shape()[1], key->shape()[2], heads, size, 0, size,
                            offset(width));
  out.v = splitHeads<float>(third.data(), value->shape()[0], value->shape()[1], value->shape()[2], heads, valueSize, 0,
                            valueSize, offset(2 * width));
  return out;
}

Results multiHeadAttention(const Tensor &query, Operand key, Operand value, Operand bias, Operand keyPaddingMask,
                           Operand attentionBias, Operand pastKey, Operand pastValue,
                           const MultiHeadAttributes &attributes) {
  auto parts = projectedHeads(query, key, value, bias, attributes.heads);
  if (!parts)
    return parts.takeError();
  if (pastKey && pastValue) {
    if (pastKey->rank() != 4 || pastKey->shape()[3] != parts->k.size || pastKey->shape()[1] != parts->k.heads)
      return fail("expected a past like the new keys " + textOf(parts->k.shape()) + ", but got " +
                  textOf(pastKey->shape()));
    parts->k = joinRows(headsOf<float>(*pastKey, 0), parts->k);
    parts->v = joinRows(headsOf<float>(*pastValue, 0), parts->v);
  }
  int64_t total = parts->k.rows;
  std::vector<float> shown(parts->q.values.size() / std::max<int64_t>(parts->q.size, 1) * total);
  auto out = attendMasked(parts->q, parts->k, parts->v, keyPaddingMask, attentionBias, attributes, &shown);
  if (!out)
    return out.takeError();
  ElementKind kind = query.kind();
  Shape shownShape({parts->q.batch, parts->q.heads, parts->q.rows, total});
  return Tensors{storeAs(kind, {out->batch, out->rows, out->heads * out->size}, mergeHeads(*out)),
                 storeAs(kind, parts->k.shape(), std::move(parts->k.values)),
                 storeAs(kind, parts->v.shape(), std::move(parts->v.values)),
                 storeAs(kind, shownShape, std::move(shown))};
}

//===--- Attention ------------------------------------------------------------------------------------------------===//

Results msAttention(const Tensor &input, const Tensor &weights, Operand bias, Operand maskIndex, Operand past,
                    Operand attentionBias, const MultiHeadAttributes &attributes) {
  if (attributes.doRotary)
    return fail("not implemented: do_rotary of com.microsoft.Attention");
  if (input.rank() != 3 || weights.rank() != 2 || attributes.heads < 1)
    return fail("expected an input [batch,sequence,features], but got " + textOf(input.shape()));
  Result projected = matMul(input, weights);
  if (projected && bias)
    projected = binary(BinaryKind::Add, *projected, *bias);
  if (!projected)
    return projected.takeError();
  int64_t heads = attributes.heads, row = weights.shape()[1];
  SmallVector<int64_t, 3> widths(attributes.qkvHiddenSizes);
  if (widths.empty())
    widths.assign(3, row / 3);
  if (widths.size() != 3 || widths[0] + widths[1] + widths[2] != row || widths[0] % heads || widths[2] % heads)
    return fail("expected three parts of " + Twine(row) + " features, but got " + textOf(widths));
  Numbers<float> all(*projected);
  auto part = [&](int which, int64_t first) {
    int64_t size = widths[which] / heads;
    return splitHeads<float>(all.data(), input.shape()[0], input.shape()[1], row, heads, size, first, size);
  };
  Heads<float> q = part(0, 0), k = part(1, widths[0]), v = part(2, widths[0] + widths[1]);
  if (past) { // [2, batch, heads, past, size]
    if (past->rank() != 5 || past->shape()[0] != 2 || past->shape()[4] != k.size || k.size != v.size)
      return fail("expected a past [2,batch,heads,past," + Twine(k.size) + "], but got " + textOf(past->shape()));
    Result keys = slice(*past, {0}, {1}, std::nullopt, std::nullopt),
           values = slice(*past, {1}, {2}, std::nullopt, std::nullopt);
    if (!keys)
      return keys.takeError();
    if (!values)
      return values.takeError();
    k = joinRows(headsOf<float>(keys->withShape(past->shape().drop_front()), 0), k);
    v = joinRows(headsOf<float>(values->withShape(past->shape().drop_front()), 0), v);
  }
  auto out = attendMasked(q, k, v, maskIndex, attentionBias, attributes, nullptr);
  if (!out)
    return out.takeError();
  ElementKind kind = input.kind();
  Tensors results{storeAs(kind, {out->batch, out->rows, out->heads * out->size}, mergeHeads(*out)), Tensor()};
  if (k.size == v.size) {
    std::vector<float> both(k.values);
    both.insert(both.end(), v.values.begin(), v.values.end());
    results[1] = storeAs(kind, {2, k.batch, k.heads, k.rows, k.size}, std::move(both));
  }
  return results;
}

} // namespace quire::eval
