# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the runtime with one known bug at a time and demands that its tests fail; prints a table and the bugs that survive."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "test/Mutants/runtime.yaml"
COPIED = ["runtime", "include", "tools", "benchmarks/kv", "test/Unit/Runtime", "test/Unit/Experiments", "docs/Runtime.md"]
NOT_BUILT = ["test/Fuzz/Runtime"]  # without QUIRE_BUILD_FUZZERS
COMPILERS = ["-G", "Ninja", "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -UNDEBUG",
             "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"]
# What finds most, first.
FIRST = "*PoolModel*:PoolPrograms.Known*:PrefixCache.*:Tenant.*:Pager.*"
SECONDS = 900  # that the tests may take


def mutants(names):
    listed = yaml.safe_load(MUTANTS.read_text())
    unknown = set(names) - {mutant["name"] for mutant in listed}
    if unknown:
        sys.exit(f"no mutant is called {', '.join(sorted(unknown))}")
    return [mutant for mutant in listed if not names or mutant["name"] in names]


def problem(mutant, source):
    """Why the mutant cannot be made of these sources, or None."""
    path = source / "runtime" / mutant["file"]
    if not path.is_file():
        return "there is no such file"
    count = path.read_text().count(mutant["old"])
    return None if count == 1 else f"expected its old text once, but got it {count} times"


def not_copied():
    """Folders that the runtime's build adds and that a copy would lack."""
    added = re.findall(r'add_subdirectory\("\$\{QUIRE_ROOT\}/([^"]+)"', (ROOT / "runtime/CMakeLists.txt").read_text())
    return [folder for folder in added if folder not in NOT_BUILT and not any((folder + "/").startswith(name + "/") for name in COPIED)]


def tests(program, pattern):
    """Whether they pass, and how it ended."""
    command = [program, f"--gtest_filter={pattern}", "--gtest_brief=1", "--gtest_fail_fast"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, "does not end"
    failed = [line.split()[3].rstrip(",") for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]") and len(line.split()) > 3 and "." in line]
    return done.returncode == 0, failed[0] if failed else f"exit code {done.returncode}"


def compiles(build, log):
    return subprocess.run(["cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", "RuntimeTests"], stdout=log, stderr=log).returncode == 0


def examine(mutant, source, build, log):
    """One of "killed", "survived" and "does not compile", and what killed it. The sources are as before afterwards."""
    path = source / "runtime" / mutant["file"]
    text = path.read_text()
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        if not compiles(build, log):
            return "does not compile", ""
        program = build / "unit/RuntimeTests"
        good, how = tests(program, FIRST)
        if good:
            good, how = tests(program, f"-{FIRST}")
        return ("survived", "") if good else ("killed", how)
    finally:
        path.write_text(text)


def copy_changed(source, target):
    """With the time of now: a file with its old time would look older than what was built of a mutant. One that is the same stays, as does what was built of it."""
    source, target = pathlib.Path(source), pathlib.Path(target)
    if not target.exists() or source.read_bytes() != target.read_bytes():
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of mutants; none: all")
    parser.add_argument("--check", action="store_true", help="only see whether each can still be made")
    parser.add_argument("--scratch", type=pathlib.Path, help="folder for the copy and its build, kept afterwards; without it a temporary one")
    return parser.parse_args()


def run(chosen, scratch):
    source, build = scratch / "source", scratch / "build"
    for name in COPIED:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, dirs_exist_ok=True, copy_function=copy_changed)
        else:
            copy_changed(ROOT / name, target)
    with open(scratch / "log.txt", "w") as log:
        configured = subprocess.run(["cmake", "-S", source / "runtime", "-B", build, *COMPILERS], stdout=log, stderr=log).returncode == 0
        if not configured or not compiles(build, log):
            sys.exit(f"the runtime does not build; see {scratch / 'log.txt'}")
        good, how = tests(build / "unit/RuntimeTests", "*")
        if not good:
            sys.exit(f"the tests fail without any mutant: {how}")
        return table(chosen, source, build, log)


def table(chosen, source, build, log):
    """Examines all and prints how each went; gives those that were not killed."""
    alive = []
    for mutant in chosen:
        start = time.monotonic()
        result, how = examine(mutant, source, build, log)
        print(f"{mutant['name']:44} {result:16} {time.monotonic() - start:4.0f} s  {how}", flush=True)
        if result != "killed":
            alive.append(mutant["name"])
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed" + "".join(f"\n{name} is alive" for name in alive))
    return alive


def main():
    options = arguments()
    chosen = mutants(options.names)
    wrong = [f"{mutant['name']}: {mutant['file']}: {reason}" for mutant in chosen if (reason := problem(mutant, ROOT))]
    wrong += [f"runtime/CMakeLists.txt: {folder}: expected it among what is copied" for folder in not_copied()]
    if wrong:
        sys.exit("\n".join(wrong))
    if options.check:
        return 0
    if options.scratch:
        options.scratch.mkdir(parents=True, exist_ok=True)
        return 1 if run(chosen, options.scratch.resolve()) else 0
    with tempfile.TemporaryDirectory(prefix="quire-mutants-") as folder:
        return 1 if run(chosen, pathlib.Path(folder)) else 0


if __name__ == "__main__":
    sys.exit(main())
