# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a step costs by what it holds, from the decode steps and prompts that benchmarks/models.py measured."""
import numpy as np

import models

FORM = "gqa"  # ONNX Runtime's best: shared past and present buffers


def fit(cells, ms):
    """fixed + perSequence * B + perKvToken * stored tokens, by least squares of relative errors; what comes out below 0 is left out."""
    columns, wanted = np.array([[1, len(lengths), sum(lengths)] for lengths in cells], float), np.array(ms)
    used, solution = [0, 1, 2], np.zeros(3)
    while used:
        found = np.linalg.lstsq(columns[:, used] / wanted[:, None], np.ones(len(ms)), rcond=None)[0]
        if (found >= 0).all():
            solution[used] = found
            break
        used.remove(used[int(found.argmin())])
    errors = columns @ solution / wanted - 1
    return {"fixed_ms": solution[0], "per_sequence_ms": solution[1], "per_kv_token_ms": solution[2], "largest_error": float(abs(errors).max())}


def from_models(results):
    """`results` is models.json. A prompt's rows cost what a prompt of many tokens takes beyond a step's fixed part, each."""
    rows = [(models.Cell(row["cell"]), row) for row in results["rows"] if row["form"] == FORM]
    steps = [(cell, row) for cell, row in rows if not cell.is_prefill]
    prompt, prompt_row = next((cell, row) for cell, row in rows if cell.is_prefill)
    engines = []
    for name, key in (("Quire", "ours_ms"), ("ONNX Runtime", "theirs_ms")):
        cost = fit([cell.lengths for cell, _ in steps], [row[key] for _, row in steps])
        engines.append({"name": name, **cost, "per_prompt_token_ms": (prompt_row[key] - cost["fixed_ms"]) / prompt.tokens})
    return {"date": results["date"], "shape": results["shape"], "threads": results["threads"], "cells": [cell.name for cell, _ in rows], "engines": engines}
