# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the bytes that each initializer of an imported module names and compares them with what the models hold."""
import re
import sys

import numpy as np

text, folder = open(sys.argv[1]).read(), sys.argv[2]
expected = {"raw": np.arange(1024), "floats": np.arange(1024), "big": np.full(1024, 2)}
pattern = r'onnx\.initializer @(\w+) \{bytes = (\d+) : i64, file = "([^"]*)", offset = (\d+) : i64\}'
found = {}
for name, size, file, offset in re.findall(pattern, text):
    with open(f"{folder}/{file}", "rb") as data:
        data.seek(int(offset))
        found[name] = np.frombuffer(data.read(int(size)), np.float32)
assert found.keys() == expected.keys(), found.keys()
for name, values in expected.items():
    assert np.array_equal(found[name], values.astype(np.float32)), name
