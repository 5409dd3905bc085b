#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the experiments on KV memory and the timed bars, and writes their results as JSON and as a page.

    run.py                             everything: under 15 minutes on 2 cores; about 2 GB of disk, 3 GB of memory
    run.py --only=E1,E4 --no-page      two experiments, results only
    run.py --only=E1 --quick           seconds: shows that it works, and little about the numbers
    run.py --only=E13 --soak=600       ten minutes of churn

E1 to E13 come from quire-kv-experiments, whose --list names them; they run on clocks that count what things would cost, except where they
time copies, codecs and tables. `bars` are the cases of quire-kv-bench and, where quire-kernel-bench is there, paged against contiguous
attention. `costs` are those of steps of a compiled model and of ONNX Runtime, for E2, E3 and E8: from benchmarks/results/models.json. Where quirec and quire-run
are there, E2 and E3 are also run end to end on a compiled model, E2 against ONNX Runtime with a contiguous cache. What is not there is left out.

Results are E1.json and so on, bars.json, attention.json, costs.json and run.json. The page is docs/KvExperiments.md, by report.py.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from machine import machine  # noqa: E402

TIMED = ["bars", "costs"]
WITH_COSTS = ("E2", "E3", "E8")
COMPILED = ("quirec", "quire-run")


class Tools:
    """Programs by name, in the first folder that has them."""

    def __init__(self, folders):
        self.folders = folders

    def find(self, name):
        return next((folder / name for folder in self.folders if os.access(folder / name, os.X_OK)), None)

    def need(self, name):
        return self.find(name) or sys.exit(f"{name}: not in {', '.join(map(str, self.folders))}; build it, or name its folder by --bin")

    def can_compile(self):
        return all(self.find(name) for name in COMPILED)


def say(words):
    print(words, file=sys.stderr, flush=True)


def write(path, results):
    path.write_text(json.dumps(results, indent=1) + "\n")


def bars(tools, options):
    """Google Benchmark's own JSON, of the pool and of attention; single runs of each repetition."""
    least = 0.01 if options.quick else 0.1
    for name, program, select in (("bars", "quire-kv-bench", []), ("attention", "quire-kernel-bench", ["--benchmark_filter=attend_paged"])):
        found = tools.need(program) if name == "bars" else tools.find(program)
        if not found:
            say(f"no {program}: {name} left out")
            continue
        command = [found, f"--benchmark_repetitions={options.repeats}", f"--benchmark_out={options.results / name}.json", "--benchmark_out_format=json", f"--benchmark_min_time={least}", *select]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def experiment(name, tools, options):
    program = tools.need("quire-kv-experiments")
    command = [program, name, f"--seed={options.seed}", f"--repeats={options.repeats}", f"--soak={options.soak}"]
    costs = options.results / "costs.json"
    if name in WITH_COSTS and costs.exists():
        command.append(f"--costs={costs}")
    if options.quick:
        command.append("--quick")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    results = json.loads(done.stdout)[name]
    if name in ("E2", "E3") and tools.can_compile():
        import end_to_end
        results["end_to_end"] = end_to_end.run(name, tools, options)
    write(options.results / f"{name}.json", results)
    return results


def costs(options):
    measured = ROOT / "benchmarks" / "results" / "models.json"
    if not measured.exists():
        say(f"no {measured.name}, which benchmarks/models.py writes: costs of steps are not known")
        return
    from costs import from_models
    write(options.results / "costs.json", from_models(json.loads(measured.read_text())))


def run_part(part, tools, options):
    start = time.monotonic()
    say(f"== {part}")
    if part == "bars":
        bars(tools, options)
    elif part == "costs":
        costs(options)
    else:
        for one in experiment(part, tools, options)["claims"]:
            say(f"   {'holds' if one['holds'] else 'DIFFERS'}: {one['claim']}: {one['measured']:.4g} (expected {one['least']:.4g} to {one['most']:.4g})")
    return time.monotonic() - start


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folders of the programs, by commas; build/bin")
    parser.add_argument("--only", help="bars, costs and experiments by commas; all")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; results are not for the page")
    parser.add_argument("--seed", type=int, default=1, help="of the first repetition (1)")
    parser.add_argument("--repeats", type=int, default=5, help="of what is random or timed (5)")
    parser.add_argument("--soak", type=int, default=10, help="seconds of E13 (10)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the engines; all cores")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "benchmarks" / "results" / "kv", help="where results go")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".cache" / "benchmarks", help="where models are written")
    parser.add_argument("--no-page", action="store_true", help="do not write docs/KvExperiments.md")
    options = parser.parse_args()
    if options.quick and options.results == ROOT / "benchmarks" / "results" / "kv":
        parser.error("--quick: expected --results=DIR beside it, as the page is made from the results of whole runs")
    return options


def parts_of(tools, only):
    listed = subprocess.run([tools.need("quire-kv-experiments"), "--list"], check=True, capture_output=True, text=True).stdout
    known = TIMED + [line.split()[0] for line in listed.splitlines()]
    parts = only.split(",") if only else known
    for part in parts:
        if part not in known:
            sys.exit(f"--only: expected {', '.join(known)}, but got '{part}'")
    return parts


def main():
    options = parse()
    tools = Tools([pathlib.Path(folder) for folder in options.bin.split(",")])
    parts = parts_of(tools, options.only)
    options.results.mkdir(parents=True, exist_ok=True)
    stamp = options.results / "run.json"
    facts = json.loads(stamp.read_text()) if stamp.exists() else {"parts": {}}
    for part in parts:
        seconds = run_part(part, tools, options)
        facts["parts"][part] = {"seconds": round(seconds, 1), "date": datetime.date.today().isoformat(), "load": round(os.getloadavg()[0], 1)}
        write(stamp, {**facts, "machine": machine()})
    if not (options.no_page or options.quick):
        subprocess.run([sys.executable, HERE / "report.py", f"--results={options.results}"], check=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as problem:
        sys.exit(f"{pathlib.Path(problem.cmd[0]).name}: exit code {problem.returncode}: {(problem.stderr or '').strip()}")
