# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports a file of 1.4 GB, made of holes, and checks time and peak memory: large_file.py FOLDER QUIRE-OPT."""
import os
import resource
import subprocess
import sys

from onnx import TensorProto, helper

folder, tool = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
path = os.path.join(folder, "large.onnx")
TENSORS, WIDTH = 14, 5000  # 14 float matrices of 100 MB


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


names = [f"w{i}" for i in range(TENSORS)]
graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
head = helper.make_model(helper.make_graph([], "g", [], []), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
head.ClearField("graph")
data = 4 * WIDTH * WIDTH
pieces = []  # framing of each initializer, without its data
for name in names:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH]).SerializeToString() + varint(9 << 3 | 2) + varint(data)
    pieces.append(varint(5 << 3 | 2) + varint(len(tensor) + data) + tensor)
body = graph.SerializeToString()
with open(path, "wb") as file:
    file.write(head.SerializeToString())
    file.write(varint(7 << 3 | 2) + varint(len(body) + sum(map(len, pieces)) + TENSORS * data) + body)
    for piece in pieces:
        file.write(piece)
        file.seek(data, os.SEEK_CUR)
    file.truncate(file.tell())

before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
run = subprocess.run([tool, f"--import-onnx={path}"], capture_output=True, text=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
size = os.path.getsize(path)
os.remove(path)
assert run.returncode == 0, run.stderr
assert run.stdout.count("onnx.initializer") == TENSORS, run.stdout
print(f"{size / 1e9:.2f} GB: {usage.ru_utime - before:.2f} s, peak {usage.ru_maxrss / 1024:.0f} MiB")
assert size > 1.39e9 and usage.ru_maxrss < 400 * 1024 and usage.ru_utime - before < 10

with open(path, "wb") as file:
    file.write(head.SerializeToString())
    file.truncate(2**31 + 1)
run = subprocess.run([tool, f"--import-onnx={path}"], capture_output=True, text=True)
os.remove(path)
assert run.returncode == 1 and "the file is larger than 2 GiB, which ONNX does not allow" in run.stderr, run.stderr
