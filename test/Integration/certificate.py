# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every error in the generated attention must make --verify exit 3 and leave no model behind, with whole
sequences and with sequences that start from random K and V.

    certificate.py TOOLS MODEL WORK ERROR...
"""
import json
import pathlib
import subprocess
import sys


def main():
    tools, model, work = map(pathlib.Path, sys.argv[1:4])
    work.mkdir(exist_ok=True)
    failures = []
    for error, work_limit in [(e, w) for e in sys.argv[4:] for w in ("4e10", "1")]:
        out, report = work / f"{error}.quire", work / f"{error}.{work_limit}.json"
        done = subprocess.run([tools / "quirec", model, "-o", out, "--verify", f"--verify-work={work_limit}", "--quiet", f"--break-attend={error}", f"--report={report}"])
        text = json.load(open(report)) if report.exists() else {}
        if done.returncode != 3 or out.exists() or text.get("status") != "refused" or text.get("certificate", {}).get("holds") is not False:
            failures.append(f"{error}: exit {done.returncode}, model {'there' if out.exists() else 'not there'}, report {text}")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
