// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators with a recurrent state: LinearAttention and CausalConvWithState of ONNX 27 and of com.microsoft.
#include "AttentionCore.h"

using namespace llvm;

namespace quire::eval {

namespace {
/// decay [batch, tokens, heads or heads*size] or beta [batch, tokens, heads or 1], read per head, token and key
/// feature.
struct TokenFactors {
  std::vector<float> values;
  int64_t tokens = 0, row = 0, perHead = 0;
  TokenFactors(Operand x, int64_t heads) {
    if (!x)
      return;
    Numbers<float> in(*x);
    values.assign(in.all().begin(), in.all().end());
    tokens = x->shape()[1];
    row = x->shape()[2];
    perHead = row >= heads ? row / heads : 0;
  }
  float at(int64_t b, int64_t t, int64_t h, int64_t d) const {
    return values[(b * tokens + t) * row + h * perHead + (perHead > 1 ? d : 0)];
  }
};
} // namespace

static Error checkFactors(Operand x, bool wanted, int64_t batch, int64_t tokens, StringRef name) {
  if ((x != nullptr) != wanted)
    return fail("expected " + name + " exactly where the update rule uses it");
  if (x && (x->rank() != 3 || x->shape()[0] != batch || x->shape()[1] != tokens))
    return fail("expected " + name + " [batch,tokens,heads], but got " + textOf(x->shape()));
  return Error::success();
}

Results linearAttention(const Tensor &query, const Tensor &key, const Tensor &value, Operand pastState, Operand decay,
                        Operand beta, int64_t qHeads, int64_t kvHeads, double scale, UpdateRule rule) {
  bool gated = rule == UpdateRule::Gated || rule == UpdateRule::GatedDelta;
  bool delta = rule == UpdateRule::Delta || rule == UpdateRule::GatedDelta;
  if (query.rank() != 3 || key.rank() != 3 || value.rank() != 3 || qHeads < 1 || kvHeads < 1 ||
      query.shape()[2] % qHeads || value.shape()[2] % kvHeads)
    return fail("expected operands [batch,tokens,features], but got " + textOf(query.shape()) + ", " +
                textOf(key.shape()) + " and " + textOf(value.shape()));
  int64_t size = query.shape()[2] / qHeads, keyHeads = key.shape()[2] / size;
  if (keyHeads < 1 || key.shape()[2] % size || kvHeads % keyHeads || (qHeads % kvHeads && kvHeads % qHeads))
    return fail("expected heads that divide each other, but got " + Twine(qHeads) + ", " + Twine(keyHeads) + " and " +
                Twine(kvHeads));
  Heads<float> q = headsOf<float>(query, qHeads), k = headsOf<float>(key, keyHeads), v = headsOf<float>(value, kvHeads);
  if (Error error = checkFactors(decay, gated, q.batch, q.rows, "decay"))
    return error;
  if (Error error = checkFactors(beta, delta, q.batch, q.rows, "beta"))
    return error;
  Heads<float> state(q.batch, kvHeads, size, v.size);
  if (pastState) {
    if (pastState->shape() != Ints(state.shape()))
      return fail("expected a state " + textOf(state.shape()) + ", but got " + textOf(pastState->shape()));
    state = headsOf<float>(*pastState, 0);
  }
  TokenFactors decays(decay, kvHeads), betas(beta, kvHeads);
  // Fewer query heads than value heads read the same query several times.
  int64_t outHeads = std::max(qHeads, kvHeads);
  Heads<float> out(q.batch, outHeads, q.rows, v.size);
  float factor = static_cast<float>(scale != 0.0 ? scale : 1.0 / std::sqrt(static_cast<double>(size)));
  std::vector<float> fresh(static_cast<size_t>(v.size));
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < kvHeads; ++h)
      for (int64_t t = 0; t < q.rows; ++t) {
        const float *kt = k.at(b, h / (kvHeads / keyHeads), t);
        float *s = state.at(b, h);
        if (gated)
          for (int64_t d = 0; d < size; ++d) {
            float shrink = std::exp(decays.at(b, t, h, d));
            for (int64_t m = 0; m < v.size; ++m)
              s[d * v.size + m] *= shrink;
          }
        std::copy_n(v.at(b, h, t), v.size, fresh.data());
        if (delta)
          for (int64_t m = 0; m < v.size; ++m) {
            double read = 0;
            for (int64_t d = 0; d < size; ++d)
              read += static_cast<double>(s[d * v.size + m]) * kt[d];
            fresh[m] = betas.at(b, t, h, 0) * (fresh[m] - static_cast<float>(read));
          }
        for (int64_t d = 0; d < size; ++d)
          for (int64_t m = 0; m < v.size; ++m)
            s[d * v.size + m] += kt[d] * fresh[m];
        for (int64_t o = h * outHeads / kvHeads; o < (h + 1) * outHeads / kvHeads; ++o) {
          const float *qt = q.at(b, o * qHeads / outHeads, t);
          for (int64_t m = 0; m < v.size; ++m) {
            double sum = 0;
            for (int64_t d = 0; d < size; ++d)
              sum += static_cast<double>(s[d * v.size + m]) * qt[d];
            out.at(b, o, t)[m] = factor * static_cast<float>(sum);
          }
        }
      }
  ElementKind stateKind = pastState ? pastState->kind() : query.kind();
  Shape stateShape = state.shape();
  return Tensors{storeAs(query.kind(), {q.batch, q.rows, outHeads * v.size}, mergeHeads(out)),
                 storeAs(stateKind, stateShape, std::move(state.values))};
}

Results causalConvWithState(const Tensor &x, const Tensor &weight, Operand bias, Operand pastState, bool silu) {
  if (x.rank() != 3 || weight.rank() != 3 || weight.shape()[0] != x.shape()[1] || weight.shape()[1] != 1)
    return fail("expected an input [batch,channels,length] and a weight [channels,1,k], but got " + textOf(x.shape()) +
                " and " + textOf(weight.shape()));
  int64_t batch = x.shape()[0], channels = x.shape()[1], length = x.shape()[2], taps = weight.shape()[2];
  Shape stateShape({batch, channels, taps - 1});
  if (pastState && pastState->shape() != Ints(stateShape))
    return fail("expected a state " + textOf(stateShape) + ", but got " + textOf(pastState->shape()));
  Tensor state = pastState ? *pastState : Tensor::zeros(x.kind(), stateShape);
  Numbers<float> in(x), filter(weight), before(state), offsets(bias ? *bias : Tensor::zeros(x.kind(), {channels}));
  std::vector<float> out(in.size()), after(before.size()), padded(static_cast<size_t>(taps - 1 + length));
  for (int64_t row = 0; row < batch * channels; ++row) {
    int64_t c = row % channels;
    std::copy_n(before.data() + row * (taps - 1), taps - 1, padded.data());
    std::copy_n(in.data() + row * length, length, padded.data() + taps - 1);
    for (int64_t i = 0; i < length; ++i) {
      double sum = offsets[c];
      for (int64_t t = 0; t < taps; ++t)
        sum += static_cast<double>(filter[c * taps + t]) * padded[i + t];
      float value = static_cast<float>(sum);
      out[row * length + i] = silu ? value / (1.0f + std::exp(-value)) : value;
    }
    std::copy_n(padded.data() + length, taps - 1, after.data() + row * (taps - 1));
  }
  return Tensors{storeAs(x.kind(), x.shape(), std::move(out)), storeAs(state.kind(), stateShape, std::move(after))};
}

} // namespace quire::eval
