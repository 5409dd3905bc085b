# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo: compiles SmolLM2-135M-Instruct as somebody exported it, answers six prompts in one ragged batch, and checks the tokens."""
import argparse
import hashlib
import json
import lzma
import pathlib
import shutil
import subprocess
import sys
import time

import picture
import weights


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of quirec and quire-run")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where weights, the compiled model and results are kept")
    parser.add_argument("--block-tokens", type=int, default=16, help="tokens of a KV block, a power of two from 4 (16)")
    return parser.parse_args()


def headline(words):
    print(f"\n== {words}", flush=True)


def compile_model(tools, onnx, cache, block_tokens):
    """The model folder; reused as long as the compiler is the same."""
    folder, stamp = cache / "smollm2.quire", cache / "compiled-by.txt"
    key = hashlib.sha256((tools / "quirec").read_bytes()).hexdigest() + f" {block_tokens}"
    if folder.exists() and stamp.exists() and stamp.read_text() == key:
        print(f"reused: {folder}")
        return folder
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(tools / "quirec"), str(onnx), "-o", str(folder), f"--block-tokens={block_tokens}",
               f"--report={cache / 'report.json'}", "--quiet"]
    print("$ " + " ".join(command), flush=True)
    start = time.monotonic()
    code = subprocess.run(command).returncode
    if code:
        sys.exit(f"demo: error: quirec ended with {code}")
    print(f"compiled in {time.monotonic() - start:.1f} s: {folder}, {sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.0f} MB")
    stamp.write_text(key)
    return folder


def layer_words(layer):
    mask = layer["mask"]
    words = [mask["kind"]] + [f"{key} {mask[key]}" for key in ("window", "chunk", "softcap") if mask.get(key)]
    return (f"{layer['idiom']}, mask {' '.join(words)}, {layer['heads']} query heads on {layer['kv_heads']} KV heads, "
            f"key {layer['key_dim']}, value {layer['value_dim']}: {layer['decision']}")


def print_report(report):
    """The report, layers with the same words on one line."""
    limit = f"at most {report['max_positions']} positions" if report["max_positions"] > 0 else "no limit of positions known"
    print(f"{report['model']}: {report['status']}; {report['kv_bytes_per_token']} KV bytes a token over all layers, "
          f"{report['block_tokens']} tokens a block, {limit}")
    groups = []
    for layer in report["layers"]:
        words = layer_words(layer)
        if groups and groups[-1][0] == words:
            groups[-1][2] = layer["index"]
        else:
            groups.append([words, layer["index"], layer["index"]])
    for words, first, last in groups:
        print(f"  layer {first}: {words}" if first == last else f"  layers {first} to {last}: {words}")
    for assumption in report["assumptions"]:
        print(f"  assumes: {assumption}")


def until(tokens, end):
    """The tokens up to the first that ends a turn, itself included."""
    return tokens[: tokens.index(end) + 1] if end in tokens else tokens


def tokenize(tokenizer, wanted, end, path):
    """Writes the requests file; the ids must be those that the references were made from. `end` stops a request."""
    with open(path, "w") as out:
        for request in wanted:
            ids = tokenizer.encode(request["prompt_text"]).ids
            if ids != request["prompt"]:
                sys.exit(f"demo: error: the tokenizer gives other ids for prompt {request['id']}")
            out.write(json.dumps({"id": request["id"], "prompt": ids, "max_new_tokens": request["max_new_tokens"], "stop": [end]}) + "\n")


def serve(tools, folder, cache):
    command = [str(tools / "quire-run"), str(folder), f"--requests={cache / 'requests.jsonl'}", f"--output={cache / 'results.jsonl'}",
               f"--stats={cache / 'stats.json'}", "--max-batch=8"]
    print("$ " + " ".join(command), flush=True)
    code = subprocess.run(command).returncode
    if code:
        sys.exit(f"demo: error: quire-run ended with {code}")
    results = [json.loads(line) for line in (cache / "results.jsonl").read_text().splitlines()]
    return {result["id"]: result for result in results}, json.loads((cache / "stats.json").read_text())


def shorten(words, limit=160):
    words = words.replace("\n", "\\n")
    return words if len(words) <= limit else words[: limit // 2] + " ... " + words[-limit // 2 :]


def print_texts(tokenizer, wanted, results, end):
    """Prompt and answer, without the token that ended it."""
    for request in wanted:
        tokens = results[request["id"]]["tokens"]
        shown = tokens[:-1] if tokens[-1:] == [end] else tokens
        print(f"[{request['id']}] in:  {shorten(request['prompt_text'])}")
        print(f"    out: {shorten(tokenizer.decode(shown, skip_special_tokens=False), 400)}")


def print_speed(stats, wanted, results):
    new = sum(len(result["tokens"]) for result in results.values())
    decode = [step for step in stats["steps"] if step["tokens"] == step["sequences"]]
    mixed = [step for step in stats["steps"] if step["tokens"] != step["sequences"]]
    seconds = sum(step["ms"] for step in stats["steps"]) / 1000
    print(f"{new} new tokens of {len(wanted)} sequences in {len(stats['steps'])} steps, {seconds:.2f} s: {new / seconds:.1f} tokens a second, prefill included")
    if mixed:
        rows, spent = sum(step["tokens"] for step in mixed), sum(step["ms"] for step in mixed) / 1000
        print(f"  prefill: {rows} rows in {spent:.2f} s, {rows / spent:.1f} rows a second")
    if decode:
        rows, spent = sum(step["tokens"] for step in decode), sum(step["ms"] for step in decode) / 1000
        print(f"  decode:  {rows} tokens in {spent:.2f} s, {rows / spent:.1f} tokens a second, {stats['threads']} threads")


def print_memory(stats, report, wanted, results):
    """KV bytes of the pool at its fullest against a rectangular cache; gives the tokens of the latter: prompts padded to the longest, and every step
    until the last sequence ends adds a token to all."""
    longest = max(len(request["prompt"]) for request in wanted) + max(len(result["tokens"]) for result in results.values()) - 1
    paged = stats["blocks_peak"] * stats["block_bytes"]
    padded = len(wanted) * longest * report["kv_bytes_per_token"]
    print(f"paged:  {stats['blocks_peak']} blocks of {stats['block_bytes']} bytes at the peak = {paged / 1e6:.2f} MB")
    print(f"padded: {len(wanted)} sequences x {longest} tokens x {report['kv_bytes_per_token']} bytes = {padded / 1e6:.2f} MB")
    print(f"paged / padded = {paged / padded:.3f}; KV bytes copied: {stats['kv_copy_bytes']}")
    return len(wanted) * longest


def compare(wanted, results, end):
    """Exits unless every request has the tokens of the reference, which runs on after the end of a turn, and ended for the same reason."""
    equal = stopped = 0
    for request in wanted:
        result, expected = results[request["id"]], until(request["tokens"], end)
        got, reason = result.get("tokens", []), "stop" if expected[-1] == end else "length"
        if got == expected and result["finish_reason"] == reason:
            equal += 1
            stopped += reason == "stop"
            continue
        place = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        print(f"request {request['id']}: differs from the reference at new token {place}; finished by {result['finish_reason']}; {result.get('error', 'no error')}")
    print(f"{equal} of {len(wanted)} requests have exactly the reference's tokens; {stopped} of them up to and including the token that ends a turn")
    if equal != len(wanted):
        sys.exit(1)


def main():
    options = arguments()
    cache = options.cache
    from tokenizers import Tokenizer

    wanted = [json.loads(line) for line in (weights.DATA / "requests.jsonl").read_text().splitlines()]
    tokenizer = Tokenizer.from_str(lzma.decompress((weights.DATA / "tokenizer.json.xz").read_bytes()).decode())
    headline("model: SmolLM2-135M-Instruct, float32, an ONNX export with past and present tensors")
    onnx = weights.model(cache)
    print(onnx)
    end = tokenizer.token_to_id("<|im_end|>")
    headline("compile")
    folder = compile_model(options.bin, onnx, cache, options.block_tokens)
    report = json.loads((folder / "report.json").read_text())
    print_report(report)
    headline("serve six prompts as one ragged batch")
    tokenize(tokenizer, wanted, end, cache / "requests.jsonl")
    results, stats = serve(options.bin, folder, cache)
    print_texts(tokenizer, wanted, results, end)
    headline("speed")
    print_speed(stats, wanted, results)
    headline("memory for keys and values")
    padded = print_memory(stats, report, wanted, results)
    labels = {str(r["id"]): f"{r['id']}: {len(r['prompt'])} prompt tokens" for r in wanted}
    picture.draw(cache / "block-tables.svg", stats, labels, padded)
    print(f"block tables over time: {cache / 'block-tables.svg'}")
    headline("check against the reference (ONNX Runtime, each prompt alone, contiguous cache)")
    compare(wanted, results, end)


if __name__ == "__main__":
    main()
