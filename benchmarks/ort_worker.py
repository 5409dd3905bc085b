# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime behind the line protocol of `quire-bench --serve` (docs/Runtime.md, "Timing"), in a process of its own.

    ort_worker.py FORM MODEL.onnx THREADS

`concat` keeps growing caches as numpy arrays, `gqa` shared past and present buffers with IO binding: the best that each form allows.
Sequences of different lengths are padded: on the left for `concat`, on the right for `gqa`. `setup` takes `room` besides, the number
of steps that shared buffers have place for.
"""
import json
import sys
import time

import numpy as np
import onnxruntime as ort


def random_rows(shape):
    """Keys and values: random numbers, repeated after a million, since drawing gigabytes takes long."""
    base = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32) * np.float32(0.3)
    return np.resize(base, shape)


class Engine:
    def __init__(self, model, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        past = [value for value in self.session.get_inputs() if value.name.startswith("past_key_values.")]
        self.past_names = [value.name for value in past]
        self.present_names = [name.replace("past_key_values", "present") for name in self.past_names]
        self.kv_heads, self.head = past[0].shape[1], past[0].shape[3]
        self.vocabulary = self.session.get_outputs()[0].shape[2]
        self.past = None

    def setup(self, lengths, room):
        self.free()
        self.lengths, self.longest = np.array(lengths, np.int64), max(lengths)
        rows = [random_rows((len(lengths), self.kv_heads, self.longest + self.spare(room), self.head)) for _ in self.past_names]
        self.past = self.store(rows)
        return sum(array.nbytes for array in rows)

    def step(self):
        self.run(np.full((len(self.lengths), 1), 7, np.int64))
        self.lengths += 1
        self.longest += 1

    def prefill(self, count):
        self.free()
        self.lengths, self.longest = np.zeros(1, np.int64), 0
        self.past = self.store([np.zeros((1, self.kv_heads, self.spare(count), self.head), np.float32) for _ in self.past_names])
        tokens = np.random.default_rng(1).integers(0, self.vocabulary, (1, count))
        start = time.perf_counter()
        self.run(tokens)
        seconds = time.perf_counter() - start
        self.free()
        return seconds

    def free(self):
        self.past = None


class ConcatEngine(Engine):
    def spare(self, room):
        return 0

    def store(self, rows):
        return rows

    def run(self, tokens):
        count = tokens.shape[1]
        keys = np.arange(self.longest + count)[None]
        feeds = {"input_ids": tokens, "attention_mask": (keys >= self.longest - self.lengths[:, None]).astype(np.int64),
                 "position_ids": self.lengths[:, None] + np.arange(count)[None]}
        feeds.update(zip(self.past_names, self.past))
        self.logits, *self.past = self.session.run(["logits", *self.present_names], feeds)


class GqaEngine(Engine):
    def spare(self, room):
        return room

    def store(self, rows):
        return [ort.OrtValue.ortvalue_from_numpy(array) for array in rows]

    def run(self, tokens):
        count = tokens.shape[1]
        keys = np.arange(self.longest + count)[None]
        binding = self.session.io_binding()
        binding.bind_cpu_input("input_ids", tokens)
        binding.bind_cpu_input("attention_mask", (keys < self.lengths[:, None] + count).astype(np.int64))
        binding.bind_output("logits", "cpu")
        for past, present, value in zip(self.past_names, self.present_names, self.past):
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)
        self.session.run_with_iobinding(binding)
        self.logits = binding.get_outputs()[0]


def memory():
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return {name: 1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM")}


def timed_steps(engine, count):
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        engine.step()
        seconds.append(time.perf_counter() - start)
    return seconds


def answer(engine, line):
    op = line["op"]
    if op == "setup":
        return {"kv_bytes": engine.setup(line["ctx"], line["room"])}
    if op == "steps":
        return {"steps": timed_steps(engine, line["n"])}
    if op == "prefill":
        return {"t": engine.prefill(line["n"])}
    if op == "free":
        engine.free()
        return {}
    if op == "mem":
        return memory()
    return {"error": f"unknown operation '{op}'"}


def main():
    form, model, threads = sys.argv[1:4]
    engine = {"concat": ConcatEngine, "gqa": GqaEngine}[form](model, int(threads))
    for text in sys.stdin:
        line = json.loads(text)
        if line["op"] == "quit":
            break
        try:
            result = answer(engine, line)
        except Exception as problem:  # the driver reports it and ends the run
            result = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
