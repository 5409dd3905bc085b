# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horizontal bar charts and line charts as SVG text."""
import dataclasses
import html
import math

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 210, 70, 64, 24
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#997700")
PLOT = 300  # height of a line chart's field


@dataclasses.dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str  # beside the bar
    series: int = 0
    least: float | None = None  # with `most`, the ends of a whisker
    most: float | None = None


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    points: list  # (x, y), by x


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


def line_chart(title, x_name, lines, mark=None):
    """SVG of lines over the values of x that occur, which lie at equal distances; y begins at 0 or below. `mark` is a value of y with a horizontal line."""
    places = sorted({x for line in lines for x, _ in line.points})
    values = [y for line in lines for _, y in line.points] + ([] if mark is None else [mark])
    step = step_of(max(max(values), 0) - min(min(values), 0) or 1)
    low, high = step * math.floor(min(min(values), 0) / step), step * math.ceil(max(max(values), 0) / step)
    left, right, top = 60, 230, 40
    bottom = top + PLOT

    def across(x):
        return left + (WIDTH - left - right) * places.index(x) / max(len(places) - 1, 1)

    def up(y):
        return bottom - PLOT * (y - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 46}" font-family="sans-serif">',
           '<rect width="100%" height="100%" fill="white"/>', text(16, 24, title, 15)]
    for i in range(round((high - low) / step) + 1):
        y = up(low + i * step)
        out += [f'<line x1="{left}" y1="{y:.1f}" x2="{WIDTH - right}" y2="{y:.1f}" stroke="#dddddd"/>', text(left - 6, y + 4, f"{low + i * step:g}", 10, "end")]
    every = math.ceil(len(places) / 12)
    out += [text(across(x), bottom + 16, f"{x:g}", 10, "middle") for x in places[::every]]
    out.append(text((left + WIDTH - right) / 2, bottom + 34, x_name, 11, "middle"))
    for i, line in enumerate(lines):
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line.points)
        y = top + 10 + 20 * i
        out += [f'<polyline points="{points}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>',
                f'<rect x="{WIDTH - right + 16}" y="{y - 9}" width="11" height="11" fill="{COLOURS[i]}"/>', text(WIDTH - right + 32, y, line.name)]
    if mark is not None:
        out.append(f'<line x1="{left}" y1="{up(mark):.1f}" x2="{WIDTH - right}" y2="{up(mark):.1f}" stroke="black" stroke-dasharray="4 3"/>')
    return "\n".join(out + ["</svg>"]) + "\n"
