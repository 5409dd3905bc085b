// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mixtures of experts: com.microsoft.MoE and QMoE.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace quire::eval {

namespace {
/// The experts of one token and how much each counts.
struct Route {
  int64_t expert;
  float weight;
};

/// A projection of every expert as f32 [experts, out, in].
struct Expanded {
  std::vector<float> weights, bias;
  int64_t out = 0, in = 0;
};
} // namespace

static std::vector<Route> routeOf(const float *logits, const float *weights, int64_t experts,
                                  const MoEAttributes &attributes) {
  std::vector<float> scores(logits, logits + experts);
  if (!attributes.quantized) { // all experts share the softmax; QMoE takes it over the chosen ones
    float largest = *llvm::max_element(scores), sum = 0;
    for (float &score : scores)
      sum += score = std::exp(score - largest);
    for (float &score : scores)
      score /= sum;
  }
  std::vector<int64_t> order(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e)
    order[e] = e;
  // Of equal scores the later expert comes first, as a descending sort of (score, index) pairs has it.
  llvm::sort(order, [&](int64_t l, int64_t r) { return scores[l] != scores[r] ? scores[l] > scores[r] : l > r; });
  std::vector<Route> routes;
  float sum = 0;
  for (int64_t i = 0; i < attributes.k; ++i) {
    float weight = scores[order[i]];
    if (weights)
      weight = weights[order[i]];
    else if (attributes.quantized)
      weight = std::exp(weight - scores[order[0]]);
    sum += weight;
    routes.push_back({order[i], weight});
  }
  bool divide = weights ? attributes.normalizeRouting : attributes.quantized || attributes.normalizeRouting;
  if (divide && sum != 0)
    for (Route &route : routes)
      route.weight /= sum;
  return routes;
}

static float activate(MoEAttributes::Activation kind, float x) {
  switch (kind) {
  case MoEAttributes::Relu:
    return std::max(0.0f, x);
  case MoEAttributes::Gelu:
    return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
  case MoEAttributes::Silu:
    return x / (1.0f + std::exp(-x));
  case MoEAttributes::Identity:
  case MoEAttributes::SwiGlu:
    break;
  }
  return x;
}

/// gate * sigmoid(alpha * gate) * (linear + beta), with both limited.
static float swiGluOf(float gate, float linear, const MoEAttributes &attributes) {
  if (attributes.swigluLimit) {
    auto limit = static_cast<float>(*attributes.swigluLimit);
    gate = std::min(gate, limit);
    linear = std::clamp(linear, -limit, limit);
  }
  auto alpha = static_cast<float>(attributes.alpha), beta = static_cast<float>(attributes.beta);
  return gate / (1.0f + std::exp(-alpha * gate)) * (linear + beta);
}

static Expected<Expanded> expandProjection(const MoEProjection &projection, int64_t out, int64_t in,
                                           const MoEAttributes &attributes) {
  Expanded result;
  result.out = out;
  result.in = in;
  const Tensor &weights = *projection.weights;
  int64_t experts = weights.shape()[0];
  if (projection.bias) {
    Numbers<float> given(*projection.bias);
    if (static_cast<int64_t>(given.size()) != experts * out)
      return fail("expected a bias [" + Twine(experts) + "," + Twine(out) + "], but got " +
                  textOf(projection.bias->shape()));
    result.bias.assign(given.all().begin(), given.all().end());
  }
  if (!attributes.quantized) {
    if (weights.rank() != 3 || weights.shape()[1] != out || weights.shape()[2] != in)
      return fail("expected weights [experts," + Twine(out) + "," + Twine(in) + "], but got " +
                  textOf(weights.shape()));
    Numbers<float> given(weights);
    result.weights.assign(given.all().begin(), given.all().end());
    return result;
  }
  if (!projection.scales)
    return fail("expected scales");
  int64_t block = attributes.blockSize > 0 ? attributes.blockSize : in;
  NBitsAttributes packing{in, experts * out, attributes.bits, block};
  auto unpacked = dequantizeNBits(weights, *projection.scales, projection.zeros, nullptr, packing);
  if (!unpacked)
    return unpacked.takeError();
  result.weights = std::move(*unpacked);
  return result;
}

/// row * weights[expert]^T + bias.
static std::vector<float> project(const Expanded &layer, int64_t expert, const float *row) {
  std::vector<float> result(static_cast<size_t>(layer.out));
  const float *weights = layer.weights.data() + expert * layer.out * layer.in;
  for (int64_t o = 0; o < layer.out; ++o) {
    double sum = layer.bias.empty() ? 0.0 : layer.bias[expert * layer.out + o];
    for (int64_t i = 0; i < layer.in; ++i)
      sum += static_cast<double>(weights[o * layer.in + i]) * row[i];
    result[o] = static_cast<float>(sum);
  }
  return result;
}

Result mixtureOfExperts(const Tensor &x, const Tensor &routerLogits, const MoEProjection &fc1, const MoEProjection &fc2,
                        const MoEProjection &fc3, Operand routerWeights, const MoEAttributes &attributes) {
  if (fc1.weights->rank() != 3 || fc2.weights->rank() != 3 || routerLogits.rank() != 2 || x.rank() < 2)
    return fail("expected weights of rank 3 and logits of rank 2, but got " + textOf(fc1.weights->shape()) + " and " +
                textOf(routerLogits.shape()));
  int64_t hidden = x.extent(-1), tokens = x.count() / std::max<int64_t>(hidden, 1), experts = fc1.weights->shape()[0];
  int64_t perByte = attributes.quantized ? 8 / attributes.bits : 1;
  int64_t inner = fc2.weights->shape()[1] * fc2.weights->shape()[2] * perByte / std::max<int64_t>(hidden, 1);
  bool fused = attributes.activation == MoEAttributes::SwiGlu;
  if (routerLogits.shape()[0] != tokens || routerLogits.shape()[1] != experts || attributes.k < 1 ||
      attributes.k > experts)
    return fail("expected logits [" + Twine(tokens) + "," + Twine(experts) + "], but got " +
                textOf(routerLogits.shape()));
  if (fused && attributes.swigluFusion != 1)
    return fail("not implemented: SwiGLU with swiglu_fusion other than 1");
  auto first = expandProjection(fc1, fused ? 2 * inner : inner, hidden, attributes);
  if (!first)
    return first.takeError();
  auto second = expandProjection(fc2, hidden, inner, attributes);
  if (!second)
    return second.takeError();
  Expanded third;
  if (fc3.weights) {
    auto expanded = expandProjection(fc3, inner, hidden, attributes);
    if (!expanded)
      return expanded.takeError();
    third = std::move(*expanded);
  }
  Numbers<float> rows(x), logits(routerLogits), given(routerWeights ? *routerWeights : routerLogits);
  std::vector<float> out(static_cast<size_t>(tokens * hidden), 0.0f);
  for (int64_t t = 0; t < tokens; ++t)
    for (Route route : routeOf(logits.data() + t * experts, routerWeights ? given.data() + t * experts : nullptr,
                               experts, attributes)) {
      std::vector<float> raised = project(*first, route.expert, rows.data() + t * hidden),
                         middle(static_cast<size_t>(inner));
      for (int64_t i = 0; i < inner; ++i)
        middle[i] =
            fused ? swiGluOf(raised[2 * i], raised[2 * i + 1], attributes) : activate(attributes.activation, raised[i]);
      if (fc3.weights) {
        std::vector<float> gate = project(third, route.expert, rows.data() + t * hidden);
        for (int64_t i = 0; i < inner; ++i)
          middle[i] *= gate[i];
      }
      std::vector<float> lowered = project(*second, route.expert, middle.data());
      for (int64_t i = 0; i < hidden; ++i)
        out[t * hidden + i] += route.weight * lowered[i];
    }
  return storeAs(x.kind(), x.shape(), std::move(out));
}

} // namespace quire::eval
