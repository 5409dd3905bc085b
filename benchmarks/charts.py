# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horizontal bar charts as SVG text."""
import dataclasses
import html
import math

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 210, 70, 64, 24
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")


@dataclasses.dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str  # beside the bar
    series: int = 0
    least: float | None = None  # with `most`, the ends of a whisker
    most: float | None = None


def step_of(most):
    """A round distance of ticks that gives at most eight of them."""
    base = 10.0 ** math.floor(math.log10(most / 8))
    return next(base * factor for factor in (1, 2, 5, 10) if base * factor * 8 >= most)


def text(x, y, words, size=11, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'


def bar_chart(title, bars, series, marks=()):
    """SVG of horizontal bars; `series` names the colours, `marks` are values with a vertical line."""
    most = max([bar.most or bar.value for bar in bars] + list(marks))
    step = step_of(most)
    scale = (WIDTH - LEFT - RIGHT) / (step * math.ceil(most / step))
    height = TOP + ROW * len(bars) + 34
    bottom = TOP + ROW * len(bars) + 4
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">',
             '<rect width="100%" height="100%" fill="white"/>', text(16, 24, title, 15)]
    for i, name in enumerate(series):
        lines += [f'<rect x="{LEFT + 220 * i}" y="36" width="11" height="11" fill="{COLOURS[i]}"/>', text(LEFT + 220 * i + 16, 46, name)]
    for i in range(math.ceil(most / step) + 1):
        x = LEFT + i * step * scale
        lines += [f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>', text(x, bottom + 16, f"{i * step:g}", 10, "middle")]
    for i, bar in enumerate(bars):
        y, end = TOP + ROW * i, LEFT + bar.value * scale
        lines += [text(LEFT - 8, y + 14, bar.label, 11, "end"),
                  f'<rect x="{LEFT}" y="{y + 3}" width="{end - LEFT:.1f}" height="{ROW - 8}" fill="{COLOURS[bar.series]}"/>']
        if bar.most is not None:
            low, end = LEFT + bar.least * scale, max(end, LEFT + bar.most * scale)
            lines.append(f'<line x1="{low:.1f}" y1="{y + 11}" x2="{LEFT + bar.most * scale:.1f}" y2="{y + 11}" stroke="black"/>')
        lines.append(text(end + 6, y + 15, bar.text))
    for mark in marks:
        x = LEFT + mark * scale
        lines.append(f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}" stroke="black" stroke-dasharray="4 3"/>')
    return "\n".join(lines + ["</svg>"]) + "\n"
