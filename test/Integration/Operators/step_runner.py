# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a step in paged form and runs it in this process, with a runtime table of its own.

A step without states takes token ids and gives logits; weights come from arrays. Tools: quire-opt (or QUIRE_OPT), mlir-translate
and clang of the same LLVM, from PATH.
"""
import ctypes
import os
import re
import subprocess
import tempfile

import numpy as np

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, TASK, ctypes.c_void_p)
OTHER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


class RuntimeTable(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_int64), ("abi_version", ctypes.c_int64), ("parallel", PARALLEL), ("acquire", OTHER),
                ("release", OTHER), ("prefetch", OTHER)]


class Step(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in (
        "ids", "positions", "sequence_of", "query_starts", "past_lens", "selected", "logits", "weights", "scratch")] + [
        ("runtime", ctypes.POINTER(RuntimeTable)), ("context", ctypes.c_void_p)] + [
        (name, ctypes.c_int64) for name in ("tokens", "sequences", "table_stride", "selected_count", "threads")] + [("places", ctypes.c_void_p)]


class ModelInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("struct_size", "abi_version", "vocabulary", "token_limit", "max_positions", "block_tokens", "layer_count")] + [
        ("layers", ctypes.c_void_p)] + [(name, ctypes.c_int64) for name in ("weights_bytes", "scratch_fixed", "scratch_per_token", "scratch_per_selected")] + [
        ("step", ctypes.CFUNCTYPE(None, ctypes.POINTER(Step)))]


def run(command, **kwargs):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **kwargs)
    if result.returncode != 0:
        raise RuntimeError("%s failed:\n%s" % (os.path.basename(command[0]), result.stderr.decode()[:4000]))
    return result.stdout


def aligned(size):
    """An array of `size` bytes on a 64-byte boundary, full of a pattern that is a NaN in every float format."""
    raw = np.full(size + 64, 0xFF, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size]


NUMPY = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "i64": "<i8", "i32": "<i4", "i1": "|u1"}


def fields(text):
    return {m.group(1): m.group(2) for m in re.finditer(r"(\w+) = ([^,{}]+)", text)}


def weights_of(ir, arrays, size):
    """weights.bin as the artefact's writer makes it. `arrays`: numpy arrays by initializer; bf16 as its 16 bits."""
    data = aligned(max(size, 64))
    for m in re.finditer(r"kvrt\.(packed|raw) @(\"[^\"]+\"|[\w.$-]+) \{(.*?)\} : tensor<([\dx]+)x(\w+)>", ir):
        kind, _, attributes, shape, element = m.groups()
        shape = [int(n) for n in shape.split("x")]
        text = attributes.replace("#kvrt.panels<nr = ", "panels<")
        offset = int(re.search(r"offset = (\d+)", text).group(1))
        source = re.search(r"source = @(\"[^\"]+\"|[\w.$-]+)", text).group(1).strip('"')
        values = arrays[source]
        if kind == "packed":
            if "transposed" in text:
                values = values.T
            panels, depth, columns = shape
            padded = np.zeros((depth, panels * columns), values.dtype)
            padded[:, :values.shape[1]] = values
            values = padded.reshape(depth, panels, columns).transpose(1, 0, 2)
        raw = np.ascontiguousarray(values).astype(NUMPY[element]).tobytes()
        data[offset:offset + len(raw)] = np.frombuffer(raw, np.uint8)
    return data


class CompiledStep:
    def __init__(self, text, arrays, cpu="host", keep=None):
        directory = keep or tempfile.mkdtemp()
        path = lambda name: os.path.join(directory, name)
        with open(path("step.mlir"), "w") as f:
            f.write(text)
        quire_opt = os.environ.get("QUIRE_OPT", "quire-opt")
        pipeline = "--quire-pipeline=compile-from=paged compile-to=%s mcpu=" + cpu
        # The entries of weights.bin are symbols until the target phase.
        ir = run([quire_opt, path("step.mlir"), pipeline % "buffer", "--assign-weight-offsets"]).decode()
        run([quire_opt, path("step.mlir"), pipeline % "target", "-o", path("target.mlir")])
        run(["mlir-translate", "--mlir-to-llvmir", path("target.mlir"), "-o", path("step.ll")])
        run(["clang", "-O2", "-march=native", "-ffp-contract=off", "-fPIC", "-Wno-override-module", "-mllvm", "-disable-loop-idiom-all", "-c", path("step.ll"), "-o", path("step.o")])
        run(["clang", "-shared", "-nostdlib", "-fuse-ld=lld", "-Wl,--no-undefined", path("step.o"), "-lm", "-o", path("step.so")])
        self.library = ctypes.CDLL(path("step.so"))
        query = self.library.quire_model_query
        query.restype = ctypes.POINTER(ModelInfo)
        query.argtypes = [ctypes.c_int64]
        self.info = query(4).contents
        self.weights = weights_of(ir, arrays, self.info.weights_bytes)
        self.random = np.random.default_rng(7)
        self.table = RuntimeTable(ctypes.sizeof(RuntimeTable), 2, PARALLEL(self.parallel), OTHER(), OTHER(), OTHER())

    def parallel(self, context, count, grain, task, env):
        """Pieces of random sizes, in random order."""
        pieces, at = [], 0
        while at < count:
            size = int(self.random.integers(grain, 2 * grain + 2))
            pieces.append((at, min(count, at + size)))
            at += size
        for index in self.random.permutation(len(pieces)):
            task(env, *pieces[index])

    def __call__(self, ids, positions=None, selected=None):
        """Logits of the selected rows of one sequence."""
        as_list = lambda values: np.ascontiguousarray(values, np.int64)
        ids = as_list(ids)
        tokens = len(ids)
        positions = as_list(range(tokens) if positions is None else positions)
        selected = as_list(range(tokens) if selected is None else selected)
        info = self.info
        scratch = aligned(64 + info.scratch_fixed + info.scratch_per_token * tokens + info.scratch_per_selected * len(selected))
        guard = scratch[-64:].copy()
        logits = np.full((len(selected), info.vocabulary), np.nan, np.float32)
        arrays = dict(ids=ids, positions=positions, sequence_of=as_list([0] * tokens), places=as_list(range(tokens)), query_starts=as_list([0, tokens]), past_lens=as_list([0]),
                      selected=selected, logits=logits, weights=self.weights, scratch=scratch)
        step = Step(tokens=tokens, sequences=1, table_stride=1, selected_count=len(selected), threads=1, runtime=ctypes.pointer(self.table))
        for name, array in arrays.items():
            setattr(step, name, array.ctypes.data)
        info.step(ctypes.byref(step))
        assert (scratch[-64:] == guard).all(), "the step writes past its scratch"
        return logits
