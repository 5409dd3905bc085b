# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports every ONNX file below a folder and parses the print again: import_corpus.py FOLDER QUIRE-OPT."""
import pathlib
import subprocess
import sys

folder, tool = sys.argv[1:]
failures = imported = 0
for path in sorted(pathlib.Path(folder).rglob("*.onnx")):
    run = subprocess.run([tool, f"--import-onnx={path}"], capture_output=True, text=True)
    # A graph without its weights, for a later fill.
    if "cannot find external data" in run.stderr:
        continue
    again = subprocess.run([tool], input=run.stdout, capture_output=True, text=True)
    imported += 1
    if run.returncode or run.stderr or "onnx.custom" in run.stdout or again.returncode or again.stdout.strip() != run.stdout.strip():
        failures += 1
        print(f"{path}: {run.stderr[:300] or again.stderr[:300] or 'prints another module'}")
print(f"{imported} models, {failures} failures")
sys.exit(1 if failures or not imported else 0)
