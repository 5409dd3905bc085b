# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the generators of result pages share: words, numbers, tables, and the comparison of files with what they should be."""
import json
import sys

PRIVATE = ("host_name", "executable")  # that Google Benchmark writes


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def times(value):
    """Milliseconds with three significant digits, and no exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def counted(number, word):
    return f"{number} {word}" + ("" if number == 1 else "s")


def joined(words):
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def machine_facts(machine):
    return f"{machine['cpu']}, {machine['cores']} cores, {joined(machine['flags'])}, {machine['memory_bytes'] / 2**30:.0f} GiB of memory"


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def is_single_run(entry):
    """Of Google Benchmark's entries: no aggregate, no failure."""
    return entry.get("run_type", "iteration") == "iteration" and not entry.get("error_occurred")


def drop_private(path, results, check, command):
    """Removes what names the machine from a file of Google Benchmark and from what was read of it; with `check` its presence is an error."""
    private = [key for key in PRIVATE if results and results["context"].pop(key, None)]  # every one, not the first
    if private and check:
        sys.exit(f"{path.name} names this machine: {', '.join(private)}; run {command}")
    if private:
        path.write_text(json.dumps(results, indent=1) + "\n")


def bring_up_to_date(wanted, folder, charts, check, command):
    """Writes {name: text} into the folder; with `check` fails when one differs, or a chart that matches the pattern `charts` is not wanted."""
    stale = [name for name, text in wanted.items() if not (folder / name).exists() or (folder / name).read_text() != text]
    if check:
        stale += [path.name for path in folder.glob(charts) if path.name not in wanted]
        if stale:
            sys.exit(f"not up to date: {', '.join(stale)}; run {command}")
        return
    for name in stale:
        (folder / name).write_text(wanted[name])
