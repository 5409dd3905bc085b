#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the evaluator's com.microsoft operators with ONNX Runtime on random shapes.

    ort_tests.py --tool build/unit/evaluate-cases [--seed 1] [--only SUBSTRING]

Every function that yields cases builds one-operator models; ONNX Runtime's CPU kernels compute what is expected.
"""
import argparse, collections, pathlib, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from node_tests import write_case

F, F16, I64, I32, U8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8
TYPES = {np.dtype(np.float32): F, np.dtype(np.float16): F16, np.dtype(np.int64): I64, np.dtype(np.int32): I32, np.dtype(np.uint8): U8,
         np.dtype(np.bool_): TensorProto.BOOL, np.dtype(np.int8): TensorProto.INT8}
GENERATORS = []


def generator(function):
    GENERATORS.append(function)
    return function


def one_op(op, operands, outputs, domain="com.microsoft", opset=21, constants=(), **attributes):
    """operands: {name: array or None}; outputs: {name: element type or None}. Returns (model, inputs). Names in `constants` become initializers."""
    names = [name if value is not None else "" for name, value in operands.items()]
    node = helper.make_node(op, names, [name if kind else "" for name, kind in outputs.items()], domain=domain, name="node",
                            **{key: value for key, value in attributes.items() if value is not None})
    given = {name: value for name, value in operands.items() if value is not None}
    fed = {name: value for name, value in given.items() if name not in constants}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape) for name, value in fed.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items() if kind],
        [onnx.numpy_helper.from_array(value, name) for name, value in given.items() if name in constants])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), list(fed.values())


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@generator
def group_query_attention(rng):
    for index in range(40):
        kv_heads = int(rng.integers(1, 4))
        heads, size = kv_heads * int(rng.integers(1, 4)), int(rng.choice([16, 32, 48]))
        past, fresh = (0, int(rng.integers(1, 12))) if index % 2 else (int(rng.integers(1, 12)), 1)
        if index % 5 == 4:
            past, fresh = int(rng.integers(1, 8)), int(rng.integers(2, 6))
        total, batch, packed = past + fresh, 1, bool(rng.integers(2))
        capacity = past if rng.integers(2) else total + int(rng.integers(0, 6))
        rotary = int(rng.integers(2))
        q = normal(rng, batch, fresh, (heads + (2 * kv_heads if packed else 0)) * size)
        kv = lambda: None if packed else normal(rng, batch, fresh, kv_heads * size)
        operands = {
            "query": q, "key": kv(), "value": kv(),
            "past_key": normal(rng, batch, kv_heads, capacity, size), "past_value": normal(rng, batch, kv_heads, capacity, size),
            "seqlens_k": np.full([batch], total - 1, np.int32), "total": np.array(total, np.int32),
            "cos": normal(rng, 64, size // 2) if rotary else None, "sin": normal(rng, 64, size // 2) if rotary else None,
            "position_ids": None,
            "attention_bias": normal(rng, 1, heads, fresh, total) if index % 4 == 3 else None,
            "head_sink": normal(rng, heads) if index % 7 == 3 else None,
        }
        if capacity > past:  # rows beyond the past are nobody's
            for name in ("past_key", "past_value"):
                operands[name][:, :, past:] = 0
        attributes = dict(num_heads=heads, kv_num_heads=kv_heads, do_rotary=rotary, rotary_interleaved=int(rng.integers(2)),
                          local_window_size=int(rng.choice([-1, 1, 3, 5])), softcap=float(rng.choice([0.0, 2.0])),
                          scale=float(rng.choice([0.3, 0.0])) or None, smooth_softmax=int(index % 6 == 5))
        yield f"gqa_{index}", one_op("GroupQueryAttention", operands, {"output": F, "present_key": F, "present_value": F}, **attributes)


@generator
def multi_head_attention(rng):
    for index in range(16):
        heads, size, batch = int(rng.integers(1, 4)), 8, int(rng.integers(1, 3))
        past, fresh = int(rng.integers(0, 5)), int(rng.integers(1, 6))
        hidden, total = heads * size, past + fresh
        make = lambda: normal(rng, batch, fresh, hidden)
        operands = {"query": make(), "key": make(), "value": make(), "bias": normal(rng, 3 * hidden) if index % 3 == 0 else None,
                    "key_padding_mask": (rng.random((batch, total)) < 0.7).astype(np.int32) if index % 4 == 1 else None,
                    "attention_bias": normal(rng, 1, heads, fresh, total) if index % 4 == 2 else None,
                    "past_key": normal(rng, batch, heads, past, size) if past else None,
                    "past_value": normal(rng, batch, heads, past, size) if past else None}
        outputs = {"output": F, "present_key": F if past else None, "present_value": F if past else None}
        yield f"mha_{index}", one_op("MultiHeadAttention", operands, outputs, num_heads=heads, unidirectional=int(index % 2),
                                     scale=0.4 if index % 5 == 0 else None)


@generator
def attention(rng):
    for index in range(12):
        heads, size, batch = int(rng.integers(1, 4)), 8, int(rng.integers(1, 3))
        past, fresh, width = int(rng.integers(0, 5)), int(rng.integers(1, 6)), 12
        hidden, total = heads * size, past + fresh
        operands = {"input": normal(rng, batch, fresh, width), "weights": normal(rng, width, 3 * hidden), "bias": normal(rng, 3 * hidden),
                    "mask_index": (rng.random((batch, total)) < 0.7).astype(np.int32) if index % 3 == 1 else None,
                    "past": normal(rng, 2, batch, heads, past, size) if past else None,
                    "attention_bias": normal(rng, batch, heads, fresh, total) if index % 3 == 2 and not past else None}
        yield f"attention_{index}", one_op("Attention", operands, {"output": F, "present": F if past else None}, num_heads=heads,
                                           unidirectional=int(index % 2), constants=("weights", "bias"))


@generator
def rotary_embedding(rng):
    for index in range(10):
        heads, size, batch, sequence = int(rng.integers(1, 4)), 16, int(rng.integers(1, 3)), int(rng.integers(1, 6))
        dim = 8 if index % 3 == 2 else 0
        x = normal(rng, batch, heads, sequence, size) if index % 2 else normal(rng, batch, sequence, heads * size)
        positions = rng.integers(0, 20, (batch, sequence)) if index % 4 < 2 else np.array([3], np.int64)
        operands = {"input": x, "position_ids": positions.astype(np.int64), "cos": normal(rng, 32, (dim or size) // 2),
                    "sin": normal(rng, 32, (dim or size) // 2)}
        yield f"rotary_{index}", one_op("RotaryEmbedding", operands, {"output": F}, interleaved=int(rng.integers(2)),
                                        num_heads=heads if dim else None, rotary_embedding_dim=dim or None)


@generator
def skip_normalization(rng):
    for index in range(12):
        shape, width = [int(rng.integers(1, 3)), int(rng.integers(1, 5))], int(rng.choice([8, 33]))
        simple = index % 2
        operands = {"input": normal(rng, *shape, width), "skip": normal(rng, *shape, width), "gamma": normal(rng, width)}
        if not simple:
            operands["beta"] = normal(rng, width) if index % 4 == 0 else None
        operands["bias"] = normal(rng, width) if index % 3 == 0 else None
        yield f"skip_{index}", one_op("SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization", operands,
                                      {"output": F, "mean": None, "inverse": None, "sum": F}, epsilon=1e-5)


@generator
def embed_normalization(rng):
    for index in range(4):
        ids = rng.integers(0, 10, (2, 3)).astype(np.int32)
        operands = {"ids": ids, "segments": (ids % 2).astype(np.int32) if index % 2 else None, "words": normal(rng, 10, 8),
                    "positions": normal(rng, 5, 8), "segment_table": normal(rng, 2, 8) if index % 2 else None, "gamma": normal(rng, 8),
                    "beta": normal(rng, 8), "mask": np.array([[1, 1, 0], [1, 0, 0]], np.int32) if index > 1 else None}
        yield f"embed_{index}", one_op("EmbedLayerNormalization", operands, {"output": F, "mask_index": I32}, epsilon=1e-5)


@generator
def activations(rng):
    for index, (op, width) in enumerate([("BiasGelu", 6), ("FastGelu", 6), ("FastGelu", 0), ("QuickGelu", 0), ("Gelu", 0)]):
        operands = {"x": normal(rng, 2, 3, 6)}
        if width:
            operands["bias"] = normal(rng, width)
        yield f"activation_{index}_{op}", one_op(op, operands, {"y": F}, alpha=1.5 if op == "QuickGelu" else None)


@generator
def fused_matmul(rng):
    for index in range(8):
        a, b = (3, 4), (4, 5)
        trans_a, trans_b = index & 1, (index >> 1) & 1
        left = normal(rng, 2, *(a[::-1] if trans_a else a))
        right = normal(rng, *((2,) if index & 4 else ()), *(b[::-1] if trans_b else b))
        yield f"fused_matmul_{index}", one_op("FusedMatMul", {"a": left, "b": right}, {"y": F}, transA=trans_a, transB=trans_b, alpha=0.7)
    for index in range(4):
        trans_a = index & 1
        left = normal(rng, *((4, 2, 3) if trans_a else (3, 2, 4)))  # dimension 0 belongs behind the batch
        yield f"fused_matmul_batch_{index}", one_op("FusedMatMul", {"a": left, "b": normal(rng, 2, 4, 5)}, {"y": F}, transA=trans_a,
                                                    transBatchA=1, alpha=1.0)


@generator
def matmul_nbits(rng):
    for index in range(14):
        bits, block = (8 if index % 4 == 3 else 4), int(rng.choice([16, 32, 64]))
        k, n = int(rng.choice([32, 48, 64, 80])), int(rng.choice([8, 17]))
        blocks = -(-k // block)
        zeros = None
        if index % 3 == 1:
            zeros = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        operands = {"a": normal(rng, 2, 3, k), "b": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
                    "scales": normal(rng, n, blocks), "zeros": zeros, "g_idx": None, "bias": normal(rng, n) if index % 5 == 2 else None}
        yield f"matmul_nbits_{index}", one_op("MatMulNBits", operands, {"y": F}, K=k, N=n, bits=bits, block_size=block,
                                              constants=("b", "scales", "zeros", "bias"))


@generator
def gather_block_quantized(rng):
    for index in range(6):
        rows, width, block, bits = 10, 64, int(rng.choice([16, 32])), 4
        operands = {"data": rng.integers(0, 256, (rows, width * bits // 8)).astype(np.uint8), "indices": rng.integers(0, rows, (2, 3)).astype(np.int64),
                    "scales": normal(rng, rows, width // block),
                    "zeros": rng.integers(0, 256, (rows, -(-(width // block) * bits // 8))).astype(np.uint8) if index % 2 else None}
        yield f"gather_block_{index}", one_op("GatherBlockQuantized", operands, {"y": F}, bits=bits, block_size=block, gather_axis=0,
                                              quantize_axis=1, constants=("data", "scales", "zeros"))


@generator
def integer_products(rng):
    for index in range(4):
        a = rng.integers(0, 256, (2, 3, 8)).astype(np.uint8)
        b = rng.integers(-63, 64, (8, 5)).astype(np.int8)  # with full 8 bits, kernels without VNNI saturate
        operands = {"a": a, "b": b, "a_scale": np.array(0.1, np.float32), "b_scale": normal(rng, 5) if index % 2 else np.array(0.2, np.float32),
                    "a_zero": np.array(128, np.uint8), "b_zero": None, "bias": normal(rng, 5) if index > 1 else None}
        yield f"integer_to_float_{index}", one_op("MatMulIntegerToFloat", operands, {"y": F}, constants=("b",))
        operands = {"a": normal(rng, 3, 8), "b": b, "b_scale": np.array([0.1], np.float32), "b_zero": None, "bias": normal(rng, 5) if index > 1 else None}
        yield f"dynamic_quantize_matmul_{index}", one_op("DynamicQuantizeMatMul", operands, {"y": F}, constants=("b",))


@generator
def experts(rng):
    for index in range(10):
        tokens, hidden, inner, count, k = 5, 16, 24, 4, int(rng.integers(1, 4))
        gated = index % 2
        activation = "swiglu" if gated else ["relu", "gelu", "silu", "identity"][index // 2 % 4]
        width = inner * 2 if gated else inner
        operands = {"input": normal(rng, tokens, hidden), "router": normal(rng, tokens, count), "fc1": normal(rng, count, width, hidden),
                    "fc1_bias": normal(rng, count, width) if index % 3 else None, "fc2": normal(rng, count, hidden, inner),
                    "fc2_bias": normal(rng, count, hidden) if index % 3 else None}
        extra = dict(swiglu_fusion=1, swiglu_limit=2.0, activation_alpha=1.702, activation_beta=1.0) if gated else {}
        yield f"moe_{index}", one_op("MoE", operands, {"output": F}, k=k, activation_type=activation,
                                     normalize_routing_weights=int(index % 4 < 2), **extra)


@generator
def quantized_experts(rng):
    for index in range(8):
        tokens, hidden, inner, count, k, bits, block = 5, 32, 32, 4, int(rng.integers(1, 4)), (8 if index % 2 else 4), (16 if index % 4 > 1 else 0)
        pack = 8 // bits
        scale = lambda rows, columns: (rng.random((count, rows, columns // block) if block else (count, rows)) * 0.1).astype(np.float32)
        operands = {"input": normal(rng, tokens, hidden), "router": normal(rng, tokens, count),
                    "fc1": rng.integers(0, 256, (count, 2 * inner, hidden // pack)).astype(np.uint8), "fc1_scales": scale(2 * inner, hidden),
                    "fc1_bias": None, "fc2": rng.integers(0, 256, (count, hidden, inner // pack)).astype(np.uint8),
                    "fc2_scales": scale(hidden, inner), "fc2_bias": None}
        yield f"qmoe_{index}", one_op("QMoE", operands, {"output": F}, k=k, activation_type="swiglu", swiglu_fusion=1,
                                      normalize_routing_weights=int(index % 3 == 0), expert_weight_bits=bits, block_size=block or None,
                                      activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)


@generator
def recurrent(rng):
    for index in range(8):
        rule = ["linear", "gated", "delta", "gated_delta"][index % 4]
        heads, key_size, value_size, batch, tokens = 2, 8, 8, 1, int(rng.integers(1, 5))
        operands = {"query": normal(rng, batch, tokens, heads * key_size), "key": normal(rng, batch, tokens, heads * key_size) * np.float32(0.3),
                    "value": normal(rng, batch, tokens, heads * value_size),
                    "past_state": normal(rng, batch, heads, key_size, value_size) if index > 3 else None,
                    "decay": -np.abs(normal(rng, batch, tokens, heads)) if "gated" in rule else None,
                    "beta": rng.random((batch, tokens, heads)).astype(np.float32) if "delta" in rule else None}
        yield f"linear_attention_{index}", one_op("LinearAttention", operands, {"output": F, "present_state": F}, q_num_heads=heads,
                                                  kv_num_heads=heads, update_rule=rule)
        channels, taps, length = 4, 3, int(rng.integers(1, 6))
        operands = {"input": normal(rng, 1, channels, length), "weight": normal(rng, channels, 1, taps),
                    "bias": normal(rng, channels) if index % 2 else None, "past_state": normal(rng, 1, channels, taps - 1) if index % 3 else None}
        yield f"causal_conv_{index}", one_op("CausalConvWithState", operands, {"output": F, "present_state": F},
                                             activation="silu" if index % 2 else "none")


@generator
def simplified_normalization(rng):
    for index in range(3):
        operands = {"x": normal(rng, 2, 3, 16), "scale": normal(rng, 16)}
        yield f"simplified_{index}", one_op("SimplifiedLayerNormalization", operands, {"y": F}, domain="", epsilon=1e-6, axis=-1, stash_type=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    wrong, listing = [], []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        for function in GENERATORS:
            for name, (model, inputs) in function(np.random.default_rng(args.seed)):
                if args.only not in name:
                    continue
                try:
                    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
                    outputs = session.run(None, {info.name: value for info, value in zip(session.get_inputs(), inputs)})
                except Exception as error:
                    wrong.append(f"{name}: ONNX Runtime: {str(error).splitlines()[0]}")
                    continue
                # absent outputs in the middle keep their place
                places, at = [], iter(outputs)
                for output in model.graph.node[0].output:
                    if output:
                        places.append(next(at))
                write_case(work / name, model, inputs, places)
                listing.append(f"{work / name} 2e-4 2e-5\n")
        (work / "list.txt").write_text("".join(listing))
        done = subprocess.run([args.tool, work / "list.txt"], stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    wrong += [line for line in lines if not line.startswith("pass ")]
    if len(lines) != len(listing):
        wrong.append(f"{len(lines)} answers for {len(listing)} cases: the tool ended early")
    print("\n".join(wrong))
    print(f"{sum(line.startswith('pass ') for line in lines)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
