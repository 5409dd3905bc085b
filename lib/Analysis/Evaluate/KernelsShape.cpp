// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that move, repeat, cut and join elements.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <numeric>

using namespace llvm;

namespace quire::eval {

Result reshape(const Tensor &x, Ints requested, bool allowZero) {
  Shape shape(requested.begin(), requested.end());
  int64_t known = 1, open = -1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0 && !allowZero) {
      if (static_cast<int64_t>(axis) >= x.rank())
        return fail("expected an extent to copy at axis " + Twine(axis) + ", but got shape " + textOf(x.shape()));
      shape[axis] = x.shape()[axis];
    }
    if (shape[axis] == -1) {
      if (open >= 0)
        return fail("expected at most one -1, but got " + textOf(requested));
      open = static_cast<int64_t>(axis);
    } else {
      known *= shape[axis];
    }
  }
  if (open >= 0) {
    if (known == 0 || x.count() % known)
      return fail("expected a shape of " + Twine(x.count()) + " elements, but got " + textOf(requested));
    shape[open] = x.count() / known;
  }
  if (countOf(shape) != x.count())
    return fail("expected a shape of " + Twine(x.count()) + " elements, but got " + textOf(requested));
  return x.withShape(shape);
}

Result flatten(const Tensor &x, int64_t axis) {
  if (axis < -x.rank() || axis > x.rank())
    return fail("expected an axis in [-" + Twine(x.rank()) + "," + Twine(x.rank()) + "], but got " + Twine(axis));
  if (axis < 0)
    axis += x.rank();
  return x.withShape({countOf(x.shape().take_front(axis)), countOf(x.shape().drop_front(axis))});
}

Result squeeze(const Tensor &x, std::optional<Ints> axes) {
  Shape shape;
  if (!axes) {
    for (int64_t extent : x.shape())
      if (extent != 1)
        shape.push_back(extent);
    return x.withShape(shape);
  }
  Expected<Shape> normal = normalAxes(*axes, x.rank());
  if (!normal)
    return normal.takeError();
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (!is_contained(*normal, axis))
      shape.push_back(x.shape()[axis]);
    else if (x.shape()[axis] != 1)
      return fail("expected extent 1 at axis " + Twine(axis) + ", but got shape " + textOf(x.shape()));
  }
  return x.withShape(shape);
}

Result unsqueeze(const Tensor &x, Ints axes) {
  Expected<Shape> normal = normalAxes(axes, x.rank() + static_cast<int64_t>(axes.size()));
  if (!normal)
    return normal.takeError();
  Shape shape;
  auto next = x.shape().begin();
  for (int64_t axis = 0, rank = x.rank() + static_cast<int64_t>(axes.size()); axis < rank; ++axis)
    shape.push_back(is_contained(*normal, axis) ? 1 : *next++);
  return x.withShape(shape);
}

Result shapeOf(const Tensor &x, int64_t start, std::optional<int64_t> end) {
  auto bound = [&](int64_t value) { return std::clamp<int64_t>(value < 0 ? value + x.rank() : value, 0, x.rank()); };
  int64_t from = bound(start), to = bound(end.value_or(x.rank()));
  return vectorTensor(from < to ? x.shape().slice(from, to - from) : Ints());
}

Result transpose(const Tensor &x, std::optional<Ints> permutation) {
  Shape order;
  for (int64_t axis = x.rank() - 1; axis >= 0; --axis)
    order.push_back(axis);
  if (permutation)
    order.assign(permutation->begin(), permutation->end());
  Shape sorted(order);
  llvm::sort(sorted);
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (static_cast<int64_t>(sorted.size()) != x.rank() || sorted[axis] != axis)
      return fail("expected a permutation of " + Twine(x.rank()) + " axes, but got " + textOf(order));
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Shape own = stridesOf(in.shape()), shape, strides;
    for (int64_t axis : order) {
      shape.push_back(in.shape()[axis]);
      strides.push_back(own[axis]);
    }
    return stridedCopy(in, shape, strides, 0);
  });
}

Result expand(const Tensor &x, Ints shape) {
  Expected<Shape> out = broadcastShape({x.shape(), shape});
  if (!out)
    return out.takeError();
  if (Ints(*out) == x.shape())
    return x;
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Shape own = stridesOf(in.shape()), strides(out->size(), 0);
    size_t lead = out->size() - own.size();
    for (size_t axis = 0; axis < own.size(); ++axis)
      strides[lead + axis] = in.shape()[axis] == 1 ? 0 : own[axis];
    return stridedCopy(in, *out, strides, 0);
  });
}

Result tile(const Tensor &x, Ints repeats) {
  if (static_cast<int64_t>(repeats.size()) != x.rank())
    return fail("expected " + Twine(x.rank()) + " repeats, but got " + Twine(repeats.size()));
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Shape own = stridesOf(in.shape()), split, strides, out;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      split.append({repeats[axis], in.shape()[axis]});
      strides.append({0, own[axis]});
      out.push_back(repeats[axis] * in.shape()[axis]);
    }
    return stridedCopy(in, split, strides, 0).withShape(out);
  });
}

Result concat(Operands operands, int64_t axis) {
  const Tensor &first = *operands.front();
  Expected<int64_t> normal = normalAxis(axis, first.rank());
  if (!normal)
    return normal.takeError();
  Shape shape(first.shape());
  shape[*normal] = 0;
  for (Operand operand : operands) {
    if (operand->kind() != first.kind() || operand->rank() != first.rank())
      return fail("expected operands of one type, but got " + nameOf(operand->kind()) + textOf(operand->shape()) +
                  " and " + nameOf(first.kind()) + textOf(first.shape()));
    for (int64_t other = 0; other < first.rank(); ++other)
      if (other != *normal && operand->shape()[other] != first.shape()[other])
        return fail("expected shapes that agree beside axis " + Twine(*normal) + ", but got " + textOf(first.shape()) +
                    " and " + textOf(operand->shape()));
    shape[*normal] += operand->shape()[*normal];
  }
  if (bitWidth(first.kind()) < 8)
    return fail("not implemented: Concat of elements of type " + nameOf(first.kind()));
  Tensor out = Tensor::zeros(first.kind(), shape);
  size_t width = bitWidth(first.kind()) / 8;
  int64_t outer = countOf(Ints(shape).take_front(*normal)), inner = countOf(Ints(shape).drop_front(*normal + 1));
  char *to = out.writableBytes();
  for (int64_t o = 0; o < outer; ++o)
    for (Operand operand : operands) {
      size_t bytes = static_cast<size_t>(operand->shape()[*normal] * inner) * width;
      if (bytes)
        std::memcpy(to, operand->bytes() + static_cast<size_t>(o) * bytes, bytes);
      to += bytes;
    }
  return out;
}

Result slice(const Tensor &x, Ints starts, Ints ends, std::optional<Ints> axes, std::optional<Ints> steps) {
  Shape shape(x.shape()), strides = stridesOf(x.shape());
  int64_t offset = 0;
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()) ||
      (steps && steps->size() != starts.size()))
    return fail("expected starts, ends, axes and steps of one length");
  for (size_t i = 0; i < starts.size(); ++i) {
    Expected<int64_t> axis = normalAxis(axes ? (*axes)[i] : static_cast<int64_t>(i), x.rank());
    if (!axis)
      return axis.takeError();
    int64_t extent = x.shape()[*axis], step = steps ? (*steps)[i] : 1;
    if (step == 0)
      return fail("expected a step that is not 0");
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    auto bound = [&](int64_t value) { return std::clamp(value < 0 ? value + extent : value, low, high); };
    int64_t from = bound(starts[i]), to = bound(ends[i]);
    int64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    shape[*axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
    offset += shape[*axis] ? from * strides[*axis] : 0;
    // One element needs no stride; a huge step would overflow it.
    strides[*axis] = shape[*axis] > 1 ? strides[*axis] * step : 0;
  }
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    // A stride of an axis of extent 1 is free: contiguous rows are recognised by stride 1.
    if (!shape.empty() && shape.back() == 1)
      strides.back() = 1;
    return stridedCopy(in, shape, strides, countOf(shape) ? offset : 0);
  });
}

Results split(const Tensor &x, int64_t axis, std::optional<Ints> sizes, unsigned outputs) {
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  int64_t extent = x.shape()[*normal];
  Shape parts;
  if (sizes) {
    parts.assign(sizes->begin(), sizes->end());
  } else {
    int64_t each = (extent + outputs - 1) / outputs;
    for (int64_t rest = extent, i = 0; i < static_cast<int64_t>(outputs); ++i, rest -= parts.back())
      parts.push_back(std::min(each, rest));
  }
  if (parts.size() != outputs || std::accumulate(parts.begin(), parts.end(), int64_t(0)) != extent)
    return fail("expected " + Twine(outputs) + " parts of " + Twine(extent) + " elements, but got " + textOf(parts));
  Tensors results;
  int64_t from = 0;
  for (int64_t part : parts) {
    Result piece = slice(x, {from}, {from + part}, Ints({*normal}), std::nullopt);
    if (!piece)
      return piece.takeError();
    results.push_back(*piece);
    from += part;
  }
  return results;
}

/// Where element `at` of a padded axis comes from, or -1 for the constant.
static int64_t padSource(int64_t at, int64_t extent, PadMode mode) {
  if (at >= 0 && at < extent)
    return at;
  switch (mode) {
  case PadMode::Constant:
    return -1;
  case PadMode::Edge:
    return at < 0 ? 0 : extent - 1;
  case PadMode::Wrap:
    return (at % extent + extent) % extent;
  case PadMode::Reflect:
    break;
  }
  if (extent == 1)
    return 0;
  int64_t period = 2 * (extent - 1), in = (at % period + period) % period;
  return in < extent ? in : period - in;
}

Result pad(const Tensor &x, Ints pads, Operand value, std::optional<Ints> axes, PadMode mode) {
  Shape begin(x.rank(), 0), shape(x.shape());
  SmallVector<int64_t, 6> which;
  for (int64_t axis = 0; axis < x.rank() && !axes; ++axis)
    which.push_back(axis);
  if (axes)
    which.assign(axes->begin(), axes->end());
  if (pads.size() != 2 * which.size())
    return fail("expected " + Twine(2 * which.size()) + " pads, but got " + Twine(pads.size()));
  for (size_t i = 0; i < which.size(); ++i) {
    Expected<int64_t> axis = normalAxis(which[i], x.rank());
    if (!axis)
      return axis.takeError();
    begin[*axis] = pads[i];
    shape[*axis] += pads[i] + pads[i + which.size()];
    if (shape[*axis] < 0)
      return fail("expected pads that leave elements, but got " + textOf(pads));
  }
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    size_t width = bitWidth(in.kind()) / 8;
    char fill[8] = {};
    if (value)
      std::memcpy(fill, value->bytes(), std::min<size_t>(width, value->byteCount()));
    Tensor out = Tensor::zeros(in.kind(), shape);
    Shape strides = stridesOf(in.shape()), index(shape.size(), 0);
    for (int64_t at = 0; at < out.count(); ++at) {
      int64_t from = 0;
      for (size_t axis = 0; axis < shape.size() && from >= 0; ++axis) {
        int64_t source = padSource(index[axis] - begin[axis], in.shape()[axis], mode);
        from = source < 0 ? -1 : from + source * strides[axis];
      }
      std::memcpy(out.writableBytes() + at * width, from < 0 ? fill : in.bytes() + from * width, width);
      for (size_t axis = shape.size(); axis-- > 0;) {
        if (++index[axis] < shape[axis])
          break;
        index[axis] = 0;
      }
    }
    return out;
  });
}

Result constantOfShape(Ints shape, const Tensor &value) {
  for (int64_t extent : shape)
    if (extent < 0)
      return fail("expected extents that are not negative, but got " + textOf(shape));
  return expand(value.withShape({}), shape);
}

template <typename T>
static Result rangeOf(ElementKind kind, T start, T limit, T delta) {
  int64_t count;
  if constexpr (std::is_floating_point_v<T>)
    count = static_cast<int64_t>(
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
  else
    count = delta > 0 ? (limit - start + delta - 1) / delta : (limit - start + delta + 1) / delta;
  std::vector<T> out(static_cast<size_t>(std::max<int64_t>(count, 0)));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<T>(start + static_cast<T>(i) * delta);
  int64_t extent = static_cast<int64_t>(out.size());
  return storeAs(kind, {extent}, std::move(out));
}

Result range(const Tensor &start, const Tensor &limit, const Tensor &delta) {
  if (start.kind() != limit.kind() || start.kind() != delta.kind())
    return fail("expected operands of one element type");
  if (scalarOf(delta) == 0)
    return fail("expected a delta that is not 0");
  auto run = [&](auto type) -> Result {
    using T = decltype(type);
    return rangeOf<T>(start.kind(), Numbers<T>(start)[0], Numbers<T>(limit)[0], Numbers<T>(delta)[0]);
  };
  switch (computeClass(start.kind())) {
  case ComputeClass::Float:
    return run(float{});
  case ComputeClass::Double:
    return run(double{});
  default:
    return run(int64_t{});
  }
}

Result trilu(const Tensor &x, int64_t k, bool upper) {
  if (x.rank() < 2)
    return fail("expected a matrix, but got shape " + textOf(x.shape()));
  if (bitWidth(x.kind()) < 8)
    return fail("not implemented: Trilu of elements of type " + nameOf(x.kind()));
  int64_t columns = x.extent(-1), rows = x.extent(-2);
  size_t width = bitWidth(x.kind()) / 8;
  Tensor out = Tensor::zeros(x.kind(), x.shape());
  for (int64_t at = 0, count = x.count() / std::max<int64_t>(columns, 1); at < count; ++at) {
    int64_t row = at % rows;
    int64_t from = upper ? std::clamp<int64_t>(row + k, 0, columns) : 0;
    int64_t to = upper ? columns : std::clamp<int64_t>(row + k + 1, 0, columns);
    size_t offset = static_cast<size_t>(at * columns + from) * width;
    if (to > from)
      std::memcpy(out.writableBytes() + offset, x.bytes() + offset, static_cast<size_t>(to - from) * width);
  }
  return out;
}

Result eyeLike(const Tensor &x, std::optional<ElementKind> kind, int64_t k) {
  if (x.rank() != 2)
    return fail("expected a matrix, but got shape " + textOf(x.shape()));
  std::vector<double> out(static_cast<size_t>(x.count()));
  for (int64_t row = 0; row < x.shape()[0]; ++row)
    if (row + k >= 0 && row + k < x.shape()[1])
      out[row * x.shape()[1] + row + k] = 1;
  return storeAs(kind.value_or(x.kind()), x.shape(), std::move(out));
}

static Result rearrange(const Tensor &x, Ints split, Ints order, Ints shape) {
  Result moved = transpose(x.withShape(split), order);
  return moved ? Result(moved->withShape(shape)) : std::move(moved);
}

Result depthToSpace(const Tensor &x, int64_t block, bool columnRowDepth) {
  if (x.rank() != 4 || block < 1 || x.shape()[1] % (block * block))
    return fail("expected [N,C,H,W] with C a multiple of " + Twine(block * block) + ", but got " + textOf(x.shape()));
  int64_t n = x.shape()[0], c = x.shape()[1] / (block * block), h = x.shape()[2], w = x.shape()[3];
  Shape out({n, c, h * block, w * block});
  if (columnRowDepth)
    return rearrange(x, {n, c, block, block, h, w}, {0, 1, 4, 2, 5, 3}, out);
  return rearrange(x, {n, block, block, c, h, w}, {0, 3, 4, 1, 5, 2}, out);
}

Result spaceToDepth(const Tensor &x, int64_t block, bool columnRowDepth) {
  if (x.rank() != 4 || block < 1 || x.shape()[2] % block || x.shape()[3] % block)
    return fail("expected [N,C,H,W] with H and W multiples of " + Twine(block) + ", but got " + textOf(x.shape()));
  int64_t n = x.shape()[0], c = x.shape()[1], h = x.shape()[2] / block, w = x.shape()[3] / block;
  Shape out({n, c * block * block, h, w});
  if (columnRowDepth)
    return rearrange(x, {n, c, h, block, w, block}, {0, 1, 3, 5, 2, 4}, out);
  return rearrange(x, {n, c, h, block, w, block}, {0, 3, 5, 1, 2, 4}, out);
}

Result reverseSequence(const Tensor &x, Ints lengths, int64_t batchAxis, int64_t timeAxis) {
  if (x.rank() < 2 || batchAxis == timeAxis || batchAxis < 0 || batchAxis > 1 || timeAxis < 0 || timeAxis > 1)
    return fail("expected batch and time axes 0 and 1, but got " + Twine(batchAxis) + " and " + Twine(timeAxis));
  if (static_cast<int64_t>(lengths.size()) != x.shape()[batchAxis])
    return fail("expected " + Twine(x.shape()[batchAxis]) + " lengths, but got " + Twine(lengths.size()));
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Tensor out = Tensor::zeros(in.kind(), in.shape());
    size_t row = static_cast<size_t>(countOf(in.shape().drop_front(2))) * bitWidth(in.kind()) / 8;
    int64_t strideB = batchAxis == 0 ? in.shape()[1] : 1, strideT = timeAxis == 0 ? in.shape()[1] : 1;
    for (int64_t b = 0; b < in.shape()[batchAxis]; ++b)
      for (int64_t t = 0; t < in.shape()[timeAxis]; ++t) {
        int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
        std::memcpy(out.writableBytes() + (b * strideB + t * strideT) * row,
                    in.bytes() + (b * strideB + from * strideT) * row, row);
      }
    return out;
  });
}

} // namespace quire::eval
