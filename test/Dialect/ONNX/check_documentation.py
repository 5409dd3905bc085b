# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the table of operators of docs/Dialects/ONNX.md, or with --check compares it: check_documentation.py ROOT [--check]."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
FAMILIES = [("Math", "Arithmetic, activations, products"), ("Logic", "Comparison, logic, selection, conversion"), ("Reduce", "Reductions, pooling, experts"),
            ("Shape", "Shape, movement, indexing, generation"), ("Norm", "Softmax and normalisation"), ("Attention", "Attention and token mixers"),
            ("Quant", "Quantisation"), ("Sequence", "Sequences and optionals"), ("Control", "Operators with subgraphs")]


def operators(family):
    text = (root / f"dialects/ONNX/ONNX{family}Ops.td").read_text()
    for base, name in re.findall(r'^def ONNX_\w+\s*:\s*(ONNX_Op|ONNX_MSOp|ONNX_RegionOp|ONNX_OperatorOp)<"([\w.]+)"', text, re.M):
        yield ("ms." if base == "ONNX_MSOp" else "") + name


lines = ["| Family | Operators |", "|---|---|"]
for family, title in FAMILIES:
    lines.append(f"| {title} (`ONNX{family}Ops.td`) | {' '.join(f'`{name}`' for name in operators(family))} |")
table = "\n".join(lines)
if sys.argv[2:] == ["--check"]:
    if table not in (root / "docs/Dialects/ONNX.md").read_text():
        sys.exit("the table of operators in docs/Dialects/ONNX.md is stale: " + __doc__)
else:
    print(table)
