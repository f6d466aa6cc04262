"""The kinds of a batch's rows, many at a time; `resolve` looks at what is not plain row by row."""

from __future__ import annotations

import numpy as np

from matchwood.encode.leaves import ABSENT, OPERATOR, LeafBatch

WORTH_IT = 64
"""Rows from which arrays are faster than a look at each row."""


FEW = 1_024
"""Rows up to which a change looks at each, rather than give up the interpreter's lock to NumPy."""


class _Codes(dict[type, int]):
    def __missing__(self, key: type) -> int:
        return 0


_CODE = _Codes({int: 1, float: 1, str: 2, bool: 3})
_KINDS = ("", "number", "string", "bool")


def plain_kinds(batch: LeafBatch) -> list[str]:
    """By row the kind that all its constants are of; "" where that is not known so easily."""
    n = len(batch.attr)
    if n < WORTH_IT or not isinstance(batch.values, list):
        return [""] * n
    if n <= FEW:
        return _one_by_one(batch)
    codes = np.fromiter(map(_CODE.__getitem__, map(type, batch.values)), np.int8, len(batch.values))
    start = np.array(batch.start, np.int64)
    first, has_values = start[:-1], start[1:] > start[:-1]
    found = np.zeros(n, np.int8)
    if len(codes):
        # behind an empty row `reduceat` takes the value of the next one: it is left out
        least = np.minimum.reduceat(codes, np.minimum(first, len(codes) - 1))
        most = np.maximum.reduceat(codes, np.minimum(first, len(codes) - 1))
        is_compared = (np.frombuffer(batch.op, np.uint8) & OPERATOR) < ABSENT
        found = np.where((least == most) & has_values & is_compared, least, 0)
    return [_KINDS[code] for code in found.tolist()]


def _one_by_one(batch: LeafBatch) -> list[str]:
    codes = list(map(_CODE.__getitem__, map(type, batch.values)))
    start = list(batch.start)
    found: list[str] = []
    for op, first, last in zip(batch.op, start, start[1:], strict=False):
        code = codes[first] if first < last and op & OPERATOR < ABSENT else 0
        is_mixed = last - first > 1 and any(each != code for each in codes[first + 1 : last])
        found.append("" if is_mixed else _KINDS[code])
    return found
