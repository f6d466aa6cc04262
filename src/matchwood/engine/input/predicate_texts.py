"""The texts of a predicate table's conjunctions, written column by column.

Every subscription has a text: it is what users see, and what a matcher is built from again
(`recovery`).  A predicate table has none, so it is written here, by Arrow's string kernels: a
million conjunctions of five predicates take about two seconds in one process.

    row          name and operator     constants           row's text
    7  price     price BETWEEN         20, 40              price BETWEEN 20 AND 40
    7  genre     genre =               'classics'          genre = 'classics'
    subscription 7                                         price BETWEEN 20 AND 40 AND genre = ...
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.leaves import ABSENT, OPERATORS, LeafBatch
from matchwood.encode.merge_kernels import BETWEEN, IN, NEGATED, PRESENT
from matchwood.lang.printer import Printer
from matchwood.lang.python_values import as_value

LIKE = 40
"""The operator of LIKE in a predicate table; the others are those of leaf rows."""

_SIGNS = {
    **{op: f" {sign} " for sign, op in OPERATORS.items()},
    IN: " IN (",
    IN | NEGATED: " NOT IN (",
    BETWEEN: " BETWEEN ",
    BETWEEN | NEGATED: " NOT BETWEEN ",
    ABSENT: " IS NULL",
    PRESENT: " IS NOT NULL",
    LIKE: " LIKE ",
    LIKE | NEGATED: " NOT LIKE ",
}
_PRINTER = Printer()


class TableTexts:
    """The texts of the conjunctions of a batch, written when they are asked for."""

    def __init__(self, batch: LeafBatch) -> None:
        self._batch = batch

    def take(self, rows: Sequence[int]) -> pa.LargeStringArray:
        """The texts of some conjunctions."""
        conjunctions = np.asarray(rows, np.int64)
        if not len(conjunctions):
            return pa.array([], pa.large_string())
        row_start = np.asarray(self._batch.row_start)
        sizes = np.diff(row_start)[conjunctions]
        starts = row_start[:-1][conjunctions]
        ends = np.cumsum(sizes)
        at = np.repeat(starts - ends + sizes, sizes) + np.arange(int(ends[-1]))
        offsets = np.concatenate([[0], ends])
        return _join(offsets, self._predicates(at), _string(" AND "))

    def _predicates(self, at: np.ndarray) -> pa.Array:
        """The texts of rows."""
        batch = self._batch
        start = np.asarray(batch.start)
        first, n = start[:-1][at], np.diff(start)[at]
        op = np.asarray(batch.op)[at]
        heads = self._heads(np.asarray(batch.attr)[at], op)
        ends = np.cumsum(n)
        positions = np.repeat(first - ends + n, n) + np.arange(int(ends[-1]))
        plain = op & ~np.uint8(NEGATED)
        is_between = plain == BETWEEN
        between = _string(", ")
        if is_between.any():
            between = pc.if_else(pa.array(is_between), _string(" AND "), between)
        values = _join(np.concatenate([[0], ends]), _literals(batch.values[positions]), between)
        is_in = plain == IN
        if not is_in.any():
            return pc.binary_join_element_wise(heads, values, _string(""))
        tails = pc.if_else(pa.array(is_in), _string(")"), _string(""))
        return pc.binary_join_element_wise(heads, values, tails, _string(""))

    def _heads(self, attr: np.ndarray, op: np.ndarray) -> pa.Array:
        """Name and operator of rows; each combination is written once."""
        pairs, which = _distinct(attr.astype(np.int64) * 256 + op, 256 * len(self._batch.names))
        names = list(self._batch.names)
        words = [_PRINTER.name(names[pair // 256]) + _SIGNS[pair % 256] for pair in pairs.tolist()]
        return pa.array(words, pa.large_string()).take(pa.array(which))


def _distinct(codes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct codes of some below n, ascending, and which of them each is.

    Where n is not much larger than the codes are many, a table of all n takes a tenth of a sorting.
    """
    if n > 16 * len(codes):
        return np.unique(codes, return_inverse=True)
    which = np.zeros(n, np.int32)
    which[codes] = 1
    distinct = np.flatnonzero(which)
    which[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, which[codes]


def _join(
    offsets: np.ndarray, parts: pa.Array, between: pa.Scalar | pa.Array
) -> pa.LargeStringArray:
    """The parts of each slice as one text; what stands between them is one text or one a slice."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), parts)
    return pc.binary_join(lists, between)


def _string(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _literals(values: Any) -> pa.LargeStringArray:
    """Constants as literals that read back as the same values."""
    if values.dtype == np.int64:
        return pa.array(values).cast(pa.large_string())
    if values.dtype == np.float64 and np.isfinite(values).all():
        texts = pa.array(values).cast(pa.large_string())
        has_point = pc.match_substring_regex(texts, "[.e]")  # 20 alone would be an int
        ends = pc.if_else(has_point, _string(""), _string("e0"))
        return pc.binary_join_element_wise(texts, ends, _string(""))
    listed = values.tolist()
    if set(map(type, listed)) == {str}:  # each distinct one is written once
        coded = pa.array(listed, pa.large_string()).dictionary_encode()
        words = [_PRINTER.value(text) for text in coded.dictionary.to_pylist()]
        return pa.array(words, pa.large_string()).take(coded.indices)
    known: dict[tuple[type, Any], str] = {}
    texts = []
    for value in listed:
        text = known.get((type(value), value))
        if text is None:
            plain = as_value(value) if isinstance(value, Decimal) else value
            text = known[(type(value), value)] = _PRINTER.value(plain)
        texts.append(text)
    return pa.array(texts, pa.large_string())
