# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs every operator, in fp32 and 16 bits, against float64; a row alone must have the bits it has among others."""
import sys

import numpy as np

from cases import CASES, ROWS
from step_runner import CompiledStep


def check(name):
    builder, tolerance = CASES[name]
    step, value, columns, expected = builder()
    compiled = CompiledStep(step.text(value, columns), step.arrays)
    expected = expected.reshape(ROWS, columns)
    ids = np.random.default_rng(1).permutation(ROWS)
    selected = [0, 3, 4, 9, 11]
    result = compiled(ids, selected=selected)
    wanted = expected[ids[selected]]
    scale = max(float(np.abs(wanted).max()), 1e-30)
    error = float(np.abs(result - wanted).max()) / scale
    if not error <= tolerance:
        return "error %.3g, expected at most %.3g" % (error, tolerance)
    for row, result_row in zip(selected, result):
        if compiled(ids[row:row + 1]).tobytes() != result_row.tobytes():
            return "row %d alone has other bits" % row
    return None


def main():
    names = sys.argv[1:] or list(CASES)
    failures = 0
    for name in names:
        try:
            problem = check(name)
        except (RuntimeError, AssertionError) as error:
            problem = str(error)
        if problem:
            failures += 1
            print("FAIL %s: %s" % (name, problem))
        elif len(names) < 5:
            print("ok %s" % name)
    print("%d of %d operators as expected" % (len(names) - failures, len(names)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
