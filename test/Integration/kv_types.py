# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose K and V are stored in a narrower type: the bytes are what the layout says, the certificate holds and still
finds wrong attention, logits are near ONNX Runtime's, and they have the same bits in every mode.

    kv_types.py TOOLS MODELS WORK
"""
import pathlib
import shutil
import subprocess
import sys

import numpy as np

import corpus

CASES = ["opt-mistral-sw", "genai-llama-fp32"]
ELEMENT_BITS = {"f16": 16, "bf16": 16, "int8": 8, "int4": 4, "fp8_e4m3": 8, "fp8_e5m2": 8}
CODES = ("int8", "int4")  # with scales and zeros
NARROW = ("int4", "fp8_e4m3", "fp8_e5m2")
LOGITS_ERROR = {"f16": 2e-3, "bf16": 1e-2, "int8": 2e-2, "int4": 3e-1, "fp8_e4m3": 1e-1, "fp8_e5m2": 2e-1}  # of the largest logit, after the prompt


def padded(value):
    return (value + 63) // 64 * 64


def block_bytes(report, kv_type):
    """One block over all layers: K and V with their scales, each part on a multiple of 64 bytes."""
    total, block = 0, report["block_tokens"]
    for layer in report["layers"]:
        for features in layer["key_dim"], layer["value_dim"]:
            total += padded(layer["kv_heads"] * block * ((features * ELEMENT_BITS[kv_type] + 7) // 8))
            if kv_type in CODES:
                total += padded(layer["kv_heads"] * block * -(-features // 128) * 8)
    return total


def check_report(report, kv_type):
    if report["kv_type"] != kv_type or report["certificate"]["holds"] is not True:
        raise corpus.Mismatch(f"report {report}")
    if kv_type in NARROW and not (report["certificate"]["with_elements_of_the_graph"]["tolerance"] == 2e-4 and report["certificate"]["drift"] > 0):
        raise corpus.Mismatch(f"certificate {report['certificate']}")
    if not any(f"stored as {kv_type} (--kv-type)" in text for text in report["assumptions"]):
        raise corpus.Mismatch(f"assumptions {report['assumptions']}")
    if report["kv_bytes_per_token"] != block_bytes(report, kv_type) // report["block_tokens"]:
        raise corpus.Mismatch(f"{report['kv_bytes_per_token']} bytes a token, expected {block_bytes(report, kv_type)} a block")


def check_modes(tools, case, model, report, kv_type, work):
    requests = corpus.requests_of(case)
    longest = max(len(r["prompt"]) + len(r["tokens"]) for r in requests)
    budget = report["kv_bytes_per_token"] * (longest + 2 * report["block_tokens"])
    tokens, logits, _ = corpus.serve(tools, model, requests, work / "solo", "--max-batch=1")
    reference = np.load(case / "logits.npz")
    for index, request in enumerate(requests):
        want = reference[f"req{index}"][0]
        error = np.max(np.abs(logits[str(request["id"])][0] - want)) / np.max(np.abs(want))
        if not 0 < error <= LOGITS_ERROR[kv_type]:
            raise corpus.Mismatch(f"{model.name}, request {request['id']}: error {error:.3g} of logits, allowed {LOGITS_ERROR[kv_type]:.3g}")
    for mode in (["--max-batch=8", "--shuffle-blocks=3", "--poison-free-blocks"], ["--max-batch=4", "--prefill-chunk=5"],
                 ["--max-batch=8", f"--kv-bytes={budget}"], ["--max-batch=8", f"--kv-bytes={budget}", "--slow-tier=memory", "--slow-bytes=64MiB"],
                 ["--max-batch=8", "--prefix-cache"]):
        got_tokens, got_logits, _ = corpus.serve(tools, model, requests, work / "mode", *mode)
        if got_tokens != tokens or any(not np.array_equal(got_logits[name], logits[name]) for name in logits):
            raise corpus.Mismatch(f"{model.name}: {mode} gives other logits than one request at a time")


def check_breaks(tools, case, kv_type, work):
    stored = () if kv_type == "int8" else ("stored-window", "stored-heads", "stored-block")  # found without the certificate of the graph's elements
    for error in ("window", "scale", "heads", "block", *stored):
        out = work / f"{error}.quire"
        done = subprocess.run([tools / "quirec", case / "model.onnx", "-o", out, f"--kv-type={kv_type}", "--verify", "--quiet", f"--break-attend={error}"])
        if done.returncode != 3 or out.exists():
            raise corpus.Mismatch(f"--kv-type={kv_type} --break-attend={error}: exit {done.returncode}")


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    failures = []
    for case in corpus.cases(models, CASES):
        for kv_type in ELEMENT_BITS:
            model = work / f"{case.name}-{kv_type}.quire"
            try:
                report = corpus.compile_model(tools, case / "model.onnx", model, f"--kv-type={kv_type}", "--verify")
                check_report(report, kv_type)
                check_modes(tools, case, model, report, kv_type, work)
            except corpus.Mismatch as problem:
                failures.append(f"{case.name} as {kv_type}: {problem}")
    for kv_type in "int8", "int4", "fp8_e4m3", "fp8_e5m2":
        try:
            check_breaks(tools, models / CASES[0], kv_type, work)
        except corpus.Mismatch as problem:
            failures.append(str(problem))
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
