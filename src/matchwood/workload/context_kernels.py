"""Kernel of `context`: values that walk."""

from __future__ import annotations

import math

from matchwood.kernel.jit import kernel


@kernel
def walk(values, row, column, moves, top, unit, arrived):
    """Move values one after the other, inside [0, top], rounded to 1 - log10(unit) digits."""
    for i in range(len(moves)):
        value = values[row[i], column[i]] + moves[i]
        if value < 0.0:
            value = -value
        if value > top:
            value = 2.0 * top - value
        value = min(max(value, 0.0), top)
        if value > 1e-9:
            step = math.pow(10.0, math.floor(math.log10(value))) * unit
            value = round(value / step) * step
        values[row[i], column[i]] = value
        arrived[i] = value
