// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise operators, comparisons, logic, selection and casts.
#include "FloatFormats.h"
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <type_traits>

using namespace llvm;

namespace quire::eval {

//===--- Unary ----------------------------------------------------------------------------------------------------===//

template <typename T>
static Tensor mapTo(ElementKind kind, const Tensor &x, function_ref<T(T)> function) {
  Numbers<T> in(x);
  std::vector<T> out(in.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = function(in[i]);
  return storeAs(kind, x.shape(), std::move(out));
}

template <typename T>
static T softplusOf(T v) {
  return v > T(0) ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
}
template <typename T>
static T sigmoidOf(T v) {
  if (v >= T(0))
    return T(1) / (T(1) + std::exp(-v));
  T e = std::exp(v);
  return e / (T(1) + e);
}
template <typename T>
static T geluTanhOf(T v) {
  return T(0.5) * v * (T(1) + std::tanh(T(0.7978845608028654) * (v + T(0.044715) * v * v * v)));
}
template <typename T>
static T geluErfOf(T v) {
  return T(0.5) * v * (T(1) + std::erf(v * T(0.7071067811865476)));
}

/// The elementary functions.
template <typename T>
static std::optional<Tensor> elementaryFloat(UnaryKind kind, const Tensor &x) {
  auto map = [&](function_ref<T(T)> function) { return mapTo<T>(x.kind(), x, function); };
  const T zero(0), one(1);
  switch (kind) {
  case UnaryKind::Abs:
    return map([](T v) { return std::fabs(v); });
  case UnaryKind::Neg:
    return map([](T v) { return -v; });
  case UnaryKind::Sign:
    return map([=](T v) { return v > zero ? one : v < zero ? -one : v; });
  case UnaryKind::Ceil:
    return map([](T v) { return std::ceil(v); });
  case UnaryKind::Floor:
    return map([](T v) { return std::floor(v); });
  case UnaryKind::Round:
    return map([](T v) { return std::nearbyint(v); });
  case UnaryKind::Sqrt:
    return map([](T v) { return std::sqrt(v); });
  case UnaryKind::Reciprocal:
    return map([=](T v) { return one / v; });
  case UnaryKind::Exp:
    return map([](T v) { return std::exp(v); });
  case UnaryKind::Log:
    return map([](T v) { return std::log(v); });
  case UnaryKind::Sin:
    return map([](T v) { return std::sin(v); });
  case UnaryKind::Cos:
    return map([](T v) { return std::cos(v); });
  case UnaryKind::Tan:
    return map([](T v) { return std::tan(v); });
  case UnaryKind::Asin:
    return map([](T v) { return std::asin(v); });
  case UnaryKind::Acos:
    return map([](T v) { return std::acos(v); });
  case UnaryKind::Atan:
    return map([](T v) { return std::atan(v); });
  case UnaryKind::Sinh:
    return map([](T v) { return std::sinh(v); });
  case UnaryKind::Cosh:
    return map([](T v) { return std::cosh(v); });
  case UnaryKind::Tanh:
    return map([](T v) { return std::tanh(v); });
  case UnaryKind::Asinh:
    return map([](T v) { return std::asinh(v); });
  case UnaryKind::Acosh:
    return map([](T v) { return std::acosh(v); });
  case UnaryKind::Atanh:
    return map([](T v) { return std::atanh(v); });
  case UnaryKind::Erf:
    return map([](T v) { return std::erf(v); });
  default:
    return std::nullopt;
  }
}

/// The activations, some with parameters.
template <typename T>
static Tensor activationFloat(UnaryKind kind, const Tensor &x, T alpha, T beta) {
  auto map = [&](function_ref<T(T)> function) { return mapTo<T>(x.kind(), x, function); };
  const T zero(0), one(1);
  switch (kind) {
  case UnaryKind::Sigmoid:
    return map(sigmoidOf<T>);
  case UnaryKind::Relu:
    return map([=](T v) { return v < zero ? zero : v; });
  case UnaryKind::Softplus:
    return map(softplusOf<T>);
  case UnaryKind::Softsign:
    return map([=](T v) { return v / (one + std::fabs(v)); });
  case UnaryKind::HardSwish:
    return map([=](T v) { return v * std::fmax(zero, std::fmin(one, v / T(6) + T(0.5))); });
  case UnaryKind::Mish:
    return map([=](T v) { return v * std::tanh(softplusOf(v)); });
  case UnaryKind::GeluErf:
    return map(geluErfOf<T>);
  case UnaryKind::GeluTanh:
    return map(geluTanhOf<T>);
  case UnaryKind::LeakyRelu:
    return map([=](T v) { return v < zero ? alpha * v : v; });
  case UnaryKind::Elu:
    return map([=](T v) { return v < zero ? alpha * std::expm1(v) : v; });
  case UnaryKind::Celu:
    return map([=](T v) { return std::fmax(zero, v) + std::fmin(zero, alpha * std::expm1(v / alpha)); });
  case UnaryKind::Selu:
    return map([=](T v) { return v <= zero ? beta * alpha * std::expm1(v) : beta * v; });
  case UnaryKind::HardSigmoid:
    return map([=](T v) { return std::fmax(zero, std::fmin(one, alpha * v + beta)); });
  case UnaryKind::ThresholdedRelu:
    return map([=](T v) { return v > alpha ? v : zero; });
  case UnaryKind::Shrink:
    return map([=](T v) { return v < -alpha ? v + beta : v > alpha ? v - beta : zero; });
  case UnaryKind::Swish:
    return map([=](T v) { return v * sigmoidOf(alpha * v); });
  default:
    llvm_unreachable("every other kind is elementary");
  }
}

template <typename T>
static Result unaryInteger(UnaryKind kind, const Tensor &x, double alpha, double beta) {
  auto map = [&](function_ref<T(T)> function) -> Result { return mapTo<T>(x.kind(), x, function); };
  switch (kind) {
  case UnaryKind::Abs:
    return map([](T v) { return v < T(0) ? T(0) - v : v; });
  case UnaryKind::Neg:
    return map([](T v) { return static_cast<T>(uint64_t(0) - static_cast<uint64_t>(v)); });
  case UnaryKind::Sign:
    return map([](T v) { return v > T(0) ? T(1) : v == T(0) ? T(0) : static_cast<T>(-1); });
  case UnaryKind::Relu:
    return map([](T v) { return v < T(0) ? T(0) : v; });
  case UnaryKind::Shrink: {
    Result shrunk = unary(kind, mapTo<double>(ElementKind::F64, x, [](double v) { return v; }), alpha, beta);
    return shrunk ? castTo(*shrunk, x.kind()) : std::move(shrunk);
  }
  default:
    return fail("not implemented: this operator on elements of type " + nameOf(x.kind()));
  }
}

Result unary(UnaryKind kind, const Tensor &x, double alpha, double beta) {
  return dispatchCompute(x.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    if constexpr (std::is_floating_point_v<T>) {
      if (std::optional<Tensor> elementary = elementaryFloat<T>(kind, x))
        return *elementary;
      return activationFloat<T>(kind, x, static_cast<T>(alpha), static_cast<T>(beta));
    } else {
      return unaryInteger<T>(kind, x, alpha, beta);
    }
  });
}

static Result floatTest(const Tensor &x, function_ref<bool(double)> test) {
  if (!isFloat(x.kind()))
    return fail("expected floating-point elements, but got " + nameOf(x.kind()));
  return mapTo<double>(ElementKind::Bool, x, [&](double v) { return test(v) ? 1.0 : 0.0; });
}

Result isNaN(const Tensor &x) {
  return floatTest(x, [](double v) { return std::isnan(v); });
}
Result isInf(const Tensor &x, bool positive, bool negative) {
  return floatTest(x, [=](double v) { return std::isinf(v) && (v > 0 ? positive : negative); });
}
Result logicalNot(const Tensor &x) {
  return mapTo<uint64_t>(ElementKind::Bool, x, [](uint64_t v) { return static_cast<uint64_t>(v == 0); });
}
Result bitwiseNot(const Tensor &x) {
  return mapTo<uint64_t>(x.kind(), x, [](uint64_t v) { return ~v; });
}

//===--- Binary ---------------------------------------------------------------------------------------------------===//

template <typename T, typename F>
static Tensor zip(ElementKind outKind, Ints shape, const Tensor &a, const Tensor &b, F function) {
  Numbers<T> left(a), right(b);
  std::vector<T> out(static_cast<size_t>(countOf(shape)));
  BroadcastLoop loop(shape, {a.shape(), b.shape()});
  int64_t stepA = loop.step(0), stepB = loop.step(1);
  loop.run([&](int64_t at, const int64_t *offsets, int64_t n) {
    const T *l = left.data() + offsets[0], *r = right.data() + offsets[1];
    T *o = out.data() + at;
    if (stepA == 1 && stepB == 1) {
      for (int64_t i = 0; i < n; ++i)
        o[i] = function(l[i], r[i]);
    } else if (stepA == 1 && stepB == 0) {
      T value = r[0];
      for (int64_t i = 0; i < n; ++i)
        o[i] = function(l[i], value);
    } else {
      for (int64_t i = 0; i < n; ++i)
        o[i] = function(l[i * stepA], r[i * stepB]);
    }
  });
  return storeAs(outKind, shape, std::move(out));
}

template <typename T>
static T integerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0)
      return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1, factor *= factor)
    if (e & 1)
      result *= factor;
  return static_cast<T>(result);
}

/// The remainder with the sign of the divisor (ONNX Mod with fmod = 0).
template <typename T>
static T floorMod(T l, T r) {
  if constexpr (std::is_floating_point_v<T>) {
    T m = std::fmod(l, r);
    return m != T(0) && (m < T(0)) != (r < T(0)) ? m + r : m;
  } else {
    T m = static_cast<T>(l % r);
    if constexpr (std::is_signed_v<T>)
      if (m != 0 && (m < 0) != (r < 0))
        m += r;
    return m;
  }
}

/// The four operators that models spend time in, with the loop specialised; nothing for the others.
template <typename T>
static std::optional<Tensor> plainArithmetic(BinaryKind kind, Ints shape, const Tensor &a, const Tensor &b) {
  // Integers wrap: they are added as unsigned.
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  auto u = [](T v) { return static_cast<U>(v); };
  switch (kind) {
  case BinaryKind::Add:
    return zip<T>(a.kind(), shape, a, b, [=](T l, T r) { return static_cast<T>(u(l) + u(r)); });
  case BinaryKind::Sub:
    return zip<T>(a.kind(), shape, a, b, [=](T l, T r) { return static_cast<T>(u(l) - u(r)); });
  case BinaryKind::Mul:
    return zip<T>(a.kind(), shape, a, b, [=](T l, T r) { return static_cast<T>(u(l) * u(r)); });
  default:
    return std::nullopt;
  }
}

template <typename T>
using Zipped = function_ref<Result(function_ref<T(T, T)>)>;

template <typename T>
static Result arithmetic(BinaryKind kind, const Tensor &a, Zipped<T> zipped) {
  auto u = [](T v) { return static_cast<uint64_t>(v); };
  switch (kind) {
  case BinaryKind::Div:
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      return zipped([=](T l, T r) { return r == -1 ? static_cast<T>(0 - u(l)) : static_cast<T>(l / r); });
    else
      return zipped([](T l, T r) { return static_cast<T>(l / r); });
  case BinaryKind::Mod:
    return zipped([](T l, T r) {
      if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
        if (r == -1)
          return T(0);
      return floorMod(l, r);
    });
  case BinaryKind::FMod:
    if constexpr (std::is_floating_point_v<T>)
      return zipped([](T l, T r) { return std::fmod(l, r); });
    else if constexpr (std::is_signed_v<T>)
      return zipped([](T l, T r) { return r == -1 ? T(0) : static_cast<T>(l % r); });
    else
      return zipped([](T l, T r) { return static_cast<T>(l % r); });
  case BinaryKind::Max:
    if constexpr (std::is_floating_point_v<T>)
      return zipped([](T l, T r) { return std::isnan(l) ? l : std::isnan(r) ? r : std::max(l, r); });
    else
      return zipped([](T l, T r) { return std::max(l, r); });
  case BinaryKind::Min:
    if constexpr (std::is_floating_point_v<T>)
      return zipped([](T l, T r) { return std::isnan(l) ? l : std::isnan(r) ? r : std::min(l, r); });
    else
      return zipped([](T l, T r) { return std::min(l, r); });
  case BinaryKind::PRelu:
    return zipped([](T l, T r) { return l < T(0) ? static_cast<T>(l * r) : l; });
  default:
    break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (kind) {
    case BinaryKind::BitAnd:
      return zipped([](T l, T r) { return static_cast<T>(l & r); });
    case BinaryKind::BitOr:
      return zipped([](T l, T r) { return static_cast<T>(l | r); });
    case BinaryKind::BitXor:
      return zipped([](T l, T r) { return static_cast<T>(l ^ r); });
    case BinaryKind::ShiftLeft:
      return zipped([=](T l, T r) { return u(r) >= 64 ? T(0) : static_cast<T>(u(l) << u(r)); });
    case BinaryKind::ShiftRight:
      return zipped(
          [=](T l, T r) { return u(r) >= 64 ? (l < T(0) ? static_cast<T>(-1) : T(0)) : static_cast<T>(l >> r); });
    default:
      break;
    }
  }
  return fail("not implemented: this operator on elements of type " + nameOf(a.kind()));
}

template <typename T>
static Result comparison(BinaryKind kind, Zipped<T> zipped) {
  auto truth = [](bool value) { return static_cast<T>(value ? 1 : 0); };
  switch (kind) {
  case BinaryKind::Equal:
    return zipped([=](T l, T r) { return truth(l == r); });
  case BinaryKind::Less:
    return zipped([=](T l, T r) { return truth(l < r); });
  case BinaryKind::LessOrEqual:
    return zipped([=](T l, T r) { return truth(l <= r); });
  case BinaryKind::Greater:
    return zipped([=](T l, T r) { return truth(l > r); });
  case BinaryKind::GreaterOrEqual:
    return zipped([=](T l, T r) { return truth(l >= r); });
  case BinaryKind::And:
    return zipped([=](T l, T r) { return truth(l != T(0) && r != T(0)); });
  case BinaryKind::Or:
    return zipped([=](T l, T r) { return truth(l != T(0) || r != T(0)); });
  default:
    return zipped([=](T l, T r) { return truth((l != T(0)) != (r != T(0))); });
  }
}

/// The type of the exponent is its own; the result has the type of the base.
static Result power(const Tensor &a, const Tensor &b, Ints shape) {
  if (!isFloat(a.kind()) && !isFloat(b.kind()))
    return zip<int64_t>(a.kind(), shape, a, b, integerPower<int64_t>);
  if (a.kind() == ElementKind::F64 || !isFloat(a.kind()) || b.kind() == ElementKind::F64)
    return zip<double>(a.kind(), shape, a, b, [](double l, double r) { return std::pow(l, r); });
  if (b.count() == 1 && scalarOf(b) == 2.0)
    return zip<float>(a.kind(), shape, a, b, [](float l, float) { return l * l; });
  if (b.count() == 1 && scalarOf(b) == 3.0)
    return zip<float>(a.kind(), shape, a, b, [](float l, float) { return l * l * l; });
  return zip<float>(a.kind(), shape, a, b, [](float l, float r) { return std::pow(l, r); });
}

Result binary(BinaryKind kind, const Tensor &a, const Tensor &b) {
  Expected<Shape> shape = broadcastShape({a.shape(), b.shape()});
  if (!shape)
    return shape.takeError();
  if (kind == BinaryKind::Pow)
    return power(a, b, *shape);
  if (a.kind() != b.kind())
    return fail("expected operands of one element type, but got " + nameOf(a.kind()) + " and " + nameOf(b.kind()));
  bool toBool = kind >= BinaryKind::Equal;
  bool divides = kind == BinaryKind::Div || kind == BinaryKind::Mod || kind == BinaryKind::FMod;
  return dispatchCompute(a.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>)
      if (divides && is_contained(Numbers<T>(b).all(), T(0)))
        return fail("integer division by zero");
    if (std::optional<Tensor> plain = plainArithmetic<T>(kind, *shape, a, b))
      return *plain;
    auto zipped = [&](function_ref<T(T, T)> function) -> Result {
      return zip<T>(toBool ? ElementKind::Bool : a.kind(), *shape, a, b, function);
    };
    return toBool ? comparison<T>(kind, zipped) : arithmetic<T>(kind, a, zipped);
  });
}

Result fold(BinaryKind kind, Operands operands) {
  Tensor total = *operands.front();
  for (Operand operand : operands.drop_front()) {
    Result next = binary(kind, total, *operand);
    if (!next)
      return next;
    total = *next;
  }
  return total;
}

Result mean(Operands operands) {
  Result sum = fold(BinaryKind::Add, operands);
  if (!sum)
    return sum;
  return binary(BinaryKind::Div, *sum, scalarTensor(sum->kind(), static_cast<double>(operands.size())));
}

//===--- Selection ------------------------------------------------------------------------------------------------===//

template <typename T>
static void select(const Tensor &condition, const Tensor &a, const Tensor &b, Tensor &out) {
  BroadcastLoop loop(out.shape(), {condition.shape(), a.shape(), b.shape()});
  const auto *c = condition.bytes();
  const auto *l = reinterpret_cast<const T *>(a.bytes()), *r = reinterpret_cast<const T *>(b.bytes());
  auto *o = reinterpret_cast<T *>(out.writableBytes());
  int64_t stepC = loop.step(0), stepA = loop.step(1), stepB = loop.step(2);
  loop.run([&](int64_t at, const int64_t *offsets, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      o[at + i] = c[offsets[0] + i * stepC] ? l[offsets[1] + i * stepA] : r[offsets[2] + i * stepB];
  });
}

Result where(const Tensor &condition, const Tensor &a, const Tensor &b) {
  if (condition.kind() != ElementKind::Bool)
    return fail("expected a condition of type i1, but got " + nameOf(condition.kind()));
  if (a.kind() != b.kind())
    return fail("expected operands of one element type, but got " + nameOf(a.kind()) + " and " + nameOf(b.kind()));
  Expected<Shape> shape = broadcastShape({condition.shape(), a.shape(), b.shape()});
  if (!shape)
    return shape.takeError();
  Tensor out = Tensor::zeros(a.kind(), *shape);
  switch (bitWidth(a.kind())) {
  case 8:
    select<uint8_t>(condition, a, b, out);
    return out;
  case 16:
    select<uint16_t>(condition, a, b, out);
    return out;
  case 32:
    select<uint32_t>(condition, a, b, out);
    return out;
  case 64:
    select<uint64_t>(condition, a, b, out);
    return out;
  default:
    return fail("not implemented: Where on elements of type " + nameOf(a.kind()));
  }
}

Result clip(const Tensor &x, Operand low, Operand high) {
  Tensor current = x;
  if (low) {
    Result bounded = binary(BinaryKind::Max, current, low->withShape({}));
    if (!bounded)
      return bounded;
    current = *bounded;
  }
  return high ? binary(BinaryKind::Min, current, high->withShape({})) : Result(current);
}

Result castTo(const Tensor &x, ElementKind to, bool saturate) {
  if (x.kind() == to)
    return x;
  return dispatchCompute(x.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> in(x);
    return storeAs(to, x.shape(), std::vector<T>(in.all().begin(), in.all().end()), saturate);
  });
}

Result bitCast(const Tensor &x, ElementKind to) {
  auto stored = [](ElementKind kind) { return kind == ElementKind::Bool ? 8u : bitWidth(kind); };
  if (stored(x.kind()) != stored(to))
    return fail("expected a type of the width of " + nameOf(x.kind()) + ", but got " + nameOf(to));
  return x.withKind(to);
}

Result swiGlu(const Tensor &gate, const Tensor &value, double alpha) {
  Result activated = unary(UnaryKind::Swish, gate, alpha);
  return activated ? binary(BinaryKind::Mul, *activated, value) : std::move(activated);
}

} // namespace quire::eval
