#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quire against ONNX Runtime: whole models with the same weights, alternating in one run.

    models.py [--bin=build/bin] [--shape=S] [--cells=1x128,1x1024,8x1024,8ragged,prefill512,busy] [--rounds=4] [--json=FILE]

A ratio is ONNX Runtime's time over Quire's, of two measurements right after each other. Milliseconds are there to judge what a ratio is
about; they do not compare across runs.

cells: BxL       one decode step of B sequences with L tokens each; a measurement is the median of 8 steps, or of
                 3 where a step takes one of the engines more than a second
       8ragged   one decode step of 8 sequences with 836 to 4095 tokens
       prefillN  a new sequence of N tokens
       busy      the cell 8x1024, calm and while another process keeps one core busy: the share of the throughput that is left
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import onnxruntime

import decoders
from machine import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RAGGED = [4095, 3759, 3360, 1557, 1802, 3681, 836, 3510]
CELLS = "1x128,1x1024,8x1024,8ragged,prefill512,busy"
BUSY_CELL = "8x1024"
STEPS, SLOW_STEPS, WARM_UP = 8, 3, 2
SLOW = 1.0  # seconds of a step, from which on a measurement has fewer


class EngineError(Exception):
    pass


class Engine:
    """A process that answers the line protocol."""

    def __init__(self, name, command, threads):
        self.name = name
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.process.communicate('{"op": "quit"}\n', timeout=20)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()

    def ask(self, op, **arguments):
        try:
            self.process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise EngineError(f"{self.name}: {op}: {answer['error']}")
        return answer

    def prepare(self, cell, room):
        """Warms up; returns the seconds of the last step."""
        if cell.is_prefill:
            return self.ask("prefill", n=cell.tokens)["t"]
        self.ask("setup", ctx=cell.lengths, room=room)
        return self.ask("steps", n=WARM_UP)["steps"][-1]

    def seconds(self, cell):
        if cell.is_prefill:
            return self.ask("prefill", n=cell.tokens)["t"]
        return statistics.median(self.ask("steps", n=cell.steps)["steps"])

    def peak(self):
        return self.ask("mem")["VmHWM"]


class Cell:
    steps = STEPS  # of a measurement

    def __init__(self, name):
        self.name = name
        self.is_busy, self.is_prefill = name == "busy", name.startswith("prefill")
        if self.is_busy:
            name = BUSY_CELL
        if self.is_prefill:
            self.tokens = int(name.removeprefix("prefill"))
        elif name == "8ragged":
            self.lengths = RAGGED
        else:
            sequences, length = map(int, name.split("x"))
            self.lengths = [length] * sequences


class BusyCore:
    """Keeps one core busy inside a `with`."""

    LOOP = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"

    def __enter__(self):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, "-c", self.LOOP, str(core)], stdout=subprocess.PIPE)
        self.process.stdout.readline()  # it runs from here on

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def busy_seconds():
    with open("/proc/stat") as file:
        user, nice, system, _, _, interrupts, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


class Calm:
    """Waits for moments in which other programs use less than `limit` of a core, and counts those that did not come."""

    def __init__(self, patience, limit=0.1, pause=0.25):
        self.patience, self.limit, self.pause = patience, limit, pause
        self.missed = 0

    def wait(self):
        end = time.monotonic() + self.patience
        while True:
            before = busy_seconds()
            time.sleep(self.pause)
            if busy_seconds() - before < self.limit * self.pause:
                return
            if time.monotonic() >= end:
                self.missed += 1
                return


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def one_round(engines, cell, calm=None):
    """Seconds, one an engine."""
    times = []
    for engine in engines:
        if calm:
            calm.wait()
        times.append(engine.seconds(cell))
    return times


def ratio_row(engines, cell, rounds, calm):
    times = [one_round(engines, cell, calm) for _ in range(rounds)]
    ours, theirs = zip(*times)
    return {"cell": cell.name, "ours_ms": 1e3 * statistics.median(ours), "theirs_ms": 1e3 * statistics.median(theirs),
            "ratio": spread([b / a for a, b in times]), "ours_peak": engines[0].peak(), "theirs_peak": engines[1].peak()}


def busy_row(engines, cell, rounds, calm):
    shares, ratios = [], []
    for _ in range(rounds):
        alone = one_round(engines, cell, calm)
        with BusyCore():
            beside = one_round(engines, cell)
        shares.append([a / b for a, b in zip(alone, beside)])
        ratios.append(beside[1] / beside[0])
    ours, theirs = zip(*shares)
    return {"cell": BUSY_CELL, "ours_share": spread(ours), "theirs_share": spread(theirs), "ratio": spread(ratios)}


def measure(form, cell, folder, options):
    """One cell, in fresh processes: so the peak of memory is this cell's."""
    ours = [options.bin / "quire-bench", folder / f"{form}.quire", "--serve", f"--threads={options.threads}"]
    theirs = [sys.executable, HERE / "ort_worker.py", form, folder / f"{form}.onnx", str(options.threads)]
    with Engine("Quire", ours, options.threads) as quire, Engine("ONNX Runtime", theirs, options.threads) as peer:
        calm, rounds = Calm(options.patience), options.rounds
        room = WARM_UP + STEPS * rounds * (2 if cell.is_busy else 1)
        slowest = max(engine.prepare(cell, room) for engine in (quire, peer))
        cell.steps = STEPS if slowest < SLOW else SLOW_STEPS
        row = (busy_row if cell.is_busy else ratio_row)([quire, peer], cell, rounds, calm)
        return {"form": form, **row, "disturbed": calm.missed}


def line_of(row):
    ratio = "ratio {median:.2f} [{least:.2f}, {most:.2f}]".format(**row["ratio"])
    if "ours_share" in row:
        shares = [f"{row[key]['median']:9.0%} left" for key in ("ours_share", "theirs_share")]
        return f"{row['form']:7} {'busy':11} {shares[0]} {shares[1]}   {ratio}"
    times = f"{row['ours_ms']:11.2f} ms {row['theirs_ms']:11.2f} ms"
    return f"{row['form']:7} {row['cell']:11} {times}   {ratio:27} peak {row['ours_peak'] / 1e9:.2f} / {row['theirs_peak'] / 1e9:.2f} GB"


def compile_model(folder, form, quirec):
    """Compiles anew: an older model folder would measure an older compiler. Returns seconds."""
    package = folder / f"{form}.quire"
    shutil.rmtree(package, ignore_errors=True)
    start = time.perf_counter()
    subprocess.run([quirec, folder / f"{form}.onnx", "-o", package, "--quiet"], check=True)
    return time.perf_counter() - start


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin", help="folder of quirec and quire-bench")
    parser.add_argument("--shape", default="S", choices=decoders.SHAPES)
    parser.add_argument("--cells", default=CELLS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--patience", type=float, default=5, help="seconds to wait, before each measurement, for other programs to be calm")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".cache" / "benchmarks", help="where models are written")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1:
        parser.error("expected at least one round and one thread")
    try:
        return options, [Cell(name) for name in options.cells.split(",")]
    except ValueError:
        parser.error(f"--cells={options.cells}: expected BxL, 8ragged, prefillN or busy, separated by commas")


def main():
    options, cells = parse()
    folder = options.folder / options.shape
    decoders.write_models(options.shape, folder)
    compiled = {form: compile_model(folder, form, options.bin / "quirec") for form in decoders.FORMS}
    print(f"{'form':7} {'cell':11} {'Quire':>14} {'ONNX Runtime':>14}   median [least, most]        peak of Quire / ONNX Runtime", flush=True)
    rows = []
    for form in decoders.FORMS:
        for cell in cells:
            rows.append(measure(form, cell, folder, options))
            print(line_of(rows[-1]), flush=True)
    if options.json:
        version = subprocess.run([options.bin / "quirec", "--version"], check=True, capture_output=True, text=True).stdout
        results = {"date": datetime.date.today().isoformat(), "machine": machine(),
                   "versions": {"quire": version.split()[1], "onnxruntime": onnxruntime.__version__},
                   "command": ".deps/venv/bin/python benchmarks/models.py " + " ".join(f"--{key}={getattr(options, key)}" for key in ("shape", "cells", "rounds", "threads")),
                   "shape": json.loads((folder / "shape.json").read_text()), "rounds": options.rounds, "threads": options.threads, "steps": STEPS, "slow_steps": SLOW_STEPS,
                   "compile_seconds": compiled, "rows": [row for row in rows if "ours_share" not in row],
                   "busy": [row for row in rows if "ours_share" in row]}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except EngineError as problem:
        sys.exit(str(problem))
