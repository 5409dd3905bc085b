# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites exported graphs without changing what they mean; the compiled model must give the same tokens.

    metamorphic.py TOOLS MODELS WORK

TOOLS holds quirec and quire-run, MODELS the cases, WORK is a scratch folder. Rewrites: random names, inserted Identity nodes, swapped
operands of commutative operators, Where with a negated condition, constants computed by nodes instead of stored.
"""
import pathlib
import random
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import corpus

CASES = ["genai-llama-fp32", "opt-llama", "opt-mistral-sw", "mobius-llama"]
COMMUTATIVE = {"Add", "Mul", "And", "Or", "Equal"}


def producers(graph):
    return {name for node in graph.node for name in node.output}


def random_names(model, rng):
    """Every tensor, node and dimension gets a name that says nothing."""
    graph, names = model.graph, {"": ""}

    def renamed(name):
        if name not in names:
            names[name] = "t%016x" % rng.getrandbits(64)
        return names[name]

    if any(a.type == onnx.AttributeProto.GRAPH for n in graph.node for a in n.attribute):
        return False
    for node in graph.node:
        node.name = "n%016x" % rng.getrandbits(64)
        for field in (node.input, node.output):
            field[:] = [renamed(name) for name in field]
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        for value in values:
            value.name = renamed(value.name)
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = renamed("dim " + dim.dim_param)
    return True


def inserted_identity(model, rng):
    """A third of all operands go through an Identity."""
    nodes = []
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name and rng.random() < 0.3:
                copy = f"{name}/identity{len(nodes)}"
                nodes.append(helper.make_node("Identity", [name], [copy], name=f"identity{len(nodes)}"))
                node.input[index] = copy
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return True


def swapped_operands(model, rng):
    changed = False
    for node in model.graph.node:
        if node.op_type in COMMUTATIVE and node.domain in ("", "ai.onnx") and len(node.input) == 2:
            node.input[:] = [node.input[1], node.input[0]]
            changed = True
    return changed


def negated_where(model, rng):
    nodes, changed = [], False
    for node in model.graph.node:
        if node.op_type == "Where":
            inverse = f"{node.input[0]}/not{len(nodes)}"
            nodes.append(helper.make_node("Not", [node.input[0]], [inverse], name=f"not{len(nodes)}"))
            node.input[:] = [inverse, node.input[2], node.input[1]]
            changed = True
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return changed


def unfolded_constants(model, rng):
    """Small integer constants become sums or slices that the graph computes."""
    graph, first, changed = model.graph, [], False
    for node in list(graph.node):
        if node.op_type != "Constant" or not node.attribute or node.attribute[0].name != "value":
            continue
        array = numpy_helper.to_array(node.attribute[0].t)
        if array.dtype != np.int64 or array.ndim > 1 or array.size > 8:
            continue
        name = node.output[0]
        part = rng.randint(1, 9)
        left, right = f"{name}/left", f"{name}/right"
        for part_name, value in ((left, array - part), (right, np.full_like(array, part))):
            first.append(helper.make_node("Constant", [], [part_name], value=numpy_helper.from_array(np.asarray(value, np.int64), part_name)))
        first.append(helper.make_node("Add", [left, right], [name], name=f"{name}/sum"))
        graph.node.remove(node)
        changed = True
    nodes = first + list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    return changed


REWRITES = [random_names, inserted_identity, swapped_operands, negated_where, unfolded_constants]


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    passed = failed = 0
    for case in corpus.cases(models, CASES):
        requests = corpus.requests_of(case)
        for rewrite in REWRITES:
            model = onnx.load(str(case / "model.onnx"))
            if not rewrite(model, random.Random(11)):
                continue
            folder = work / f"{case.name}.{rewrite.__name__}"
            folder.mkdir()
            onnx.save(model, str(folder / "model.onnx"))
            try:
                corpus.compile_model(tools, folder / "model.onnx", folder / "m.quire")
                tokens, logits, _ = corpus.serve(tools, folder / "m.quire", requests, folder / "run")
                corpus.compare(case, tokens, logits)
                passed += 1
            except corpus.Mismatch as problem:
                failed += 1
                print(f"FAIL {folder.name}: {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
