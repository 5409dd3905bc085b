# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits the decoder of raise-attention.mlir into forms that a step cannot hold, and compares the reasons: refused_forms.py MLIR FOLDER QUIRE-OPT."""
import pathlib
import subprocess
import sys

model, folder, tool = sys.argv[1:]
LOGITS = "%logits = onnx.MatMul %o2, %wo"
EMBEDDED = "%x = onnx.Add %x0, %pos"
POSITIONS = "%pos = onnx.Gather %table, %q_index {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?xi64>)"
ROWS = "tensor<?x?x8xf32>"


def after(value, lines, place=LOGITS, name="%o2"):
    """Puts `lines` before the place, which then reads `value` under the name."""
    return [(place, "\n  ".join([*lines, place.replace(name, value)]))]


def crossing(returned):
    """A second attention, over keys and values that are given and never grow."""
    past, given = "tensor<?x1x?x4xf32>", "tensor<?x2x?x4xf32>"
    edits = [
        ('"c", "d"], outputs = ["e", "f", "g"]', '"c", "d", "m", "n"], outputs = ["e", "f", "g"' + (', "h", "i"]' if returned else "]")),
        ("%mask: tensor<?x?xi64>)", f"%mask: tensor<?x?xi64>, %ek: {given}, %ev: {given})"),
        ("%o1 = onnx.Transpose %o0", "\n  ".join([
            f"%ekt = onnx.Transpose %ek {{perm = array<i64: 0, 1, 3, 2>}} : ({given}) -> tensor<?x2x4x?xf32>",
            "%es = onnx.MatMul %q, %ekt : (tensor<?x2x?x4xf32>, tensor<?x2x4x?xf32>) -> tensor<?x2x?x?xf32>",
            "%ew = onnx.Softmax %es {axis = -1 : i64} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>",
            f"%eo = onnx.MatMul %ew, %ev : (tensor<?x2x?x?xf32>, {given}) -> tensor<?x2x?x4xf32>",
            "%sum = onnx.Add %o0, %eo : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>", "%o1 = onnx.Transpose %sum"]))]
    if returned:
        edits += [(f"{past}, {past}) {{", f"{past}, {past}, {given}, {given}) {{"),
                  (f"return %logits, %keys, %values : tensor<?x?x6xf32>, {past}, {past}", f"return %logits, %keys, %values, %ek, %ev : tensor<?x?x6xf32>, {past}, {past}, {given}, {given}")]
    return edits


FORMS = {
    "integers": (
        after("%chosen", ["%four = onnx.constant dense<4> : tensor<i64>", "%seven = onnx.constant dense<7> : tensor<i64>",
                          "%early = onnx.Less %q_index, %four : (tensor<?xi64>, tensor<i64>) -> tensor<?xi1>",
                          "%chosen = onnx.Where %early, %q_index, %seven : (tensor<?xi1>, tensor<?xi64>, tensor<i64>) -> tensor<?xi64>"], POSITIONS, "%q_index"),
        "not implemented: integers of this form: "),
    "joined-tokens": (
        after("%joined", ["%last_from = onnx.constant dense<-1> : tensor<1xi64>", "%last_to = onnx.constant dense<9223372036854775807> : tensor<1xi64>",
                          "%token_axis = onnx.constant dense<1> : tensor<1xi64>",
                          f"%last = onnx.Slice %o2, %last_from, %last_to, %token_axis, %none : ({ROWS}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> {ROWS}",
                          f"%twice = onnx.Concat %last, %last {{axis = 1 : i64}} : ({ROWS}, {ROWS}) -> {ROWS}",
                          f"%joined = onnx.ReduceMean %twice, %token_axis {{keepdims = 1 : i64, noop_with_empty_axes = 0 : i64}} : ({ROWS}, tensor<1xi64>) -> {ROWS}"]),
        "onnx.ReduceMean: not implemented: on the axis of the token that is selected"),
    "before-the-table": (
        after("%before", ["%far = onnx.constant dense<-33> : tensor<i64>",
                          "%before = onnx.Add %q_index, %far : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>"], POSITIONS, "%q_index"),
        "the position leads to an index outside of the table, or to one that is not known"),
    "repeated-length": (
        after("%longer", ["%length = onnx.Cast %l {to = f32} : (tensor<i64>) -> tensor<f32>", "%eight = onnx.constant dense<8> : tensor<1xi64>",
                          "%shape = onnx.Concat %ishape, %eight {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>",
                          f"%rows = onnx.Expand %length, %shape : (tensor<f32>, tensor<3xi64>) -> {ROWS}",
                          f"%longer = onnx.Add %o2, %rows : ({ROWS}, {ROWS}) -> {ROWS}"]),
        "data depends on the call length, not only on the position"),
    "repeated-parts": (
        after("%biased", ["%many = onnx.constant dense<[1, 8]> : tensor<2xi64>", "%pshape8 = onnx.Mul %ishape, %many : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>",
                          "%half = onnx.constant dense<0.5> : tensor<f32>", "%flat = onnx.Expand %half, %pshape8 : (tensor<f32>, tensor<2xi64>) -> tensor<?x?xf32>",
                          "%by_eight = onnx.constant dense<[0, -1, 8]> : tensor<3xi64>", f"%rows = onnx.Reshape %flat, %by_eight : (tensor<?x?xf32>, tensor<3xi64>) -> {ROWS}",
                          f"%biased = onnx.Add %o2, %rows : ({ROWS}, {ROWS}) -> {ROWS}"]),
        "onnx.Expand: not implemented: on an axis that folds tokens with another axis"),
    "several-rows": (
        after("%biased", ["%four_rows = onnx.constant dense<1.0> : tensor<1x4x8xf32>", "%eight = onnx.constant dense<8> : tensor<1xi64>",
                          "%shape = onnx.Concat %ishape, %eight {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>",
                          f"%rows = onnx.Expand %four_rows, %shape : (tensor<1x4x8xf32>, tensor<3xi64>) -> {ROWS}",
                          f"%biased = onnx.Add %o2, %rows : ({ROWS}, {ROWS}) -> {ROWS}"]),
        "the cached branch of the graph is right for calls of one token only"),
    "slice-bounds": (
        after("%twice", ["%l1 = onnx.Unsqueeze %l, %v0 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>", "%any = onnx.constant dense<-1> : tensor<1xi64>",
                         "%four = onnx.constant dense<4> : tensor<1xi64>",
                         "%folded = onnx.Concat %any, %l1, %four {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>",
                         "%heads = onnx.Reshape %o0, %folded : (tensor<?x2x?x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>",
                         "%b1 = onnx.Slice %ishape, %v0, %axis1, %v0, %none : (tensor<2xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<1xi64>",
                         "%half = onnx.Slice %heads, %v0, %b1, %v0, %none : (tensor<?x?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<?x?x4xf32>",
                         f"%twice = onnx.Concat %half, %half {{axis = 2 : i64}} : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> {ROWS}"]),
        "onnx.Slice: not implemented: a slice with bounds that are not constant"),
    "slice-backwards": (
        after("%turned", ["%from = onnx.constant dense<-1> : tensor<1xi64>", "%to = onnx.constant dense<-9223372036854775807> : tensor<1xi64>",
                          "%along = onnx.constant dense<2> : tensor<1xi64>",
                          f"%turned = onnx.Slice %o2, %from, %to, %along, %from : ({ROWS}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {ROWS}"]),
        "onnx.Slice: not implemented: a slice with a negative step"),
    "slice-by-position": (
        [(POSITIONS + " -> tensor<?x8xf32>",
          "\n  ".join(["%p1 = onnx.Unsqueeze %p, %v0 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>",
                       "%t1 = onnx.Unsqueeze %t, %v0 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>",
                       "%four = onnx.constant dense<4> : tensor<1xi64>", "%along = onnx.constant dense<[0, 1]> : tensor<2xi64>",
                       "%from = onnx.Concat %p1, %v0 {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>",
                       "%to = onnx.Concat %t1, %four {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>",
                       "%half = onnx.Slice %table, %from, %to, %along, %none : (tensor<32x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, none) -> tensor<?x4xf32>",
                       "%pos = onnx.Concat %half, %half {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>"]))],
        "onnx.Slice: not implemented: a slice by position that cuts another axis too"),
    "split": (
        after("%part", [f"%part = onnx.Split %o2, %none {{axis = 1 : i64, num_outputs = 1 : i64}} : ({ROWS}, none) -> {ROWS}"]),
        "onnx.Split: not implemented: a split along the rows"),
    "subgraph": (
        after("%branch", ["%true = onnx.constant dense<true> : tensor<i1>", f"%branch = onnx.If %true : (tensor<i1>) -> {ROWS} {{", f"  onnx.yield %o2 : {ROWS}", "}, {",
                          f"  onnx.yield %x : {ROWS}", "}"]),
        "onnx.If: not implemented: operators with subgraphs on the way to a row"),
    "folded-tokens": (
        after("%whole", ["%fold = onnx.constant dense<[0, -1, 4]> : tensor<3xi64>",
                         f"%parts = onnx.Reshape %o2, %fold : ({ROWS}, tensor<3xi64>) -> tensor<?x?x4xf32>",
                         "%bent = onnx.Sigmoid %parts : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>", "%unfold = onnx.constant dense<[0, -1, 8]> : tensor<3xi64>",
                         f"%whole = onnx.Reshape %bent, %unfold : (tensor<?x?x4xf32>, tensor<3xi64>) -> {ROWS}"]),
        "onnx.Sigmoid: not implemented: on an axis that folds tokens with another axis"),
    "last-of-first-axis": (
        [("return %logits, %keys, %values : tensor<?x?x6xf32>",
          "\n  ".join(["%turned = onnx.Transpose %logits {perm = array<i64: 1, 0, 2>} : (tensor<?x?x6xf32>) -> tensor<?x?x6xf32>",
                       "%last = onnx.constant dense<-1> : tensor<i64>",
                       "%row = onnx.Gather %turned, %last {axis = 0 : i64} : (tensor<?x?x6xf32>, tensor<i64>) -> tensor<?x6xf32>",
                       "return %row, %keys, %values : tensor<?x6xf32>"])),
         ("-> (tensor<?x?x6xf32>, tensor<?x1x?x4xf32>", "-> (tensor<?x6xf32>, tensor<?x1x?x4xf32>")],
        "not implemented: the last token taken from an axis that is not the second"),
    "last-of-heads": (
        [("%o1 = onnx.Transpose", "\n  ".join([
            "%l1 = onnx.Unsqueeze %l, %v0 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>", "%any = onnx.constant dense<-1> : tensor<1xi64>",
            "%four = onnx.constant dense<4> : tensor<1xi64>",
            "%folded = onnx.Concat %any, %l1, %four {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>",
            "%heads = onnx.Reshape %o0, %folded : (tensor<?x2x?x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>", "%last = onnx.constant dense<-1> : tensor<i64>",
            "%of_heads = onnx.Gather %heads, %last {axis = 1 : i64} : (tensor<?x?x4xf32>, tensor<i64>) -> tensor<?x4xf32>",
            "%joined = onnx.constant dense<[-1, 8]> : tensor<2xi64>", "%o3 = onnx.Reshape %of_heads, %joined : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x8xf32>",
            "%row = onnx.MatMul %o3, %wo : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>", "%o1 = onnx.Transpose"])),
         ("return %logits, %keys, %values : tensor<?x?x6xf32>", "return %row, %keys, %values : tensor<?x6xf32>"),
         ("-> (tensor<?x?x6xf32>, tensor<?x1x?x4xf32>", "-> (tensor<?x6xf32>, tensor<?x1x?x4xf32>")],
        "not implemented: the last token in this form"),
    "packed-state": (
        [('inputs = ["a", "b", "c", "d"], outputs = ["e", "f", "g"]', 'inputs = ["a", "b", "d"], outputs = ["e", "f"]'),
         ("%pk: tensor<?x1x?x4xf32>, %pv: tensor<?x1x?x4xf32>", "%both: tensor<2x?x1x?x4xf32>"),
         ("-> (tensor<?x?x6xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)", "-> (tensor<?x?x6xf32>, tensor<2x?x1x?x4xf32>)"),
         ("%pshape = onnx.Shape", "%pk = onnx.Gather %both, %zero {axis = 0 : i64} : (tensor<2x?x1x?x4xf32>, tensor<i64>) -> tensor<?x1x?x4xf32>\n  %pshape = onnx.Shape"),
         ("%keys = onnx.Concat %pk, %k {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>", "\n  ".join([
             "%k5 = onnx.Unsqueeze %k, %v0 : (tensor<?x1x?x4xf32>, tensor<1xi64>) -> tensor<1x?x1x?x4xf32>",
             "%v5 = onnx.Unsqueeze %v, %v0 : (tensor<?x1x?x4xf32>, tensor<1xi64>) -> tensor<1x?x1x?x4xf32>",
             "%kv = onnx.Concat %k5, %v5 {axis = 0 : i64} : (tensor<1x?x1x?x4xf32>, tensor<1x?x1x?x4xf32>) -> tensor<2x?x1x?x4xf32>",
             "%all = onnx.Concat %both, %kv {axis = 3 : i64} : (tensor<2x?x1x?x4xf32>, tensor<2x?x1x?x4xf32>) -> tensor<2x?x1x?x4xf32>",
             "%keys = onnx.Gather %all, %zero {axis = 0 : i64} : (tensor<2x?x1x?x4xf32>, tensor<i64>) -> tensor<?x1x?x4xf32>"])),
         ("%values = onnx.Concat %pv, %v {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)",
          "%values = onnx.Gather %all, %one {axis = 0 : i64} : (tensor<2x?x1x?x4xf32>, tensor<i64>)"),
         ("return %logits, %keys, %values : tensor<?x?x6xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>", "return %logits, %all : tensor<?x?x6xf32>, tensor<2x?x1x?x4xf32>")],
        "not implemented: rows with an axis that is no token, head or feature"),
    "shared-keys": (
        [('"c", "d"], outputs = ["e", "f", "g"]', '"c", "d", "c2"], outputs = ["e", "f", "g", "h"]'),
         ("%mask: tensor<?x?xi64>)", "%mask: tensor<?x?xi64>, %pv2: tensor<?x1x?x4xf32>)"),
         ("tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) {", "tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) {"),
         ("%o1 = onnx.Transpose %o0", "\n  ".join([
             "%values2 = onnx.Concat %pv2, %v {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>",
             "%again = onnx.MatMul %w, %values2 : (tensor<?x2x?x?xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>",
             "%sum = onnx.Add %o0, %again : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>", "%o1 = onnx.Transpose %sum"])),
         ("return %logits, %keys, %values : tensor<?x?x6xf32>,", "return %logits, %keys, %values, %values2 : tensor<?x?x6xf32>, tensor<?x1x?x4xf32>,")],
        "not implemented: keys and values of two layers share a state"),
    "prefix-mask": (
        [("%bias = onnx.Where %after,", "\n  ".join([
            "%four = onnx.constant dense<4> : tensor<i64>", "%late = onnx.GreaterOrEqual %k_index, %four : (tensor<?xi64>, tensor<i64>) -> tensor<?xi1>",
            "%hidden = onnx.And %after, %late : (tensor<?x?xi1>, tensor<?xi1>) -> tensor<?x?xi1>", "%bias = onnx.Where %hidden,"]))],
        "not implemented: a mask of kind prefix"),
    "bias": (
        after("%s3", ["%four = onnx.constant dense<4> : tensor<i64>", "%quarter = onnx.Div %k_index, %four : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>",
                      "%far = onnx.Cast %quarter {to = f32} : (tensor<?xi64>) -> tensor<?xf32>",
                      "%s3 = onnx.Add %s2, %far : (tensor<?x2x?x?xf32>, tensor<?xf32>) -> tensor<?x2x?x?xf32>"], "%w = onnx.Softmax %s2", "%s2"),
        "not implemented: a bias that is no ALiBi slope: "),
    "rounded-bias": (
        after("%s3", ["%half = onnx.Cast %k_index {to = f16} : (tensor<?xi64>) -> tensor<?xf16>", "%far = onnx.Cast %half {to = f32} : (tensor<?xf16>) -> tensor<?xf32>",
                      "%s3 = onnx.Add %s2, %far : (tensor<?x2x?x?xf32>, tensor<?xf32>) -> tensor<?x2x?x?xf32>"], "%w = onnx.Softmax %s2", "%s2"),
        "not implemented: a bias of rounded positions: rounded(k)"),
    "cross-attention": (crossing(False), "not implemented: cross attention: no output continues state 'n'"),
    "cross-attention-returned": (crossing(True), "not implemented: cross attention: state 'n' is returned as it came"),
    "unknown-present": (
        [("return %logits, %keys, %values :", 'return %logits, %keys, %kept :'),
         ("%o1 = onnx.Transpose", "%kept = onnx.custom \"vendor\" \"Keep\" %values : (tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>\n  %o1 = onnx.Transpose")],
        "no output is known to be the present of state 'c'"),
    "several-blocks": (
        [("  %none = onnx.none : none\n", "  cf.br ^next\n^next:\n  %none = onnx.none : none\n")],
        "expected a function with one block"),
}

text = pathlib.Path(model).read_text()
failures = 0
for name, (edits, reason) in FORMS.items():
    edited = text
    for old, new in edits:
        assert edited.count(old) == 1, (name, old, edited.count(old))
        edited = edited.replace(old, new)
    path = pathlib.Path(folder) / f"{name}.mlir"
    path.write_text(edited)
    run = subprocess.run([tool, path, "--raise-attention"], capture_output=True, text=True)
    errors = [line for line in run.stderr.splitlines() if "error: " in line]
    if run.returncode != 1 or not any(reason in line for line in errors):
        failures += 1
        print(f"{name}: expected exit code 1 and '{reason}', but got {run.returncode} and\n{run.stderr}")
print(f"{len(FORMS)} forms, {failures} failed")
sys.exit(1 if failures else 0)
