"""Columns to rows: entries of events, side by side and ascending by attribute, without sorting.

Entries come in *runs*, each of one attribute, ascending.  One pass over all runs counts the entries
of every event, another one writes them.  Most runs are those of columns, read where Arrow has them;
their buffers are known by their addresses (`kernel/memory`).

Layout of the columns   (C columns)
    values  int64[C]  address of the value of row 0
    bits    int64[C]  address of the bits that tell which rows are not null; 0: all are
    offset  int64[C]  the bit of row 0
    size    int64[C]  bytes that hold these bits
    kind    uint8[C]  INT32, INT64, DOUBLE

Layout of the runs   (R runs, G given entries)
    attr    int32[R]    ascending
    column  int32[R]    the column that is read, NONE for entries that are given
    role    uint8[R]    KEY of each value; key 0 for each PRESENT, key 1 for each ABSENT
    action  uint8[R]    what a value becomes, and the table it is looked up in: see
    table   int32[R]    `json/key_kernels`
    nan     int64[R]    the key of NaN
    start   int64[R+1]  slice of the given entries
    row, key  int64[G]  events, counted from the first, and keys
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.dicts.walk_kernels import PLAN
from matchwood.encode.json.key_kernels import AS_FLOAT, AS_NUMBER, float_key, number_key
from matchwood.encode.json.walk_kernels import DOUBLE as DOUBLE_VALUE
from matchwood.encode.json.walk_kernels import INTEGER, NONE
from matchwood.kernel.jit import inlined, kernel, lowest_bit
from matchwood.kernel.memory import float64_at, int32_at, int64_at, uint8_at

INT32, INT64, DOUBLE = range(3)
KEY, PRESENT, ABSENT = range(3)

LENGTH, OFFSET, BUFFERS, CHILDREN = 0, 16, 40, 48
"""Bytes from the beginning of a `struct ArrowArray` to what it says."""

AT_ONCE = 56
"""Rows whose bits are looked at together: with a shift of up to seven they fit eight bytes."""


class Columns(NamedTuple):
    """See the module's docstring."""

    values: np.ndarray
    bits: np.ndarray
    offset: np.ndarray
    size: np.ndarray
    kind: np.ndarray


class Runs(NamedTuple):
    """See the module's docstring."""

    attr: np.ndarray
    column: np.ndarray
    role: np.ndarray
    action: np.ndarray
    table: np.ndarray
    nan: np.ndarray
    start: np.ndarray
    row: np.ndarray
    key: np.ndarray


_plan_of = PLAN.reader()


@inlined
def _present(columns, c, row, n):
    """A bit for each of up to AT_ONCE rows from `row` on: 1 where the column is not null."""
    every = (np.int64(1) << n) - np.int64(1)
    bits = columns.bits[c]
    if bits == 0:
        return every
    at = columns.offset[c] + row
    byte, shift = at >> 3, at & 7
    if byte + 8 <= columns.size[c]:
        return (int64_at(bits + byte) >> shift) & every
    found = np.int64(0)
    for k in range((shift + n + 7) >> 3):
        found |= np.int64(uint8_at(bits + byte + k)) << (8 * k)
    return (found >> shift) & every


@inlined
def _rows_of(columns, runs, r, row, n):
    """A bit for each of some rows that a run has an entry for."""
    found = _present(columns, runs.column[r], row, n)
    if runs.role[r] == ABSENT:
        found ^= (np.int64(1) << n) - np.int64(1)
    return found


@inlined
def _key(columns, runs, plan, r, row):
    """The key of the value that a run has in a row."""
    role = runs.role[r]
    if role != KEY:
        return np.int64(role == ABSENT)
    c, action, table = runs.column[r], runs.action[r], runs.table[r]
    kind = columns.kind[c]
    if kind == DOUBLE:
        address = columns.values[c] + 8 * row
        value = float64_at(address)
        if value != value:
            return runs.nan[r]
        if action == AS_FLOAT:
            return float_key(int64_at(address))
        return number_key(plan, table, DOUBLE_VALUE, np.int64(0), value)
    if kind == INT64:
        whole = int64_at(columns.values[c] + 8 * row)
    else:
        whole = int32_at(columns.values[c] + 4 * row)
    if action == AS_NUMBER:
        return number_key(plan, table, INTEGER, whole, 0.0)
    return whole


@kernel
def find_columns(address, columns):
    """Write where the columns of a batch are, which Arrow's C data interface has at an address.

    All are of numbers: each has two buffers, the bits and the values.
    """
    children = int64_at(address + CHILDREN)
    for c in range(len(columns.kind)):
        child = int64_at(children + 8 * c)
        offset = int64_at(child + OFFSET)
        buffers = int64_at(child + BUFFERS)
        width = 4 if columns.kind[c] == INT32 else 8
        columns.values[c] = int64_at(buffers + 8) + offset * width
        columns.bits[c], columns.offset[c] = int64_at(buffers), offset
        columns.size[c] = (offset + int64_at(child + LENGTH) + 7) >> 3


@kernel
def count_entries(columns, runs, first, is_wrong, start):
    """Write to `start`, n + 1 zeros, where the entries of each of n events will begin.

    first     the row of the first event
    is_wrong  bool[n]  events that get no entries; empty: none
    """
    n = np.int64(len(start) - 1)
    for r in range(len(runs.attr)):
        if runs.column[r] == NONE:
            for k in range(runs.start[r], runs.start[r + 1]):
                start[runs.row[k] + 1] += 1
            continue
        for begin in range(0, n, AT_ONCE):
            found = _rows_of(columns, runs, r, first + begin, min(np.int64(AT_ONCE), n - begin))
            while found != 0:
                start[begin + lowest_bit(found) + 1] += 1
                found &= found - 1
    for e in range(len(is_wrong)):
        if is_wrong[e]:
            start[e + 1] = 0
    for e in range(n):
        start[e + 1] += start[e]


@kernel
def write_entries(columns, runs, bound, first, is_wrong, at, attr, key):
    """Write the entries of events, whose places are known.

    bound  the plan (`json/key_kernels`)
    at     int64[n]  where the entries of each event begin; moved to their end
    """
    plan = _plan_of(bound)
    n = np.int64(len(at))
    for r in range(len(runs.attr)):
        if runs.column[r] == NONE:
            for k in range(runs.start[r], runs.start[r + 1]):
                e = runs.row[k]
                if len(is_wrong) == 0 or not is_wrong[e]:
                    attr[at[e]], key[at[e]] = runs.attr[r], runs.key[k]
                    at[e] += 1
            continue
        for begin in range(0, n, AT_ONCE):
            found = _rows_of(columns, runs, r, first + begin, min(np.int64(AT_ONCE), n - begin))
            while found != 0:
                e = begin + lowest_bit(found)
                found &= found - 1
                if len(is_wrong) == 0 or not is_wrong[e]:
                    attr[at[e]] = runs.attr[r]
                    key[at[e]] = _key(columns, runs, plan, r, first + e)
                    at[e] += 1
