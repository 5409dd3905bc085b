#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the shell commands of tutorials and prints what they print; a command that fails ends it. What builds the project is left out."""
import argparse
import pathlib
import re
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bin", required=True, help="in place of build/bin")
parser.add_argument("--folder", required=True, help="in place of /tmp")
parser.add_argument("--shown", action="store_true", help="commands may fail, and print what the page shows after them")
parser.add_argument("source", type=pathlib.Path)
parser.add_argument("pages", nargs="+")
options = parser.parse_args()

for page in options.pages:
    text = (options.source / "docs/tutorials" / page).read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    commands = "".join(code for language, code in blocks if language == "sh" and "scripts/setup" not in code)
    commands = re.sub("build/bin/|/tmp/", lambda found: (options.folder if found[0] == "/tmp/" else options.bin) + "/", commands)
    done = subprocess.run(["bash", "-u" if options.shown else "-eu", "-c", commands], cwd=options.source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{page}: a command ended with {done.returncode}")
    missing = [code for language, code in blocks if options.shown and not language and code not in done.stdout]
    if missing:
        sys.exit(f"{page}: shows what is not printed:\n{missing[0]}")
