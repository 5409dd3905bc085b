# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small exports, compiled and served in every mode; tokens and logits against what ONNX Runtime gave.

    serve.py TOOLS MODELS WORK
"""
import pathlib
import shutil
import sys

import corpus

CASES = ["genai-llama-fp32", "opt-llama", "opt-mistral-sw", "mobius-llama"]
WINDOWS = {"opt-mistral-sw": {"kind": "window", "window": 16}}


def moved(stats):
    """Pages went both ways, and what is counted adds up."""
    tiers = stats["tiers"]
    demands = tiers["demands"]
    return (demands["hits"] + demands["late"] + demands["misses"] == demands["all"] > 0 and demands["late"] + demands["misses"] > 0
            and 0 < tiers["write_backs"] <= tiers["seals"] and stats["kv_copy_bytes"] >= sum(tiers["bytes"].values()) > 0
            and stats["recomputed_tokens"] == 0)


def modes(requests, report, work):
    """quire-run's options, and what its statistics must say."""
    longest = max(len(r["prompt"]) + len(r["tokens"]) for r in requests)
    budget = report["kv_bytes_per_token"] * (longest + report["block_tokens"])
    together = len(requests)
    yield "solo", ["--max-batch=1"], lambda s: s["max_sequences_in_step"] == 1
    yield "batch", ["--max-batch=8"], lambda s: s["max_sequences_in_step"] == together
    yield "shuffle", ["--max-batch=8", "--shuffle-blocks=7", "--poison-free-blocks"], lambda s: s["kv_copy_bytes"] == 0
    yield "chunk", ["--max-batch=4", "--prefill-chunk=5"], lambda s: 0 < s["max_prefill_tokens_in_step"] <= 5
    yield "pressure", ["--max-batch=8", f"--kv-bytes={budget}"], lambda s: s["preemptions"] >= 1
    half = sum(len(r["prompt"]) + len(r["tokens"]) for r in requests) // 2
    fast = report["kv_bytes_per_token"] * max(longest + 2 * report["block_tokens"], half)
    for tier in "memory", "throttled:20us,1GB/s", f"file:{work / 'pages'}":
        yield f"tier {tier[:4]}", ["--max-batch=8", f"--kv-bytes={fast}", f"--slow-tier={tier}", "--slow-bytes=64MiB", "--poison-free-blocks"], moved
    yield "tier lru", ["--max-batch=8", f"--kv-bytes={fast}", "--slow-tier=memory", "--slow-bytes=64MiB", "--replace=lru", "--prefetch-window=0"], moved
    yield "one thread", ["--max-batch=8", "--threads=1"], lambda s: s["max_sequences_in_step"] == together


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    passed, failures = 0, []
    for case in corpus.cases(models, CASES):
        requests = corpus.requests_of(case)
        for options in ([], ["--block-tokens=8"]):
            model = work / f"{case.name}{len(options)}.quire"
            try:
                report = corpus.compile_model(tools, case / "model.onnx", model, *options)
                want = WINDOWS.get(case.name, {"kind": "causal"})
                for layer in report["layers"]:
                    if layer["decision"] != "paged" or any(layer["mask"].get(key) != value for key, value in want.items()):
                        raise corpus.Mismatch(f"{case.name}: layer {layer}, expected mask {want}")
                for mode, run_options, happened in modes(requests, report, work):
                    tokens, logits, stats = corpus.serve(tools, model, requests, work / f"{model.stem}.{mode}", *run_options)
                    corpus.compare(case, tokens, logits)
                    if not happened(stats):
                        raise corpus.Mismatch(f"{case.name}: mode {mode} did not happen: {stats}")
                    passed += 1
            except corpus.Mismatch as problem:
                failures.append(str(problem))
    # Stored rows are scaled in every step: not an append, so refused, and nothing is written.
    refused = work / "refused.quire"
    report = corpus.compile_model(tools, models / "ref-decayed-past" / "model.onnx", refused, expect=3)
    if refused.exists() or report["status"] != "refused" or not all("reason" in layer for layer in report["layers"]):
        failures.append(f"ref-decayed-past: {report}")
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
