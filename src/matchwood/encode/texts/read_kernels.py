"""Texts of the usual form, many at a time, cut into rows and the code that joins them.

    price BETWEEN 20 AND 40 AND (genre IN ('classics', 'crime') OR NOT used)

Predicates with constants, joined by AND, OR, NOT and parentheses.  A text that is anything else is
not taken.  Names and constants are slices of the bytes; equal ones have one id, so what they mean
is worked out once.

Layout   (T texts, R rows, V constants, C tokens, S slices, 2^k places)
    Rows     name       int32[R]   the slice of the attribute's name
             op         uint8[R]   as in `leaves`; OTHER_LIKE: a pattern that Python looks at
             position   int32[R]   where the predicate begins, in its text
             value_end  int64[R]   behind its last constant
             value      int32[V]   slices
             row_end    int64[T]   behind the last row of a text
             code       int32[C]   rows and connectives, as in `leaves`
             code_end   int64[T]   behind the last token of a text
             is_taken   bool[T]    given: whether to look at a text; then: whether it is taken
             count      int64[4]   used: rows, constants, slices, tokens
    Slices   begin, size  int64[S], int32[S]
             kind         uint8[S]   see `scan_kernels`
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
from matchwood.encode.texts.scan_kernels import (
    BLANK,
    CLASS,
    CLOSE,
    COMMA,
    FALSE,
    FAMILY,
    NAME,
    NOTHING,
    OPEN,
    PERCENT,
    PREFIX_END,
    TEXT,
    TRUE,
    UNDERLINE,
    W_AND,
    W_BETWEEN,
    W_IN,
    W_IS,
    W_LIKE,
    W_NOT,
    W_NULL,
    W_OR,
    blanks,
    literal,
    name_end,
    symbol,
    word_from,
)
from matchwood.encode.texts.tree_kernels import (
    add_not,
    close_level,
    connect_or,
    end_tree,
    is_negated,
    open_level,
    start_tree,
    take_leaf,
    write_code,
)
from matchwood.kernel.byte_kernels import are_same, hash_bytes
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell
from matchwood.kernel.jit import inlined, kernel, part

ABSENT, OF_STRING, OTHER_LIKE = 9, 32, 64
"""ABSENT and OF_STRING as in `leaves`."""

N_ROWS, N_VALUES, N_SLICES, N_TOKENS = range(4)

MOST_LEAVES = 50_000
"""Predicates of a text that is more than a conjunction: `forms.cost` may refuse others."""

NEGATION = np.arange(16, dtype=np.uint8)
"""By operator: that of the negation, where it is another operator and not a mark."""
for _one, _other in ((LT, GE), (LE, GT), (PRESENT, ABSENT)):
    NEGATION[_one], NEGATION[_other] = _other, _one


class Rows(NamedTuple):
    """See the module's docstring."""

    name: np.ndarray
    op: np.ndarray
    position: np.ndarray
    value_end: np.ndarray
    value: np.ndarray
    row_end: np.ndarray
    code: np.ndarray
    code_end: np.ndarray
    is_taken: np.ndarray
    count: np.ndarray


class Slices(NamedTuple):
    """See the module's docstring."""

    begin: np.ndarray
    size: np.ndarray
    kind: np.ndarray
    cell: np.ndarray


@part
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
    stop, begin, size, kind = literal(data, at, end)
    if stop < 0 or stop >= end or CLASS[data[stop]] != BLANK or kind >= TRUE:
        return np.int64(NOTHING)
    _put(data, begin, size, kind, rows, slices)
    word, at = word_from(data, blanks(data, stop, end), end)
    if word != W_AND or at >= end or CLASS[data[at]] != BLANK:
        return np.int64(NOTHING)
    stop, begin, size, other = literal(data, blanks(data, at, end), end)
    if stop < 0 or FAMILY[kind] != FAMILY[other]:
        return np.int64(NOTHING)
    _put(data, begin, size, other, rows, slices)
    return stop


@inlined
def _list(data, at, end, rows, slices):
    """Add the constants of IN, which are of one kind; where it ends, or NOTHING."""
    if at >= end or data[at] != OPEN:
        return np.int64(NOTHING)
    family = np.int64(0)
    first = at
    while True:
        stop, begin, size, kind = literal(data, blanks(data, at + 1, end), end)
        if stop < 0 or kind >= TRUE or (at > first and FAMILY[kind] != family):
            return np.int64(NOTHING)
        family = FAMILY[kind]
        _put(data, begin, size, kind, rows, slices)
        at = blanks(data, stop, end)
        if at < end and data[at] == CLOSE:
            return at + 1
        if at >= end or data[at] != COMMA:
            return np.int64(NOTHING)


@part
def _worded(data, at, end, rows, slices):
    """A predicate from its verb on, which is a word: operator and end, or NOTHING twice."""
    word, stop = word_from(data, at, end)
    negated = 0
    if word == W_IS:
        word, stop = word_from(data, blanks(data, stop, end), end)
        if word == W_NOT:
            word, stop = word_from(data, blanks(data, stop, end), end)
            return (PRESENT, stop) if word == W_NULL else (NOTHING, np.int64(NOTHING))
        return (ABSENT, stop) if word == W_NULL else (NOTHING, np.int64(NOTHING))
    if word == W_NOT:
        negated = NEGATED
        word, stop = word_from(data, blanks(data, stop, end), end)
    at = blanks(data, stop, end)
    if word == W_BETWEEN:
        return BETWEEN | negated, _between(data, at, end, rows, slices)
    if word == W_IN:
        return IN | negated, _list(data, at, end, rows, slices)
    if word == W_LIKE:
        stop, begin, size, kind = literal(data, at, end)
        if stop >= 0 and kind == TEXT:
            return _like(data, begin, size, rows, slices) | negated, stop
    return NOTHING, np.int64(NOTHING)


@inlined
def _compared(data, at, end, op, negated, rows, slices):
    """Add the constant of a comparison; its operator and where it ends, or NOTHING."""
    stop, begin, size, kind = literal(data, blanks(data, at, end), end)
    if stop < 0:
        return op, stop
    if negated and kind >= TRUE and op == EQ:  # NOT a = TRUE  ->  a = FALSE
        _put(data, begin, size, TRUE + FALSE - kind, rows, slices)
        return op, stop
    _put(data, begin, size, kind, rows, slices)
    return _negation(op) if negated else op, stop


@inlined
def _negation(op):
    """The operator of the negation of a row."""
    if op == LT or op == LE or op == GT or op == GE or op == PRESENT or op == ABSENT:
        return np.int64(NEGATION[op])
    return np.int64(op ^ NEGATED)


@part
def _predicate(data, at, end, negated, rows, slices):
    """Add the row of a predicate, or of its negation; where it ends, or NOTHING."""
    stop = name_end(data, at, end)
    if stop < 0:
        return np.int64(NOTHING)
    name = _slice_id(data, at, stop - at, NAME, slices, rows.count)
    verb = blanks(data, stop, end)
    op, behind = symbol(data, verb, end) if verb < end else (NOTHING, verb)
    if op != NOTHING:
        op, stop = _compared(data, behind, end, op, negated, rows, slices)
    else:
        word, _ = word_from(data, verb, end)
        if verb == end or data[verb] == CLOSE or (verb > stop and (word == W_AND or word == W_OR)):
            _put(data, at, np.int64(0), FALSE if negated else TRUE, rows, slices)
            op = np.int64(EQ)
        elif verb > stop:
            op, stop = _worded(data, verb, end, rows, slices)
            op = _negation(op) if negated else op
        else:
            stop = np.int64(NOTHING)
    if stop >= 0:
        n = rows.count[N_ROWS]
        rows.name[n], rows.op[n], rows.value_end[n] = name, op, rows.count[N_VALUES]
        rows.count[N_ROWS] = n + 1
    return stop


@inlined
def _operand_start(data, at, end, tree, depth):
    """Pass NOT and opening parentheses: where the predicate begins, or NOTHING; and the depth."""
    while True:
        at = blanks(data, at, end)
        if at >= end:
            return np.int64(NOTHING), depth
        if data[at] == OPEN:
            depth = open_level(tree, depth)
            at += 1
        else:
            word, stop = word_from(data, at, end)
            if word != W_NOT or stop >= end:
                return at, depth
            if CLASS[data[stop]] != BLANK and data[stop] != OPEN:
                return at, depth
            depth = add_not(tree, depth)
            at = stop
        if depth < 0:
            return np.int64(NOTHING), depth


@inlined
def _text(data, begin, end, rows, slices, tree):
    """Add the rows and the code of a text; False where it is not taken."""
    first, n_joints = rows.count[N_ROWS], np.int64(0)
    depth, at = start_tree(tree), begin
    while True:
        start, depth = _operand_start(data, at, end, tree, depth)
        if start < 0:
            return False
        n_joints += start - blanks(data, at, end)  # of NOT and (
        rows.position[rows.count[N_ROWS]] = start - begin
        stop = _predicate(data, start, end, is_negated(tree, depth), rows, slices)
        if stop < 0:
            return False
        take_leaf(tree, depth, rows.count[N_ROWS] - 1)
        at = blanks(data, stop, end)
        while at < end and data[at] == CLOSE and depth > 0:
            depth = close_level(tree, depth)
            stop = at + 1
            at = blanks(data, stop, end)
        if at == end:
            break
        if at == stop and data[stop - 1] != CLOSE:
            return False
        word, stop = word_from(data, at, end)
        if stop == end or (CLASS[data[stop]] != BLANK and data[stop] != OPEN):
            return False
        if word == W_OR:
            connect_or(tree, depth)
            n_joints += 1
        elif word != W_AND:
            return False
        at = stop
    if depth > 0 or (n_joints and rows.count[N_ROWS] - first > MOST_LEAVES):
        return False
    rows.count[N_TOKENS] = write_code(tree, end_tree(tree), rows.code, rows.count[N_TOKENS])
    return True


@kernel
def read_texts(data, text_end, rows, slices, tree):
    """Read the texts that are to be taken; True: all were, False: there is no room for slices.

    data      their bytes, one after the other, ASCII without NUL
    text_end  where each ends
    """
    begin = np.int64(0)
    for t in range(len(text_end)):
        end = text_end[t]
        if rows.is_taken[t]:
            if rows.count[N_SLICES] + 2 * (end - begin) > len(slices.begin):
                return False
            n_rows, n_values = rows.count[N_ROWS], rows.count[N_VALUES]
            rows.is_taken[t] = _text(data, begin, end, rows, slices, tree)
            if not rows.is_taken[t]:
                rows.count[N_ROWS], rows.count[N_VALUES] = n_rows, n_values
        rows.row_end[t], rows.code_end[t] = rows.count[N_ROWS], rows.count[N_TOKENS]
        begin = end
    return True
