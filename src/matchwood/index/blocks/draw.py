"""Blocks as text, and what they hold, for people."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.build import Structure
from matchwood.index.blocks.words import Blocks, Codes
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

MOST = 40
"""Spaces that are drawn."""


def members_in(blocks: Blocks) -> tuple[int, int]:
    """Members of all blocks, and those of row blocks."""
    head = blocks.word[blocks.at[:-1]]
    n = head & 0x3FF
    return int(n.sum()), int(n[(head & 0x0FFFF400) == 0x400].sum())


def _first_key(codes: Codes, attr: int, code: int) -> int:
    """The lowest key of an attribute that has a code."""
    if code == 1:
        return int(MIN_KEY)
    dense = codes.dense[codes.dense_start[attr] : codes.dense_start[attr + 1]]
    if len(dense):
        return int(codes.low[attr]) + int(np.searchsorted(dense, code))
    return int(codes.cut[codes.cut_start[attr] + code - 1])


def draw_blocks(name: str, n: int, structure: Structure) -> str:
    """A line for each space that has blocks: its keys, then columns x members of each block."""
    codes, places, blocks = structure
    lines = [f"{name}: {n} conjunctions, {len(places.first_code)} spaces"]
    head = blocks.word[blocks.at[:-1]]
    used = np.flatnonzero(np.diff(places.block))
    for position in used[:MOST].tolist():
        dim = int(np.searchsorted(places.dim_start, position, side="right")) - 1
        last = int(MAX_KEY)
        if position + 1 < places.dim_start[dim + 1]:
            last = _first_key(codes, dim >> 1, int(places.first_code[position + 1])) - 1
        shapes = [
            f"{each >> 12} columns x {each & 0x3FF}" if each >> 12 else f"{each & 0x3FF} rows"
            for each in head[places.block[position] : places.block[position + 1]].tolist()
        ]
        kind = "coarse" if dim & 1 else "fine"
        keys = f"{_first_key(codes, dim >> 1, int(places.first_code[position]))}..{last}"
        lines.append(f"  attribute {dim >> 1} ({kind}) {keys}: {', '.join(shapes)}")
    if len(used) > MOST:
        lines.append(f"  ... {len(used) - MOST} more")
    return "\n".join(lines)
