"""Predicate spaces as text, for `draw()` of the indexes that are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

_MOST = 6


def draw_spaces(name: str, n_live: int, spaces: Any, records: Any) -> str:
    """The fullest dimensions, and the fullest spaces of each."""
    used = np.flatnonzero(spaces.size)
    lines = [f"{name}: {n_live} conjunctions, {len(used)} dimensions"]
    n_records = {}
    for dim in used.tolist():
        ids = spaces.item[spaces.start[dim] : spaces.start[dim] + spaces.size[dim]]
        n_records[dim] = int(records.size[ids].sum())
    for dim in sorted(n_records, key=lambda each: -n_records[each])[:_MOST]:
        kind = ", coarse" if dim & 1 else ""
        lines.append(
            f"├── attribute {dim >> 1}{kind}: {spaces.size[dim]} spaces, {n_records[dim]} records"
        )
        lines += _fullest(spaces, records, dim)
    return "\n".join([*lines, f"└── the fullest of {len(used)}"])


def _fullest(spaces: Any, records: Any, dim: int) -> list[str]:
    first, n = int(spaces.start[dim]), int(spaces.size[dim])
    cuts = [*spaces.cut[first : first + n].tolist(), int(MAX_KEY) + 1]
    sizes = records.size[spaces.item[first : first + n]]
    shown = sorted(np.argsort(-sizes, kind="stable")[:_MOST].tolist())
    return [f"│   {_range(cuts[i], cuts[i + 1] - 1)}: {sizes[i]}" for i in shown]


def _range(lo: int, hi: int) -> str:
    low = "" if lo == MIN_KEY else str(lo)
    high = "" if hi == MAX_KEY else str(hi)
    return low if lo == hi else f"{low}..{high}"
