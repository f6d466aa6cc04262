"""The kinds of a batch's rows, many at a time; `resolve` looks at what is not plain row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from matchwood.encode.leaves import ABSENT, OF_STRING, OPERATOR, LeafBatch

WORTH_IT = 64
"""Rows from which arrays are faster than a look at each row."""


FEW = 1_024
"""Rows up to which a change looks at each, rather than give up the interpreter's lock to NumPy."""


class _Codes(dict[type, int]):
    def __missing__(self, key: type) -> int:
        return 0


_CODE = _Codes({int: 1, float: 1, Decimal: 1, str: 2, bool: 3})
_KINDS = ("", "number", "string", "bool", "date", "timestamp", "day")
_BITS = 3
"""Of a position in _KINDS."""


def plain_kinds(batch: LeafBatch) -> list[str]:
    """By row the kind that all its constants are of; "" where that is not known so easily."""
    n = len(batch.attr)
    if n < WORTH_IT or not isinstance(batch.values, list):
        return [""] * n
    if n <= FEW:
        return _one_by_one(batch)
    return [_KINDS[code] for code in _codes(batch).tolist()]


def many_renamed(
    batch: LeafBatch,
    is_open: Sequence[bool],
    has_kind: Sequence[bool],
    kind_of: Callable[[int], str | None],
    renamed: Callable[[int, str | None], int],
) -> np.ndarray:
    """The attributes of many rows, those of open attributes being the ones of their kinds.

    is_open, has_kind  by attribute: whether it is open, and whether its name tells a kind
    kind_of   the kind of a row that is not plain; None: it stays as it is
    renamed   the attribute of an attribute and a kind; it is asked in the order of rows
    """
    attr = np.array(batch.attr, np.int32)
    of_open = np.array(is_open, bool)[attr]
    is_moved = of_open != np.array(has_kind, bool)[attr]
    codes = np.where(of_open, _codes(batch), 0).astype(np.int64)
    for row in np.flatnonzero(is_moved & of_open & (codes == 0)).tolist():
        kind = kind_of(row)
        if kind is None:
            is_moved[row] = False
        else:
            codes[row] = _KINDS.index(kind)
    rows = np.flatnonzero(is_moved)
    pairs = (attr[rows].astype(np.int64) << _BITS) | codes[rows]
    first = np.full(len(is_open) << _BITS, -1, np.int64)
    first[pairs[::-1]] = np.arange(len(rows))[::-1]  # of equal ones the first is written last
    new = np.zeros(len(first), np.int32)
    used = np.flatnonzero(first >= 0)
    for pair in used[np.argsort(first[used])].tolist():
        new[pair] = renamed(pair >> _BITS, _KINDS[pair & (2**_BITS - 1)] or None)
    attr[rows] = new[pairs]
    return attr


def _codes(batch: LeafBatch) -> np.ndarray:
    """By row the position in _KINDS of the kind of all its constants; 0 where that is not plain."""
    n, op, start = len(batch.attr), np.frombuffer(batch.op, np.uint8), np.array(batch.start)
    first, has_values = start[:-1], start[1:] > start[:-1]
    is_compared = has_values & ((op & OPERATOR) < ABSENT)
    values = batch.values
    if not isinstance(values, list):
        are_numbers = values.dtype != object
        return (is_compared & ((op & OF_STRING) == 0) & are_numbers).astype(np.int8)
    codes = np.fromiter(map(_CODE.__getitem__, map(type, values)), np.int8, len(values))
    found = np.zeros(n, np.int8)
    if len(codes):  # slices of rows without values are empty, which `reduceat` does not know
        at = first[has_values]
        least, most = np.minimum.reduceat(codes, at), np.maximum.reduceat(codes, at)
        found[has_values] = np.where(least == most, least, 0)
    return np.where(is_compared, found, 0).astype(np.int8)


def _one_by_one(batch: LeafBatch) -> list[str]:
    codes = list(map(_CODE.__getitem__, map(type, batch.values)))
    start = list(batch.start)
    found: list[str] = []
    for op, first, last in zip(batch.op, start, start[1:], strict=False):
        code = codes[first] if first < last and op & OPERATOR < ABSENT else 0
        is_mixed = last - first > 1 and any(each != code for each in codes[first + 1 : last])
        found.append("" if is_mixed else _KINDS[code])
    return found
