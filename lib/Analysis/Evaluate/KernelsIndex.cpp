// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that pick and place elements by indices.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;

namespace quire::eval {

static Error indexError(int64_t index, int64_t extent) {
  return fail("expected an index in [-" + Twine(extent) + "," + Twine(extent) + "), but got " + Twine(index));
}

/// False for an index outside [-extent, extent); else it is made non-negative.
static bool normalIndex(int64_t &index, int64_t extent) {
  if (index < -extent || index >= extent)
    return false;
  index += index < 0 ? extent : 0;
  return true;
}

Result gather(const Tensor &x, const Tensor &indices, int64_t axis) {
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  Numbers<int64_t> which(indices);
  int64_t extent = x.shape()[*normal];
  Shape shape(x.shape().take_front(*normal));
  shape.append(indices.shape().begin(), indices.shape().end());
  shape.append(x.shape().begin() + *normal + 1, x.shape().end());
  for (int64_t index : which.all())
    if (!normalIndex(index, extent))
      return indexError(index, extent);
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Tensor out = Tensor::zeros(in.kind(), shape);
    size_t row = static_cast<size_t>(countOf(in.shape().drop_front(*normal + 1))) * bitWidth(in.kind()) / 8;
    int64_t outer = countOf(in.shape().take_front(*normal));
    char *to = out.writableBytes();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t index : which.all()) {
        if (row)
          std::memcpy(to, in.bytes() + static_cast<size_t>(o * extent + (index < 0 ? index + extent : index)) * row,
                      row);
        to += row;
      }
    return out;
  });
}

/// Calls `body(flat, index)` for each multi-index of `shape` in order.
static void forEachIndex(Ints shape, function_ref<void(int64_t flat, Ints index)> body) {
  Shape index(shape.size(), 0);
  for (int64_t flat = 0, count = countOf(shape); flat < count; ++flat) {
    body(flat, index);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

/// For GatherElements and ScatterElements: the flat position in `shape` of each index.
static Expected<std::vector<int64_t>> elementPositions(Ints shape, const Tensor &indices, int64_t axis) {
  Expected<int64_t> normal = normalAxis(axis, static_cast<int64_t>(shape.size()));
  if (!normal)
    return normal.takeError();
  if (indices.rank() != static_cast<int64_t>(shape.size()))
    return fail("expected indices of rank " + Twine(shape.size()) + ", but got shape " + textOf(indices.shape()));
  for (size_t other = 0; other < shape.size(); ++other)
    if (static_cast<int64_t>(other) != *normal && indices.shape()[other] > shape[other])
      return fail("expected indices within " + textOf(shape) + ", but got shape " + textOf(indices.shape()));
  Numbers<int64_t> which(indices);
  Shape strides = stridesOf(shape);
  std::vector<int64_t> positions(which.size());
  std::optional<int64_t> wrong;
  forEachIndex(indices.shape(), [&](int64_t flat, Ints index) {
    int64_t at = 0, pick = which[flat];
    if (!normalIndex(pick, shape[*normal]))
      wrong = pick;
    for (size_t other = 0; other < shape.size(); ++other)
      at += strides[other] * (static_cast<int64_t>(other) == *normal ? pick : index[other]);
    positions[flat] = at;
  });
  if (wrong)
    return indexError(*wrong, shape[*normal]);
  return positions;
}

Result gatherElements(const Tensor &x, const Tensor &indices, int64_t axis) {
  Expected<std::vector<int64_t>> positions = elementPositions(x.shape(), indices, axis);
  if (!positions)
    return positions.takeError();
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Tensor out = Tensor::zeros(in.kind(), indices.shape());
    size_t width = bitWidth(in.kind()) / 8;
    for (size_t i = 0; i < positions->size(); ++i)
      std::memcpy(out.writableBytes() + i * width, in.bytes() + static_cast<size_t>((*positions)[i]) * width, width);
    return out;
  });
}

/// For GatherND and ScatterND: the flat start in `x` of the slice of each index tuple.
static Expected<std::vector<int64_t>> slicePositions(const Tensor &x, const Tensor &indices, int64_t batchDims) {
  if (indices.rank() < 1 || x.rank() < 1)
    return fail("expected data and indices of rank 1 or more");
  int64_t depth = indices.extent(-1);
  if (depth + batchDims > x.rank() || batchDims < 0 || batchDims >= indices.rank() ||
      indices.shape().take_front(batchDims) != x.shape().take_front(batchDims))
    return fail("expected index tuples into " + textOf(x.shape()) + ", but got shape " + textOf(indices.shape()));
  Numbers<int64_t> which(indices);
  Shape strides = stridesOf(x.shape());
  int64_t tuples = countOf(indices.shape().drop_back()), batches = countOf(x.shape().take_front(batchDims));
  int64_t perBatch = batches ? tuples / batches : 0, batchSize = countOf(x.shape().drop_front(batchDims));
  std::vector<int64_t> positions(static_cast<size_t>(tuples));
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t at = tuple / perBatch * batchSize;
    for (int64_t i = 0; i < depth; ++i) {
      int64_t pick = which[tuple * depth + i], extent = x.shape()[batchDims + i];
      if (!normalIndex(pick, extent))
        return indexError(pick, extent);
      at += pick * strides[batchDims + i];
    }
    positions[tuple] = at;
  }
  return positions;
}

Result gatherND(const Tensor &x, const Tensor &indices, int64_t batchDims) {
  Expected<std::vector<int64_t>> positions = slicePositions(x, indices, batchDims);
  if (!positions)
    return positions.takeError();
  Ints rest = x.shape().drop_front(batchDims + indices.extent(-1));
  Shape shape(indices.shape().drop_back());
  shape.append(rest.begin(), rest.end());
  return onWholeBytes(x, [&](const Tensor &in) -> Result {
    Tensor out = Tensor::zeros(in.kind(), shape);
    size_t width = bitWidth(in.kind()) / 8, row = static_cast<size_t>(countOf(rest)) * width;
    for (size_t i = 0; i < positions->size() && row; ++i)
      std::memcpy(out.writableBytes() + i * row, in.bytes() + static_cast<size_t>((*positions)[i]) * width, row);
    return out;
  });
}

template <typename T>
static T combine(Reduction reduction, T old, T update) {
  switch (reduction) {
  case Reduction::None:
    return update;
  case Reduction::Add:
    return old + update;
  case Reduction::Mul:
    return old * update;
  case Reduction::Max:
    return std::max(old, update);
  case Reduction::Min:
    return std::min(old, update);
  }
  llvm_unreachable("every reduction is handled");
}

/// Writes slices of `length` elements of `updates` to `positions` of a copy of `x`, in order.
static Result scatterAt(const Tensor &x, const Tensor &updates, ArrayRef<int64_t> positions, int64_t length,
                        Reduction reduction) {
  if (x.kind() != updates.kind())
    return fail("expected updates of type " + nameOf(x.kind()) + ", but got " + nameOf(updates.kind()));
  if (reduction == Reduction::None && bitWidth(x.kind()) >= 8) {
    Tensor out = Tensor::zeros(x.kind(), x.shape());
    size_t width = bitWidth(x.kind()) / 8;
    if (x.count())
      std::memcpy(out.writableBytes(), x.bytes(), static_cast<size_t>(x.byteCount()));
    for (size_t i = 0; i < positions.size(); ++i)
      std::memcpy(out.writableBytes() + static_cast<size_t>(positions[i]) * width, updates.bytes() + i * length * width,
                  static_cast<size_t>(length) * width);
    return out;
  }
  return dispatchCompute(x.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> old(x), in(updates);
    std::vector<T> out(old.all().begin(), old.all().end());
    for (size_t i = 0; i < positions.size(); ++i)
      for (int64_t j = 0; j < length; ++j)
        out[positions[i] + j] = combine(reduction, out[positions[i] + j], in[static_cast<int64_t>(i) * length + j]);
    return storeAs(x.kind(), x.shape(), std::move(out));
  });
}

Result scatterElements(const Tensor &x, const Tensor &indices, const Tensor &updates, int64_t axis,
                       Reduction reduction) {
  if (indices.shape() != updates.shape())
    return fail("expected updates of shape " + textOf(indices.shape()) + ", but got " + textOf(updates.shape()));
  Expected<std::vector<int64_t>> positions = elementPositions(x.shape(), indices, axis);
  if (!positions)
    return positions.takeError();
  return scatterAt(x, updates, *positions, 1, reduction);
}

Result scatterND(const Tensor &x, const Tensor &indices, const Tensor &updates, Reduction reduction) {
  Expected<std::vector<int64_t>> positions = slicePositions(x, indices, 0);
  if (!positions)
    return positions.takeError();
  int64_t length = countOf(x.shape().drop_front(indices.extent(-1)));
  if (updates.count() != static_cast<int64_t>(positions->size()) * length)
    return fail("expected " + Twine(positions->size() * length) + " updates, but got shape " + textOf(updates.shape()));
  return scatterAt(x, updates, *positions, length, reduction);
}

Result tensorScatter(const Tensor &past, const Tensor &update, Operand writeIndices, int64_t axis, bool circular) {
  Expected<int64_t> normal = normalAxis(axis, past.rank());
  if (!normal)
    return normal.takeError();
  Shape expected(past.shape());
  if (*normal < 1 || update.rank() != past.rank())
    return fail("expected an axis after the batch and operands of one rank");
  expected[*normal] = update.shape()[*normal];
  if (Ints(expected) != update.shape() || expected[*normal] > past.shape()[*normal])
    return fail("expected an update within " + textOf(past.shape()) + ", but got " + textOf(update.shape()));
  std::vector<int64_t> starts(static_cast<size_t>(past.shape()[0]), 0);
  if (writeIndices) {
    if (writeIndices->count() != past.shape()[0])
      return fail("expected " + Twine(past.shape()[0]) + " write indices, but got " + textOf(writeIndices->shape()));
    llvm::copy(integersOf(*writeIndices), starts.begin());
  }
  int64_t capacity = past.shape()[*normal], length = update.shape()[*normal];
  int64_t inner = countOf(past.shape().drop_front(*normal + 1)), outer = countOf(past.shape().take_front(*normal));
  std::vector<int64_t> positions;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t t = 0; t < length; ++t) {
      int64_t at = starts[o / (outer / past.shape()[0])] + t;
      at = circular ? ((at % capacity) + capacity) % capacity : at;
      if (at < 0 || at >= capacity)
        return fail("expected write positions below " + Twine(capacity) + ", but got " + Twine(at));
      positions.push_back((o * capacity + at) * inner);
    }
  return scatterAt(past, update, positions, inner, Reduction::None);
}

Result oneHot(const Tensor &indices, int64_t depth, const Tensor &values, int64_t axis) {
  Expected<int64_t> normal = normalAxis(axis, indices.rank() + 1);
  if (!normal)
    return normal.takeError();
  if (values.count() != 2 || depth < 0)
    return fail("expected a depth and two values");
  Numbers<double> which(indices);
  Shape shape(indices.shape());
  shape.insert(shape.begin() + *normal, depth);
  int64_t inner = countOf(indices.shape().drop_front(*normal));
  std::vector<int64_t> pick(static_cast<size_t>(countOf(shape)), 0);
  for (size_t i = 0; i < which.size(); ++i) {
    auto index = static_cast<int64_t>(which[static_cast<int64_t>(i)]);
    if (normalIndex(index, depth))
      pick[(static_cast<int64_t>(i) / inner * depth + index) * inner + static_cast<int64_t>(i) % inner] = 1;
  }
  return gather(values, Tensor::adopt(ElementKind::I64, shape, std::move(pick)), 0);
}

Result nonZero(const Tensor &x) {
  std::vector<Shape> found;
  dispatchCompute(x.kind(), [&](auto type) {
    Numbers<decltype(type)> in(x);
    forEachIndex(x.shape(), [&](int64_t flat, Ints index) {
      if (in[flat] != decltype(type){})
        found.emplace_back(index);
    });
  });
  int64_t count = static_cast<int64_t>(found.size());
  std::vector<int64_t> out(static_cast<size_t>(x.rank() * count));
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    for (int64_t i = 0; i < count; ++i)
      out[axis * count + i] = found[i][axis];
  return Tensor::adopt(ElementKind::I64, {x.rank(), count}, std::move(out));
}

Result compress(const Tensor &x, const Tensor &condition, std::optional<int64_t> axis) {
  Tensor in = axis ? x : x.withShape({x.count()});
  std::vector<int64_t> kept;
  Numbers<uint64_t> flags(condition);
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[static_cast<int64_t>(i)])
      kept.push_back(static_cast<int64_t>(i));
  return gather(in, vectorTensor(kept), axis.value_or(0));
}

} // namespace quire::eval
