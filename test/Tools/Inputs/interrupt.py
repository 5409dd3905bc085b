# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts a compilation as soon as its temporary folder is there; nothing may be left of it.

    interrupt.py QUIREC MODEL FOLDER
"""
import glob
import signal
import subprocess
import sys
import time

quirec, model, folder = sys.argv[1:4]
for number in (signal.SIGINT, signal.SIGTERM):
    process = subprocess.Popen([quirec, model, "-o", folder, "--quiet", "--verify"])
    end = time.time() + 60
    while not glob.glob(folder + "*") and time.time() < end and process.poll() is None:
        time.sleep(0.001)
    if process.poll() is not None or not glob.glob(folder + "*"):
        sys.exit("the compilation was over before it could be interrupted")
    process.send_signal(number)
    code = process.wait(60)
    if code != 130:
        sys.exit(f"{number.name}: exit code {code}")
    if glob.glob(folder + "*"):
        sys.exit(f"{number.name}: left {glob.glob(folder + '*')}")
