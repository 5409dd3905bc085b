# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws, as SVG, which sequence holds which KV block at every step of a run, and how many blocks a padded cache would hold."""
import html

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#997700"]
LEFT, TOP, STEP, ROW, GAP, CHART = 64, 96, 9, 11, 48, 150


def spans(events, steps):
    """(block, id, first step, end step) of every time that a sequence held a block."""
    held, out = {}, []
    for event in events:
        mine = held.setdefault(event["id"], [])
        for block in event.get("taken", []):
            mine.append((block, event["step"]))
        if event.get("released"):
            out += [(block, event["id"], first, max(event["step"], first + 1)) for block, first in mine]
            held[event["id"]] = []
    for name, mine in held.items():
        out += [(block, name, first, steps) for block, first in mine]
    return out


def text(x, y, words, size=11, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" {extra}>{html.escape(words)}</text>'


def rectangle(x, y, width, height, colour, words):
    title = f"<title>{html.escape(words)}</title>"
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">{title}</rect>'


def blocks_panel(held, names, count, steps):
    out = [text(LEFT, TOP - 10, "block of the pool (rows) held by a sequence (colour), step by step")]
    for block in range(0, count, 5):
        out.append(text(LEFT - 8, TOP + block * ROW + 9, str(block), 9, 'text-anchor="end"'))
    for block, name, first, end in held:
        colour = COLOURS[names.index(name) % len(COLOURS)]
        words = f"block {block}: sequence {name}, steps {first} to {end - 1}"
        out.append(rectangle(LEFT + first * STEP, TOP + block * ROW, (end - first) * STEP - 0.6, ROW - 1.5, colour, words))
    return out


def line(values, base, height, top_value, colour, dash=""):
    points = []
    for step, value in enumerate(values):
        y = base + height - value / top_value * height
        points += [f"{LEFT + step * STEP:.1f},{y:.1f}", f"{LEFT + (step + 1) * STEP:.1f},{y:.1f}"]
    return f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.6" {dash}/>'


def chart_panel(held, steps, padded, base):
    used = [sum(first <= step < end for _, _, first, end in held) for step in range(steps)]
    top = max(max(used), padded)
    out = [text(LEFT, base - 10, "blocks in use (solid), and what a padded contiguous cache of the same batch reserves (dashed)")]
    for value in (0, max(used), padded):
        out.append(text(LEFT - 8, base + CHART - value / top * CHART + 4, f"{value:.0f}", 9, 'text-anchor="end"'))
    out.append(line(used, base, CHART, top, "#222222"))
    out.append(line([padded] * steps, base, CHART, top, "#222222", 'stroke-dasharray="5 4"'))
    for step in range(0, steps, 10):
        out.append(text(LEFT + step * STEP, base + CHART + 16, str(step), 9))
    out.append(text(LEFT + steps * STEP / 2, base + CHART + 32, "step", 10, 'text-anchor="middle"'))
    return out


def draw(path, stats, labels, padded_tokens):
    """`labels` maps a request's id to a few words; `padded_tokens` is what the padded cache holds, in tokens."""
    steps = len(stats["steps"])
    held = spans(stats["block_events"], steps)
    names = list(labels)
    count = max(block for block, *_ in held) + 1
    width = max(LEFT + steps * STEP + 30, LEFT + 190 * ((len(names) + 1) // 2))
    base = TOP + count * ROW + GAP
    body = [text(LEFT, 24, f"Block tables over time: {len(names)} sequences, {stats['block_tokens']} tokens a block", 15)]
    for index, name in enumerate(names):
        x, y = LEFT + index // 2 * 190, 38 + index % 2 * 17
        body.append(rectangle(x, y, 11, 11, COLOURS[index % len(COLOURS)], name))
        body.append(text(x + 16, y + 10, labels[name]))
    body += blocks_panel(held, names, count, steps)
    body += chart_panel(held, steps, padded_tokens / stats["block_tokens"], base)
    height = base + CHART + 44
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="sans-serif">'
    path.write_text("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>"]) + "\n")
