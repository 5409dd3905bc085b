# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the results of benchmarks/models.py are complete and possible.

    benchmarks.py RESULTS.json
"""
import json
import pathlib
import sys

results = json.loads(pathlib.Path(sys.argv[1]).read_text())
want = [(form, cell) for form in ("concat", "gqa") for cell in ("1x16", "2x16", "prefill16")]
assert [(row["form"], row["cell"]) for row in results["rows"]] == want, results["rows"]
assert [row["form"] for row in results["busy"]] == ["concat", "gqa"], results["busy"]
for row in results["rows"]:
    ratio = row["ratio"]
    assert 0 < ratio["least"] <= ratio["median"] <= ratio["most"], row
    assert abs(ratio["median"] - row["theirs_ms"] / row["ours_ms"]) < 1e-6 * ratio["median"], row  # there is one round
    assert row["ours_peak"] > 0 and row["theirs_peak"] > 0, row
for row in results["busy"]:
    assert row["ours_share"]["median"] > 0 and row["theirs_share"]["median"] > 0, row
print(f"{len(want)} ratios")
