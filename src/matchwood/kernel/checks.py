"""Checks of arrays that come from a file, before a kernel sees them.

Kernels do not check bounds: an id in a file that is no id reads memory that is not ours.  So a
layout says what its arrays must be, and `check` compares:

    check(arrays, {"attr": Column("int32", "P", -1, "A"), "lo": Column("int64", "P")}, A=3)

reads: `attr` holds an int32 for each of P things, from -1 to below A = 3; `lo` is as long.  A name
stands for a number that was given, or for the length of the first array that has it.

Everything here costs one pass over an array, at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from matchwood.errors import FormatError

Number = int | str
"""A number, or the name of one."""


class Column(NamedTuple):
    """What an array must be: its type, its length (or shape), and the range of its values."""

    dtype: str
    length: Number | tuple[Number, ...]
    low: Number | None = None
    below: Number | None = None


def check(
    arrays: Mapping[str, np.ndarray], columns: Mapping[str, Column], prefix: str = "", **sizes: int
) -> dict[str, int]:
    """Compare arrays with what is expected of them; returns the numbers that names stand for."""
    for name, column in columns.items():
        array = arrays.get(prefix + name)
        if array is None:
            raise FormatError(f"expected an array {prefix + name}, found none")
        _check_shape(prefix + name, array, column, sizes)
        _check_range(prefix + name, array, column, sizes)
    return sizes


def _check_shape(name: str, array: np.ndarray, column: Column, sizes: dict[str, int]) -> None:
    shape = column.length if isinstance(column.length, tuple) else (column.length,)
    if len(shape) == array.ndim:
        for number, found in zip(shape, array.shape, strict=True):
            if isinstance(number, str):
                sizes.setdefault(number, found)
    expected = tuple(_number(each, sizes) for each in shape) if len(shape) == array.ndim else shape
    if array.dtype != np.dtype(column.dtype) or array.shape != expected:
        raise FormatError(
            f"expected {name} as {column.dtype}{list(expected)}, found "
            f"{array.dtype}{list(array.shape)}"
        )
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise FormatError(f"expected {name} row after row, found another order")


def _check_range(name: str, array: np.ndarray, column: Column, sizes: dict[str, int]) -> None:
    if not array.size:
        return
    if column.low is not None:
        expect(int(array.min()) >= _number(column.low, sizes), name, f"no value below {column.low}")
    if column.below is not None:
        below = _number(column.below, sizes)
        expect(int(array.max()) < below, name, f"values below {below}")


def _number(number: Number, sizes: Mapping[str, int]) -> int:
    return sizes[number] if isinstance(number, str) else number


def expect(is_so: object, name: str, what: str) -> None:
    """Raise a FormatError unless something is so."""
    if not is_so:
        raise FormatError(f"expected {what} in {name}, found others")


def check_offsets(name: str, start: np.ndarray, end: int) -> None:
    """Whether offsets begin at 0, never fall, and end at `end`."""
    is_whole = len(start) and start[0] == 0 and start[-1] == end
    expect(is_whole and bool((start[1:] >= start[:-1]).all()), name, f"offsets from 0 to {end}")


def do_ascend(numbers: np.ndarray, start: np.ndarray, first: int) -> bool:
    """Whether the numbers of every slice start[i]:start[i + 1] ascend, the first being `first`.

    `start` has been looked at (`check_offsets`); a slice may be empty.
    """
    begins = begins_of(start)
    rises = numbers[1:] > numbers[:-1]
    return bool((numbers[begins] == first).all() and (rises | begins[1:]).all())


def begins_of(start: np.ndarray) -> np.ndarray:
    """Which items are the first ones of the slices start[i]:start[i + 1]."""
    found = np.zeros(int(start[-1]), bool)
    found[start[:-1][start[:-1] < start[1:]]] = True
    return found


def check_slices(name: str, start: np.ndarray, size: np.ndarray, length: int) -> None:
    """Whether slices lie inside an array of a length; empty ones may begin anywhere."""
    used = size > 0
    if not used.all():
        start, size = start[used], size[used]
    if len(start):
        is_inside = int(start.min()) >= 0 and int(start.max()) <= length
        is_inside = is_inside and int((start + size).max()) <= length
        expect(is_inside, name, f"slices of 0..{length}")


def check_members(name: str, found: np.ndarray, expected: np.ndarray, n: int) -> None:
    """Whether an array has the expected numbers, all below n, each once, in any order."""
    seen = np.zeros(n, np.int8)
    seen[expected] = 1
    is_same = len(found) == len(expected) and (not len(found) or int(found.min()) >= 0)
    is_same = is_same and (not len(found) or int(found.max()) < n)
    if is_same:
        seen[found] += 2
    expect(is_same and not ((seen == 1) | (seen == 2)).any(), name, f"{len(expected)} ids, once")
