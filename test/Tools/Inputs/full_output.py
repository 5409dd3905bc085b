# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command whose standard output is a full device and checks its exit code.

    full_output.py CODE COMMAND...
"""
import subprocess
import sys

with open("/dev/full", "wb") as full:
    code = subprocess.run(sys.argv[2:], stdout=full).returncode
sys.exit(0 if code == int(sys.argv[1]) else f"exit code {code}")
