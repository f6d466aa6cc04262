"""Generated trees as columns: texts for people, leaf rows for benchmarks.

A million trees as text would be parsed for minutes, so a generator of trees also says `leaf_rows`,
which `loading` takes as they are.  Both come from the same `TreeRows`; a test compares the answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.encode.leaves import LeafBatch
from matchwood.encode.merge_kernels import BETWEEN, EQ, GE, GT, IN, LE, LT, NEGATED
from matchwood.kernel.arrays import grown, offsets_of, slices
from matchwood.workload.tree_kernels import NOT, XNOR, XOR, negate_leaves, push_negations

_SIGNS = {EQ: "=", LT: "<", LE: "<=", GT: ">", GE: ">=", EQ | NEGATED: "<>"}


class TreeRows(NamedTuple):
    """Trees one after the other; leaves have operators of `encode.merge_kernels`."""

    code_start: np.ndarray  # int64[rows + 1]
    code: np.ndarray  # int32, prefix code: see tree_kernels
    attr: np.ndarray  # int32, per leaf
    op: np.ndarray  # uint8
    start: np.ndarray  # int64[leaves + 1], slice of the values
    values: np.ndarray  # int64


class Room(NamedTuple):
    """What a generating kernel writes to; `used`: tokens, leaves and values so far."""

    code_start: np.ndarray
    code: np.ndarray
    attr: np.ndarray
    op: np.ndarray
    start: np.ndarray
    values: np.ndarray
    used: np.ndarray

    def rows(self) -> TreeRows:
        n_code, n_leaves, n_values = self.used.tolist()
        return TreeRows(
            self.code_start,
            self.code[:n_code],
            self.attr[:n_leaves],
            self.op[:n_leaves],
            self.start[: n_leaves + 1],
            self.values[:n_values],
        )

    def grown(self) -> Room:
        n = 2 * len(self.code)
        return self._replace(
            code=grown(self.code, n),
            attr=grown(self.attr, n),
            op=grown(self.op, n),
            start=grown(self.start, n + 1),
            values=grown(self.values, 2 * n),
        )


def room_for(n_rows: int, tokens: int) -> Room:
    """Room for rows of about so many tokens."""
    n = max(64, n_rows * tokens)
    return Room(
        np.zeros(n_rows + 1, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.uint8),
        np.zeros(n + 1, np.int64),
        np.empty(2 * n, np.int64),
        np.zeros(3, np.int64),
    )


def leaf_batch(rows: TreeRows, names: list[str]) -> LeafBatch:
    """Rows as the encoder takes them: without NOT, XOR and XNOR."""
    n = len(rows.code_start) - 1
    code_start, count = np.zeros(n + 1, np.int64), np.zeros(2, np.int64)
    code = np.empty(len(rows.code) + 64, np.int32)
    leaf = np.empty(len(rows.attr) + 64, np.int64)
    longest = int(np.diff(rows.code_start).max(initial=0))
    size, stack = np.empty(longest, np.int64), np.empty((longest + 64, 2), np.int64)
    done = 0
    while True:
        done = push_negations(rows, done, size, stack, leaf, code, code_start, count)
        if done == n:
            break
        code, leaf = grown(code, 2 * len(code)), grown(leaf, 2 * len(leaf))
        stack = np.empty((2 * len(stack), 2), np.int64)
    leaf = leaf[: count[1]]
    batch = LeafBatch()
    batch.names = {name: i for i, name in enumerate(names)}
    source = leaf >> 1
    sizes = rows.start[source + 1] - rows.start[source]
    batch.attr = rows.attr[source]
    batch.op = np.empty(len(leaf), np.uint8)
    negate_leaves(leaf, rows.op, batch.op)
    batch.position = np.full(len(leaf), -1, np.int32)
    batch.start = offsets_of(sizes)
    batch.values = rows.values[slices(rows.start[source], sizes)]
    batch.code = code[: count[0]]
    batch.expr_start = code_start
    is_leaf = offsets_of(batch.code >= 0)
    batch.row_start = is_leaf[code_start]
    return batch


def text_table(rows: TreeRows, names: list[str], first: int) -> pa.Table:
    """Rows as ids and texts."""
    ids = np.arange(first, first + len(rows.code_start) - 1)
    leaves = _leaf_texts(rows, names)
    code, ends = rows.code.tolist(), rows.code_start.tolist()
    texts = [_text(code, ends[i], leaves)[0] for i in range(len(ids))]
    return pa.table({"id": ids, "expr": pa.array(texts, pa.string())})


def _leaf_texts(rows: TreeRows, names: list[str]) -> list[str]:
    texts = []
    start, values = rows.start.tolist(), rows.values.tolist()
    for i, (attr, op) in enumerate(zip(rows.attr.tolist(), rows.op.tolist(), strict=True)):
        mine = values[start[i] : start[i + 1]]
        negated = "NOT " if op & NEGATED else ""
        if op & ~NEGATED == BETWEEN:
            texts.append(f"{names[attr]} {negated}BETWEEN {mine[0]} AND {mine[1]}")
        elif op & ~NEGATED == IN:
            texts.append(f"{names[attr]} {negated}IN ({', '.join(map(str, mine))})")
        else:
            texts.append(f"{names[attr]} {_SIGNS[op]} {mine[0]}")
    return texts


def _text(code: list[int], at: int, leaves: list[str]) -> tuple[str, int]:
    """The text of the tree at a position, every operator in parentheses, and where it ends."""
    token = code[at]
    if token >= 0:
        return leaves[token], at + 1
    if token == NOT:
        inner, end = _text(code, at + 1, leaves)
        return f"NOT ({inner})", end
    word, n = {XOR: ("XOR", 2), XNOR: ("XNOR", 2)}.get(
        token, ("AND" if token % 2 else "OR", (-token - 1) // 2)
    )
    parts, end = [], at + 1
    for _ in range(n):
        inner, end = _text(code, end, leaves)
        parts.append(f"({inner})")
    return f" {word} ".join(parts), end
