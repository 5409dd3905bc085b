# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows that are the same for every token of a call, in the forms in which graphs repeat them: tokens and logits in several batches against ONNX Runtime on the same
graph, which computes one sequence alone.

    repeated_rows.py TOOLS MODELS WORK
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import corpus

BASE, EMBEDDED, FINAL = "opt-llama", "/model/embed_tokens/Gather_output_0", "/model/norm/Mul_1_output_0"
NEW_TOKENS = 20


class Edit:
    """Nodes behind one value of the graph, whose readers read the last of them."""

    def __init__(self, model, value):
        self.graph, self.value, self.random = model.graph, value, np.random.default_rng(3)
        (self.at,) = [i for i, node in enumerate(self.graph.node) if value in node.output]
        self.width = 64

    def constant(self, array):
        name = f"given{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        return self.constant((self.random.standard_normal(shape) / 4).astype(np.float32))

    def node(self, op, inputs, **attributes):
        self.at += 1
        self.graph.node.insert(self.at, helper.make_node(op, inputs, [f"repeated{self.at}"], name=f"/repeated/{op}_{self.at}", **attributes))
        return f"repeated{self.at}"

    def ids_shape(self):
        return self.node("Shape", ["input_ids"])

    def finish(self, result):
        ours = {f"repeated{i}" for i in range(len(self.graph.node))}
        for node in self.graph.node:
            if not ours & set(node.output):
                node.input[:] = [result if name == self.value else name for name in node.input]


def row(e):
    """What GPT-NeoX Japanese does with a bias."""
    return e.node("Add", [e.value, e.node("Expand", [e.weight(64), e.node("Shape", [e.value])])])


def row_with_axes(e):
    return e.node("Add", [e.node("Expand", [e.weight(1, 1, 64), e.node("Shape", [e.value])]), e.value])


def scalar(e):
    """Both the token axis and the features are new."""
    shape = e.node("Concat", [e.ids_shape(), e.constant(np.array([64], np.int64))], axis=0)
    return e.node("Mul", [e.value, e.node("Expand", [e.constant(np.float32(1.5)), shape])])


def number_of_a_row(e):
    """Types of tokens, all of them 1."""
    types = e.node("Expand", [e.constant(np.int64(1)), e.ids_shape()])
    return e.node("Add", [e.value, e.node("Gather", [e.weight(3, 64), types])])


def numbers_of_a_row(e):
    """Integers that differ along an axis that is no token's."""
    shape = e.node("Concat", [e.ids_shape(), e.constant(np.array([2], np.int64))], axis=0)
    pairs = e.node("Expand", [e.constant(np.array([2, 0], np.int64)), shape])
    halves = e.node("Gather", [e.weight(3, 32), pairs])
    return e.node("Add", [e.value, e.node("Reshape", [halves, e.node("Shape", [e.value])])])


def filled(e):
    value = numpy_helper.from_array(np.array([0.75], np.float32))
    return e.node("Mul", [e.value, e.node("ConstantOfShape", [e.node("Shape", [e.value])], value=value)])


def filled_with_zero(e):
    return e.node("Sub", [e.value, e.node("Cos", [e.node("ConstantOfShape", [e.node("Shape", [e.value])])])])


def joined(e):
    """Operators that do not broadcast need the rows themselves."""
    shape = e.node("Concat", [e.ids_shape(), e.constant(np.array([8], np.int64))], axis=0)
    wide = e.node("Concat", [e.value, e.node("Expand", [e.weight(8), shape])], axis=2)
    return e.node("MatMul", [wide, e.weight(72, 64)])


def turned(e):
    """Tokens are the last axis, then the first one but one again."""
    length = e.node("Gather", [e.ids_shape(), e.constant(np.array([1], np.int64))])
    shape = e.node("Concat", [e.constant(np.array([1, 64], np.int64)), length], axis=0)
    columns = e.node("Expand", [e.weight(64, 1), shape])
    return e.node("Add", [e.value, e.node("Transpose", [columns], perm=[0, 2, 1])])


PLACES = {EMBEDDED: [row, row_with_axes, scalar, number_of_a_row, numbers_of_a_row, filled, filled_with_zero, joined, turned], FINAL: [row, joined]}


def expected(session, prompt):
    """Greedy tokens and their logits."""
    caches = {item.name: np.zeros((1, item.shape[1], 0, item.shape[3]), np.float32) for item in session.get_inputs() if item.name.startswith("past")}
    names = [output.name for output in session.get_outputs()]
    tokens, rows, new, known = [], [], prompt, 0
    while len(tokens) < NEW_TOKENS:
        feeds = dict(caches, input_ids=np.array([new], np.int64), attention_mask=np.ones((1, known + len(new)), np.int64),
                     position_ids=np.arange(known, known + len(new), dtype=np.int64)[None])
        outputs = dict(zip(names, session.run(names, feeds)))
        known += len(new)
        caches = {name: outputs[name.replace("past_key_values", "present")] for name in caches}
        rows.append(outputs["logits"][0, -1])
        tokens.append(int(np.argmax(rows[-1])))
        new = tokens[-1:]
    return tokens, np.array(rows)


def check(tools, case, form, value, work):
    model = onnx.load(str(case / "model.onnx"))
    edit = Edit(model, value)
    edit.finish(form(edit))
    work.mkdir()
    onnx.save(model, str(work / "model.onnx"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(work / "model.onnx"), options)
    requests = [dict(id=request["id"], prompt=request["prompt"], max_new_tokens=NEW_TOKENS) for request in corpus.requests_of(case)[:5]]
    want = {str(request["id"]): expected(session, request["prompt"]) for request in requests}
    corpus.compile_model(tools, work / "model.onnx", work / "m.quire", "--verify")
    for number, mode in enumerate((["--max-batch=1"], ["--max-batch=8"], ["--max-batch=3", "--prefill-chunk=4"])):
        tokens, logits, _ = corpus.serve(tools, work / "m.quire", requests, work / f"run{number}", *mode)
        for name, (want_tokens, want_rows) in want.items():
            if tokens[name] != want_tokens:
                raise corpus.Mismatch(f"{mode}, request {name}: tokens {tokens[name]}, expected {want_tokens}")
            error = np.max(np.abs(logits[name] - want_rows)) / np.max(np.abs(want_rows))
            if not error <= 2e-4:
                raise corpus.Mismatch(f"{mode}, request {name}: relative error {error:.3g} of logits")
    return want


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    failures, seen = [], []
    (case,) = corpus.cases(models, [BASE])
    for number, (value, forms) in enumerate(PLACES.items()):
        for form in forms:
            try:
                seen.append(check(tools, case, form, value, work / f"{form.__name__}{number}"))
            except corpus.Mismatch as problem:
                failures.append(f"FAIL {form.__name__} behind {value}: {problem}")
    plain = {str(request["id"]): request["tokens"][:NEW_TOKENS] for request in corpus.requests_of(case)[:5]}
    if any(all(want[name][0] == plain[name] for name in want) for want in seen):
        failures.append("FAIL a graph has the tokens that it has without the rows, so that leaving them out would not be seen")
    print(*failures, f"{len(seen)} graphs, {len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
