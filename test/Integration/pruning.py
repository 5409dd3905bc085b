# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dialogues whose old turns are pruned, in every mode of the scheduler, against ONNX Runtime on the exported graph: rows that were dropped are removed from its
caches, position_ids are those of the whole dialogue, and the mask is as long as what is left. Models that need positions of keys are refused.

    pruning.py TOOLS MODELS WORK
"""
import collections
import json
import math
import pathlib
import shutil
import sys

import numpy as np
import onnxruntime

import corpus

CASES = ["opt-llama", "mobius-llama"]
REFUSED = "opt-mistral-sw"
RULES = [dict(recent_turns=1, recent_pages=0, important_pages=[], ratio=0.5), dict(recent_turns=2, recent_pages=2, important_pages=[0], ratio=0.75)]
# Prompt lengths and turns, around the multiples of blocks.
DIALOGUES = [(60, [5, 28, 44, 60]), (30, []), (48, [20, 40, 47]), (120, [20, 45, 70, 96, 112])]
NEW_TOKENS = 48


def requests(vocabulary):
    random = np.random.default_rng(5)
    rare = [int(token) for token in random.integers(0, vocabulary, 200)]
    made = []
    for number, (length, turns) in enumerate(DIALOGUES):
        prompt = [rare[int(random.integers(200))] if i % 2 else int(random.integers(6)) for i in range(length)]
        made.append({"id": f"d{number}", "prompt": prompt, "max_new_tokens": NEW_TOKENS, "turns": turns})
    return made


class Reference:
    """One sequence of the original graph, with a cache that rows can be taken out of."""

    def __init__(self, session):
        self.session = session
        self.caches = {}
        for item in session.get_inputs():
            if item.name.startswith("past_key_values"):
                self.caches[item.name] = np.zeros((1, item.shape[1], 0, item.shape[3]), np.float32)
        self.positions = []  # of the rows of the caches
        self.next = 0

    def append(self, tokens):
        rows = len(tokens)
        feeds = dict(self.caches, input_ids=np.array([tokens], np.int64), attention_mask=np.ones((1, len(self.positions) + rows), np.int64),
                     position_ids=np.arange(self.next, self.next + rows, dtype=np.int64)[None])
        names = [output.name for output in self.session.get_outputs()]
        outputs = dict(zip(names, self.session.run(names, feeds)))
        self.positions += range(self.next, self.next + rows)
        self.next += rows
        for name in self.caches:
            self.caches[name] = outputs[name.replace("past_key_values", "present")]
        return outputs["logits"][0, -1]

    def keep(self, places):
        self.positions = [self.positions[place] for place in places]
        for name, cache in self.caches.items():
            self.caches[name] = cache[:, :, places]


def expected(session, request, rules, block):
    """Tokens, logits and the number of blocks that became free, by the words of docs/Runtime.md."""
    sequence, prompt, treated, freed = Reference(session), request["prompt"], 0, 0
    rows, tokens = [], []
    for position, token in enumerate(prompt):
        row = sequence.append([token])
        if position + 1 == len(prompt):
            rows.append(row)
        if position + 1 not in request["turns"]:
            continue
        turn = request["turns"].index(position + 1)
        if turn < rules["recent_turns"]:
            continue
        length = len(sequence.positions)
        old = sum(p < request["turns"][turn - rules["recent_turns"]] for p in sequence.positions)
        begin = max([treated] + [(page + 1) * block for page in rules["important_pages"]])
        end = min(old // block, -(-length // block) - rules["recent_pages"]) * block
        count = end - begin
        kept = -(-math.ceil((1 - rules["ratio"]) * count - 1e-9) // block) * block
        if count <= 0 or kept >= count:
            continue
        common = collections.Counter(prompt[:position + 1])
        best = sorted(range(begin, end), key=lambda place: (common[prompt[sequence.positions[place]]], place))[:kept]
        sequence.keep(list(range(begin)) + sorted(best) + list(range(end, length)))
        treated, freed = begin + kept, freed + (count - kept) // block
    while len(tokens) < request["max_new_tokens"]:
        tokens.append(int(np.argmax(rows[-1])))
        rows.append(sequence.append([tokens[-1]]))
    return tokens, np.array(rows[:-1]), freed


def modes(block_bytes, blocks, work):
    """quire-run's options, and what its statistics must say."""
    yield "solo", ["--max-batch=1"], lambda s: True
    yield "batch", ["--max-batch=8"], lambda s: s["max_sequences_in_step"] == len(DIALOGUES)
    yield "shuffle", ["--max-batch=8", "--shuffle-blocks=7", "--poison-free-blocks"], lambda s: True
    yield "chunk", ["--max-batch=3", "--prefill-chunk=5"], lambda s: 0 < s["max_prefill_tokens_in_step"] <= 5
    yield "pressure", ["--max-batch=8", f"--kv-bytes={block_bytes * (blocks + 1)}"], lambda s: s["preemptions"] >= 1
    yield "prefix", ["--max-batch=2", "--prefix-cache", f"--kv-bytes={block_bytes * (blocks + 6)}"], lambda s: s["prefix"]["queries"] > 0
    yield "tiers", ["--max-batch=8", f"--kv-bytes={block_bytes * (blocks + 2)}", "--slow-tier=memory", "--slow-bytes=64MiB", "--poison-free-blocks"], \
        lambda s: s["tiers"]["write_backs"] > 0


def check(tools, model, case, block_tokens, rules, work):
    report = corpus.compile_model(tools, case / "model.onnx", model, f"--block-tokens={block_tokens}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(case / "model.onnx"), options)
    todo = requests(json.load(open(model / "manifest.json"))["vocabulary"])
    want = {request["id"]: expected(session, request, rules, block_tokens) for request in todo}
    freed = sum(item[2] for item in want.values())
    if freed == 0:
        raise corpus.Mismatch(f"{case.name}: nothing is pruned by {rules}")
    config = work / f"{model.stem}.yaml"
    config.write_text("dialogue: {recent_turns: %d, recent_pages: %d, important_pages: %s, compression: {method: pruning, ratio: %g}}\n" %
                      (rules["recent_turns"], rules["recent_pages"], rules["important_pages"], rules["ratio"]))
    blocks = max(-(-(len(request["prompt"]) + NEW_TOKENS) // block_tokens) for request in todo)
    for mode, options, happened in modes(report["kv_bytes_per_token"] * block_tokens, blocks, work):
        tokens, logits, stats = corpus.serve(tools, model, todo, work / f"{model.stem}.{mode}", *options, f"--config={config}")
        where = f"{case.name}, blocks of {block_tokens}, {rules}, mode {mode}"
        for name, (want_tokens, want_rows, _) in want.items():
            if tokens[name] != want_tokens:
                raise corpus.Mismatch(f"{where}, request {name}: tokens {tokens[name]}, expected {want_tokens}")
            error = np.max(np.abs(logits[name] - want_rows)) / np.max(np.abs(want_rows))
            if not error <= 2e-4:
                raise corpus.Mismatch(f"{where}, request {name}: relative error {error:.3g} of logits")
        again = stats["pruned"]["blocks"] - freed
        if not happened(stats) or again < 0 or (again > 0 and stats["preemptions"] == 0):
            raise corpus.Mismatch(f"{where} did not happen, or {freed} blocks were not pruned: {stats['pruned']}, {stats['preemptions']} preemptions")
        yield again


def refusal(tools, model, case, work):
    """A window counts positions: the compiler says so of its layers, and quire-run refuses before it begins."""
    corpus.compile_model(tools, case / "model.onnx", model)
    config = work / "refused.yaml"
    config.write_text("dialogue: {compression: {method: pruning}}\n")
    try:
        corpus.serve(tools, model, requests(97)[:1], work / "refused", f"--config={config}")
    except corpus.Mismatch as refused:
        if "layer 0 of the model takes the place of a key for its position" in str(refused):
            return
        raise
    raise corpus.Mismatch(f"{case.name} is pruned though its window counts positions")


def main():
    tools, models, work = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    passed, again, failures = 0, 0, []
    for case in corpus.cases(models, CASES):
        for number, rules in enumerate(RULES):
            for block_tokens in 8, 16:
                try:
                    for repeated in check(tools, work / f"{case.name}-{number}-{block_tokens}.quire", case, block_tokens, rules, work):
                        passed += 1
                        again += repeated
                except corpus.Mismatch as problem:
                    failures.append(str(problem))
    try:
        refusal(tools, work / "refused.quire", models / REFUSED, work)
        passed += 1
    except corpus.Mismatch as problem:
        failures.append(str(problem))
    if again == 0:
        failures.append("nobody who gave way was pruned again")
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
