# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the small models of the import tests: `models.py FOLDER [NAME ...]`, all of them by default."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

MODELS = {}


def model_maker(function):
    MODELS[function.__name__.replace("_", "-")] = function
    return function


def value(name, shape=None, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, shape)


def wrap(nodes, inputs, outputs, opset=21, initializers=(), functions=(), value_info=(), extra=(), name="g", **fields):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers), value_info=list(value_info))
    sets = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1), *extra]
    return h.make_model(graph, opset_imports=sets, functions=list(functions), ir_version=10, producer_name="tests", **fields)


def unary(op="Relu", shape=(2, 3), opset=21, **attributes):
    return wrap([h.make_node(op, ["x"], ["y"], name="n", **attributes)], [value("x", shape)], [value("y")], opset)


def array(name, *values, dtype=np.int64):
    return nh.from_array(np.array(values[0] if len(values) == 1 else values, dtype), name)


# ---- Constants and initializers -------------------------------------------------------------------------------------


@model_maker
def constant_spellings():
    sparse = h.make_sparse_tensor(h.make_tensor("v", T.FLOAT, [2], [1.0, 2.0]), h.make_tensor("i", T.INT64, [2, 2], [0, 1, 1, 0]), [2, 2])
    values = {
        "tensor": dict(value=array("t", [[1, 2], [3, 4]])),
        "float": dict(value_float=0.5),
        "floats": dict(value_floats=[0.5, 1.5]),
        "int": dict(value_int=-3),
        "ints": dict(value_ints=[1, 2, 3]),
        "string": dict(value_string="é\"/"),
        "strings": dict(value_strings=["a", "b"]),
        "sparse": dict(sparse_value=sparse),
    }
    nodes = [h.make_node("Constant", [], [name], **fields) for name, fields in values.items()]
    return wrap(nodes, [], [value(name, kind=T.UNDEFINED) for name in values])


def typed(name, kind, shape, raw):
    return h.make_tensor(name, kind, shape, raw, raw=True)


@model_maker
def element_types():
    ml = {T.BFLOAT16: b"\x80\x3f\x00\x40", T.FLOAT16: b"\x00\x3c\x00\x40", T.FLOAT8E4M3FN: b"\x38\x40", T.FLOAT8E5M2: b"\x3c\x40",
          T.FLOAT8E4M3FNUZ: b"\x40\x48", T.FLOAT8E5M2FNUZ: b"\x40\x44", T.INT4: b"\xe1", T.UINT4: b"\xe1", T.FLOAT4E2M1: b"\x42",
          T.UINT8: b"\x01\xff", T.INT8: b"\x01\xff", T.BOOL: b"\x01\x00", T.DOUBLE: np.array([1.0, 2.0]).tobytes(),
          T.UINT16: b"\x01\x00\xff\xff", T.INT16: b"\x01\x00\xff\xff", T.UINT32: b"\x01\0\0\0\xff\xff\xff\xff", T.UINT64: b"\x01" + bytes(7) + b"\x02" + bytes(7),
          T.COMPLEX64: np.array([1 + 2j, 3j], np.complex64).tobytes()}
    initializers = [typed(T.DataType.Name(kind), kind, [2], raw) for kind, raw in ml.items()]
    initializers.append(h.make_tensor("STRING", T.STRING, [2], [b"a", b"b"]))
    nodes = [h.make_node("Identity", [t.name], ["o_" + t.name]) for t in initializers]
    return wrap(nodes, [], [value("o_" + t.name, kind=T.UNDEFINED) for t in initializers], initializers=initializers)


@model_maker
def typed_data():
    tensors = [h.make_tensor("f32", T.FLOAT, [2], [1.0, -2.0]), h.make_tensor("f16", T.FLOAT16, [2], np.array([1, 2], np.float16)),
               h.make_tensor("i8", T.INT8, [2], [-1, 5]), h.make_tensor("u32", T.UINT32, [2], [1, 4294967295]),
               h.make_tensor("b", T.BOOL, [3], [1, 0, 1]), h.make_tensor("i4", T.INT4, [3], [1, -2, 7]),
               h.make_tensor("empty", T.FLOAT, [0, 4], [])]
    nodes = [h.make_node("Identity", [t.name], ["o_" + t.name]) for t in tensors]
    return wrap(nodes, [], [value("o_" + t.name, kind=T.UNDEFINED) for t in tensors], initializers=tensors)


@model_maker
def large_initializers():
    raw = nh.from_array(np.arange(1024, dtype=np.float32).reshape(32, 32), "raw")
    floats = h.make_tensor("floats", T.FLOAT, [32, 32], np.arange(1024, dtype=np.float32))
    ints = h.make_tensor("ints", T.INT64, [200], range(200))
    small = nh.from_array(np.ones((16, 16), np.float32), "small")
    constant = h.make_node("Constant", [], ["big"], value=nh.from_array(np.full((32, 32), 2, np.float32), "c"))
    nodes = [constant, h.make_node("Sum", ["raw", "floats", "big"], ["y"]), h.make_node("Identity", ["ints"], ["z"]), h.make_node("Identity", ["small"], ["s"])]
    return wrap(nodes, [], [value("y"), value("z", kind=T.INT64), value("s")], initializers=[raw, floats, ints, small])


@model_maker
def initializer_inputs():
    return wrap([h.make_node("Add", ["x", "w"], ["y"])], [value("x", [2]), value("w", [2])], [value("y")], initializers=[array("w", [1.0, 2.0], dtype=np.float32)])


@model_maker
def unused_initializer():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y")], initializers=[nh.from_array(np.zeros((32, 32), np.float32), "w")])


@model_maker
def sparse_initializer():
    model = wrap([h.make_node("Identity", ["s"], ["y"])], [], [value("y")])
    sparse = h.make_sparse_tensor(h.make_tensor("s", T.FLOAT, [2], [1.0, 2.0]), h.make_tensor("i", T.INT64, [2], [1, 3]), [2, 2])
    model.graph.sparse_initializer.append(sparse)
    return model


# ---- External data --------------------------------------------------------------------------------------------------


def external(location, offset=None, length=None, shape=(32, 16)):
    tensor = T(name="w", data_type=T.FLOAT, dims=shape, data_location=T.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": length}
    for key, text in entries.items():
        if text is not None:
            tensor.external_data.add(key=key, value=str(text))
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[tensor])


@model_maker
def external_data():
    return external("data/weights.bin", 64, 2048)


@model_maker
def external_without_length():
    return external("data/weights.bin")


@model_maker
def external_small():
    return external("data/weights.bin", 4, 16, (4,))


@model_maker
def external_missing():
    return external("nowhere.bin")


@model_maker
def external_outside():
    return external("../outside.bin")


@model_maker
def external_link():
    return external("link.bin")


@model_maker
def external_absolute():
    return external("/etc/passwd")


@model_maker
def external_beyond():
    return external("data/weights.bin", 4096, 2048)


@model_maker
def external_length():
    return external("data/weights.bin", 0, 100)


@model_maker
def external_offset():
    return external("data/weights.bin", "-5", 2048)


@model_maker
def external_folder():
    return external("data")


# ---- Old spellings --------------------------------------------------------------------------------------------------


@model_maker
def upgrade_axes():
    nodes = [h.make_node("Unsqueeze", ["x"], ["u"], axes=[0]), h.make_node("Squeeze", ["u"], ["s"], axes=[0]),
             h.make_node("ReduceSum", ["s"], ["r"], axes=[1], keepdims=0), h.make_node("ReduceMean", ["s"], ["y"], axes=[-1]),
             h.make_node("Squeeze", ["u"], ["z"])]
    return wrap(nodes, [value("x", [2, 3])], [value("r"), value("y"), value("z")], 12)


@model_maker
def upgrade_softmax():
    nodes = [h.make_node("Softmax", ["x"], ["last"], axis=2), h.make_node("Softmax", ["x"], ["y"]), h.make_node("LogSoftmax", ["x"], ["z"], axis=-1)]
    return wrap(nodes, [value("x", [2, "N", 4])], [value("last"), value("y"), value("z")], 11)


@model_maker
def upgrade_split():
    nodes = [h.make_node("Split", ["x"], ["a", "b"], axis=1, split=[1, 2]), h.make_node("Split", ["x"], ["c", "d"], axis=0)]
    return wrap(nodes, [value("x", [2, 3])], [value(n) for n in "abcd"], 11)


@model_maker
def upgrade_dropout():
    return wrap([h.make_node("Dropout", ["x"], ["y"], ratio=0.25)], [value("x", [2, 3], T.FLOAT16)], [value("y", kind=T.FLOAT16)], 11)


@model_maker
def upgrade_softmax_unranked():
    return wrap([h.make_node("Softmax", ["x"], ["y"], name="soft")], [value("x")], [value("y")], 11)


# ---- Structure ------------------------------------------------------------------------------------------------------


@model_maker
def optional_values():
    nodes = [h.make_node("Clip", ["x", "", "m"], ["c"]), h.make_node("LayerNormalization", ["c", "s"], ["y", "", "d"], name="ln")]
    return wrap(nodes, [value("x", ["B", 4])], [value("y"), value("d")], initializers=[array("m", 6.0, dtype=np.float32), array("s", [1.0] * 4, dtype=np.float32)])


@model_maker
def names():
    nodes = [h.make_node("Relu", ['in "put"/é'], ["a b"], name='weird/"näme"\n'), h.make_node("Relu", ["a b"], ["日本"])]
    return wrap(nodes, [value('in "put"/é', ["batch size", "é"])], [value("日本", ["batch size", "é"])])


@model_maker
def order():
    """Nodes out of order, as half-precision converters leave them; the subgraph's capture counts too."""
    branch = h.make_graph([h.make_node("Neg", ["late"], ["t"])], "b", [], [value("t")])
    other = h.make_graph([h.make_node("Abs", ["late"], ["e"])], "b", [], [value("e")])
    nodes = [h.make_node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=other), h.make_node("Relu", ["early"], ["late"], name="second"),
             h.make_node("Cast", ["x"], ["early"], name="first", to=T.FLOAT)]
    return wrap(nodes, [value("x", [2], T.FLOAT16), value("c", [], T.BOOL)], [value("y")])


@model_maker
def branches():
    then = h.make_graph([h.make_node("Add", ["x", "w"], ["t"], name="in_then")], "then", [], [value("t", [2])], [array("w", [1.0, 2.0], dtype=np.float32)])
    other = h.make_graph([h.make_node("If", ["c"], ["e"], name="inner",
                                      then_branch=h.make_graph([h.make_node("Neg", ["x"], ["p"])], "p", [], [value("p")]),
                                      else_branch=h.make_graph([], "q", [], [value("x")]))], "else", [], [value("e")])
    return wrap([h.make_node("If", ["c"], ["y"], name="outer", then_branch=then, else_branch=other)], [value("x", [2]), value("c", [], T.BOOL)], [value("y")])


@model_maker
def loop():
    body = h.make_graph([h.make_node("Add", ["s", "x"], ["s2"]), h.make_node("Identity", ["c"], ["c2"])], "body",
                        [value("i", [], T.INT64), value("c", [], T.BOOL), value("s", [2])], [value("c2", [], T.BOOL), value("s2", [2]), value("s2b", [2])])
    body.node.append(h.make_node("Relu", ["s2"], ["s2b"]))
    return wrap([h.make_node("Loop", ["n", "", "z"], ["last", "all"], name="loop", body=body)], [value("n", [], T.INT64), value("x", [2]), value("z", [2])],
                [value("last"), value("all")])


@model_maker
def scan():
    body = h.make_graph([h.make_node("Add", ["s", "e"], ["s2"]), h.make_node("Neg", ["e"], ["o"])], "body",
                        [h.make_empty_tensor_value_info("s"), h.make_empty_tensor_value_info("e")], [value("s2"), value("o")])
    return wrap([h.make_node("Scan", ["z", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)], [value("z", [3]), value("x", ["T", 3])],
                [value("last"), value("all")])


def with_function(calls, function, **fields):
    return wrap(calls, [value("x", [2, 4])], [value("y")], functions=[function], extra=[h.make_opsetid("local", 1)], **fields)


@model_maker
def function_inlined():
    body = [h.make_node("LeakyRelu", ["a"], ["l"], name="leak"), h.make_node("Mul", ["l", "b"], ["r"], name="mul")]
    body[0].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    function = h.make_function("local", "Scaled", ["a", "b"], ["r"], body, [h.make_opsetid("", 21)], attributes=["slope"])
    calls = [h.make_node("Scaled", ["x", "x"], ["h"], name="call0", domain="local", slope=0.25), h.make_node("Scaled", ["h", "x"], ["y"], name="call1", domain="local")]
    return with_function(calls, function)


@model_maker
def function_optional_input():
    body = [h.make_node("Clip", ["a", "low", "high"], ["r"])]
    function = h.make_function("local", "Limit", ["a", "low", "high"], ["r"], body, [h.make_opsetid("", 21)])
    return with_function([h.make_node("Limit", ["x"], ["y"], name="call", domain="local")], function)


@model_maker
def function_old_opset():
    function = h.make_function("local", "Old", ["a"], ["r"], [h.make_node("Unsqueeze", ["a"], ["r"], axes=[0])], [h.make_opsetid("", 11)])
    return with_function([h.make_node("Old", ["x"], ["y"], name="call", domain="local")], function)


@model_maker
def function_builtin():
    """A vendor operator that the dialect knows is not replaced by its function body."""
    function = h.make_function("com.microsoft", "QuickGelu", ["a"], ["r"], [h.make_node("Relu", ["a"], ["r"])], [h.make_opsetid("", 21)])
    return with_function([h.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")], function)


@model_maker
def function_recursive():
    function = h.make_function("local", "Again", ["a"], ["r"], [h.make_node("Again", ["a"], ["r"], domain="local")], [h.make_opsetid("", 21), h.make_opsetid("local", 1)])
    return with_function([h.make_node("Again", ["x"], ["y"], name="call", domain="local")], function)


@model_maker
def function_inputs():
    function = h.make_function("local", "One", ["a"], ["r"], [h.make_node("Relu", ["a"], ["r"])], [h.make_opsetid("", 21)])
    return with_function([h.make_node("One", ["x", "x"], ["y"], name="call", domain="local")], function)


@model_maker
def custom():
    branch = h.make_graph([h.make_node("Neg", ["x"], ["t"])], "b", [], [value("t")])
    nodes = [h.make_node("Fancy", ["x", ""], ["f", "", "g"], name="fancy", domain="vendor", alpha=1.5, axes=[1, 2], mode="m", names=["a"], body=branch)]
    return wrap(nodes, [value("x", [2])], [value("f", [2]), value("g", kind=T.UNDEFINED)], extra=[h.make_opsetid("vendor", 3)])


@model_maker
def newer_attribute():
    return wrap([h.make_node("Relu", ["x"], ["y"], name="n", shiny=1)], [value("x", [2])], [value("y", [2])])


@model_maker
def sequence_types():
    nodes = [h.make_node("SequenceConstruct", ["x", "x"], ["s"]), h.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    return wrap(nodes, [value("x", [2])], [value("y")])


@model_maker
def value_info():
    """Stated types fill what the importer does not infer, and do not override what it does."""
    nodes = [h.make_node("Fancy", ["x"], ["f"], domain="vendor"), h.make_node("Relu", ["f"], ["y"])]
    return wrap(nodes, [value("x", [2])], [value("y", ["A", "B"])], value_info=[value("f", [3, "B"])], extra=[h.make_opsetid("vendor", 3)])


@model_maker
def result_types():
    c = [array("shape", [0, -1]), array("axes", [1]), array("starts", [1]), array("ends", [2 ** 63 - 1]), array("index", 0), array("pads", [1, 4])]
    nodes = [h.make_node("Reshape", ["x", "shape"], ["reshape"]), h.make_node("Unsqueeze", ["x", "axes"], ["unsqueeze"]),
             h.make_node("Slice", ["x", "starts", "ends", "axes"], ["slice"]), h.make_node("Gather", ["x", "index"], ["gather"], axis=2),
             h.make_node("Concat", ["x", "x"], ["concat"], axis=-1), h.make_node("Transpose", ["x"], ["transpose"], perm=[2, 0, 1]),
             h.make_node("Shape", ["x"], ["shapeof"], start=1), h.make_node("Equal", ["x", "x"], ["equal"]), h.make_node("Split", ["x"], ["s0", "s1"], axis=2, num_outputs=2),
             h.make_node("ReduceSum", ["x", "axes"], ["reduce"], keepdims=0), h.make_node("ArgMax", ["x"], ["arg"], axis=1),
             h.make_node("ConstantOfShape", ["pads"], ["fill"])]
    outputs = [value(o, kind=T.UNDEFINED) for n in nodes for o in n.output]
    return wrap(nodes, [value("x", ["B", 3, 5])], outputs, initializers=c)


# ---- Wrong models ---------------------------------------------------------------------------------------------------


@model_maker
def bad_undefined():
    return wrap([h.make_node("Add", ["x", "ghost"], ["y"], name="add")], [value("x", [2])], [value("y")])


@model_maker
def bad_output():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("ghost")])


@model_maker
def bad_cycle():
    return wrap([h.make_node("Add", ["x", "b"], ["a"], name="one"), h.make_node("Relu", ["a"], ["b"], name="two")], [value("x", [2])], [value("b")])


@model_maker
def bad_duplicate_output():
    return wrap([h.make_node("Relu", ["x"], ["y"], name="one"), h.make_node("Neg", ["x"], ["y"], name="two")], [value("x", [2])], [value("y")])


@model_maker
def bad_duplicate_input():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2]), value("x", [2])], [value("y")])


@model_maker
def bad_duplicate_initializer():
    return wrap([h.make_node("Add", ["x", "w"], ["y"])], [value("x", [2])], [value("y")], initializers=[array("w", [1]), array("w", [2])])


@model_maker
def bad_shadowed_initializer():
    return wrap([h.make_node("Relu", ["x"], ["w"], name="n")], [value("x", [2])], [value("w")], initializers=[array("w", [1])])


@model_maker
def bad_listed_twice():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y"), value("y")])


@model_maker
def bad_untyped_input():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [h.make_empty_tensor_value_info("x")], [value("y")])


@model_maker
def bad_map_input():
    map_type = h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, None))
    return wrap([h.make_node("Relu", ["x"], ["y"])], [h.make_value_info("x", map_type)], [value("y")])


@model_maker
def bad_sparse_input():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [h.make_sparse_tensor_value_info("x", T.FLOAT, [2, 2])], [value("y")])


@model_maker
def bad_opaque_input():
    opaque = onnx.TypeProto()
    opaque.opaque_type.name = "image"
    return wrap([h.make_node("Relu", ["x"], ["y"])], [h.make_value_info("x", opaque)], [value("y")])


@model_maker
def bad_negative_extent():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2, -7])], [value("y")])


@model_maker
def bad_element_type():
    return wrap([h.make_node("Relu", ["x"], ["y"])], [value("x", [2], 99)], [value("y")])


@model_maker
def bad_cast():
    return unary("Cast", to=77)


@model_maker
def bad_attribute_kind():
    return unary("Transpose", perm="x")


@model_maker
def bad_missing_attribute():
    return unary("Cast")


@model_maker
def bad_missing_input():
    return wrap([h.make_node("Add", ["x"], ["y"], name="add")], [value("x", [2])], [value("y")])


@model_maker
def bad_absent_input():
    return wrap([h.make_node("Add", ["", "x"], ["y"], name="add")], [value("x", [2])], [value("y")])


@model_maker
def bad_axis():
    return unary("Softmax", axis=5)


@model_maker
def bad_permutation():
    return unary("Transpose", perm=[0, 0])


@model_maker
def bad_constant():
    return wrap([h.make_node("Constant", [], ["y"], name="c")], [], [value("y")])


@model_maker
def bad_data_size():
    tensor = h.make_tensor("w", T.FLOAT, [4], bytes(16), raw=True)
    tensor.raw_data = bytes(12)
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[tensor])


@model_maker
def bad_typed_size():
    tensor = h.make_tensor("w", T.FLOAT, [4], [1.0] * 4)
    tensor.dims[0] = 5
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[tensor])


@model_maker
def bad_extent():
    tensor = h.make_tensor("w", T.FLOAT, [4], bytes(16), raw=True)
    tensor.dims[0] = -4
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[tensor])


@model_maker
def bad_huge_extents():
    tensor = h.make_tensor("w", T.FLOAT, [4], bytes(16), raw=True)
    tensor.dims[:] = [2 ** 40, 2 ** 40]
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[tensor])


@model_maker
def bad_sparse_index():
    sparse = h.make_sparse_tensor(h.make_tensor("s", T.FLOAT, [1], [1.0]), h.make_tensor("i", T.INT64, [1], [9]), [2, 2])
    return wrap([h.make_node("Constant", [], ["y"], name="c", sparse_value=sparse)], [], [value("y")])


@model_maker
def bad_opset():
    return unary(opset=9)


@model_maker
def bad_future_opset():
    return unary(opset=99)


@model_maker
def bad_no_opset():
    model = unary()
    del model.opset_import[0]
    return model


@model_maker
def bad_operator():
    model = unary()
    model.graph.node[0].op_type = ""
    return model


@model_maker
def bad_graph_attribute():
    return wrap([h.make_node("If", ["c"], ["y"], name="if", then_branch=h.make_graph([], "t", [], [value("x")]))], [value("x", [2]), value("c", [], T.BOOL)], [value("y")])


@model_maker
def bad_branch_results():
    empty = h.make_graph([], "t", [], [])
    return wrap([h.make_node("If", ["c"], ["y"], name="if", then_branch=empty, else_branch=empty)], [value("c", [], T.BOOL)], [value("y")])


@model_maker
def bad_attribute_twice():
    model = unary("Softmax", axis=1)
    model.graph.node[0].attribute.append(h.make_attribute("axis", 0))
    return model


@model_maker
def bad_reference():
    model = unary("LeakyRelu")
    model.graph.node[0].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    return model


def constant_tensor(change, kind=T.FLOAT, raw=bytes(16)):
    """One initializer w of four elements, changed."""
    tensor = T(name="w", data_type=kind, dims=[4], raw_data=raw)
    change(tensor)
    return wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y", kind=T.UNDEFINED)], initializers=[tensor])


def bad(name, make):
    MODELS["bad-" + name] = make


def one_node(node, opset=21, **fields):
    return wrap([node], [value("x", [2, 3])], [value("y")], opset, **fields)


def with_attribute(op, attribute, opset=21):
    node = h.make_node(op, ["x"], ["y"], name="n")
    node.attribute.append(attribute)
    return one_node(node, opset)


def sparse_constant(values, indices, dims):
    return one_node(h.make_node("Constant", [], ["y"], name="c", sparse_value=h.make_sparse_tensor(values, indices, dims)))


def function_model(function, call):
    return with_function([call], function)


def local(name, inputs, outputs, nodes):
    return h.make_function("local", name, inputs, outputs, nodes, [h.make_opsetid("", 21)])


def branch_model(branch):
    return wrap([h.make_node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=branch)], [value("x", [2]), value("c", [], T.BOOL)], [value("y")])


def loop_model(inputs):
    body = h.make_graph([], "body", inputs, [inputs[1], inputs[-1]])
    return wrap([h.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)], [value("n", [], T.INT64), value("x", [2])], [value("y")])


def twice(function):
    model = with_function([h.make_node("Relu", ["x"], ["y"])], function)
    model.functions.append(function)
    return model


A = onnx.AttributeProto
RELU = local("One", ["a"], ["r"], [h.make_node("Relu", ["a"], ["r"])])
bad("segment", lambda: constant_tensor(lambda t: t.segment.CopyFrom(T.Segment(begin=0, end=2))))
bad("no-fit", lambda: constant_tensor(lambda t: t.dims.__setitem__(0, 2 ** 61)))
bad("raw-strings", lambda: constant_tensor(lambda t: None, T.STRING))
bad("few-strings", lambda: wrap([h.make_node("Identity", ["w"], ["y"])], [], [value("y")], initializers=[T(name="w", data_type=T.STRING, dims=[4], string_data=[b"a"])]))
bad("external-strings", lambda: constant_tensor(lambda t: (t.ClearField("raw_data"), setattr(t, "data_location", T.EXTERNAL)), T.STRING))
bad("external-nameless", lambda: constant_tensor(lambda t: (t.ClearField("raw_data"), setattr(t, "data_location", T.EXTERNAL))))
bad("tensor-type", lambda: constant_tensor(lambda t: None, 0))
bad("wrong-field", lambda: constant_tensor(lambda t: (t.ClearField("raw_data"), t.dims.__setitem__(0, 100), t.float_data.extend([1.0] * 100)), T.INT32))
bad("nameless-initializer", lambda: constant_tensor(lambda t: setattr(t, "name", "")))
bad("nameless-input", lambda: wrap([], [value("", [2])], []))
bad("input-is-output", lambda: wrap([h.make_node("Relu", ["x"], ["x"])], [value("x", [2])], [value("x")]))
bad("sparse-many", lambda: sparse_constant(h.make_tensor("v", T.FLOAT, [2], [1.0, 2.0]), h.make_tensor("i", T.INT64, [1], [1]), [2, 2]))
bad("sparse-large", lambda: sparse_constant(h.make_tensor("v", T.FLOAT, [1], [1.0]), h.make_tensor("i", T.INT64, [1], [1]), [2048, 2048]))
bad("sparse-complex", lambda: sparse_constant(h.make_tensor("v", T.COMPLEX64, [1], [1.0j]), h.make_tensor("i", T.INT64, [1], [1]), [2, 2]))
bad("attribute-nameless", lambda: with_attribute("Relu", A(type=A.INT, i=1)))
bad("attribute-graphs", lambda: with_attribute("Relu", A(name="a", type=A.GRAPHS)))
bad("attribute-type", lambda: with_attribute("Relu", A(name="a", type=A.TYPE_PROTO)))
bad("axes-kind", lambda: with_attribute("ReduceSum", A(name="axes", type=A.INT, i=1), 11))
bad("axes-twice", lambda: one_node(h.make_node("ReduceSum", ["x", "x"], ["y"], name="n", axes=[1]), 11))
bad("ratio-kind", lambda: with_attribute("Dropout", A(name="ratio", type=A.INT, i=1), 11))
bad("ratio-twice", lambda: one_node(h.make_node("Dropout", ["x", "x"], ["y"], name="n", ratio=0.5), 11))
bad("softmax-axis-kind", lambda: with_attribute("Softmax", A(name="axis", type=A.FLOAT, f=1), 11))
bad("softmax-axis", lambda: with_attribute("Softmax", A(name="axis", type=A.INT, i=4), 11))
bad("old-group-normalization", lambda: one_node(h.make_node("GroupNormalization", ["x", "x", "x"], ["y"], name="n", num_groups=1), 18))
bad("constant-outputs", lambda: one_node(h.make_node("Constant", [], ["y", "z"], name="n", value_int=1)))
bad("constant-kind", lambda: one_node(h.make_node("Constant", [], ["y"], name="n", value_ints="x")))
bad("stated-type", lambda: wrap([h.make_node("Relu", ["x"], ["y"], name="n")], [value("x", [2])], [value("y", [-9])]))
bad("function-twice", lambda: twice(RELU))
bad("function-outputs", lambda: function_model(RELU, h.make_node("One", ["x"], ["y", "z"], name="call", domain="local")))
bad("function-input-twice", lambda: function_model(local("Two", ["a", "a"], ["r"], [h.make_node("Relu", ["a"], ["r"])]), h.make_node("Two", ["x"], ["y"], name="call", domain="local")))
bad("function-output", lambda: function_model(local("None", ["a"], ["ghost"], []), h.make_node("None", ["x"], ["y"], name="call", domain="local")))
bad("branch-output", lambda: branch_model(h.make_graph([], "b", [], [value("ghost")])))
bad("body-input-twice", lambda: loop_model([value("i", [], T.INT64), value("i", [], T.BOOL), value("s", [2])]))
bad("body-input-type", lambda: loop_model([value("i", [], T.INT64), value("c", [], T.BOOL), value("s", [-9])]))
bad("capture", lambda: branch_model(h.make_graph([h.make_node("Relu", ["ghost"], ["t"], name="inner")], "b", [], [value("t")])))


@model_maker
def good():
    return unary(shape=("batch", 3))


def main():
    folder, *names = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for name in names or MODELS:
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(MODELS[name]().SerializeToString())


if __name__ == "__main__":
    main()
