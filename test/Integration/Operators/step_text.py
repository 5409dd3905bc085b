# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a step in paged form around a few operators: rows of input tables in, one row of results for each token out."""
import numpy as np

ELEMENT = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "i1"}


class Step:
    """Values are (name, type) pairs. `rows` values come from a table by token id, `weight` values are whole initializers."""

    def __init__(self):
        self.symbols, self.lines, self.arrays, self.count = [], [], {}, 0

    def fresh(self):
        self.count += 1
        return "%%v%d" % self.count

    def weight(self, array, element=None):
        """An initializer; bf16 is given as its 16 bits."""
        element = element or ELEMENT[str(array.dtype)]
        name = "w%d" % len(self.arrays)
        type_ = "tensor<%sx%s>" % ("x".join(map(str, array.shape)), element)
        self.arrays[name] = array
        self.symbols.append('onnx.initializer @%s {file = "test.data", offset = 0 : i64, bytes = %d : i64} : %s' % (name, array.nbytes, type_))
        value = self.fresh()
        self.lines.append("%s = onnx.weight @%s : %s" % (value, name, type_))
        return value, type_

    def constant(self, array):
        array = np.asarray(array)
        element = ELEMENT[str(array.dtype)]
        text = lambda x: str(bool(x)).lower() if element == "i1" else (repr(float(x)) if element[0] == "f" else str(int(x)))
        body = lambda a: text(a) if a.ndim == 0 else "[" + ", ".join(body(x) for x in a) + "]"
        shape = "".join("%dx" % n for n in array.shape)
        value, type_ = self.fresh(), "tensor<%s%s>" % (shape, element)
        self.lines.append("%s = onnx.constant dense<%s> : %s" % (value, body(array) if array.size else "", type_))
        return value, type_

    def none(self):
        value = self.fresh()
        self.lines.append("%s = onnx.none : none" % value)
        return value, "none"

    def op(self, name, operands, types, attributes=""):
        """One operator; returns its results."""
        types = [types] if isinstance(types, str) else types
        results = [self.fresh() for _ in types]
        self.lines.append("%s = onnx.%s %s%s : (%s) -> (%s)" % (", ".join(results), name, ", ".join(v for v, _ in operands),
                                                               " {%s}" % attributes if attributes else "", ", ".join(t for _, t in operands), ", ".join(types)))
        values = list(zip(results, types))
        return values[0] if len(values) == 1 else values

    def rows(self, array, shape, element=None):
        """The table's row for each token, in a shape with one `?` for the tokens."""
        element = element or ELEMENT[str(array.dtype)]
        table = self.weight(array.reshape(array.shape[0], -1), element)
        flat = self.op("Gather", [table, ("%ids", "tensor<1x?xi64>")], "tensor<1x?x%dx%s>" % (array[0].size, element))
        return self.reshape(flat, shape, element)

    def reshape(self, value, shape, element):
        type_ = "tensor<%sx%s>" % ("x".join(map(str, shape)), element)
        if type_ == value[1]:
            return value
        return self.op("Reshape", [value, self.constant(np.array([-1 if n == "?" else n for n in shape], np.int64))], type_)

    def text(self, value, columns):
        """The module; `value` is [1, ?, ...] with `columns` features, f32 or what casts to it."""
        element = value[1][:-1].split("x")[-1]
        value = self.reshape(value, [1, "?", columns], element)
        if element != "f32":
            value = self.op("Cast", [value], "tensor<1x?x%dxf32>" % columns, "to = f32")
        type_ = value[1]
        body = "\n    ".join(self.lines)
        return """module {
  %s
  kv.entry @step {token_limit = 64 : i64}
  func.func @step(%%ids: tensor<1x?xi64>, %%batch: !kv.batch) -> %s {
    %s
    %%selected = kv.select %s, %%batch : %s
    return %%selected : %s
  }
}
""" % ("\n  ".join(self.symbols), type_, body, value[0], type_, type_)
