#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decodes a corpus of exported models with the evaluator and compares with the reference tokens and logits.

    models.py --tool build/unit/evaluate-model --corpus FOLDER [--sets sets.json --set main] [--only NAME ...]

The format of the corpus is that of accept.py. Exit 0 when every case holds; the last line is 'N passed, N failed'.
"""
import argparse, json, pathlib, subprocess, sys, tempfile, time
import numpy as np

# relative tolerance on logits, as a fraction of the largest magnitude of the step, by the model's arithmetic
TOLERANCE = {"float32": 2e-4, "float16": 2e-2, "bfloat16": 5e-2}
# ONNX Runtime quantised the activations to 8 bits for these references: accuracy_level 4, or blocked DequantizeLinear and MatMul that its
# optimizer joins into one. The evaluator computes what the operators mean, in f32.
QUANTISED_ACTIVATIONS = {"genai-llama-int4-qdq": 6e-2, "nb4-qdq32-opt-llama": 8e-2, "genai011-phi-int4": 6e-2}


def tolerance_of(meta):
    if meta["name"] in QUANTISED_ACTIVATIONS:
        return QUANTISED_ACTIVATIONS[meta["name"]]
    if "logit_tolerance" in meta:
        return float(meta["logit_tolerance"])
    dtype = meta.get("dtype", "float32")
    return next((value for name, value in TOLERANCE.items() if dtype.startswith(name)), TOLERANCE["float32"])


def compare(requests, answers, logits, reference, tolerance):
    """(None or what is wrong, largest relative error of the logits)."""
    worst = 0.0
    for index, request in enumerate(requests):
        got, want = answers.get(str(request["id"])), request["tokens"]
        if got is None or len(got) != len(want):
            return f"request {request['id']}: {got}, expected {want}", worst
        ours, ref = np.load(logits / f"{request['id']}.npy"), reference[f"req{index}"]
        for step, token in enumerate(want):
            scale = max(1e-6, float(np.max(np.abs(ref[step]))))
            error = float(np.max(np.abs(ours[step].astype(np.float64) - ref[step]))) / scale
            worst = max(worst, error)
            if not error <= tolerance:
                return f"request {request['id']} step {step}: logits differ by {error:.3g} of the largest, allowed {tolerance:.3g}", worst
            if got[step] != token:
                if float(ref[step][token] - ref[step][got[step]]) <= 2 * tolerance * scale:
                    break  # a near tie: what follows belongs to another continuation
                return f"request {request['id']} step {step}: token {got[step]}, expected {token}", worst
    return None, worst


class Caller:
    """Calls models through evaluate-calls."""

    def __init__(self, tool, work):
        self.work = work
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        (work / "in").mkdir()
        (work / "out").mkdir()

    def __call__(self, model, values):
        (self.work / "in/names.txt").write_text("".join(f"{name}\n" for name in values))
        for index, value in enumerate(values.values()):
            np.save(self.work / f"in/{index}.npy", value)
        print(model, self.work / "in", self.work / "out", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(answer or "evaluate-calls ended early")
        names = (self.work / "out/names.txt").read_text().splitlines()
        return {name: np.load(self.work / f"out/{index}.npy") for index, name in enumerate(names)}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def decode_pair(case, meta, call, prompt, count, encoder):
    """Greedy decoding of an encoder and its decoders (split, or merged under use_cache_branch). Returns (tokens, logits)."""
    files, specs = meta["files_role"], meta["s2s"]
    hidden = next(iter(call(case / files["enc"], {k: v for k, v in encoder.items() if k in {i["name"] for i in specs["enc"]["inputs"]}}).values()))
    states, fresh, tokens, logits = {}, list(prompt), [], []
    while len(tokens) < count:
        role = "merged" if "merged" in files else ("past" if states else "dec")
        values = {}
        for spec in specs[role]["inputs"]:
            name = spec["name"]
            if name == "input_ids":
                values[name] = np.array([fresh], np.int64)
            elif name == "encoder_attention_mask":
                values[name] = encoder["attention_mask"]
            elif name == "encoder_hidden_states":
                values[name] = hidden
            elif name == "use_cache_branch":
                values[name] = np.array([bool(states)])
            else:  # a state; nothing is cached before the first call
                values[name] = states[name] if states else np.zeros([1 if i == 0 else e if isinstance(e, int) else 0 for i, e in enumerate(spec["shape"])], np.float32)
        results = call(case / files[role], values)
        for name, value in results.items():
            past = name.replace("present", "past_key_values")
            if name != "logits" and not (past in states and "encoder" in name):  # the keys of the encoder stay those of the first call
                states[past] = value
        logits.append(results["logits"][0, -1])
        tokens.append(int(np.argmax(logits[-1])))
        fresh = tokens[-1:]
    return tokens, np.stack(logits)


def check_pair(case, meta, requests, tool, work):
    arrays, answers = np.load(case / "encoder_inputs.npz"), {}
    call = Caller(tool.with_name("evaluate-calls"), work)
    try:
        for index, request in enumerate(requests):
            encoder = {key.split("/")[1]: arrays[key] for key in arrays.files if key.split("/")[0] == f"req{index}" and key.count("/") == 1}
            tokens, logits = decode_pair(case, meta, call, request["prompt"], request["max_new_tokens"], encoder)
            answers[str(request["id"])] = tokens
            np.save(work / f"{request['id']}.npy", logits)
    except RuntimeError as error:
        return str(error), 0.0
    finally:
        call.close()
    return compare(requests, answers, work, np.load(case / "logits.npz"), tolerance_of(meta))


def check(case, tool):
    meta = json.load(open(case / "meta.json"))
    requests = [json.loads(line) for line in open(case / "requests.jsonl")] if (case / "requests.jsonl").exists() else []
    if not requests:
        return "no requests", 0.0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if meta.get("kind") == "encoder-decoder":
            return check_pair(case, meta, requests, tool, work)
        done = subprocess.run([tool, case, work], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return done.stdout.strip() or f"exit {done.returncode}", 0.0
        answers = {str(a["id"]): a["tokens"] for a in map(json.loads, open(work / "out.jsonl"))}
        return compare(requests, answers, work, np.load(case / "logits.npz"), tolerance_of(meta))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--corpus", required=True, type=pathlib.Path)
    parser.add_argument("--sets", type=pathlib.Path)
    parser.add_argument("--set", default="main")
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    names = args.only or (json.load(open(args.sets))[args.set] if args.sets else sorted(p.parent.name for p in args.corpus.glob("*/meta.json")))
    passed, failed = 0, 0
    for name in names:
        start = time.time()
        wrong, worst = check(args.corpus / name, args.tool)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        print(f"{'ok' if wrong is None else 'FAILED'} {name} ({time.time() - start:.1f} s, error {worst:.2g}){': ' + wrong if wrong else ''}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
