"""Factoring of `gryphon`: a tree of its own for every value of the attributes that most test.

Idea.    Cut the keys of an attribute where predicates on it begin or end: inside a cell all keys
         satisfy the same predicates.  Each combination of cells has a tree of the expressions
         that hold there, without the predicates that the cells have decided.  An expression that
         does not test the attribute is in the trees of all cells: search steps are bought with
         space.
Source.  Aguilera et al., PODC 1999, section 4 (factoring), which has a tree for each value; with
         ranges a cell stands for a value.
Differs. An attribute is taken only while expressions have at most `copies` positions on average,
         because attributes that most expressions do not test would copy all of these.  The whole
         tree is kept as well, for events that carry ranges of a factored attribute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.predicates import PredicateTable
from matchwood.index.baselines.gryphon_kernels import NONE, ROOT, Factoring
from matchwood.kernel.arrays import slices
from matchwood.kernel.interval_kernels import MAX_KEY

MOST_ROOTS = 1 << 20
"""Combinations of cells that there may be."""


class Places(NamedTuple):
    """Where expressions are: one in the whole tree, then one in the tree of each of its cells."""

    row: np.ndarray  # int64, the expression
    root: np.ndarray  # int64, the root it is below
    depth: np.ndarray  # int32, predicates that the root has decided, which are its first ones
    n_roots: int


def factored(
    predicates: PredicateTable, start: np.ndarray, order: np.ndarray, attributes: np.ndarray,
    copies: int,
) -> tuple[Factoring, Places]:  # fmt: skip
    """Positions of expressions whose predicates are order[start[i]:start[i + 1]], by attribute in
    the order of `attributes`; the first ones of these are factored out as far as `copies` allows.
    """
    n = len(start) - 1
    row, at, depth = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int32)
    chosen: list[tuple[int, np.ndarray]] = []
    n_cells = 1
    for attr in attributes.tolist():
        cells = _cells(predicates, attr, np.diff(start), order)
        n_here = len(cells.cuts) + 2  # before, between and after the cuts, and absent
        counts = np.diff(cells.start)[cells.of[row]]
        if counts.sum() > copies * n or n_cells * n_here > MOST_ROOTS:
            break
        cell = cells.cell[slices(cells.start[cells.of[row]], counts)]
        depth = np.repeat(depth + (cells.of[row] < len(cells.start) - 2), counts).astype(np.int32)
        row, at = np.repeat(row, counts), np.repeat(at, counts) * n_here + cell
        n_cells *= n_here
        chosen.append((attr, cells.cuts))
    return _with_whole_tree(chosen, n_cells, n, (row, at, depth))


def _with_whole_tree(
    chosen: list[tuple[int, np.ndarray]],
    n_cells: int,
    n: int,
    copied: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[Factoring, Places]:
    """Numbers for the roots that have expressions, after that of the whole tree."""
    ends = np.cumsum([0, *[len(cuts) for _, cuts in chosen]])
    keys = np.concatenate([np.empty(0, np.int64), *[cuts for _, cuts in chosen]])
    attr, root = np.array([each for each, _ in chosen], np.int32), np.full(n_cells, NONE, np.int32)
    every = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int32)
    if not chosen:
        root[:] = ROOT
        return Factoring(attr, ends, keys, root), Places(*every, 1)
    row, at, depth = copied
    found, which = np.unique(at, return_inverse=True)
    root[found] = np.arange(1, len(found) + 1)
    places = Places(
        np.concatenate([every[0], row]),
        np.concatenate([every[1], which + 1]),
        np.concatenate([every[2], depth]),
        len(found) + 1,
    )
    return Factoring(attr, ends, keys, root), places


class _Cells(NamedTuple):
    """Cells of one attribute, and which of them each expression needs."""

    cuts: np.ndarray  # int64, the first keys of the cells after the first one
    start: np.ndarray  # int64[predicates + 2], slices of `cell`; the last one: all cells
    cell: np.ndarray  # int64
    of: np.ndarray  # int64, by expression: its slice


def _cells(predicates: PredicateTable, attr: int, sizes: np.ndarray, order: np.ndarray) -> _Cells:
    found = np.flatnonzero(predicates.layout.attr[order] == attr)
    used, which = np.unique(order[found], return_inverse=True)
    sets = [np.array(predicates.intervals(int(pred)), np.int64) for pred in used]
    ends = np.concatenate([np.empty((0, 2), np.int64), *sets])
    cuts = np.unique(np.concatenate([ends[:, 0], ends[ends[:, 1] != MAX_KEY, 1] + 1]))
    first = np.searchsorted(cuts, ends[:, 0], side="right")
    n_each = np.searchsorted(cuts, ends[:, 1], side="right") + 1 - first
    of_interval = np.repeat(np.arange(len(sets)), [len(each) for each in sets])
    counts = np.bincount(of_interval, weights=n_each, minlength=len(sets)).astype(np.int64)
    everywhere = np.arange(len(cuts) + 2)
    of = np.full(len(sizes), len(sets), np.int64)
    of[np.repeat(np.arange(len(sizes)), sizes)[found]] = which
    return _Cells(
        cuts,
        np.cumsum([0, *counts.tolist(), len(everywhere)]),
        np.concatenate([slices(first, n_each), everywhere]),
        of,
    )
