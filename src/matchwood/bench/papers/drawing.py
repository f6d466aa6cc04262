"""Drawing: a panel as SVG, by hand, and as PNG, by matplotlib.

The SVG carries its numbers: every point has its position on the axis and its value as data
attributes, which the page's script shows and tests read back.  A refused point is a cross at the
upper edge with its label.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.bench.papers.curves import Panel
from matchwood.errors import MatchwoodError

WIDTH, HEIGHT = 460, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 16, 40
UNITS = {
    "us_per_event": "µs an event",
    "build_seconds": "construction, s",
    "megabytes": "MB",
    "throughput": "messages a second",
    "mean_throughput": "messages a second",
    "index_updates_per_event": "index updates a message",
    "candidates_per_event": "profiles a message",
    "process_megabytes": "MB that the process allocated",
    "paper_megabytes": "MB, reckoned as in the paper",
    "load": "load of the hash",
    "sharing": "occurrences",
    "query_ms": "querying, ms",
    "build_ms": "construction, ms",
    "build_us_per_subscription": "construction, µs a subscription",
    "bytes_per_subscription": "bytes a subscription",
}
AXES = {
    "n_subscriptions": "subscriptions in the paper",
    "n_attributes": "dimensions",
    "config.max_cap": "max_cap",
    "predicates": "predicates of a subscription",
    "event_size": "attributes of an event",
    "match_probability": "matching probability",
    "updates_per_profile": "UP",
    "delta": "dU",
    "indexed_share": "share of updates on indexed attributes",
    "range_size": "range size / cardinality",
    "equality": "share of equality predicates",
    "exponent": "exponent of Zipf's law",
    "attribute_exponent": "exponent of Zipf's law",
}


class Scale(NamedTuple):
    """Values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, 1e-12))
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)

    def ticks(self) -> list[float]:
        if not self.log:
            return [self.low + (self.high - self.low) * i / 4 for i in range(5)]
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        step = max(1, (last - first + 1) // 5)
        found = [10.0**each for each in range(first, last + 1, step)]
        return found if len(found) > 1 else [self.low, self.high]


def scale(values: Sequence[float], begin: float, end: float, log: bool) -> Scale:
    """A scale that holds all values, with room around them."""
    known = [each for each in values if each > 0] if log else list(values)
    low, high = min(known, default=1.0), max(known, default=10.0)
    if log:
        return Scale(low / 1.2, max(high * 1.2, low * 1.5), begin, end, True)
    room = (high - low) * 0.05 or 1.0
    return Scale(low - room, high + room, begin, end, False)


def places(panel: Panel, metric: str) -> tuple[list[float], list[str], bool]:
    """Where points are on the axis, what they are called, and whether the axis is logarithmic."""
    xs = panel.curves[metric].xs
    names = [short(x) for x in xs]
    if any(not isinstance(x, int | float) for x in xs):
        return [float(i) for i in range(len(xs))], names, False
    log = not panel.figure.linear and min(xs, default=0) > 0
    return [float(x) for x in xs], names, log


def svg(panel: Panel, metric: str) -> str:
    """One metric of a panel."""
    curves = panel.curves[metric]
    at, names, log = places(panel, metric)
    numbers = [v for found in curves.values.values() for v in found if v is not None]
    x_scale = scale(at, _LEFT + 8, WIDTH - _RIGHT - 8, log)
    y_scale = scale(numbers, HEIGHT - _BOTTOM, _TOP + 14, True)
    name = escape(f"{panel.figure.panel}: {panel.figure.title}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" tabindex="0"',
        f'role="img" aria-label="{name}" font-family="sans-serif" font-size="11">',
        *_frame(panel, metric, x_scale, y_scale, at, names),
        *_lines(panel, metric, x_scale, y_scale, at, names),
        "</svg>",
    ]
    return "\n".join(parts)


def _frame(
    panel: Panel, metric: str, x: Scale, y: Scale, at: list[float], names: list[str]
) -> Iterator[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for tick in y.ticks():
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" class="grid" '
        yield 'stroke="#8884" stroke-width="1"/>'
        yield f'<text x="{_LEFT - 5}" y="{y(tick) + 4:.1f}" text-anchor="end" class="tick" '
        yield f'fill="currentColor">{short(tick)}</text>'
    step = max(1, math.ceil(len(at) / 8))
    for i in range(0, len(at), step):
        yield f'<text x="{x(at[i]):.1f}" y="{bottom + 14}" text-anchor="middle" class="tick" '
        yield f'fill="currentColor">{escape(names[i])}</text>'
    axis = panel.figure.axis or AXES.get(panel.case.axis, panel.case.axis)
    yield f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle" '
    yield f'fill="currentColor">{escape(axis)}</text>'
    yield f'<text x="{_LEFT}" y="{_TOP - 4}" fill="currentColor">{escape(unit(metric))}</text>'
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor"/>'


def _lines(
    panel: Panel, metric: str, x: Scale, y: Scale, at: list[float], names: list[str]
) -> Iterator[str]:
    curves = panel.curves[metric]
    for number, (who, name) in enumerate(shown(panel)):
        colour = COLOURS[number % len(COLOURS)]
        values = curves.values.get(who, [])
        known = [(x(at[i]), y(v), i, v) for i, v in enumerate(values) if v is not None]
        yield f'<g class="series" data-series="{escape(who)}" fill="{colour}" stroke="{colour}">'
        if len(known) > 1:
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py, *_ in known)
            yield f'<polyline points="{path}" fill="none" stroke-width="2"{_dash(panel, who)}/>'
        for px, py, i, value in known:
            label = f"{name}, {names[i]}: {short(value)} {unit(metric)}"
            yield (
                f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" data-x="{escape(names[i])}" '
                f'data-i="{i}" data-value="{value:.6g}"><title>{escape(label)}</title></circle>'
            )
        for i, refused in enumerate(curves.refused.get(who, [])):
            if refused and i < len(at):
                label = _reason(panel, i, who)
                px, py = x(at[i]) + 3 * number - 9, _TOP + 4
                yield (
                    f'<path d="M{px - 3:.1f} {py - 3}l6 6m0 -6l-6 6" stroke-width="2" '
                    f'class="refused" data-i="{i}" data-x="{escape(names[i])}" '
                    f'data-reason="{escape(label)}"><title>{escape(name)}, {escape(names[i])}: '
                    f"{escape(label)}</title></path>"
                )
        yield "</g>"


def _dash(panel: Panel, who: str) -> str:
    ours = any(each.ours for each in panel.case.series if each.id == who)
    return ' stroke-dasharray="5 3"' if ours else ""


def _reason(panel: Panel, i: int, who: str) -> str:
    numbers = sorted({point for point, _ in panel.rows})
    row = panel.rows.get((numbers[i], who)) if i < len(numbers) else None
    return f"{row['label']}: {row.get('reason', '')}" if row and "label" in row else "no number"


def shown(panel: Panel) -> list[tuple[str, str]]:
    """Id and name of every series that a panel draws."""
    names = {each.id: each.name for each in panel.case.series}
    return [(who, names[who]) for who in panel.figure.series or names]


def unit(metric: str) -> str:
    return UNITS.get(metric, metric)


def short(value: Any) -> str:
    """12K, 1.5M, 0.0003; texts as they are."""
    if isinstance(value, str):
        return value
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value >= 1e4:
        return f"{value / 1e3:.3g}K"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


COLOURS = (
    "#3b7dd8", "#d9541e", "#2f9e6e", "#a35bc4", "#c9971a", "#d64f86", "#5a6b7b", "#18a0b5",
    "#8b5a2b", "#7a9a01",
)  # fmt: skip
"""Distinct on white and on black."""


def png(panel: Panel, metric: str, path: Path) -> None:
    """The same picture as a file for documents."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MatchwoodError(
            "expected matplotlib for PNG files, found none: pip install 'matchwood[reports]'"
        ) from None
    curves = panel.curves[metric]
    at, names, log = places(panel, metric)
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, (who, name) in enumerate(shown(panel)):
        points = [(x, v) for x, v in zip(at, curves.values.get(who, []), strict=False)
                  if v is not None and v > 0]  # fmt: skip
        if points:
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(*zip(*points, strict=True), marker="o", ms=3, label=name, color=colour)
    axes.set_yscale("log")
    if log:
        axes.set_xscale("log")
    if at and len(at) <= 10:
        axes.set_xticks(at, names)
        axes.minorticks_off()
    axes.set_xlabel(panel.figure.axis or AXES.get(panel.case.axis, panel.case.axis))
    axes.set_ylabel(unit(metric))
    axes.set_title(f"{panel.paper.name}, {panel.figure.panel}: {panel.verdict}", fontsize=9)
    if axes.lines:
        axes.legend(fontsize=6)
    figure.savefig(path, dpi=110)
