"""Many texts of the usual form to leaf rows at once, by compiled code (`texts/read_kernels`).

The texts are predicates with constants under AND, OR, NOT and parentheses; a call costs what
reading some ten conjunctions in `texts/quick` does.  What names and constants mean is worked out
here, once for each distinct one.  A text that is anything else, or wrong, is left to the parser:
whatever is written here is what the parser and `LeafBatch.add` would have written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from matchwood.encode.leaves import PATTERN, LeafBatch
from matchwood.encode.like import LikeKind, classify, successor
from matchwood.encode.texts.read_kernels import (
    N_ROWS,
    N_SLICES,
    N_TOKENS,
    N_VALUES,
    OTHER_LIKE,
    Rows,
    Slices,
    read_texts,
)
from matchwood.encode.texts.scan_kernels import (
    DATE,
    DOUBLED,
    FALSE,
    NAME,
    NUMBER,
    PREFIX_END,
    TEXT,
    TIMESTAMP,
    TRUE,
    WHOLE,
)
from matchwood.encode.texts.tree_kernels import new_tree
from matchwood.errors import MatchwoodError
from matchwood.kernel.id_table_kernels import EMPTY
from matchwood.lang.literals import LiteralError, number
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.names import is_context
from matchwood.lang.nodes import Comparison
from matchwood.lang.parser import parse
from matchwood.lang.tokens import END, MAX_TEXT

MOST_SLICES = 1 << 15
"""Slices that there is room for at first."""

_LEFT = object()
"""What a slice means that the parser has to look at."""


def write_texts(batch: LeafBatch, texts: Sequence[Any]) -> np.ndarray:
    """Write the rows of texts, one expression each; returns which were taken.

    Nothing is written of others: they are left to the parser.
    """
    given = [text if _may_be(text) else "" for text in texts]
    joined = "".join(given)
    data = np.frombuffer(joined.encode(), np.uint8)
    text_end = np.cumsum(np.fromiter(map(len, given), np.int64, len(given)))
    rows, slices = _read(data, text_end, text_end > np.concatenate([[0], text_end[:-1]]))
    meanings = _meanings(joined, rows, slices)
    is_left = np.array([each is _LEFT for each in meanings], bool)
    if is_left.any():
        rows, slices = _read(data, text_end, rows.is_taken & ~_uses(rows, is_left))
        meanings = _meanings(joined, rows, slices)
    _write(batch, rows, meanings)
    return rows.is_taken


def _may_be(text: Any) -> bool:
    """Whether compiled code can look at a text; the parser refuses END."""
    return type(text) is str and text.isascii() and len(text) <= MAX_TEXT and END not in text


def _read(data: np.ndarray, text_end: np.ndarray, wanted: np.ndarray) -> tuple[Rows, Slices]:
    """The rows of the texts that are wanted and taken; the room is what bytes can hold at most."""
    size, n = len(data), len(text_end)
    n_rows, most = n + size // 4 + 2, min(MOST_SLICES, 2 * size + 1)
    tree = new_tree(2 * n_rows)
    while True:
        rows = Rows(
            np.empty(n_rows, np.int32), np.empty(n_rows, np.uint8), np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int64), np.empty(n + size // 2 + 2, np.int32),
            np.empty(n, np.int64), np.empty(2 * n_rows, np.int32), np.empty(n, np.int64),
            wanted.copy(), np.zeros(4, np.int64),
        )  # fmt: skip
        slices = Slices(
            np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.uint8),
            np.full(1 << (2 * most).bit_length(), EMPTY, np.int32),
        )  # fmt: skip
        if read_texts(data, text_end, rows, slices, tree):
            return rows, slices
        most = min(4 * most, 2 * size + 1)


def _meanings(text: str, rows: Rows, slices: Slices) -> list[Any]:
    """What each slice means: the name or the constant; _LEFT where only the parser knows."""
    n = int(rows.count[N_SLICES])
    meanings: list[Any] = []
    for begin, size, kind in zip(
        slices.begin[:n].tolist(), slices.size[:n].tolist(), slices.kind[:n].tolist(), strict=True
    ):
        meanings.append(_READERS[kind](text[begin : begin + size]))
    other = np.flatnonzero(rows.op[: rows.count[N_ROWS]] & OTHER_LIKE)
    for pattern in np.unique(rows.value[rows.value_end[other] - 1]).tolist():
        if classify(meanings[pattern]).kind is not LikeKind.PATTERN:
            meanings[pattern] = _LEFT
    return meanings


@lru_cache(maxsize=50_000)
def _is_name(name: str) -> bool:
    """Whether the parser takes a name for itself; any other is the parser's."""
    try:
        read = parse(f"{name} = 1")
    except MatchwoodError:
        return False
    return isinstance(read, Comparison) and read.name == name and not is_context(name)


@lru_cache(maxsize=50_000)
def _number(text: str) -> Any:
    """The value of a number that is one constant."""
    try:
        found = number(text)
    except LiteralError:
        return _LEFT
    return _LEFT if isinstance(found, Decimal) else found


def _time_value(read: Callable[[str], Any], text: str) -> Any:
    """A date or timestamp; _LEFT if the parser refuses it."""
    try:
        return read(text)
    except LiteralError:
        return _LEFT


_READERS: dict[int, Callable[[str], Any]] = {
    NAME: lambda text: text if _is_name(text) else _LEFT,
    WHOLE: int,
    NUMBER: _number,
    TEXT: str,
    PREFIX_END: successor,
    DOUBLED: lambda text: text.replace("''", "'"),
    DATE: lambda text: _time_value(read_date, text),
    TIMESTAMP: lambda text: _time_value(read_timestamp, text),
    TRUE: lambda _: True,
    FALSE: lambda _: False,
}
"""What a slice of each kind means."""


def _uses(rows: Rows, is_left: np.ndarray) -> np.ndarray:
    """Which texts use one of some slices."""
    n_rows, n_values = int(rows.count[N_ROWS]), int(rows.count[N_VALUES])
    value_row = np.repeat(np.arange(n_rows), np.diff(rows.value_end[:n_rows], prepend=0))
    in_row = is_left[rows.name[:n_rows]]
    in_row[value_row[is_left[rows.value[:n_values]]]] = True
    row_text = np.repeat(np.arange(len(rows.row_end)), np.diff(rows.row_end, prepend=0))
    found = np.zeros(len(rows.row_end), bool)
    found[row_text[in_row]] = True
    return found


def _write(batch: LeafBatch, rows: Rows, meanings: list[Any]) -> None:
    """Append what was read to a batch."""
    n_rows, n_values = int(rows.count[N_ROWS]), int(rows.count[N_VALUES])
    row, value, token = len(batch.attr), len(batch.values), len(batch.code)
    names, used = batch.names, rows.name[:n_rows]
    code_of = np.zeros(len(meanings) + 1, np.int32)
    distinct, first = np.unique(used, return_index=True)
    for name in distinct[np.argsort(first)].tolist():
        code_of[name] = names.setdefault(meanings[name], len(names))
    batch.attr.frombytes(code_of[used].tobytes())
    op = rows.op[:n_rows]
    is_other = op & OTHER_LIKE != 0
    batch.op += np.where(is_other, op & ~np.uint8(OTHER_LIKE) | PATTERN, op).astype(np.uint8).data
    batch.position.frombytes(rows.position[:n_rows].tobytes())
    batch.values += map(meanings.__getitem__, rows.value[:n_values].tolist())
    batch.start.frombytes((rows.value_end[:n_rows] + value).tobytes())
    code = rows.code[: rows.count[N_TOKENS]]
    batch.code.frombytes(np.where(code >= 0, code + row, code).astype(np.int32).tobytes())
    batch.expr_start.frombytes((rows.code_end[rows.is_taken] + token).tobytes())
    batch.row_start.frombytes((rows.row_end[rows.is_taken] + row).tobytes())
