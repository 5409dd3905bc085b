# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Continuous batching with ONNX Runtime and a contiguous cache: one region of the greatest length for each of a few slots.

    contiguous.py MODEL.onnx THREADS SLOTS LONGEST < REQUESTS.jsonl

The model has GroupQueryAttention, whose past and present are one buffer. A prompt runs alone, into its slot of that buffer; then all slots
decode together. Slots that nobody uses at the end take no part where they are the last ones. Prints one JSON object: seconds of all
runs of the model, their number, mean sequences in a decode step, and tokens made.
"""
import ctypes
import json
import sys
import time

import numpy as np
import onnxruntime as ort


class Slots:
    def __init__(self, model, threads, count, longest):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        past = [value for value in self.session.get_inputs() if value.name.startswith("past_key_values.")]
        self.shape = (past[0].shape[1], longest, past[0].shape[3])
        self.buffers = {value.name: np.zeros((count, *self.shape), np.float32) for value in past}
        self.lengths = np.zeros(count, np.int64)
        self.seconds, self.runs = 0.0, 0

    def bind(self, binding, first, count):
        for name, array in self.buffers.items():
            address = array[first].ctypes.data_as(ctypes.c_void_p).value
            binding.bind_input(name, "cpu", 0, np.float32, (count, *self.shape), address)
            binding.bind_output(name.replace("past_key_values", "present"), "cpu", 0, np.float32, (count, *self.shape), address)

    def run(self, first, tokens):
        """New tokens [count, rows] for the slots from `first` on; returns the likeliest next ones."""
        count, rows = tokens.shape
        lengths = self.lengths[first:first + count]
        binding = self.session.io_binding()
        binding.bind_cpu_input("input_ids", tokens)
        mask = (np.arange(lengths.max() + rows)[None] < lengths[:, None] + rows).astype(np.int64)
        binding.bind_cpu_input("attention_mask", mask)
        binding.bind_output("logits", "cpu")
        self.bind(binding, first, count)
        start = time.perf_counter()
        self.session.run_with_iobinding(binding)
        self.seconds += time.perf_counter() - start
        self.runs += 1
        lengths += rows
        return binding.copy_outputs_to_cpu()[0][:, -1].argmax(-1)


def serve(slots, requests):
    waiting = list(reversed(requests))
    left = np.zeros(len(slots.lengths), np.int64)  # tokens that a slot's request still wants
    last = np.zeros(len(left), np.int64)
    made = steps = sequences = 0
    while waiting or left.any():
        for slot in np.flatnonzero(left == 0):
            if waiting:
                request = waiting.pop()
                slots.lengths[slot] = 0
                last[slot] = slots.run(slot, np.array([request["prompt"]], np.int64))[0]
                left[slot] = request["max_new_tokens"] - 1
                made += 1
        if not left.any():
            continue
        count = np.flatnonzero(left)[-1] + 1
        slots.lengths[:count][left[:count] == 0] = 0  # slots without a request store nothing that counts
        last[:count] = slots.run(0, last[:count, None])
        steps += 1
        sequences += int((left > 0).sum())
        made += int((left > 0).sum())
        left[left > 0] -= 1
    return {"seconds": slots.seconds, "runs": slots.runs, "batch": sequences / max(steps, 1), "tokens": made}


def main():
    model, threads, count, longest = sys.argv[1], *map(int, sys.argv[2:5])
    requests = [json.loads(line) for line in sys.stdin]
    print(json.dumps(serve(Slots(model, threads, count, longest), requests)))


if __name__ == "__main__":
    main()
