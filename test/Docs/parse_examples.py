# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs quire-opt on every mlir block of the Markdown files below a folder."""
import pathlib
import re
import subprocess
import sys

count = 0
for page in sorted(pathlib.Path(sys.argv[1]).rglob("*.md")):
    for block in re.findall(r"^```mlir\n(.*?)^```", page.read_text(), re.S | re.M):
        options = ["--split-input-file", "--verify-diagnostics"] if "expected-" in block else []
        done = subprocess.run(["quire-opt", *options, "-o", "/dev/null"], input=block, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"{page}: example {count}: {done.stderr}\n{block}")
        count += 1
print(f"{count} examples")
