# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLaMA decoders with random weights, written as ONNX files in the forms that exporters write.

One weights.bin for a shape, and two graphs that refer to it:

concat.onnx  as optimum exports: past and present by Concat, an additive mask from attention_mask, rotary from position_ids,
             KV heads repeated by Expand.
gqa.onnx     as the model builder of onnxruntime-genai writes: packed QKV, com.microsoft.GroupQueryAttention with do_rotary,
             SkipSimplifiedLayerNormalization.

Both give the logits of the last position only, with the embedding as the output projection. The packed QKV weights of `gqa` are
the q, k and v weights of `concat` side by side.
"""
import dataclasses
import json

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FORMS = ("concat", "gqa")
SEED = 1
ALIGNMENT = 4096
REVISION = 1  # of what this file writes; files of another revision are written again
END = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    vocabulary: int
    positions: int = 8192
    theta: float = 100000.0
    epsilon: float = 1e-5


SHAPES = {
    "tiny": Shape(hidden=64, layers=2, heads=4, kv_heads=2, head=16, ffn=128, vocabulary=256),
    "demo": Shape(hidden=576, layers=30, heads=9, kv_heads=3, head=64, ffn=1536, vocabulary=49152),  # SmolLM2-135M
    "S": Shape(hidden=960, layers=32, heads=15, kv_heads=5, head=64, ffn=2560, vocabulary=49152),
}


def random_weights(shape):
    """Yields (name, array), one layer at a time; matrices are [in, out]."""
    random = np.random.default_rng(SEED)

    def matrix(rows, columns):
        return random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(rows))

    def scale():
        return 1 + np.float32(0.1) * random.standard_normal(shape.hidden, dtype=np.float32)

    yield "embedding", np.float32(0.5) * random.standard_normal((shape.vocabulary, shape.hidden), dtype=np.float32)
    for layer in range(shape.layers):
        at = f"layers.{layer}."
        yield at + "attention_norm", scale()
        q = matrix(shape.hidden, shape.heads * shape.head)
        k, v = (matrix(shape.hidden, shape.kv_heads * shape.head) for _ in "kv")
        yield at + "q", q
        yield at + "k", k
        yield at + "v", v
        yield at + "qkv", np.concatenate([q, k, v], axis=1)
        yield at + "o", matrix(shape.heads * shape.head, shape.hidden)
        yield at + "ffn_norm", scale()
        yield at + "gate", matrix(shape.hidden, shape.ffn)
        yield at + "up", matrix(shape.hidden, shape.ffn)
        yield at + "down", matrix(shape.ffn, shape.hidden)
    yield "norm", scale()


def write_weights(shape, path):
    """Returns {name: (dimensions, offset, bytes)}."""
    places, offset = {}, 0
    with open(path, "wb") as file:
        for name, array in random_weights(shape):
            offset += -offset % ALIGNMENT
            file.seek(offset)
            file.write(array.data)
            places[name] = (array.shape, offset, array.nbytes)
            offset += array.nbytes
    return places


class Graph:
    """Collects nodes, constants, and the weights that are used."""

    def __init__(self, places):
        self.places = places
        self.nodes, self.constants, self.weights = [], {}, {}

    def node(self, op, *inputs, outputs=None, domain="", **attributes):
        name = f"/{len(self.nodes)}/{op}"
        outputs = outputs or [name + "_output_0"]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def constant(self, value, dtype=np.int64):
        array = np.asarray(value, dtype=dtype)
        key = (array.tobytes(), array.shape, array.dtype.str)
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"constant_{len(self.constants)}")
        return self.constants[key].name

    def number(self, value):
        return self.constant(value, np.float32)

    def weight(self, name):
        if name not in self.weights:
            dimensions, offset, size = self.places[name]
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dimensions, data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "weights.bin"), ("offset", offset), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            self.weights[name] = tensor
        return name

    def linear(self, x, name):
        return self.node("MatMul", x, self.weight(name))

    def unsqueeze(self, x, *axes):
        return self.node("Unsqueeze", x, self.constant(axes))

    def dims(self, *parts):
        """A shape: numbers, and names of scalars."""
        return self.node("Concat", *(self.constant([p]) if isinstance(p, int) else self.unsqueeze(p, 0) for p in parts), axis=0)

    def size(self, x, axis):
        return self.node("Gather", self.node("Shape", x), self.constant(axis), axis=0)


class Decoder:
    """What both forms share: the order of a layer's products, the feed-forward network, inputs and outputs."""

    def __init__(self, shape, places):
        self.shape, self.graph = shape, Graph(places)

    def feed_forward(self, x, at):
        g = self.graph
        gate = g.linear(x, at + "gate")
        active = g.node("Mul", gate, g.node("Sigmoid", gate))
        return g.linear(g.node("Mul", active, g.linear(x, at + "up")), at + "down")

    def head(self, x):
        g = self.graph
        last = g.node("Slice", x, g.constant([-1]), g.constant([END]), g.constant([1]), g.constant([1]))
        table = g.node("Transpose", g.weight("embedding"), perm=[1, 0])
        g.node("MatMul", last, table, outputs=["logits"])

    def states(self, layer):
        return [f"{when}.{layer}.{what}" for when in ("past_key_values", "present") for what in ("key", "value")]

    def save(self, path):
        shape, g = self.shape, self.graph
        value = helper.make_tensor_value_info
        inputs = [value(name, TensorProto.INT64, ["batch_size", length]) for name, length in self.integer_inputs]
        outputs = [value("logits", TensorProto.FLOAT, ["batch_size", 1, shape.vocabulary])]
        for layer in range(shape.layers):
            *past, key, val = self.states(layer)
            for names, into, length in ((past, inputs, "past_sequence_length"), ((key, val), outputs, self.present_length)):
                into += [value(name, TensorProto.FLOAT, ["batch_size", shape.kv_heads, length, shape.head]) for name in names]
        initializers = [*g.constants.values(), *g.weights.values()]
        graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="quire-benchmarks").SerializeToString())


class ConcatDecoder(Decoder):
    integer_inputs = [("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length"), ("position_ids", "sequence_length")]
    present_length = "total_sequence_length"

    def norm(self, x, name):
        g = self.graph
        mean = g.node("ReduceMean", g.node("Pow", x, g.number(2)), g.constant([-1]), keepdims=1)
        root = g.node("Sqrt", g.node("Add", mean, g.number(self.shape.epsilon)))
        return g.node("Mul", g.weight(name), g.node("Mul", x, g.node("Div", g.number(1), root)))

    def mask(self):
        """[B, 1, S, T], 0 or the least number: causal, and without the padding."""
        g, least = self.graph, float(np.finfo(np.float32).min)
        full = g.node("Expand", g.number([[least]]), g.dims(self.rows, self.total))
        upper = g.node("Trilu", full, g.constant(1), upper=1)
        keys = g.node("Range", g.constant(0), self.total, g.constant(1))
        queries = g.node("Reshape", g.node("Range", self.past, self.total, g.constant(1)), g.constant([-1, 1]))
        later = g.node("Cast", g.node("Greater", keys, queries), to=TensorProto.FLOAT)
        causal = g.node("Expand", g.unsqueeze(g.node("Mul", upper, later), 0, 1), g.dims(self.batch, 1, 1, 1))
        valid = g.node("Cast", g.unsqueeze("attention_mask", 1, 2), to=TensorProto.FLOAT)
        padding = g.node("Equal", g.node("Add", causal, valid), g.number(0))
        return g.node("Where", padding, g.number(least), causal)

    def rotary_tables(self):
        g, shape = self.graph, self.shape
        frequencies = shape.theta ** (-np.arange(0, shape.head, 2, dtype=np.float32) / shape.head)
        rows = g.node("Expand", g.number(frequencies.reshape(1, -1, 1)), g.dims(self.batch, 1, 1))
        positions = g.node("Cast", g.unsqueeze("position_ids", 1), to=TensorProto.FLOAT)
        angles = g.node("Transpose", g.node("MatMul", rows, positions), perm=[0, 2, 1])
        angles = g.node("Concat", angles, angles, axis=-1)
        return [g.unsqueeze(g.node(op, angles), 1) for op in ("Cos", "Sin")]

    def rotate(self, x):
        g, half = self.graph, self.shape.head // 2
        low = g.node("Slice", x, g.constant([0]), g.constant([half]), g.constant([3]), g.constant([1]))
        high = g.node("Slice", x, g.constant([half]), g.constant([END]), g.constant([3]), g.constant([1]))
        turned = g.node("Concat", g.node("Neg", high), low, axis=-1)
        return g.node("Add", g.node("Mul", x, self.cos), g.node("Mul", turned, self.sin))

    def split(self, x, heads):
        g = self.graph
        return g.node("Transpose", g.node("Reshape", x, g.dims(self.batch, self.rows, heads, self.shape.head)), perm=[0, 2, 1, 3])

    def repeat(self, x):
        g, shape = self.graph, self.shape
        wide = g.dims(self.batch, shape.kv_heads, shape.heads // shape.kv_heads, self.total, shape.head)
        return g.node("Reshape", g.node("Expand", g.unsqueeze(x, 2), wide), g.dims(self.batch, shape.heads, self.total, shape.head))

    def attention(self, x, layer, at):
        g, shape = self.graph, self.shape
        past_key, past_value, key, value = self.states(layer)
        q = self.rotate(self.split(g.linear(x, at + "q"), shape.heads))
        k = self.rotate(self.split(g.linear(x, at + "k"), shape.kv_heads))
        v = self.split(g.linear(x, at + "v"), shape.kv_heads)
        keys = self.repeat(g.node("Concat", past_key, k, outputs=[key], axis=-2))
        values = self.repeat(g.node("Concat", past_value, v, outputs=[value], axis=-2))
        root = g.number(shape.head**-0.25)
        turned = g.node("Mul", g.node("Transpose", keys, perm=[0, 1, 3, 2]), root)
        scores = g.node("Add", g.node("MatMul", g.node("Mul", q, root), turned), self.attention_mask)
        rows = g.node("MatMul", g.node("Softmax", scores, axis=-1), values)
        rows = g.node("Reshape", g.node("Transpose", rows, perm=[0, 2, 1, 3]), g.dims(self.batch, self.rows, shape.heads * shape.head))
        return g.linear(rows, at + "o")

    def build(self):
        g = self.graph
        x = g.node("Gather", g.weight("embedding"), "input_ids")
        self.batch, self.rows = g.size("input_ids", 0), g.size("input_ids", 1)
        self.past = g.size("past_key_values.0.key", 2)
        self.total = g.node("Add", self.past, self.rows)
        self.attention_mask = self.mask()
        self.cos, self.sin = self.rotary_tables()
        for layer in range(self.shape.layers):
            at = f"layers.{layer}."
            x = g.node("Add", x, self.attention(self.norm(x, at + "attention_norm"), layer, at))
            x = g.node("Add", x, self.feed_forward(self.norm(x, at + "ffn_norm"), at))
        self.head(self.norm(x, "norm"))


class GqaDecoder(Decoder):
    integer_inputs = [("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length")]
    present_length = "present_sequence_length"  # past and present may be one buffer, longer than what is valid

    def lengths(self):
        g = self.graph
        valid = g.node("ReduceSum", "attention_mask", g.constant([1]), keepdims=0)
        last = g.node("Cast", g.node("Sub", valid, g.constant([1])), to=TensorProto.INT32)
        return last, g.node("Cast", g.size("attention_mask", 1), to=TensorProto.INT32)

    def rotary_tables(self):
        shape = self.shape
        frequencies = shape.theta ** (-np.arange(0, shape.head, 2, dtype=np.float32) / shape.head)
        angles = np.arange(shape.positions, dtype=np.float32)[:, None] * frequencies
        return self.graph.number(np.cos(angles)), self.graph.number(np.sin(angles))

    def add_and_norm(self, x, more, name):
        g, at = self.graph, f"/{len(self.graph.nodes)}/norm_output_"
        normal = g.node("SkipSimplifiedLayerNormalization", x, more, g.weight(name), outputs=[at + "0", "", "", at + "3"],
                        domain="com.microsoft", epsilon=self.shape.epsilon)
        return normal, at + "3"

    def attention(self, x, layer, at):
        g, shape = self.graph, self.shape
        past_key, past_value, key, value = self.states(layer)
        rows = g.node("GroupQueryAttention", g.linear(x, at + "qkv"), "", "", past_key, past_value, *self.sequence_lengths, *self.tables,
                      outputs=[f"/{at}attention_output_0", key, value], domain="com.microsoft", num_heads=shape.heads,
                      kv_num_heads=shape.kv_heads, scale=shape.head**-0.5, local_window_size=-1, do_rotary=1, rotary_interleaved=0)
        return g.linear(rows, at + "o")

    def build(self):
        g, shape = self.graph, self.shape
        self.sequence_lengths, self.tables = self.lengths(), self.rotary_tables()
        x = g.node("Gather", g.weight("embedding"), "input_ids")
        normal = g.node("SimplifiedLayerNormalization", x, g.weight("layers.0.attention_norm"), axis=-1, epsilon=shape.epsilon, stash_type=1)
        for layer in range(shape.layers):
            at = f"layers.{layer}."
            normal, x = self.add_and_norm(x, self.attention(normal, layer, at), at + "ffn_norm")
            following = f"layers.{layer + 1}.attention_norm" if layer + 1 < shape.layers else "norm"
            normal, x = self.add_and_norm(x, self.feed_forward(normal, at), following)
        self.head(normal)


def write_models(name, folder):
    """Writes FORM.onnx for both forms, weights.bin and shape.json into the folder, unless they are there."""
    shape = SHAPES[name]
    facts = dict(dataclasses.asdict(shape), revision=REVISION)
    stamp = folder / "shape.json"
    if stamp.exists() and json.loads(stamp.read_text()) == facts:
        return
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    places = write_weights(shape, folder / "weights.bin")
    for form, kind in (("concat", ConcatDecoder), ("gqa", GqaDecoder)):
        decoder = kind(shape, places)
        decoder.build()
        decoder.save(folder / f"{form}.onnx")
    stamp.write_text(json.dumps(facts, indent=1) + "\n")
