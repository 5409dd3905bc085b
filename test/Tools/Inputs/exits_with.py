# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command and succeeds when it ends with the exit code given first; its output passes through."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit(f"expected exit code {sys.argv[1]}, but got {code}")
