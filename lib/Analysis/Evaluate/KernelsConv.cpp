// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolution over any number of spatial axes, by its definition.
#include "Kernels.h"

using namespace llvm;

namespace quire::eval {

namespace {
struct ConvPlan {
  int64_t batch = 0, channels = 0, filters = 0, group = 1;
  Shape in, kernel, out, strides, dilations, begin;
};
} // namespace

static Expected<ConvPlan> planConv(const Tensor &x, const Tensor &weight, const ConvAttributes &attributes) {
  int64_t spatial = x.rank() - 2;
  if (spatial < 1 || weight.rank() != x.rank())
    return fail("expected operands of one rank of 3 or more, but got " + textOf(x.shape()) + " and " +
                textOf(weight.shape()));
  ConvPlan plan;
  plan.batch = x.shape()[0];
  plan.channels = x.shape()[1];
  plan.filters = weight.shape()[0];
  plan.group = attributes.group;
  if (plan.group < 1 || plan.channels != weight.shape()[1] * plan.group || plan.filters % plan.group)
    return fail("expected " + Twine(weight.shape()[1] * plan.group) + " channels, but got " + Twine(plan.channels));
  auto given = [&](const SmallVector<int64_t, 3> &values, int64_t axis, int64_t other) {
    return values.empty() ? other : values[axis];
  };
  for (int64_t axis = 0; axis < spatial; ++axis) {
    int64_t in = x.shape()[axis + 2], kernel = weight.shape()[axis + 2];
    int64_t stride = given(attributes.strides, axis, 1), dilation = given(attributes.dilations, axis, 1);
    int64_t reach = dilation * (kernel - 1) + 1;
    int64_t before = given(attributes.pads, axis, 0), after = given(attributes.pads, axis + spatial, 0);
    if (attributes.autoPad == "VALID") {
      before = after = 0;
    } else if (attributes.autoPad.starts_with("SAME")) {
      int64_t total = std::max<int64_t>(0, ((in + stride - 1) / stride - 1) * stride + reach - in);
      before = attributes.autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    int64_t out = (in + before + after - reach) / stride + 1;
    if (in + before + after < reach)
      return fail("expected an input as long as the kernel, but got " + textOf(x.shape()) + " and " +
                  textOf(weight.shape()));
    plan.in.push_back(in);
    plan.kernel.push_back(kernel);
    plan.out.push_back(out);
    plan.strides.push_back(stride);
    plan.dilations.push_back(dilation);
    plan.begin.push_back(before);
  }
  return plan;
}

/// Calls `body(flat)` with the index advanced over `shape`.
static void advance(Ints shape, Shape &index) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis])
      return;
    index[axis] = 0;
  }
}

Result conv(const Tensor &x, const Tensor &weight, Operand bias, const ConvAttributes &attributes) {
  Expected<ConvPlan> made = planConv(x, weight, attributes);
  if (!made)
    return made.takeError();
  const ConvPlan &plan = *made;
  int64_t inCount = countOf(plan.in), kernelCount = countOf(plan.kernel), outCount = countOf(plan.out);
  int64_t perGroup = plan.channels / plan.group, filtersPerGroup = plan.filters / plan.group;
  Shape inStrides = stridesOf(plan.in), shape({plan.batch, plan.filters});
  shape.append(plan.out);
  auto run = [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> data(x), filter(weight), offset(bias ? *bias : Tensor::zeros(x.kind(), {plan.filters}));
    // For each output position and kernel element, where it reads: the same for every channel.
    std::vector<int64_t> reads(static_cast<size_t>(outCount * kernelCount));
    Shape at(plan.out.size(), 0);
    for (int64_t o = 0; o < outCount; ++o, advance(plan.out, at)) {
      Shape tap(plan.kernel.size(), 0);
      for (int64_t k = 0; k < kernelCount; ++k, advance(plan.kernel, tap)) {
        int64_t position = 0;
        for (size_t axis = 0; axis < plan.in.size() && position >= 0; ++axis) {
          int64_t i = at[axis] * plan.strides[axis] + tap[axis] * plan.dilations[axis] - plan.begin[axis];
          position = i < 0 || i >= plan.in[axis] ? -1 : position + i * inStrides[axis];
        }
        reads[o * kernelCount + k] = position;
      }
    }
    std::vector<T> out(static_cast<size_t>(countOf(shape)));
    parallelRanges(plan.batch * plan.filters, countOf(shape) * kernelCount * perGroup, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t n = row / plan.filters, f = row % plan.filters, g = f / filtersPerGroup;
        for (int64_t o = 0; o < outCount; ++o) {
          double sum = 0;
          for (int64_t c = 0; c < perGroup; ++c) {
            const T *plane = data.data() + (n * plan.channels + g * perGroup + c) * inCount;
            const T *taps = filter.data() + (f * perGroup + c) * kernelCount;
            for (int64_t k = 0; k < kernelCount; ++k)
              if (int64_t position = reads[o * kernelCount + k]; position >= 0)
                sum += static_cast<double>(plane[position]) * static_cast<double>(taps[k]);
          }
          out[row * outCount + o] = static_cast<T>(sum + static_cast<double>(offset[f]));
        }
      }
    });
    return storeAs(x.kind(), shape, std::move(out));
  };
  return x.kind() == ElementKind::F64 ? run(double{}) : run(float{});
}

} // namespace quire::eval
