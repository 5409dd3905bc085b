# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of scripts/check: build, unit tests, lit suite, sanitized tests, fuzz targets, and on request the acceptance sets."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
COMPILERS = ["-G", "Ninja", "-DCMAKE_C_COMPILER=/usr/bin/clang-22", "-DCMAKE_CXX_COMPILER=/usr/bin/clang++-22", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld",
             "-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld", "-DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld"]

# A sanitized test must fail, not go on, when something is found.
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                     "TSAN_OPTIONS": "halt_on_error=1"}


def flags(words):
    """Those of every file, C and C++, instead of a build type's: no debug information, assertions stay."""
    return ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={words}", f"-DCMAKE_C_FLAGS_RELEASE={words}"]


class Tally:
    """Counts tests and names those that failed."""

    def __init__(self):
        self.passed, self.skipped, self.failures = 0, 0, []

    def one(self, name, good):
        if good:
            self.passed += 1
        else:
            self.failures.append(name)
        return good


def stage(words):
    print(f"\n== {words}", flush=True)
    return time.monotonic()


def run(command, capture=False, **options):
    """Echoes and runs a command; gives its exit code and, when captured, its output, which is printed too."""
    command = [str(part) for part in command]
    print("$ " + " ".join(command), flush=True)
    options.setdefault("cwd", ROOT)
    if not capture:
        return subprocess.run(command, **options).returncode, ""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    print(done.stdout, end="", flush=True)
    return done.returncode, done.stdout


def build(tally, name, folder, configure, targets=()):
    """Configures and builds; a failure counts as one failed test."""
    start = stage(f"build: {name}")
    good = run(["cmake", *configure, "-B", folder])[0] == 0
    if good:
        command = ["cmake", "--build", folder, "--parallel", os.cpu_count()]
        good = run(command + (["--target", *targets] if targets else []))[0] == 0
    print(f"{'built' if good else 'failed'} after {time.monotonic() - start:.0f} s")
    return tally.one(f"build {name}", good)


def ctest(tally, name, folder, environment=None, select=()):
    """Runs the tests of a build folder that ctest knows."""
    stage(f"tests: {name}")
    command = ["ctest", "--test-dir", folder, "--parallel", os.cpu_count(), "--output-on-failure", "--no-tests=error", "--progress", *select]
    code, output = run(command, capture=True, env={**os.environ, **(environment or {})})
    summary = re.search(r"(\d+) tests failed out of (\d+)", output)
    if not summary:
        tally.one(f"{name}: ctest", False)
        return
    failed, total = int(summary[1]), int(summary[2])
    tally.passed += total - failed
    named = re.findall(r"^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess|Not Run|ILLEGAL|BAD)", output, re.M)
    tally.failures += [f"{name}: {test}" for test in (named or ["?"] * failed)]
    if code and not failed:
        tally.one(f"{name}: ctest", False)


def lit(tally):
    """Runs the lit suite; tests without their feature are counted apart."""
    stage("tests: lit suite")
    results = BUILD / "lit-results.json"
    results.unlink(missing_ok=True)
    code, _ = run([ROOT / ".deps/venv/bin/lit", "-sv", "-j", os.cpu_count(), "-o", results, BUILD / "test"])
    if not results.exists():
        tally.one("lit suite", False)
        return
    tests = json.loads(results.read_text())["tests"]
    for test in tests:
        if test["code"] == "PASS":
            tally.passed += 1
        elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            tally.skipped += 1
        else:
            tally.failures.append(f"lit: {test['name']}")
    if not tests or (code and not any(name.startswith("lit: ") for name in tally.failures)):
        tally.one("lit suite", False)


def sanitized(tally, fuzz_seconds):
    """Runtime and importer under AddressSanitizer and UndefinedBehaviorSanitizer, with their fuzz targets; the runtime also under ThreadSanitizer."""
    runtime, threads, importer = (ROOT / "build-check" / name for name in ("runtime-asan", "runtime-tsan", "importer-asan"))
    if build(tally, runtime.name, runtime, ["-S", "runtime", *COMPILERS, *flags("-O1"), "-DQUIRE_SANITIZE=address,undefined", "-DQUIRE_BUILD_FUZZERS=ON"]):
        ctest(tally, runtime.name, runtime, SANITIZER_OPTIONS)
        fuzz(tally, runtime, fuzz_seconds)
    if build(tally, threads.name, threads, ["-S", "runtime", *COMPILERS, *flags("-O1"), "-DQUIRE_SANITIZE=thread"]):
        ctest(tally, threads.name, threads, SANITIZER_OPTIONS)
    configure = ["-S", ".", *COMPILERS, *flags("-O0"), "-DCMAKE_PREFIX_PATH=/usr/lib/llvm-22", "-DQUIRE_SANITIZE=address,undefined", "-DQUIRE_BUILD_FUZZERS=ON"]
    if build(tally, importer.name, importer, configure, ["ImportTests", "ImportFuzzer"]):
        stage(f"tests: {importer.name}")
        code, output = run([importer / "unit/ImportTests", "--gtest_brief=1"], capture=True, env={**os.environ, **SANITIZER_OPTIONS})
        passed = re.search(r"^\[  PASSED  \] (\d+) tests?", output, re.M)
        tally.passed += int(passed[1]) if passed else 0
        tally.failures += [f"{importer.name}: {name}" for name in sorted(set(re.findall(r"^\[  FAILED  \] (\S+)", output, re.M)))]
        if code and not any(name.startswith(importer.name) for name in tally.failures):
            tally.one(f"{importer.name}: ImportTests", False)
        fuzz(tally, importer, fuzz_seconds)


def installed(tally):
    """Installs the release build, and builds and runs a project that uses it."""
    prefix, folder = ROOT / "build-check/prefix", ROOT / "build-check/consumer"
    stage("install")
    if tally.one("install", run(["cmake", "--install", BUILD, "--prefix", prefix], stdout=subprocess.DEVNULL)[0] == 0):
        paths = f"-DCMAKE_PREFIX_PATH={prefix};/usr/lib/llvm-22"
        if build(tally, "consumer", folder, ["-S", "test/Install", *COMPILERS, paths]):
            ctest(tally, "consumer", folder)


def fuzz(tally, folder, seconds):
    """Every libFuzzer target of a build folder for a while, one a core; each starts from its seeds and from what earlier runs found."""
    stage(f"fuzzing: {folder.name}, {seconds} s each")
    programs = [path for path in sorted(folder.rglob("*Fuzzer")) if path.is_file() and os.access(path, os.X_OK)]

    def one(program):
        found = ROOT / "build-check/fuzz-found" / program.name
        found.mkdir(parents=True, exist_ok=True)
        seeds = [path for path in (ROOT / "test/Fuzz").rglob(f"{program.name}-seeds") if path.is_dir()]
        command = [program, f"-max_total_time={seconds}", "-verbosity=0", "-print_final_stats=1", "-rss_limit_mb=4096",
                   f"-artifact_prefix={found.parent}/", found, *seeds]
        return run(command, capture=True, env={**os.environ, **SANITIZER_OPTIONS})[0] == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for program, good in zip(programs, pool.map(one, programs)):
            tally.one(f"fuzz: {program.name}", good)
    if not programs:
        tally.one(f"fuzz: no targets in {folder.name}", False)


def accept(tally):
    """The acceptance sets, which lie beside the folder of models that QUIRE_MODEL_CORPUS names."""
    corpus = pathlib.Path(os.environ["QUIRE_MODEL_CORPUS"]).resolve()
    program = corpus.parent / "accept/accept.py"
    for name in ("spine", "refuse-spine"):
        stage(f"acceptance: {name}")
        code, output = run([sys.executable, program, "--bin", BUILD / "bin", "--corpus", corpus / "hf", "--set", name], capture=True)
        summary = re.search(r"(\d+) passed, (\d+) failed\s*$", output)
        if not summary:
            tally.one(f"acceptance: {name}", False)
            continue
        tally.passed += int(summary[1])
        tally.failures += [f"acceptance: {name}"] * int(summary[2])
        if code and not int(summary[2]):
            tally.one(f"acceptance: {name}", False)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="build, unit tests and lit suite only")
    parser.add_argument("--fuzz-seconds", type=int, default=15, help="time of each fuzz target (15)")
    parser.add_argument("--accept", action="store_true", help="also the acceptance sets beside the folder that the environment variable QUIRE_MODEL_CORPUS names")
    options = parser.parse_args()
    if options.accept and not os.environ.get("QUIRE_MODEL_CORPUS"):
        parser.error("--accept: expected the folder of models in the environment variable QUIRE_MODEL_CORPUS")
    return options


def main():
    options, tally, start = arguments(), Tally(), time.monotonic()
    if build(tally, "release", BUILD, ["--preset", "release"], ["all", "quire-unit-tests"]):
        ctest(tally, "unit tests", BUILD)
        lit(tally)
        if not options.quick:
            installed(tally)
        if options.accept:
            accept(tally)
    if not options.quick:
        sanitized(tally, options.fuzz_seconds)
    stage(f"done after {time.monotonic() - start:.0f} s")
    for name in tally.failures:
        print(f"FAILED {name}")
    if tally.skipped:
        print(f"{tally.skipped} tests were skipped: what they need is not here")
    print(f"{tally.passed} passed, {len(tally.failures)} failed", flush=True)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
