# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports every wrong model of models.py and damaged files, and compares the error: check_errors.py FOLDER QUIRE-OPT."""
import os
import subprocess
import sys

folder, tool = sys.argv[1:]

EXPECTED = {
    "bad-undefined": "node 'add' (Add): input 'ghost' is not defined",
    "bad-output": "output 'ghost' is not defined",
    "bad-cycle": "node 'one' (Add): the graph has a cycle through this node",
    "bad-duplicate-output": "node 'two' (Neg): output 'y' is defined twice",
    "bad-duplicate-input": "input 'x' is listed twice",
    "bad-duplicate-initializer": "initializer 'w' is defined twice",
    "bad-shadowed-initializer": "node 'n' (Relu): output 'w' has the name of an initializer",
    "bad-listed-twice": "output 'y' is listed twice",
    "bad-untyped-input": "input 'x': it has no type",
    "bad-map-input": "input 'x': not implemented: values of type map",
    "bad-sparse-input": "input 'x': not implemented: values of type sparse tensor",
    "bad-opaque-input": "input 'x': not implemented: values of type opaque",
    "bad-negative-extent": "input 'x': expected non-negative extents, but got -7",
    "bad-element-type": "input 'x': expected a known element type, but got 99",
    "bad-cast": "node 'n' (Cast): attribute 'to': expected a known element type, but got 77",
    "bad-attribute-kind": "node 'n' (Transpose): attribute 'perm': expected integers, but got a string",
    "bad-missing-attribute": "node 'n' (Cast): expected attribute 'to'",
    "bad-missing-input": "node 'add' (Add): expected input 'B'",
    "bad-absent-input": "node 'add' (Add): expected input 'A'",
    "bad-axis": "node 'n' (Softmax): expected an axis within rank 2, but got 5",
    "bad-permutation": "node 'n' (Transpose): expected perm to be a permutation, but got array<i64: 0, 0>",
    "bad-constant": "node 'c' (Constant): expected exactly one value, but got 0",
    "bad-data-size": "initializer 'w': expected data of 16 bytes for 'tensor<4xf32>', but got 12",
    "bad-typed-size": "initializer 'w': expected data of 20 bytes for 'tensor<5xf32>', but got 16 in the typed field",
    "bad-extent": "initializer 'w': expected non-negative extents, but got -4",
    "bad-huge-extents": "initializer 'w': expected extents whose product fits 64 bits",
    "bad-sparse-index": "node 'c' (Constant): attribute 'value': expected indices below 4 in a sparse tensor, but got 9",
    "bad-opset": "expected operator set 11 to 28, but got 9",
    "bad-future-opset": "expected operator set 11 to 28, but got 99",
    "bad-no-opset": "node 'n' (Relu): the model imports no operator set for the standard domain",
    "bad-operator": "node 'n' (): the node has no operator",
    "bad-graph-attribute": "node 'if' (If): expected subgraph 'else_branch'",
    "bad-branch-results": "node 'if' (If): expected the subgraph to yield 1 values, but got 0",
    "bad-attribute-twice": "node 'n' (Softmax): attribute 'axis' is given twice",
    "bad-reference": "node 'n' (LeakyRelu): attribute 'alpha' refers to an attribute outside of a function",
    "bad-segment": "initializer 'w': not implemented: tensors in segments",
    "bad-no-fit": "initializer 'w': expected a tensor that fits a file, but got 'tensor<2305843009213693952xf32>'",
    "bad-raw-strings": "initializer 'w': expected strings in string_data, but got raw data",
    "bad-few-strings": "initializer 'w': expected 4 strings, but got 1",
    "bad-external-strings": "initializer 'w': expected strings in the model file, but got external data",
    "bad-external-nameless": "initializer 'w': expected external data to name a file",
    "bad-tensor-type": "initializer 'w': expected a known element type, but got 0",
    "bad-wrong-field": "initializer 'w': expected data in the field of INT32, but got another typed field",
    "bad-nameless-initializer": "an initializer has no name",
    "bad-nameless-input": "an input has no name",
    "bad-input-is-output": "input 'x' has the name of a node's output",
    "bad-sparse-many": "node 'c' (Constant): attribute 'value': expected one index for each of 2 sparse values, but got 'tensor<1xi64>'",
    "bad-sparse-large": "node 'c' (Constant): attribute 'value': not implemented: a sparse tensor of type 'tensor<2048x2048xf32>'",
    "bad-sparse-complex": "node 'c' (Constant): attribute 'value': not implemented: a sparse tensor of type 'tensor<2x2xcomplex<f32>>'",
    "bad-attribute-nameless": "node 'n' (Relu): an attribute has no name",
    "bad-attribute-graphs": "node 'n' (Relu): attribute 'a': not implemented: attributes of kind GRAPHS",
    "bad-attribute-type": "node 'n' (Relu): attribute 'a': it has no type",
    "bad-axes-kind": "node 'n' (ReduceSum): attribute 'axes': expected integers",
    "bad-axes-twice": "node 'n' (ReduceSum): expected 'axes' as an attribute or as an input, but got both",
    "bad-ratio-kind": "node 'n' (Dropout): attribute 'ratio': expected a float",
    "bad-ratio-twice": "node 'n' (Dropout): expected 'ratio' as an attribute or as an input, but got both",
    "bad-softmax-axis-kind": "node 'n' (Softmax): attribute 'axis': expected an integer",
    "bad-softmax-axis": "node 'n' (Softmax): expected an axis within rank 2, but got 4",
    "bad-old-group-normalization": "node 'n' (GroupNormalization): not implemented: GroupNormalization of operator set 18",
    "bad-constant-outputs": "node 'n' (Constant): expected one output",
    "bad-constant-kind": "node 'n' (Constant): attribute 'value_ints': expected a value, but got a string",
    "bad-stated-type": "node 'n' (Relu): output 'y': expected non-negative extents, but got -9",
    "bad-function-twice": "function 'One' is defined twice",
    "bad-function-outputs": "node 'call' (One): expected at most 1 outputs, but got 2",
    "bad-function-input-twice": "node 'call' (Two): input 'a' of the model function is listed twice",
    "bad-function-output": "node 'call' (None): output 'ghost' of the model function is not defined",
    "bad-branch-output": "node 'if' (If): output 'ghost' of else_branch is not defined",
    "bad-body-input-twice": "node 'loop' (Loop): input 'i' of body is listed twice",
    "bad-body-input-type": "node 'loop' (Loop): input 's' of body: expected non-negative extents, but got -9",
    "bad-capture": "node 'inner' (Relu): input 'ghost' is not defined",
    "empty": "the file is empty",
    "text": "not an ONNX model",
    "truncated": "not an ONNX model, or damaged: a field is longer than the file",
    "folder": "is a folder, expected an ONNX file",
    "missing": "cannot read the file: No such file or directory",
}

good = open(f"{folder}/good.onnx", "rb").read()
for name, content in {"empty": b"", "text": b"this is no model at all\n", "truncated": good[:-3]}.items():
    with open(f"{folder}/{name}.onnx", "wb") as file:
        file.write(content)
os.makedirs(f"{folder}/folder.onnx", exist_ok=True)

models = {name[:-5] for name in os.listdir(folder) if name.startswith("bad-") and name.endswith(".onnx")}
assert models == {name for name in EXPECTED if name.startswith("bad-")}, models ^ set(EXPECTED)
failures = 0
for name, reason in EXPECTED.items():
    path = f"{folder}/{name}.onnx"
    run = subprocess.run([tool, f"--import-onnx={path}"], capture_output=True, text=True)
    errors = [line for line in run.stderr.splitlines() if "error: " in line]
    if run.returncode != 1 or len(errors) != 1 or f"{path}: {reason}" not in errors[0] or run.stdout:
        failures += 1
        print(f"{name}: expected exit code 1 and '{reason}', but got {run.returncode} and\n{run.stderr}")
sys.exit(1 if failures else 0)
