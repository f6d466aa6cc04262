"""Compare: two runs of the same preset, row by row.

A row's number is the median of its passes.  Each run has its own noise: the spread of the passes of
a row, and, what passes do not show, how much all rows of a run are faster or slower together.  A
difference within the larger spread of both runs, or within 5 %, is called noise.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from matchwood.bench.papers.rows import MEASURED, Results, Row
from matchwood.errors import MatchwoodError

NOISE, FASTER, SLOWER = "noise", "faster", "slower"
_LEAST = 0.05


class Pair(NamedTuple):
    """One row in both runs; ratio: after / before."""

    case: str
    x: str
    series: str
    before: float
    after: float
    ratio: float
    spread: float
    word: str


def compare_runs(before: Results, after: Results, metric: str = "us_per_event") -> list[Pair]:
    """Rows that both runs have, of the same definition."""
    pairs = []
    for row in before:
        other = after.find(row["case"], row["point"], row["series"])
        if other is None or other["definition"] != row["definition"]:
            continue
        a, b = _number(row, metric), _number(other, metric)
        if a and b:
            spread = max(_spread(row), _spread(other), _LEAST) if metric != "megabytes" else 0.001
            word = NOISE if abs(b / a - 1) <= spread else FASTER if b < a else SLOWER
            pairs.append(Pair(row["case"], str(row["x"]), row["series"], a, b, b / a, spread, word))
    if not pairs:
        raise MatchwoodError("expected two runs with rows in common, found none: same preset?")
    return pairs


def as_text(pairs: Sequence[Pair]) -> str:
    """Rows that differ, and what all rows say together."""
    lines = [
        f"{each.word:6} {each.ratio:6.2f} x  {each.case} {each.x} {each.series}: "
        f"{each.before:,.4g} -> {each.after:,.4g} (noise {each.spread:.0%})"
        for each in sorted(pairs, key=lambda pair: -abs(math.log(pair.ratio)))
        if each.word != NOISE
    ]
    by = Counter(each.word for each in pairs)
    middle = statistics.median(each.ratio for each in pairs)
    lines.append(
        f"{len(pairs)} rows: {by[FASTER]} faster, {by[SLOWER]} slower, {by[NOISE]} noise; "
        f"median {middle:.3f} x"
    )
    return "\n".join(lines)


def _number(row: Row, metric: str) -> float | None:
    value = row.get("metrics", {}).get(metric) if row["state"] == MEASURED else None
    return None if value is None else float(value)


def _spread(row: Row) -> float:
    times = row.get("times") or []
    if len(times) < 2:
        return 0.2  # one pass says nothing about its noise
    return (max(times) - min(times)) / statistics.median(times)
