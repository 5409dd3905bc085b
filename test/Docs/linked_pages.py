#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Follows the links of README.md and docs/overview.md: the pages of docs/ must be reached, tutorials and measurements from both of them at once."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
FRONT = [root / "README.md", root / "docs/overview.md"]
AT_ONCE = [*sorted((root / "docs/tutorials").glob("*.md")), root / "docs/Benchmarks.md", root / "docs/KvExperiments.md"]
UNLINKED = {root / "docs/tutorials" / name for name in ("reading-a-refusal.md", "writing-a-lit-test.md")}  # README.md need not name them


def links(page):
    text = re.sub(r"`[^`\n]*`", "code", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            yield (page.parent / target).resolve()


broken, reached, waiting = [], set(FRONT), list(FRONT)
while waiting:
    page = waiting.pop()
    for target in links(page):
        if not target.exists():
            broken.append(f"{page.relative_to(root)}: no {target}")
        elif target.suffix == ".md" and target not in reached:
            reached.add(target)
            waiting.append(target)
for front in FRONT:
    missing = set(AT_ONCE) - set(links(front)) - (UNLINKED if front.name == "README.md" else set())
    broken += [f"{front.relative_to(root)}: no link to {page.relative_to(root)}" for page in sorted(missing)]
pages = set((root / "docs").rglob("*.md"))
broken += [f"{page.relative_to(root)}: no page links to it" for page in sorted(pages - reached)]
print("\n".join(broken) or f"{len(pages)} pages, all linked")
sys.exit(bool(broken))
