// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Axes, broadcasting, strided copies and parallel ranges: what the kernels iterate with.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cstring>
#include <thread>

using namespace llvm;

namespace quire::eval {

Expected<int64_t> normalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return fail("expected an axis in [-" + Twine(rank) + "," + Twine(rank) + "), but got " + Twine(axis));
  return axis < 0 ? axis + rank : axis;
}

Expected<Shape> normalAxes(Ints axes, int64_t rank) {
  Shape result;
  for (int64_t axis : axes) {
    Expected<int64_t> normal = normalAxis(axis, rank);
    if (!normal)
      return normal.takeError();
    result.push_back(*normal);
  }
  llvm::sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return fail("expected distinct axes, but got " + textOf(axes));
  return result;
}

Expected<Shape> broadcastShape(ArrayRef<Ints> shapes) {
  size_t rank = 0;
  for (Ints shape : shapes)
    rank = std::max(rank, shape.size());
  Shape result(rank, 1);
  for (Ints shape : shapes)
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      int64_t &extent = result[rank - shape.size() + axis];
      if (shape[axis] == 1 || shape[axis] == extent)
        continue;
      if (extent != 1)
        return fail("expected shapes that broadcast, but got " + textOf(shapes.front()) + " and " + textOf(shape));
      extent = shape[axis];
    }
  return result;
}

BroadcastLoop::BroadcastLoop(Ints out, ArrayRef<Ints> operands) {
  strides.resize(operands.size());
  innerStep.assign(operands.size(), 0);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] == 1)
      continue;
    SmallVector<int64_t, 3> step;
    for (Ints shape : operands) {
      int64_t own = static_cast<int64_t>(axis) - static_cast<int64_t>(out.size() - shape.size());
      bool broadcast = own < 0 || shape[own] == 1;
      step.push_back(broadcast ? 0 : countOf(shape.drop_front(own + 1)));
    }
    // An outer dimension merges with this one when every operand steps over it contiguously.
    bool merge = !extents.empty();
    for (size_t operand = 0; merge && operand < operands.size(); ++operand)
      merge = strides[operand].back() == step[operand] * out[axis];
    if (merge)
      extents.back() *= out[axis];
    else
      extents.push_back(out[axis]);
    for (size_t operand = 0; operand < operands.size(); ++operand) {
      if (merge)
        strides[operand].back() = step[operand];
      else
        strides[operand].push_back(step[operand]);
    }
  }
  if (extents.empty()) {
    extents.push_back(1);
    for (auto &list : strides)
      list.push_back(0);
  }
  for (size_t operand = 0; operand < operands.size(); ++operand)
    innerStep[operand] = strides[operand].back();
}

void BroadcastLoop::run(function_ref<void(int64_t, const int64_t *, int64_t)> body) const {
  if (countOf(extents) == 0)
    return;
  size_t outer = extents.size() - 1;
  SmallVector<int64_t, 6> index(outer, 0);
  SmallVector<int64_t, 3> offsets(strides.size(), 0);
  int64_t n = extents.back();
  for (int64_t out = 0;; out += n) {
    body(out, offsets.data(), n);
    size_t axis = outer;
    for (; axis-- > 0;) {
      for (size_t operand = 0; operand < strides.size(); ++operand)
        offsets[operand] += strides[operand][axis];
      if (++index[axis] < extents[axis])
        break;
      for (size_t operand = 0; operand < strides.size(); ++operand)
        offsets[operand] -= strides[operand][axis] * extents[axis];
      index[axis] = 0;
      if (axis == 0)
        return;
    }
    if (outer == 0)
      return;
  }
}

template <typename T>
static void copyRows(const T *in, T *out, Ints shape, Ints strides) {
  if (shape.empty()) {
    *out = *in;
    return;
  }
  int64_t n = shape.back(), step = strides.back();
  SmallVector<int64_t, 6> index(shape.size(), 0);
  while (true) {
    if (step == 1)
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
    else
      for (int64_t i = 0; i < n; ++i)
        out[i] = in[i * step];
    out += n;
    size_t axis = shape.size() - 1;
    while (true) {
      if (axis-- == 0)
        return;
      in += strides[axis];
      if (++index[axis] < shape[axis])
        break;
      in -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

Tensor stridedCopy(const Tensor &input, Ints shape, Ints strides, int64_t offset) {
  Tensor result = Tensor::zeros(input.kind(), shape);
  if (result.count() == 0)
    return result;
  auto copy = [&](auto type) {
    using T = decltype(type);
    copyRows<T>(reinterpret_cast<const T *>(input.bytes()) + offset, reinterpret_cast<T *>(result.writableBytes()),
                shape, strides);
  };
  switch (bitWidth(input.kind())) {
  case 8:
    copy(uint8_t{});
    break;
  case 16:
    copy(uint16_t{});
    break;
  case 32:
    copy(uint32_t{});
    break;
  default:
    assert(bitWidth(input.kind()) == 64 && "packed elements are unpacked before");
    copy(uint64_t{});
    break;
  }
  return result;
}

Result onWholeBytes(const Tensor &input, function_ref<Result(const Tensor &)> move) {
  if (bitWidth(input.kind()) >= 8)
    return move(input);
  Result moved = move(Tensor::adopt(ElementKind::U8, input.shape(), unpackNibbles(input)));
  if (!moved)
    return moved;
  return packNibbles(input.kind(), moved->shape(), moved->stored<uint8_t>());
}

void parallelRanges(int64_t count, int64_t work, function_ref<void(int64_t, int64_t)> body) {
  constexpr int64_t worthAThread = 1 << 21;
  int64_t threads =
      std::min<int64_t>({static_cast<int64_t>(std::thread::hardware_concurrency()), count, work / worthAThread, 8});
  if (threads < 2)
    return body(0, count);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] { body(count * t / threads, count * (t + 1) / threads); });
  body(0, count / threads);
  for (std::thread &thread : others)
    thread.join();
}

} // namespace quire::eval
