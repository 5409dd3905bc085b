# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A slow tier that stores pages encoded: logits keep their bits without a codec, and stay near with one, and the run says how
many bytes a page takes.

    slow_codec.py TOOLS MODELS WORK
"""
import pathlib
import shutil
import sys

import numpy as np

import corpus

CASE = "genai-llama-fp32"
PAGE_ERROR = {"int8_g128": 5e-3, "fp8": 2e-2, "int4_g128": 8e-2, "bitmap": 0.6, "index": 0.65}  # norm of the differences by that of the page
LOGITS_ERROR = {"int8_g128": 0.05, "fp8": 0.45, "int4_g128": 0.75, "bitmap": 2, "index": 2}  # of the largest logit, while tokens are the same; weights are random, and seven of eight values are gone in a sparse page
STORED = {"int8_g128": 132 / 512, "fp8": 1 / 4, "int4_g128": 68 / 512, "bitmap": 1 / 8 + 1 / 32, "index": 1 / 8 + 3 / 256}  # of a page of f32, without padding


def keys_of(form):
    return f"sparse: {{ratio: 8, index: {form}}}" if form in ("bitmap", "index") else f"quant: {form}"


def error_of(tokens, logits, exact_tokens, exact_logits):
    """The largest error over rows that were computed after the same tokens."""
    worst = 0
    for name, rows in exact_logits.items():
        for row, exact in enumerate(rows):
            worst = max(worst, np.max(np.abs(logits[name][row] - exact)) / np.max(np.abs(exact)))
            if tokens[name][row] != exact_tokens[name][row]:
                break
    return worst


def check(tools, model, requests, options, work, quant, exact):
    configuration = work / f"{quant}.yaml"
    configuration.write_text(f"compress: {{{keys_of(quant)}}}\n")
    tokens, logits, stats = corpus.serve(tools, model, requests, work / quant, *options, f"--config={configuration}")
    tiers = stats["tiers"]
    if tiers["write_backs"] == 0 or tiers["demands"]["misses"] + tiers["demands"]["late"] + tiers["prefetch"]["useful"] == 0:
        raise corpus.Mismatch(f"no page left and came back: {tiers}")
    stored, page = tiers["codec"]["stored_page_bytes"], tiers["page_bytes"]
    if quant == "none":
        if tokens != exact[0] or any(not np.array_equal(logits[name], exact[1][name]) for name in logits) or stored != page:
            raise corpus.Mismatch("pages that are stored as they are change logits")
        return
    if not STORED[quant] * page <= stored <= STORED[quant] * page + 64 or tiers["codec"]["refused"] != 0:
        raise corpus.Mismatch(f"{stored} of {page} bytes, {tiers['codec']}")
    error = error_of(tokens, logits, *exact)
    if not 0 < error <= LOGITS_ERROR[quant] or not 0 < tiers["codec"]["error"] < PAGE_ERROR[quant]:
        raise corpus.Mismatch(f"error {error:.3g} of logits, {tiers['codec']['error']:.3g} of pages, allowed {LOGITS_ERROR[quant]:.3g} and {PAGE_ERROR[quant]:.3g}")


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    case, model, failures = models / CASE, work / "model.quire", []
    report = corpus.compile_model(tools, case / "model.onnx", model)
    requests = corpus.requests_of(case)
    block = report["kv_bytes_per_token"] * report["block_tokens"]
    blocks = [-(-(len(r["prompt"]) + len(r["tokens"])) // report["block_tokens"]) for r in requests]
    budget = block * max(max(blocks) + 1, sum(blocks) // 2)
    options = ["--max-batch=8", f"--kv-bytes={budget}", "--slow-tier=memory", "--slow-bytes=64MiB"]
    exact = corpus.serve(tools, model, requests, work / "fast", "--max-batch=8")[:2]
    for quant in ["none", *LOGITS_ERROR]:
        try:
            check(tools, model, requests, options, work, quant, exact)
        except corpus.Mismatch as problem:
            failures.append(f"{quant}: {problem}")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
