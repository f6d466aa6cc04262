"""PS-Tree: the disjoint predicate spaces of one attribute, and the predicates that cover each.

Idea.    The ends of predicates divide the values of an attribute into spaces; all values of a space
         satisfy the same predicates, which are listed there.  To find what a value satisfies is to
         find its space.
Source.  PS-Tree, section 4 (Algorithms 1 to 3, Figure 2); deletion as section 4.4 describes it.
Differs. Two forms find the space of a value.  `cuts` is a sorted array of int64 keys, the default:
         it is the faster one and takes every type that has keys.  `trie` is the paper's tree of
         elements (`elements`), for numbers and strings as they are.  Spaces that no end tells apart
         are joined, also those that no predicate covers.  Leaves have ids (PS-Tree_H) and lists
         (PS-Tree_B); signatures are stored with the records of `pst_bloom`.
Cost.    Find O(log spaces) or O(elements).  Insert and delete O(spaces covered), and what a split
         copies.  Memory 4 bytes for each space that a predicate covers, 40 a space, 84 a node.

Layout   (L leaves; how they are found: ps_tree_forms)
         next          int32[L]  the leaf behind a leaf, NONE
         n_predicates  int32[L]  the predicate counter: predicates that cover it
         n_events      int64[L]  the event counter
         count         int64[4]  FIRST, N_LEAVES, FREE, HIGH
         lists                   see id_lists: predicate ids by leaf
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from matchwood.errors import IndexBuildError
from matchwood.index.stabbing.elements import INT64
from matchwood.index.stabbing.ps_tree_forms import Cuts, Elements, End, Form
from matchwood.index.stabbing.ps_tree_kernels import (
    FIRST,
    FREE,
    HIGH,
    N_LEAVES,
    NONE,
    Leaves,
    count_events,
    cover,
    emit_leaves,
    fill_leaves,
    join_leaf,
    split_leaf,
)
from matchwood.kernel.arrays import bytes_of, grown, offsets_of
from matchwood.kernel.id_lists import IdListStore
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

CUTS, TRIE = "cuts", "trie"
_SMALL = 16


class PSTree:
    """The predicate spaces of one attribute.

    >>> tree = PSTree()
    >>> tree.insert(1, [(20, 60)])
    >>> tree.insert(2, [(30, 80)])
    >>> [(space.lo, space.hi, space.ids) for space in tree.spaces()][1:4]
    [(20, 29, [1]), (30, 60, [1, 2]), (61, 80, [2])]
    """

    def __init__(self, form: str = CUTS, kind: str = INT64) -> None:
        if form not in (CUTS, TRIE):
            raise IndexBuildError(f"ps_tree: expected form {CUTS!r} or {TRIE!r}, found {form!r}")
        self.form = form
        self._lists = IdListStore(_SMALL)
        self._leaves = Leaves(
            next=np.full(_SMALL, NONE, np.int32),
            n_predicates=np.zeros(_SMALL, np.int32),
            n_events=np.zeros(_SMALL, np.int64),
            count=np.array([0, 1, NONE, 1], np.int64),
        )
        self._form: Form = Cuts() if form == CUTS else Elements(kind)

    def __len__(self) -> int:
        """The number of spaces."""
        return int(self._leaves.count[N_LEAVES])

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def insert(self, id_: int, intervals: Iterable[tuple[Any, Any]]) -> None:
        """InsertPredicate: closed, disjoint intervals in order; None is an open end."""
        for lo, hi in intervals:
            low, high = _ends(lo, hi)
            first, last = self._partition(low), self._partition(high, is_last=True)
            self._cover(first, last, id_, 1)
            for end in (low, high):
                if end is not None:
                    self._form.use(end, 1)

    def delete(self, id_: int, intervals: Iterable[tuple[Any, Any]]) -> None:
        """DeletePredicate: with the intervals it was inserted with."""
        for lo, hi in intervals:
            low, high = _ends(lo, hi)
            first, last = self._partition(low), self._partition(high, is_last=True)
            self._cover(first, last, id_, -1)
            for end in (low, high):
                if end is not None and not self._form.use(end, -1):
                    left, _ = self._form.boundary(end)
                    join_leaf(self._leaves, self._lists.lists, left)
                    self._form.drop(end)
        self._lists.trim()

    def _partition(self, end: End | None, is_last: bool = False) -> int:
        """Partition (Algorithm 2): the leaf behind a boundary; the one before it for a last end."""
        if end is None:
            return self._last() if is_last else int(self._leaves.count[FIRST])
        left, is_there = self._form.boundary(end)
        if is_there:
            return left if is_last else int(self._leaves.next[left])
        self._make_leaves()
        right = NONE
        while right == NONE:
            right = int(split_leaf(self._leaves, self._lists.lists, left))
            if right == NONE:
                self._lists.grow(2 * int(self._lists.lists.size[left]) + 8)
        self._form.put(end, right)
        return left if is_last else right

    def _cover(self, first: int, last: int, id_: int, step: int) -> None:
        while first != NONE:
            first = int(cover(self._leaves, self._lists.lists, first, last, np.int32(id_), step))
            if first != NONE:
                self._lists.grow(2 * int(self._lists.lists.size[first]) + 8)

    def _last(self) -> int:
        ends = self._form.ends()
        if not ends:
            return int(self._leaves.count[FIRST])
        left, _ = self._form.boundary(ends[-1])
        return int(self._leaves.next[left])

    def _make_leaves(self) -> None:
        x = self._leaves
        if x.count[FREE] == NONE and x.count[HIGH] == len(x.next):
            n = 2 * len(x.next)
            self._lists.make_lists(n)
            self._leaves = x._replace(
                next=grown(x.next, n, NONE),
                n_predicates=grown(x.n_predicates, n),
                n_events=grown(x.n_events, n),
            )

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def find(self, values: Any) -> np.ndarray:
        """MatchPair for many values: the leaf (space id) of each."""
        return self._form.find(values)

    def stab(self, values: Any, counts: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """All predicates of every value: offsets and ids; `counts` raises the event counters."""
        found = self._form.find(values)
        if counts:
            count_events(self._leaves, found)
        offsets = offsets_of(self._lists.lists.size[found])
        out = np.empty(int(offsets[-1]), np.int32)
        emit_leaves(self._lists.lists, found, offsets, out)
        return offsets, out

    def spaces(self) -> Iterator[Space]:
        """All spaces in the order of their values."""
        ends = [None, *self._form.ends(), None]
        leaf = int(self._leaves.count[FIRST])
        for below, above in pairwise(ends):
            start = int(self._lists.lists.start[leaf])
            ids = self._lists.lists.item[start : start + int(self._lists.lists.size[leaf])]
            yield Space(
                leaf,
                below,
                above,
                ids.tolist(),
                int(self._leaves.n_predicates[leaf]),
                int(self._leaves.n_events[leaf]),
            )
            leaf = int(self._leaves.next[leaf])

    @property
    def nbytes(self) -> int:
        return bytes_of(self._leaves) + self._lists.nbytes + self._form.nbytes

    @classmethod
    def of_intervals(cls, lo: np.ndarray, hi: np.ndarray) -> PSTree:
        """Closed intervals of keys at once: interval i has the id i; form `cuts`."""
        tree = cls()
        assert isinstance(tree._form, Cuts)
        cuts, uses = np.unique(
            np.concatenate([lo[lo != MIN_KEY], hi[hi != MAX_KEY] + 1]), return_counts=True
        )
        cuts = np.concatenate([[MIN_KEY], cuts])
        n = len(cuts)
        tree._form.fill(cuts, np.concatenate([[0], uses]))
        ids, counts = np.arange(len(lo), dtype=np.int32), np.zeros(n, np.int64)
        tree._lists.make_lists(n)
        lists = tree._lists
        fill_leaves(lists.lists, cuts, n, lo, hi, ids, counts, True)
        lists.reserve(counts)
        fill_leaves(lists.lists, cuts, n, lo, hi, ids, counts, False)
        lists.trim(unused=0.02, growth=0.0)
        size = len(lists.lists.size)
        tree._leaves = Leaves(
            next=grown(np.append(np.arange(1, n), NONE).astype(np.int32), size, NONE),
            n_predicates=grown(counts.astype(np.int32), size),
            n_events=np.zeros(size, np.int64),
            count=np.array([0, n, NONE, n], np.int64),
        )
        return tree


class Space(NamedTuple):
    """A predicate space: a leaf of the tree."""

    leaf: int
    below: End | None
    above: End | None
    ids: list[int]
    n_predicates: int
    n_events: int

    @property
    def lo(self) -> Any:
        """The first key of a space of integers; None: open."""
        return None if self.below is None else self.below.value + self.below.is_behind

    @property
    def hi(self) -> Any:
        return None if self.above is None else self.above.value - (not self.above.is_behind)


def _ends(lo: Any, hi: Any) -> tuple[End | None, End | None]:
    low = None if lo is None or lo is MIN_KEY else End(lo, False)
    return low, None if hi is None or hi is MAX_KEY else End(hi, True)
