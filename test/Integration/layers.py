# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles decoders of 2, 8 and 32 equal layers, and compares the size of their code and what a step costs beside its arithmetic.

    layers.py TOOLS WORK
"""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCABULARY, POSITIONS = 64, 4, 2, 16, 128, 256, 256


def write_model(path, layers):
    random = np.random.default_rng(layers)
    nodes, weights = [], []

    def weight(name, *shape):
        weights.append(numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name))
        return name

    def node(op, inputs, outputs, **attributes):
        nodes.append(helper.make_node(op, inputs, outputs, name=f"/{outputs[0]}", **attributes))
        return outputs[0]

    def tensor(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [tensor("input_ids", TensorProto.INT64, ["B", "L"]), tensor("a", TensorProto.INT32, ["B"]), tensor("b", TensorProto.INT32, [])]
    outputs = [tensor("logits", TensorProto.FLOAT, ["B", "L", VOCABULARY])]
    for name in ("cos", "sin"):
        weight(name, POSITIONS, HEAD // 2)
    x = node("Gather", [weight("embedding", VOCABULARY, HIDDEN), "input_ids"], ["x"])
    for i in range(layers):
        def norm(of, name):
            return node("SimplifiedLayerNormalization", [of, weight(f"{name}.weight", HIDDEN)], [name], axis=-1, epsilon=1e-5, stash_type=1)

        def linear(of, name, n_in, n_out):
            return node("MatMul", [of, weight(f"{name}.weight", n_in, n_out)], [name])

        n = norm(x, f"n{i}")
        q, k, v = (linear(n, f"{t}{i}", HIDDEN, h * HEAD) for t, h in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)))
        past = [f"past_key_values.{i}.{t}" for t in ("key", "value")]
        present = [f"present.{i}.{t}" for t in ("key", "value")]
        inputs += [tensor(name, TensorProto.FLOAT, ["B", KV_HEADS, "P", HEAD]) for name in past]
        outputs += [tensor(name, TensorProto.FLOAT, ["B", KV_HEADS, "T", HEAD]) for name in present]
        a = node("GroupQueryAttention", [q, k, v, *past, "a", "b", "cos", "sin"], [f"a{i}", *present], domain="com.microsoft",
                 num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1)
        x = node("Add", [x, linear(a, f"o{i}", HEADS * HEAD, HIDDEN)], [f"r{i}"])
        m = norm(x, f"m{i}")
        gate = linear(m, f"gate{i}", HIDDEN, FFN)
        act = node("Mul", [gate, node("Sigmoid", [gate], [f"s{i}"])], [f"act{i}"])
        up = node("Mul", [act, linear(m, f"up{i}", HIDDEN, FFN)], [f"u{i}"])
        x = node("Add", [x, linear(up, f"down{i}", FFN, HIDDEN)], [f"y{i}"])
    node("MatMul", [x, weight("head.weight", HIDDEN, VOCABULARY)], ["logits"])
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def target_functions(tools, model):
    """Lines of the functions before code generation."""
    text = subprocess.run([tools / "quirec", model, "--compile-to=target"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return len(text.splitlines()), len(re.findall(r"llvm\.call @layers\(", text))


def step_microseconds(tools, model):
    """The least time of a step of one token, where weights and caches are so small that little but the fixed cost is left."""
    command = [tools / "quire-bench", model, "--decode=1x4", "--steps=300", "--threads=1", "--json"]
    return 1e3 * json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["cells"][0]["least_ms"]


def main():
    tools, work = map(pathlib.Path, sys.argv[1:3])
    size, lines = {}, {}
    for layers in (2, 8, 32):
        model = work / f"{layers}.onnx"
        write_model(model, layers)
        verify = ["--verify"] if layers < 32 else []  # layers that share code compute what the graph says
        subprocess.run([tools / "quirec", model, "-o", work / f"{layers}.quire", "--quiet", *verify], check=True)
        size[layers] = (work / f"{layers}.quire" / "model.so").stat().st_size
        lines[layers], calls = target_functions(tools, model)
        print(f"{layers} layers: {size[layers]} bytes of code, {lines[layers]} lines of IR before code generation, {calls} calls of the shared layer")
        cost, allowed = step_microseconds(tools, work / f"{layers}.quire"), 100 + 5 * layers
        print(f"{layers} layers: {cost:.0f} us a step, allowed {allowed}")
        if cost > allowed:
            sys.exit(f"a step of {layers} layers costs {cost:.0f} us, allowed {allowed}")
        if layers > 2 and calls < layers - 2:
            sys.exit(f"expected {layers - 2} to {layers} calls of one function, but got {calls}")
    # A call with its arguments is all that a further layer adds.
    for what, of in (("bytes of code", size), ("lines of IR", lines)):
        if of[32] > 1.5 * of[2]:
            sys.exit(f"{what}: {of[2]} for 2 layers, but {of[32]} for 32")


if __name__ == "__main__":
    main()
