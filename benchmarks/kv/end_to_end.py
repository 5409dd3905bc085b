# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What needs a compiled model: throughput against a contiguous engine, and first tokens with a shared prefix."""
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

import decoders
import models

HERE = pathlib.Path(__file__).resolve().parent
FORM = "gqa"  # ONNX Runtime's best: shared past and present buffers
ARENA, SLOTS, BATCH, PROMPT_SHARE = 3.5, 3, 8, 0.25
CHAT_LONGEST = 2048  # chat lengths are drawn for this one, and scaled to the greatest length of the run


compiled = set()  # folders, in this process


def prepared(tools, options):
    """Folder of the model in both engines' files; the demo's shape with random weights."""
    shape = "tiny" if options.quick else "demo"
    folder = options.folder / shape
    decoders.write_models(shape, folder)
    if folder not in compiled:
        models.compile_model(folder, FORM, tools.need("quirec"))
    compiled.add(folder)
    return folder, shape


def stored_tokens(lengths, longest, draw):
    if lengths == "chat":
        tokens = math.exp(math.log(500) - 0.8**2 / 2 + 0.8 * draw.gauss(0, 1)) * longest / CHAT_LONGEST
    else:
        tokens = draw.uniform(0.2, 1) * longest
    return min(longest, max(4, math.ceil(tokens)))


def draw_requests(lengths, longest, count, vocabulary, seed):
    draw = random.Random(seed)
    requests = []
    for i in range(count):
        stored = stored_tokens(lengths, longest, draw)
        prompt = max(1, int(PROMPT_SHARE * stored))
        requests.append({"id": i, "prompt": [draw.randrange(vocabulary) for _ in range(prompt)], "max_new_tokens": stored - prompt + 1})
    return requests


def quire_run(folder, requests, tools, options, *more):
    """Statistics of a run; every request must have ended."""
    files = {name: folder / f"end-to-end-{name}" for name in ("requests.jsonl", "results.jsonl", "stats.json")}
    files["requests.jsonl"].write_text("".join(json.dumps(request) + "\n" for request in requests))
    command = [tools.need("quire-run"), folder / f"{FORM}.quire", f"--requests={files['requests.jsonl']}", f"--output={files['results.jsonl']}", f"--stats={files['stats.json']}",
               f"--threads={options.threads}", *more]
    subprocess.run(command, check=True, capture_output=True, text=True)
    results = [json.loads(line) for line in files["results.jsonl"].read_text().splitlines()]
    wrong = [result for result in results if result["finish_reason"] != "length"]
    if wrong or len(results) != len(requests):
        sys.exit(f"quire-run: {len(results)} of {len(requests)} requests ended, {wrong[:1]}")
    return json.loads(files["stats.json"].read_text())


def throughput_row(lengths, longest, count, folder, tools, options):
    shape = json.loads((folder / "shape.json").read_text())
    requests = draw_requests(lengths, longest, count, shape["vocabulary"], options.seed)
    token_bytes = 2 * shape["layers"] * shape["kv_heads"] * shape["head"] * 4
    stats = quire_run(folder, requests, tools, options, f"--kv-bytes={int(ARENA * longest * token_bytes)}", f"--max-batch={BATCH}", "--prefill-chunk=512", "--mixed-chunk=512")
    ours = sum(step["ms"] for step in stats["steps"]) / 1e3
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command = [sys.executable, HERE / "contiguous.py", folder / f"{FORM}.onnx", str(options.threads), str(SLOTS), str(longest)]
    theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, input=lines).stdout)
    if theirs["tokens"] != sum(request["max_new_tokens"] for request in requests):
        sys.exit(f"contiguous.py made {theirs['tokens']} tokens")
    return {"lengths": lengths, "requests": count, "ours_s": ours, "theirs_s": theirs["seconds"], "speedup": theirs["seconds"] / ours,
            "ours_batch": statistics.mean(step["sequences"] for step in stats["steps"]), "theirs_batch": theirs["batch"]}


def throughput(folder, tools, options):
    longest, count = (64, 6) if options.quick else (512, 20)
    rows = [throughput_row(lengths, longest, count, folder, tools, options) for lengths in ("U[0.2,1]", "chat")]
    about = f"End to end, greatest length {longest}: Quire with an arena of {ARENA} greatest lengths and at most {BATCH} sequences in a step, against ONNX Runtime with GroupQueryAttention and {SLOTS} slots of the greatest " \
            "length, on the same requests and weights (random, the demo's shape). Times are those inside both engines' steps; each run is one, over some hundred steps. Chat lengths are scaled with the greatest length."
    wanted = (("U[0.2,1]", 1.4), ("chat", 2.0))
    claims = [{"claim": f"end to end against a contiguous engine, lengths {row['lengths']}", "least": least, "most": 10, "measured": row["speedup"], "holds": row["speedup"] >= least}
              for row, (_, least) in zip(rows, wanted)]
    return {"about": about, "longest": longest, "rows": rows, "claims": claims}


def prefix_row(share, prompt, folder, tools, options):
    """One request after the other; the first fills the cache and does not count."""
    vocabulary = json.loads((folder / "shape.json").read_text())["vocabulary"]
    draw = random.Random(options.seed)
    common = [draw.randrange(vocabulary) for _ in range(int(share * prompt) // 16 * 16)]
    requests = [{"id": i, "tenant": "all", "max_new_tokens": 1, "prompt": common + [draw.randrange(vocabulary) for _ in range(prompt - len(common))]} for i in range(options.repeats + 1)]
    ms = {}
    for switch in ("off", "on"):
        stats = quire_run(folder, requests, tools, options, "--max-batch=1", f"--prefill-chunk={prompt}", f"--prefix-cache={switch}")
        ms[switch] = statistics.median(step["ms"] for step in stats["steps"][1:])
    return {"shared": len(common) / prompt, "ms_without": ms["off"], "ms_with": ms["on"], "saved": 1 - ms["on"] / ms["off"]}


def first_token(folder, tools, options):
    prompt = 64 if options.quick else 320
    rows = [prefix_row(share, prompt, folder, tools, options) for share in (0.0, 0.15, 0.5)]
    about = f"On the compiled model, prompts of {prompt} tokens, one request after the other; median of {options.repeats}:"
    return {"about": about, "rows": rows}


def run(name, tools, options):
    folder, _ = prepared(tools, options)
    return {"E2": throughput, "E3": first_token}[name](folder, tools, options)
