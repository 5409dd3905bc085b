# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists the texts of errors on operations, nodes and files, and of what is not implemented, that no test looks for."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["dialects", "lib", "runtime", "tools"]
COMPARED = 40  # characters of a text that a test has to hold
LETTERS = 8  # in a piece with fewer, nothing tells one diagnostic from another
PREFIX = "not implemented:"
EMITS = re.compile(r"\bemit(Op)?Error\b|\b\w*[eE]rror\([^;]*\)\s*<<")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'', re.S)


def plain(text):
    """Without what is spelt differently in C++, FileCheck and Python: quotes, backslashes, runs of spaces."""
    return re.sub(r"\s+", " ", re.sub(r"[\\'\"`]", "", text.replace("\\n", " ")))


def statements(text):
    """Yields the last line of each statement of C++, its code with literals left out, and its literals; neighbours are one literal."""
    code, literals, line, last = [], [], 1, 0

    def cut(gap):
        nonlocal line, literals
        for mark in re.split(r"([;{}])", gap):
            code.append(mark)
            line += mark.count("\n")
            if mark in (";", "{", "}"):
                yield line, "".join(code), literals
                code.clear()
                literals = []

    for token in TOKEN.finditer(text):
        gap = text[last:token.start()]
        yield from cut(gap)
        if token[2] is not None:
            if literals and code and not "".join(code).rpartition("\0")[2].strip():
                literals[-1] += token[2]
            else:
                literals.append(token[2])
            code.append("\0")
        line += token[0].count("\n")
        last = token.end()
    yield from cut(text[last:])


def diagnostics(path):
    """Yields line and pieces of each diagnostic: the literals between which values are streamed, or that a condition chooses from."""
    for line, code, literals in statements(path.read_text()):
        emits = EMITS.search(code)
        pieces = [plain(text).strip() for text in literals if emits or PREFIX in text]
        pieces = [piece[max(piece.find(PREFIX), 0):] for piece in pieces]
        yield line, [piece for piece in pieces if piece != PREFIX and sum(map(str.isalpha, piece)) >= LETTERS]


def tested(folder):
    """The text of all tests."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".mlir", ".test", ".py", ".cpp", ".c", ".h")]
    return "\n".join(plain(path.read_text(errors="replace")) for path in files)


def missing(root):
    """Yields place and text of each diagnostic that no test holds."""
    tests = tested(root / "test")
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".c"):
                continue
            for line, pieces in diagnostics(path):
                for piece in pieces:
                    if piece[:COMPARED].strip() not in tests:
                        yield f"{path.relative_to(root)}:{line}: {piece}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the folder with the sources and test/")
    lines = list(missing(parser.parse_args().root))
    for line in lines:
        print(line)
    if lines:
        print(f"{len(lines)} texts without a test")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
