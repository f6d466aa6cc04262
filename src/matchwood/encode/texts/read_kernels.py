"""Texts of the usual form, many at a time, cut into rows: predicates joined by AND.

    price BETWEEN 20 AND 40 AND genre IN ('classics', 'crime') AND format <> 'paperback'

A text that is anything else is not taken.  Names and constants are
slices of the bytes; equal ones have one id, so what they mean is worked out once.

Layout   (T texts, R rows, V constants, S slices, 2^k places)
    Rows     name       int32[R]   the slice of the attribute's name
             op         uint8[R]   as in `leaves`; OTHER_LIKE: a pattern that Python looks at
             position   int32[R]   where the predicate begins, in its text
             value_end  int64[R]   behind its last constant
             value      int32[V]   slices
             row_end    int64[T]   behind the last row of a text
             is_taken   bool[T]    given: whether to look at a text; then: whether it is taken
             count      int64[3]   used: rows, constants, slices
    Slices   begin, size  int64[S], int32[S]
             kind         uint8[S]   NAME, WHOLE, NUMBER, TEXT, PREFIX_END
             place        int32[2^k] slices by hash, see id_table_kernels
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.merge_kernels import (
    BETWEEN,
    EQ,
    GE,
    GT,
    HALF_OPEN,
    IN,
    LE,
    LT,
    NEGATED,
    PRESENT,
)
from matchwood.kernel.byte_kernels import are_same, hash_bytes
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell
from matchwood.kernel.jit import inlined, kernel

NAME, WHOLE, NUMBER, TEXT, PREFIX_END = range(5)
"""What a slice is: WHOLE has digits alone, at most 18; PREFIX_END is what comes after a prefix."""

ABSENT, OF_STRING, OTHER_LIKE = 9, 32, 64
"""ABSENT and OF_STRING as in `leaves`."""

N_ROWS, N_VALUES, N_SLICES = range(3)
NOTHING = -1

BLANK, DIGIT, START, REST = 1, 2, 4, 8
CLASS = np.zeros(256, np.uint8)
for _bytes, _class in (
    (b" \t\n\r\f\v", BLANK), (b"0123456789", DIGIT | REST), (b"_", START | REST),
    (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", START | REST),
):  # fmt: skip
    for _byte in _bytes:
        CLASS[_byte] |= _class


def _packed(word: bytes) -> int:
    return int.from_bytes(word, "little")


W_AND, W_IN, W_LIKE, W_BETWEEN, W_IS, W_NOT, W_NULL = map(
    _packed, (b"and", b"in", b"like", b"between", b"is", b"not", b"null")
)
QUOTE, DOT, COMMA, OPEN, CLOSE, BACKSLASH, MINUS, PLUS = b"'.,()\\-+"
EQUALS, LESS, GREATER, BANG, PERCENT, UNDERLINE = b"=<>!%_"


class Rows(NamedTuple):
    """See the module's docstring."""

    name: np.ndarray
    op: np.ndarray
    position: np.ndarray
    value_end: np.ndarray
    value: np.ndarray
    row_end: np.ndarray
    is_taken: np.ndarray
    count: np.ndarray


class Slices(NamedTuple):
    """See the module's docstring."""

    begin: np.ndarray
    size: np.ndarray
    kind: np.ndarray
    cell: np.ndarray


@inlined
def _blanks(data, at, end):
    """The first byte from `at` on that is no blank."""
    while at < end and CLASS[data[at]] == BLANK:
        at += 1
    return at


@inlined
def _word(data, at, end):
    """The letters from `at` on in lower case, as a number, and where they end; 0: more than 7."""
    word, n = np.int64(0), np.int64(0)
    while at + n < end and CLASS[data[at + n]] & REST:
        if n < 7:
            word |= (np.int64(data[at + n]) | np.int64(32)) << (np.int64(8) * n)
        n += 1
    return np.int64(0) if n > 7 else word, at + n


@inlined
def _name_end(data, at, end):
    """Where a dotted name ends; NOTHING where there is none."""
    while at < end and CLASS[data[at]] & START:
        while at < end and CLASS[data[at]] & REST:
            at += 1
        if at >= end or data[at] != DOT:
            return at
        at += 1
    return np.int64(NOTHING)


@inlined
def _literal(data, at, end):
    """A constant from `at` on: where it ends, NOTHING where there is none; begin, size, kind."""
    if at < end and data[at] == QUOTE:
        stop = at + 1
        while stop < end and data[stop] != QUOTE and data[stop] != BACKSLASH:
            stop += 1
        if stop >= end or data[stop] != QUOTE or (stop + 1 < end and data[stop + 1] == QUOTE):
            return np.int64(NOTHING), at, at, TEXT
        return stop + 1, at + 1, stop - at - 1, TEXT
    stop = at + 1 if at < end and (data[at] == MINUS or data[at] == PLUS) else at
    digits = stop
    while stop < end and CLASS[data[stop]] & DIGIT:
        stop += 1
    if stop == digits:
        return np.int64(NOTHING), at, at, NUMBER
    kind = WHOLE if digits == at and stop - at < 19 else NUMBER
    if stop + 1 < end and data[stop] == DOT and CLASS[data[stop + 1]] & DIGIT:
        kind = NUMBER
        stop += 1
        while stop < end and CLASS[data[stop]] & DIGIT:
            stop += 1
    if stop < end and (CLASS[data[stop]] & REST or data[stop] == DOT):
        return np.int64(NOTHING), at, at, NUMBER
    return stop, at, stop - at, kind


@inlined
def _slice_id(data, begin, size, kind, slices, count):
    """The id of a slice; slices have room for one more."""
    h = hash_bytes(data, begin, begin + size) + np.uint64(kind)
    at = first_cell(slices.cell, h)
    while slices.cell[at] != EMPTY:
        id_ = slices.cell[at]
        if slices.kind[id_] == kind and slices.size[id_] == size:
            if are_same(data, slices.begin[id_], data, begin, size):
                return np.int64(id_)
        at = next_cell(slices.cell, at)
    id_ = count[N_SLICES]
    slices.begin[id_], slices.size[id_], slices.kind[id_] = begin, size, kind
    slices.cell[at] = id_
    count[N_SLICES] = id_ + 1
    return id_


@inlined
def _put(data, begin, size, kind, rows, slices):
    """Add a constant."""
    n = rows.count[N_VALUES]
    rows.value[n] = _slice_id(data, begin, size, kind, slices, rows.count)
    rows.count[N_VALUES] = n + 1


@inlined
def _symbol(data, at, end):
    """A sign of comparison: its operator, NOTHING where there is none, and where it ends."""
    first = data[at]
    second = data[at + 1] if at + 1 < end else np.uint8(0)
    if first == EQUALS:
        return EQ, at + (2 if second == EQUALS else 1)
    if first == LESS:
        if second == GREATER:
            return EQ | NEGATED, at + 2
        return (LE, at + 2) if second == EQUALS else (LT, at + 1)
    if first == GREATER:
        return (GE, at + 2) if second == EQUALS else (GT, at + 1)
    if first == BANG and second == EQUALS:
        return EQ | NEGATED, at + 2
    return NOTHING, at


@inlined
def _like(data, begin, size, rows, slices):
    """Add the constants of a pattern; returns the operator."""
    n_wild, n_last = 0, 0
    for k in range(begin, begin + size):
        if data[k] == PERCENT or data[k] == UNDERLINE:
            n_wild += 1
    if n_wild == 0:
        _put(data, begin, size, TEXT, rows, slices)
        return EQ | OF_STRING
    if n_wild == 1 and data[begin + size - 1] == PERCENT:
        n_last = 1
    if n_last == 0 or size == 1:
        _put(data, begin, size, TEXT, rows, slices)
        return OTHER_LIKE | OF_STRING
    _put(data, begin, size - 1, TEXT, rows, slices)
    _put(data, begin, size - 1, PREFIX_END, rows, slices)
    return HALF_OPEN | OF_STRING


@inlined
def _between(data, at, end, rows, slices):
    """Add the bounds of BETWEEN; where it ends, or NOTHING."""
    stop, begin, size, kind = _literal(data, at, end)
    if stop < 0 or stop >= end or CLASS[data[stop]] != BLANK:
        return np.int64(NOTHING)
    _put(data, begin, size, kind, rows, slices)
    word, at = _word(data, _blanks(data, stop, end), end)
    if word != W_AND or at >= end or CLASS[data[at]] != BLANK:
        return np.int64(NOTHING)
    stop, begin, size, other = _literal(data, _blanks(data, at, end), end)
    if stop < 0 or (kind == TEXT) != (other == TEXT):
        return np.int64(NOTHING)
    _put(data, begin, size, other, rows, slices)
    return stop


@inlined
def _list(data, at, end, rows, slices):
    """Add the constants of IN, which are of one kind; where it ends, or NOTHING."""
    if at >= end or data[at] != OPEN:
        return np.int64(NOTHING)
    are_texts = False
    first = at
    while True:
        stop, begin, size, kind = _literal(data, _blanks(data, at + 1, end), end)
        if stop < 0 or (at > first and (kind == TEXT) != are_texts):
            return np.int64(NOTHING)
        are_texts = kind == TEXT
        _put(data, begin, size, kind, rows, slices)
        at = _blanks(data, stop, end)
        if at < end and data[at] == CLOSE:
            return at + 1
        if at >= end or data[at] != COMMA:
            return np.int64(NOTHING)


@inlined
def _worded(data, at, end, rows, slices):
    """A predicate from its verb on, which is a word: operator and end, or NOTHING twice."""
    word, stop = _word(data, at, end)
    negated = 0
    if word == W_IS:
        word, stop = _word(data, _blanks(data, stop, end), end)
        if word == W_NOT:
            word, stop = _word(data, _blanks(data, stop, end), end)
            return (PRESENT, stop) if word == W_NULL else (NOTHING, np.int64(NOTHING))
        return (ABSENT, stop) if word == W_NULL else (NOTHING, np.int64(NOTHING))
    if word == W_NOT:
        negated = NEGATED
        word, stop = _word(data, _blanks(data, stop, end), end)
    at = _blanks(data, stop, end)
    if word == W_BETWEEN:
        return BETWEEN | negated, _between(data, at, end, rows, slices)
    if word == W_IN:
        return IN | negated, _list(data, at, end, rows, slices)
    if word == W_LIKE:
        stop, begin, size, kind = _literal(data, at, end)
        if stop >= 0 and kind == TEXT:
            return _like(data, begin, size, rows, slices) | negated, stop
    return NOTHING, np.int64(NOTHING)


@inlined
def _predicate(data, at, end, rows, slices):
    """Add the row of a predicate; where it ends, or NOTHING."""
    stop = _name_end(data, at, end)
    if stop < 0:
        return np.int64(NOTHING)
    name = _slice_id(data, at, stop - at, NAME, slices, rows.count)
    verb = _blanks(data, stop, end)
    if verb >= end:
        return np.int64(NOTHING)
    op, behind = _symbol(data, verb, end)
    if op != NOTHING:
        stop, begin, size, kind = _literal(data, _blanks(data, behind, end), end)
        if stop >= 0:
            _put(data, begin, size, kind, rows, slices)
    elif verb > stop:
        op, stop = _worded(data, verb, end, rows, slices)
    else:
        stop = np.int64(NOTHING)
    if stop >= 0:
        n = rows.count[N_ROWS]
        rows.name[n], rows.op[n], rows.value_end[n] = name, op, rows.count[N_VALUES]
        rows.count[N_ROWS] = n + 1
    return stop


@inlined
def _text(data, begin, end, rows, slices):
    """Add the rows of a text; False where it is not taken."""
    at = begin
    while True:
        rows.position[rows.count[N_ROWS]] = at - begin
        stop = _predicate(data, at, end, rows, slices)
        if stop < 0:
            return False
        at = _blanks(data, stop, end)
        if at == end:
            return True
        if at == stop:
            return False
        word, stop = _word(data, at, end)
        at = _blanks(data, stop, end)
        if word != W_AND or at == stop or at == end:
            return False


@kernel
def read_texts(data, text_end, rows, slices):
    """Read the texts that are to be taken; True: all were, False: there is no room for slices.

    data      their bytes, one after the other, ASCII without NUL
    text_end  where each ends
    """
    begin = np.int64(0)
    for t in range(len(text_end)):
        end = text_end[t]
        if rows.is_taken[t]:
            if rows.count[N_SLICES] + (end - begin) > len(slices.begin):
                return False
            n_rows, n_values = rows.count[N_ROWS], rows.count[N_VALUES]
            rows.is_taken[t] = _text(data, begin, end, rows, slices)
            if not rows.is_taken[t]:
                rows.count[N_ROWS], rows.count[N_VALUES] = n_rows, n_values
        rows.row_end[t] = rows.count[N_ROWS]
        begin = end
    return True
