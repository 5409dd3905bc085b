# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command whose files may have 20000 bytes at most and checks that it ends with exit code 1.

    small_files.py COMMAND...
"""
import resource
import subprocess
import sys

limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
code = subprocess.run(sys.argv[1:], preexec_fn=limit).returncode
sys.exit(0 if code == 1 else f"exit code {code}")
