#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs ONNX's official backend node tests through the evaluator.

    node_tests.py --tool build/unit/evaluate-cases [--data FOLDER ...] [--cache FOLDER] [--only SUBSTRING]

Cases come from the package `onnx` (generated once into the cache) and from folders in ONNX's own format. What the evaluator lacks must
be in not-implemented.txt, an operator or "operator: reason" a line, and every line must be met by a case: nothing is skipped silently.
"""
import argparse, collections, pathlib, re, shutil, subprocess, sys, tempfile, warnings
import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).parent


def raw(tensor):
    """The same tensor with raw data."""
    if tensor.HasField("raw_data") or tensor.data_type == onnx.TensorProto.STRING:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name)


def is_tensor(value):
    return isinstance(value, onnx.TensorProto) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype != object)


def write_value(path, value):
    """Sequences, optionals and strings get no file: the tool then says that they are not implemented."""
    if not is_tensor(value):
        return
    tensor = raw(value) if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
    if tensor.data_type != onnx.TensorProto.STRING:
        path.write_bytes(tensor.SerializeToString())


def same_form(node, version):
    """Whether a node of an operator set before 11 means the same in 11."""
    try:
        old, new = (onnx.defs.get_schema(node.op_type, at, node.domain) for at in (version, 11))
    except onnx.defs.SchemaError:
        return False
    return not new.deprecated and set(old.attributes) == set(new.attributes) and len(old.inputs) == len(new.inputs)


def to_oldest_supported(model):
    for opset in model.opset_import:
        if opset.domain == "" and opset.version < 11 and all(same_form(node, opset.version) for node in model.graph.node):
            opset.version = 11
    return model


def write_case(folder, model, inputs, outputs):
    folder.mkdir(parents=True)
    model = to_oldest_supported(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs), ("output", outputs)):
        for index, value in enumerate(values):
            write_value(folder / f"{kind}_{index}.pb", value)


def official_cases(cache):
    """{name: (folder, rtol, atol)} of the package's own cases."""
    stamp = cache / f"onnx-{onnx.__version__}.txt"
    if not stamp.exists():
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        lines = []
        for case in collect_testcases():
            for index, (inputs, outputs) in enumerate(case.data_sets):
                name = case.name if index == 0 else f"{case.name}@{index}"
                write_case(cache / name, case.model, inputs, outputs)
                lines.append(f"{name} {case.rtol} {case.atol}\n")
        stamp.write_text("".join(lines))
    rows = (line.split() for line in stamp.read_text().splitlines())
    return {name: (cache / name, float(rtol), float(atol)) for name, rtol, atol in rows}


def folder_cases(source, cache):
    cases = {}
    for model in sorted(source.glob("*/model.onnx")):
        for data in sorted(model.parent.glob("test_data_set_*")):
            name = f"{model.parent.name}+{data.name.rsplit('_', 1)[1]}"
            target = cache / name
            if not target.exists():
                load = lambda kind: [onnx.load_tensor(path) for path in sorted(data.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))]
                write_case(target, onnx.load(model), load("input"), load("output"))
            cases[name] = (target, 1e-3, 1e-7)
    return cases


def allowed():
    lines = (line.split("#")[0].strip() for line in (HERE / "not-implemented.txt").read_text().splitlines())
    return {line for line in lines if line}


def missing(why):
    """What a case lacks: an operator, an operator with a reason, or something of all models."""
    found = re.findall(r"\(onnx\.(?:custom )?([\w.]+)\): not implemented: ([^(]*)$", why)
    if found:
        operator, reason = found[-1]
        return operator if reason.startswith("evaluation of this operator") else f"{operator}: {reason}"
    return "operator sets before 11" if "expected operator set" in why else why.rpartition("not implemented: ")[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--data", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--data-only", action="store_true", help="without the package's own cases")
    parser.add_argument("--cache", default=pathlib.Path(tempfile.gettempdir()) / "quire-node-tests", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    cases = {} if args.data_only else official_cases(args.cache / "official")
    for source in args.data:
        cases.update(folder_cases(source, args.cache / source.name))
    cases = {name: case for name, case in cases.items() if args.only in name}
    args.cache.mkdir(parents=True, exist_ok=True)
    listing = args.cache / "list.txt"
    listing.write_text("".join(f"{folder} {rtol} {atol}\n" for folder, rtol, atol in cases.values()))
    done = subprocess.run([args.tool, listing], stdout=subprocess.PIPE, text=True)
    results = {}
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        name, _, why = rest.partition(": ")
        results[name] = (verdict, why)
    counts = collections.Counter(verdict for verdict, _ in results.values())
    excused, met, wrong = allowed(), set(), []
    for name in cases:
        verdict, why = results.get(name, ("fail", "no answer: the tool ended early"))
        if verdict == "unimplemented":
            met.add(missing(why))
            if missing(why) not in excused:
                wrong.append(f"{name}: '{missing(why)}' is not in not-implemented.txt: {why}")
        elif verdict == "fail":
            wrong.append(f"{name}: {why}")
    if not args.only and not args.data_only:
        wrong += [f"not-implemented.txt: no case lacks '{line}'" for line in sorted(excused - met)]
    print("\n".join(wrong))
    print(f"{counts['pass']} passed, {counts['unimplemented']} not implemented, {len(wrong)} wrong, of {len(cases)}")
    return 1 if wrong or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
