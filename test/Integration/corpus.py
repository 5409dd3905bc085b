# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a model, serves its reference requests, and compares tokens and logits with what ONNX Runtime gave."""
import json
import pathlib
import subprocess

import numpy as np


class Mismatch(Exception):
    """A result differs from its reference."""


def requests_of(case):
    return [json.loads(line) for line in open(case / "requests.jsonl") if line.strip()]


def compile_model(tools, model, out, *options, expect=0):
    command = [str(tools / "quirec"), str(model), "-o", str(out), f"--report={out}.json", "--quiet", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != expect:
        raise Mismatch(f"{' '.join(command)}: exit {done.returncode}, expected {expect}\n{done.stdout}")
    return json.load(open(f"{out}.json"))


def serve(tools, model, requests, work, *options):
    """Returns ({id: tokens}, {id: logits}, statistics)."""
    work.mkdir(parents=True, exist_ok=True)
    logits = work / "logits"
    logits.mkdir(exist_ok=True)
    with open(work / "in.jsonl", "w") as file:
        for request in requests:
            file.write(json.dumps({key: request[key] for key in ("id", "prompt", "max_new_tokens", "turns") if key in request}) + "\n")
    command = [str(tools / "quire-run"), str(model), f"--requests={work / 'in.jsonl'}", f"--output={work / 'out.jsonl'}",
               f"--logits={logits}", f"--stats={work / 'stats.json'}", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Mismatch(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    answers = {str(a["id"]): a for a in map(json.loads, open(work / "out.jsonl"))}
    tokens = {name: answer["tokens"] for name, answer in answers.items()}
    return tokens, {name: np.load(logits / f"{name}.npy") for name in tokens}, json.load(open(work / "stats.json"))


def compare(case, tokens, logits, tolerance=2e-4):
    reference = np.load(case / "logits.npz")
    for index, request in enumerate(requests_of(case)):
        name = str(request["id"])
        want = reference[f"req{index}"]
        if tokens[name] != request["tokens"]:
            raise Mismatch(f"{case.name}, request {name}: tokens {tokens[name]}, expected {request['tokens']}")
        error = np.max(np.abs(logits[name] - want)) / np.max(np.abs(want))
        if not error <= tolerance:
            raise Mismatch(f"{case.name}, request {name}: relative error {error:.3g} of logits, allowed {tolerance:.3g}")


def cases(folder, names):
    return [pathlib.Path(folder) / name for name in names]
