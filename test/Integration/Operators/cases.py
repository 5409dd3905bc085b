# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators, how a step uses them, and what they give: references in float64, rounded once."""
import math

import numpy as np

from step_text import Step

ROWS = 12
random = np.random.default_rng(42)


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def unary(name, reference, low=-6, high=6, attributes="", columns=37, dtype=np.float32):
    """An element-wise operator of one operand."""
    def build():
        x = random.uniform(low, high, (ROWS, columns)).astype(dtype)
        step = Step()
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        value = step.op(name, [step.rows(x, [1, "?", columns])], "tensor<1x?x%dx%s>" % (columns, element), attributes)
        return step, value, columns, reference(x.astype(np.float64))
    return build


def binary(name, reference, shapes, dtype=np.float32, low=-4, high=4, result=None):
    """Operands [1, ?, ...] of rows and, for a shape without rows, a constant or a weight."""
    def build():
        step, operands, arrays = Step(), [], []
        element = {"float32": "f32", "float16": "f16", "int64": "i64", "bool": "i1"}
        for shape in shapes:
            if "?" in shape:
                array = random.uniform(low, high, (ROWS,) + tuple(n for n in shape if n != "?")).astype(dtype)
                operands.append(step.rows(array, shape))
                arrays.append(array.reshape([ROWS] + [n for n in shape if n != "?"][1:]).astype(np.float64))
            else:
                array = random.uniform(low, high, shape).astype(dtype)
                operands.append(step.constant(array) if array.nbytes <= 256 else step.weight(array))
                arrays.append(array.astype(np.float64))
        expected = reference(*arrays)
        out = result or element[np.dtype(dtype).name]
        type_ = "tensor<1x?%sx%s>" % ("".join("x%d" % n for n in expected.shape[1:]), out)
        return step, step.op(name, operands, type_), int(np.prod(expected.shape[1:])), expected
    return build


def reduction(name, reference, shape, axes, keepdims, dtype=np.float32):
    def build():
        x = random.uniform(-2, 2, (ROWS,) + tuple(shape)).astype(dtype)
        step = Step()
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        expected = reference(x.astype(np.float64), axis=tuple(a - 1 if a > 0 else a for a in axes), keepdims=bool(keepdims))
        operands = [step.rows(x, [1, "?"] + list(shape)), step.constant(np.array(axes, np.int64))]
        type_ = "tensor<1x?%sx%s>" % ("".join("x%d" % n for n in expected.shape[1:]), element)
        return step, step.op(name, operands, type_, "keepdims = %d : i64" % keepdims), int(np.prod(expected.shape[1:])), expected
    return build


def norm_reference(x, scale, bias, epsilon, centred):
    mean = x.mean(-1, keepdims=True) if centred else 0.0
    result = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon) * scale
    return result + (0 if bias is None else bias)


def norm(name, columns, centred, has_bias, results, dtype=np.float32):
    def build():
        x = (random.standard_normal((ROWS, columns)) * 3 + 1).astype(dtype)
        scale, bias = normal(columns).astype(dtype), normal(columns).astype(dtype)
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        step = Step()
        operands = [step.rows(x, [1, "?", columns]), step.weight(scale)]
        if has_bias:
            operands.append(step.weight(bias))
        values = step.op(name, operands, ["tensor<1x?x%dx%s>" % (columns, element)] + ["none"] * (results - 1), "epsilon = 1.0e-5 : f32")
        expected = norm_reference(x.astype(np.float64), scale.astype(np.float64), bias.astype(np.float64) if has_bias else None, 1e-5, centred)
        return step, values if results == 1 else values[0], columns, expected
    return build


def skip_norm(name, columns, centred, dtype=np.float32, use_sum=True):
    """The operator's first and last result, side by side."""
    def build():
        x, skip = normal(ROWS, columns).astype(dtype), normal(ROWS, columns).astype(dtype)
        gamma, beta, bias = (normal(columns).astype(dtype) for _ in range(3))
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        step = Step()
        type_ = "tensor<1x?x%dx%s>" % (columns, element)
        operands = [step.rows(x, [1, "?", columns]), step.rows(skip, [1, "?", columns]), step.weight(gamma)]
        operands += [step.weight(beta)] if centred else []
        operands += [step.weight(bias)]
        values = step.op(name, operands, [type_, "none", "none", type_], "epsilon = 1.0e-5 : f32")
        joined = step.op("Concat", [values[0], values[3]], "tensor<1x?x%dx%s>" % (2 * columns, element), "axis = 2 : i64")
        total = x.astype(np.float64) + skip + bias
        expected = norm_reference(total, gamma.astype(np.float64), beta.astype(np.float64) if centred else None, 1e-5, centred)
        return step, joined, 2 * columns, np.concatenate([expected, total], -1)
    return build


def softmax(shape, axis, dtype=np.float32):
    def build():
        x = random.uniform(-20, 20, (ROWS,) + tuple(shape)).astype(dtype)
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        step = Step()
        type_ = "tensor<1x?%sx%s>" % ("".join("x%d" % n for n in shape), element)
        value = step.op("Softmax", [step.rows(x, [1, "?"] + list(shape))], type_, "axis = %d : i64" % axis)
        wide = x.astype(np.float64)
        power = np.exp(wide - wide.max(axis - 1 if axis > 0 else axis, keepdims=True))
        return step, value, int(np.prod(shape)), power / power.sum(axis - 1 if axis > 0 else axis, keepdims=True)
    return build


def rotate(x, cosine, sine, interleaved, rotated):
    """x [rows, heads, features]; caches [rows, rotated / 2]."""
    first = x[..., 0:rotated:2] if interleaved else x[..., :rotated // 2]
    second = x[..., 1:rotated:2] if interleaved else x[..., rotated // 2:rotated]
    c, s = cosine[:, None, :], sine[:, None, :]
    low, high = first * c - second * s, second * c + first * s
    result = x.copy()
    if interleaved:
        result[..., 0:rotated:2], result[..., 1:rotated:2] = low, high
    else:
        result[..., :rotated // 2], result[..., rotated // 2:rotated] = low, high
    return result


def rotary(microsoft, interleaved, rotated, heads_first, heads=3, features=24, dtype=np.float32):
    def build():
        x = normal(ROWS, heads, features).astype(dtype)
        angle = random.uniform(-3, 3, (40, rotated // 2))
        cosine, sine = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
        where = random.integers(0, 40, (ROWS, 1)).astype(np.int64)
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        step = Step()
        flat = [1, "?", heads * features]
        value = step.rows(x, flat)
        positions = step.rows(where, [1, "?"])
        if heads_first:
            value = step.reshape(value, [1, "?", heads, features], element)
            value = step.op("Transpose", [value], "tensor<1x%dx?x%dx%s>" % (heads, features, element), "perm = array<i64: 0, 2, 1, 3>")
        caches = [step.weight(cosine), step.weight(sine)]
        operands = [value, positions] + caches if microsoft else [value] + caches + [positions]
        attributes = "num_heads = %d : i64, interleaved = %d : i64, rotary_embedding_dim = %d : i64" % (heads, interleaved, rotated if rotated != features else 0)
        value = step.op("ms.RotaryEmbedding" if microsoft else "RotaryEmbedding", operands, value[1], attributes)
        if heads_first:
            value = step.op("Transpose", [value], "tensor<1x?x%dx%dx%s>" % (heads, features, element), "perm = array<i64: 0, 2, 1, 3>")
        expected = rotate(x.astype(np.float64), cosine.astype(np.float64)[where[:, 0]], sine.astype(np.float64)[where[:, 0]], interleaved, rotated)
        return step, value, heads * features, expected
    return build


def product(form, k, n, has_bias=False, dtype=np.float32):
    """A weight in every place and form that packing knows, or that it does not (`plain`)."""
    def build():
        x, w, b = normal(ROWS, k).astype(dtype), normal(k, n, scale=k ** -0.5).astype(dtype), normal(n).astype(dtype)
        element = {"float32": "f32", "float16": "f16"}[np.dtype(dtype).name]
        step = Step()
        rows, type_ = step.rows(x, ["?", k] if form.startswith("gemm") else [1, "?", k]), "tensor<%s?x%dx%s>" % ("" if form.startswith("gemm") else "1x", n, element)
        stored = step.weight(np.ascontiguousarray(w.T) if form in ("transpose", "gemm-t", "fused") else w)
        square = "tensor<%dx%dx%s>" % (k, n, element)
        if form == "transpose":
            stored = step.op("Transpose", [stored], square, "perm = array<i64: 1, 0>")
        if form == "plain":
            stored = step.op("Neg", [stored], square)
        expected = x.astype(np.float64) @ (-w if form == "plain" else w).astype(np.float64)
        if form.startswith("gemm"):
            operands = [rows, stored, step.weight(b) if has_bias else step.none()]
            value = step.op("Gemm", operands, type_, "transB = %d : i64" % (form == "gemm-t"))
        elif form == "fused":
            value = step.op("ms.FusedMatMul", [rows, stored], type_, "transB = 1 : i64, alpha = 5.0e-1 : f32")
            expected = expected * 0.5
        else:
            value = step.op("MatMul", [rows, stored], type_)
            if has_bias:
                value = step.op("Add", [step.weight(b), value], type_)
        return step, value, n, expected + (b.astype(np.float64) if has_bias else 0)
    return build


def activations_product():
    """[1, ?, 3, 5] x [1, ?, 5, 7]: a product of activations."""
    a, b = normal(ROWS, 3, 5), normal(ROWS, 5, 7)
    step = Step()
    value = step.op("MatMul", [step.rows(a, [1, "?", 3, 5]), step.rows(b, [1, "?", 5, 7])], "tensor<1x?x3x7xf32>")
    return step, value, 21, a.astype(np.float64) @ b.astype(np.float64)


def outer_product():
    """[1, 9, 1] x [1, 1, ?], transposed: the angles of rotary embedding as exports compute them."""
    frequency, where = normal(9), normal(ROWS, 1)
    step = Step()
    value = step.op("MatMul", [step.constant(frequency.reshape(1, 9, 1)), step.rows(where, [1, 1, "?"])], "tensor<1x9x?xf32>")
    value = step.op("Transpose", [value], "tensor<1x?x9xf32>", "perm = array<i64: 0, 2, 1>")
    return step, value, 9, (where * frequency).astype(np.float64)


def movement():
    """Split, Slice, Concat, Unsqueeze, Transpose, Expand, Tile, Pad in one: every feature ends somewhere else."""
    x = normal(ROWS, 4, 6)
    step = Step()
    i64 = lambda *v: step.constant(np.array(v, np.int64))
    value = step.rows(x, [1, "?", 4, 6])
    a, b = step.op("Split", [value, i64(2, 4)], ["tensor<1x?x4x2xf32>", "tensor<1x?x4x4xf32>"], "axis = 3 : i64")
    c = step.op("Slice", [b, i64(1), i64(2 ** 62), i64(-1), i64(2)], "tensor<1x?x4x2xf32>")
    d = step.op("Concat", [c, a, c], "tensor<1x?x4x6xf32>", "axis = -1 : i64")
    e = step.op("Transpose", [d], "tensor<1x4x?x6xf32>", "perm = array<i64: 0, 2, 1, 3>")
    f = step.op("Transpose", [e], "tensor<1x?x4x6xf32>", "perm = array<i64: 0, 2, 1, 3>")
    g = step.op("Unsqueeze", [f, i64(3)], "tensor<1x?x4x1x6xf32>")
    h = step.op("Expand", [g, i64(1, 1, 4, 2, 6)], "tensor<1x?x4x2x6xf32>")
    i = step.op("Tile", [h, i64(1, 1, 1, 1, 2)], "tensor<1x?x4x2x12xf32>")
    j = step.op("Pad", [i, i64(0, 0, 0, 0, 1, 0, 0, 0, 0, 2), step.constant(np.float32(7)), step.none()], "tensor<1x?x4x2x15xf32>")
    wide = x.astype(np.float64)
    c = wide[..., 3::2][..., :2]
    d = np.concatenate([c, wide[..., :2], c], -1)
    i = np.tile(np.broadcast_to(d[:, :, None, :], (ROWS, 4, 2, 6)), (1, 1, 1, 2))
    return step, j, 4 * 2 * 15, np.pad(i, ((0, 0), (0, 0), (0, 0), (1, 2)), constant_values=7)


def folded_part():
    """Heads of a fused projection as CodeGen lays them out: a part of each block, then blocks and heads of a block folded into one axis, and their halves swapped."""
    x, w = normal(ROWS, 16), normal(16, 4 * 3 * 16)
    step = Step()
    i64 = lambda *v: step.constant(np.array(v, np.int64))
    fused = step.op("MatMul", [step.rows(x, [1, "?", 16]), step.weight(w)], "tensor<1x?x192xf32>")
    blocks = step.op("Reshape", [fused, i64(1, -1, 4, 48)], "tensor<1x?x4x48xf32>")
    part = step.op("Split", [blocks, i64(16, 16, 16)], ["tensor<1x?x4x16xf32>"] * 3, "axis = 3 : i64")[1]
    part = step.op("Reshape", [part, i64(1, -1, 4, 2, 8)], "tensor<1x?x4x2x8xf32>")
    heads = step.op("Reshape", [part, i64(1, -1, 8, 8)], "tensor<1x?x8x8xf32>")
    low, high = step.op("Split", [heads, i64(4, 4)], ["tensor<1x?x8x4xf32>"] * 2, "axis = 3 : i64")
    value = step.op("Concat", [high, low], "tensor<1x?x8x8xf32>", "axis = 3 : i64")
    exact = (x.astype(np.float64) @ w.astype(np.float64)).reshape(ROWS, 4, 48)[:, :, 16:32].reshape(ROWS, 8, 2, 4)
    return step, value, 64, exact[:, :, ::-1].reshape(ROWS, 64)


def gathers():
    """Gather of columns by a constant list, of one column, and GatherElements by row indices."""
    x = normal(ROWS, 8)
    index = random.integers(-8, 8, (ROWS, 5)).astype(np.int64)
    step = Step()
    value = step.rows(x, [1, "?", 8])
    a = step.op("Gather", [value, step.constant(np.array([3, -1, 0], np.int64))], "tensor<1x?x3xf32>", "axis = 2 : i64")
    b = step.op("Gather", [value, step.constant(np.array(-2, np.int64))], "tensor<1x?xf32>", "axis = 2 : i64")
    b = step.op("Unsqueeze", [b, step.constant(np.array([2], np.int64))], "tensor<1x?x1xf32>")
    c = step.op("GatherElements", [value, step.rows(index, [1, "?", 5])], "tensor<1x?x5xf32>", "axis = 2 : i64")
    joined = step.op("Concat", [a, b, c], "tensor<1x?x9xf32>", "axis = 2 : i64")
    wide = x.astype(np.float64)
    return step, joined, 9, np.concatenate([wide[:, [3, -1, 0]], wide[:, [-2]], np.take_along_axis(wide, index % 8, 1)], 1)


def repeated():
    """GatherND with constant positions that repeats features (an interleaved repetition), and an empty slice in a Concat."""
    x = normal(ROWS, 4, 3)
    step = Step()
    i64 = lambda *v: step.constant(np.array(v, np.int64))
    first = step.op("Transpose", [step.rows(x, [1, "?", 4, 3])], "tensor<4x?x1x3xf32>", "perm = array<i64: 2, 1, 0, 3>")
    pairs = step.op("Reshape", [first, i64(2, 2, -1, 3)], "tensor<2x2x?x3xf32>")
    where = np.array([[i // 4, i // 2 % 2] for i in range(8)], np.int64)
    taken = step.op("GatherND", [pairs, step.constant(where)], "tensor<8x?x3xf32>")
    back = step.op("Transpose", [taken], "tensor<?x8x3xf32>", "perm = array<i64: 1, 0, 2>")
    nothing = step.op("Slice", [back, i64(3), i64(3), i64(2), step.none()], "tensor<?x8x0xf32>")
    value = step.op("Concat", [back, nothing], "tensor<?x8x3xf32>", "axis = 2 : i64")
    return step, value, 24, np.repeat(x, 2, axis=1).astype(np.float64)


def masks():
    """Comparisons, logic, Where and casts between bool, integers and floats."""
    x, y = random.integers(-5, 5, (ROWS, 19)).astype(np.int64), random.integers(-5, 5, (ROWS, 19)).astype(np.int64)
    step = Step()
    shape = "tensor<1x?x19x%s>"
    a, b = step.rows(x, [1, "?", 19]), step.rows(y, [1, "?", 19])
    less = step.op("LessOrEqual", [a, b], shape % "i1")
    even = step.op("Equal", [step.op("Mod", [a, step.constant(np.array(3, np.int64))], shape % "i64"), step.constant(np.array(1, np.int64))], shape % "i1")
    both = step.op("And", [less, step.op("Not", [even], shape % "i1")], shape % "i1")
    floats = step.op("Cast", [a], shape % "f32", "to = f32")
    value = step.op("Where", [both, floats, step.constant(np.float32(-100))], shape % "f32")
    value = step.op("Add", [value, step.op("Cast", [even], shape % "f32", "to = f32")], shape % "f32")
    is_even = x % 3 == 1
    return step, value, 19, np.where((x <= y) & ~is_even, x, -100.0) + is_even


def bf16_chain():
    """bf16 rows times a bf16 weight, rounded, then an activation."""
    round_bits = lambda a: ((a.view(np.uint32) + 0x7FFF + ((a.view(np.uint32) >> 16) & 1)) >> 16).astype(np.uint16)
    widen = lambda bits: (bits.astype(np.uint32) << 16).view(np.float32)
    x, w = round_bits(normal(ROWS, 32)), round_bits(normal(32, 40, scale=0.2))
    step = Step()
    value = step.op("MatMul", [step.rows(x, [1, "?", 32], "bf16"), step.weight(w, "bf16")], "tensor<1x?x40xbf16>")
    value = step.op("Sigmoid", [value], "tensor<1x?x40xbf16>")
    exact = widen(x).astype(np.float64) @ widen(w).astype(np.float64)
    return step, value, 40, 1 / (1 + np.exp(-exact))


erf = np.vectorize(math.erf)
sigmoid = lambda x: 1 / (1 + np.exp(-x))
tanh_gelu = lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
gelu = lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))
softplus = lambda x: np.log1p(np.exp(x))
half = np.float16

# name: (builder, tolerance relative to the largest magnitude of the result)
CASES = {
    "Sigmoid": (unary("Sigmoid", sigmoid, -40, 40), 5e-7),
    "Sigmoid-f16": (unary("Sigmoid", sigmoid, dtype=half), 6e-4),
    "Tanh": (unary("Tanh", np.tanh), 5e-7),
    "Tanh-f16": (unary("Tanh", np.tanh, dtype=half), 6e-4),
    "Erf": (unary("Erf", erf), 1e-6),
    "Exp": (unary("Exp", np.exp, -80, 3), 5e-7),
    "Log": (unary("Log", np.log, 0.001, 9), 5e-7),
    "Sqrt": (unary("Sqrt", np.sqrt, 0, 9), 2e-7),
    "Reciprocal": (unary("Reciprocal", lambda x: 1 / x, 0.5, 9), 2e-7),
    "Neg": (unary("Neg", np.negative), 0),
    "Abs": (unary("Abs", np.abs), 0),
    "Sign": (unary("Sign", np.sign), 0),
    "Floor": (unary("Floor", np.floor), 0),
    "Ceil": (unary("Ceil", np.ceil), 0),
    "Round": (unary("Round", np.round), 0),
    "Sin": (unary("Sin", np.sin, -5000, 5000), 3e-7),
    "Cos": (unary("Cos", np.cos, -5000, 5000), 3e-7),
    "Relu": (unary("Relu", lambda x: np.maximum(x, 0)), 0),
    "LeakyRelu": (unary("LeakyRelu", lambda x: np.where(x < 0, np.float32(0.1) * x, x), attributes="alpha = 1.0e-1 : f32"), 2e-7),
    "Elu": (unary("Elu", lambda x: np.where(x < 0, np.exp(x) - 1, x)), 5e-7),
    "Softplus": (unary("Softplus", softplus, -20, 20), 5e-7),
    "Softsign": (unary("Softsign", lambda x: x / (1 + np.abs(x))), 3e-7),
    "Mish": (unary("Mish", lambda x: x * np.tanh(softplus(x))), 1e-6),
    "HardSwish": (unary("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), 3e-7),
    "HardSigmoid": (unary("HardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)), 3e-7),
    "Swish": (unary("Swish", lambda x: x * sigmoid(x)), 5e-7),
    "Gelu": (unary("Gelu", gelu), 1e-6),
    "Gelu-tanh": (unary("Gelu", tanh_gelu, attributes='approximate = "tanh"'), 1e-6),
    "ms.Gelu": (unary("ms.Gelu", gelu), 1e-6),
    "ms.QuickGelu": (unary("ms.QuickGelu", lambda x: x * sigmoid(1.702 * x), attributes="alpha = 1.702 : f32"), 1e-6),
    "Gelu-f16": (unary("Gelu", gelu, dtype=half), 6e-4),
    "Add": (binary("Add", np.add, [[1, "?", 33], [33]]), 2e-7),
    "Add-f16": (binary("Add", np.add, [[1, "?", 33], [1, "?", 33]], half), 6e-4),
    "Add-rows": (binary("Add", np.add, [[1, "?", 3, 5], [1, "?", 1, 5]]), 2e-7),
    "Sub": (binary("Sub", np.subtract, [[100], [1, "?", 100]]), 2e-7),
    "Mul": (binary("Mul", np.multiply, [[1, "?", 4, 8], [4, 1]]), 2e-7),
    "Mul-f16": (binary("Mul", np.multiply, [[1, "?", 48], [48]], half), 6e-4),
    "Div": (binary("Div", np.divide, [[1, "?", 20], [1, "?", 20]], low=1), 3e-7),
    "Div-i64": (binary("Div", lambda a, b: np.trunc(a / b), [[1, "?", 20], [1, "?", 20]], np.int64, 1, 40), 0),
    "Max": (binary("Max", np.maximum, [[1, "?", 20], [20]]), 0),
    "Min": (binary("Min", np.minimum, [[1, "?", 20], [20]]), 0),
    "Pow": (binary("Pow", np.power, [[1, "?", 20], [20]], low=0.5), 1e-6),
    "Greater": (binary("Greater", lambda a, b: (a > b) * 1.0, [[1, "?", 20], [20]], result="i1"), 0),
    "ms.BiasGelu": (binary("ms.BiasGelu", lambda a, b: gelu(a + b), [[1, "?", 24], [24]]), 1e-6),
    "ms.FastGelu": (binary("ms.FastGelu", lambda a, b: tanh_gelu(a + b), [[1, "?", 24], [24]]), 1e-6),
    "ReduceMean": (reduction("ReduceMean", np.mean, [67], [-1], 1), 5e-7),
    "ReduceMean-f16": (reduction("ReduceMean", np.mean, [67], [-1], 1, half), 6e-4),
    "ReduceSum-middle": (reduction("ReduceSum", np.sum, [5, 18], [2], 0), 5e-7),
    "ReduceMax": (reduction("ReduceMax", np.max, [3, 21], [3], 0), 0),
    "ReduceMin": (reduction("ReduceMin", np.min, [3, 21], [2, 3], 0), 0),
    "ReduceSumSquare": (reduction("ReduceSumSquare", lambda x, **k: (x * x).sum(**k), [40], [2], 1), 5e-7),
    "ReduceL2": (reduction("ReduceL2", lambda x, **k: np.sqrt((x * x).sum(**k)), [40], [2], 1), 5e-7),
    "Softmax": (softmax([50], -1), 5e-7),
    "Softmax-f16": (softmax([50], -1, half), 6e-4),
    "Softmax-middle": (softmax([6, 10], 2), 5e-7),
    "LayerNormalization": (norm("LayerNormalization", 70, True, True, 3), 1e-6),
    "LayerNormalization-f16": (norm("LayerNormalization", 70, True, True, 3, half), 1e-3),
    "RMSNormalization": (norm("RMSNormalization", 64, False, False, 1), 1e-6),
    "SimplifiedLayerNormalization": (norm("SimplifiedLayerNormalization", 96, False, False, 2), 1e-6),
    "SimplifiedLayerNormalization-f16": (norm("SimplifiedLayerNormalization", 96, False, False, 2, half), 1e-3),
    "ms.SkipLayerNormalization": (skip_norm("ms.SkipLayerNormalization", 48, True), 1e-6),
    "ms.SkipSimplifiedLayerNormalization": (skip_norm("ms.SkipSimplifiedLayerNormalization", 48, False), 1e-6),
    "ms.SkipSimplifiedLayerNormalization-f16": (skip_norm("ms.SkipSimplifiedLayerNormalization", 48, False, half), 1e-3),
    "RotaryEmbedding": (rotary(False, 0, 24, False), 3e-7),
    "RotaryEmbedding-heads-first": (rotary(False, 0, 24, True), 3e-7),
    "RotaryEmbedding-interleaved": (rotary(False, 1, 24, False), 3e-7),
    "RotaryEmbedding-partial": (rotary(False, 0, 16, False), 3e-7),
    "RotaryEmbedding-partial-interleaved": (rotary(False, 1, 16, True), 3e-7),
    "ms.RotaryEmbedding": (rotary(True, 0, 24, False), 3e-7),
    "ms.RotaryEmbedding-f16": (rotary(True, 0, 24, False, dtype=half), 1e-3),
    "MatMul": (product("weight", 70, 45), 1e-6),
    "MatMul-bias": (product("weight", 64, 100, True), 1e-6),
    "MatMul-transpose": (product("transpose", 64, 33), 1e-6),
    "MatMul-f16": (product("weight", 64, 48, dtype=half), 1e-3),
    "MatMul-plain": (product("plain", 30, 20), 1e-6),
    "Gemm": (product("gemm", 40, 50, True), 1e-6),
    "Gemm-transB": (product("gemm-t", 40, 50, True), 1e-6),
    "ms.FusedMatMul": (product("fused", 40, 50), 1e-6),
    "MatMul-activations": (activations_product, 1e-6),
    "MatMul-outer": (outer_product, 3e-7),
    "movement": (movement, 0),
    "folded-part": (folded_part, 1e-6),
    "gathers": (gathers, 0),
    "repeated": (repeated, 0),
    "masks": (masks, 0),
    "bf16": (bf16_chain, 8e-3),
}
