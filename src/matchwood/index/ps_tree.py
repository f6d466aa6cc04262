"""PS-Tree: the disjoint predicate spaces of one attribute, and the predicates that cover each.

Idea.    The ends of predicates divide the values of an attribute into spaces; all values of a space
         satisfy the same predicates, which are listed there.  To find what a value satisfies is to
         find its space.
Source.  PS-Tree, section 4 (Algorithms 1 to 3, Figure 2); deletion as section 4.4 describes it.
Differs. Two forms find the space of a value.  `cuts` is a sorted array of int64 keys, the default:
         it is the faster one and takes every type that has keys.  `trie` is the paper's tree of
         elements (`elements`), for numbers and strings as they are.  Spaces that no end tells apart
         are joined, also those that no predicate covers.  Leaves have ids (PS-Tree_H) and lists
         (PS-Tree_B); signatures are beside the records of `pst_bloom`.
Cost.    Find O(log spaces) or O(elements).  Insert and delete O(spaces covered), and what a split
         copies.  Memory 4 bytes for each space that a predicate covers, 40 a space, 84 a node.

Layout   (L leaves; `form = "cuts"`: C cuts)
         next          int32[L]  the leaf behind a leaf, NONE
         n_predicates  int32[L]  the predicate counter: predicates that cover it
         n_events      int64[L]  the event counter
         count         int64[4]  FIRST, N_LEAVES, FREE, HIGH
         lists                   see id_lists: predicate ids by leaf
         cut           int64[C]  first key of a space, ascending, MIN_KEY first
         leaf_of       int32[C]  its leaf
         uses          int32[C]  ends of predicates at a cut
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from matchwood.arrays import doubled, grown
from matchwood.errors import IndexBuildError
from matchwood.forms.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.index.element_trie_kernels import (
    ABOVE,
    AT,
    BELOW,
    WIDTH,
    Trie,
    find_value,
    find_values,
    next_value,
    put_value,
)
from matchwood.index.elements import INT64, elements
from matchwood.index.id_lists import IdListStore
from matchwood.index.ps_tree_kernels import (
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
    find_leaves,
    join_leaf,
    reserve_leaves,
    split_leaf,
)

CUTS, TRIE = "cuts", "trie"
_SMALL = 16


class End(NamedTuple):
    """A boundary between two neighbouring values: just before a value, or just behind it."""

    value: Any
    is_behind: bool


class Form(Protocol):
    """How the leaf of a value is found, and boundaries come and go."""

    def find(self, values: Any) -> np.ndarray: ...

    def boundary(self, end: End) -> tuple[int, bool]:
        """The leaf that ends at a boundary, and whether the boundary was there already."""

    def put(self, end: End, right: int) -> None:
        """The leaf behind a new boundary is `right`."""

    def use(self, end: End, step: int) -> bool:
        """Count an end at a boundary; False when it was the last."""

    def drop(self, end: End) -> None: ...

    def ends(self) -> list[End]:
        """All boundaries in order."""

    @property
    def nbytes(self) -> int: ...


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
        self._form: Form = _Cuts() if form == CUTS else _Elements(kind)

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
                self._lists.make_room(2 * int(self._lists.lists.size[left]) + 8)
        self._form.put(end, right)
        return left if is_last else right

    def _cover(self, first: int, last: int, id_: int, step: int) -> None:
        while first != NONE:
            first = int(cover(self._leaves, self._lists.lists, first, last, np.int32(id_), step))
            if first != NONE:
                self._lists.make_room(2 * int(self._lists.lists.size[first]) + 8)

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
        offsets = np.concatenate([[0], np.cumsum(self._lists.lists.size[found], dtype=np.int64)])
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
        return sum([a.nbytes for a in self._leaves]) + self._lists.nbytes + self._form.nbytes

    @classmethod
    def of_intervals(cls, lo: np.ndarray, hi: np.ndarray) -> PSTree:
        """Closed intervals of keys at once: interval i has the id i; form `cuts`."""
        tree = cls()
        assert isinstance(tree._form, _Cuts)
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
        lists.make_room(int((counts + counts // 2 + (counts == 1)).sum()))
        reserve_leaves(lists.lists, counts)
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


class _Cuts:
    """Sorted boundaries over int64 keys."""

    def __init__(self) -> None:
        self.fill(np.array([MIN_KEY]), np.zeros(1, np.int64))

    def fill(self, cuts: np.ndarray, uses: np.ndarray) -> None:
        self._n = len(cuts)
        self._cut = cuts.astype(np.int64)
        self._leaf_of = np.arange(self._n, dtype=np.int32)
        self._uses = uses.astype(np.int32)

    @property
    def nbytes(self) -> int:
        return self._cut.nbytes + self._leaf_of.nbytes + self._uses.nbytes

    def find(self, values: Any) -> np.ndarray:
        keys = np.asarray(values, np.int64)
        found = np.empty(len(keys), np.int64)
        find_leaves(self._cut, self._leaf_of, self._n, keys, found)
        return found

    def _place(self, end: End) -> tuple[int, int]:
        cut = int(end.value) + end.is_behind
        return int(np.searchsorted(self._cut[: self._n], cut, "right")) - 1, cut

    def boundary(self, end: End) -> tuple[int, bool]:
        at, cut = self._place(end)
        is_there = int(self._cut[at]) == cut
        return int(self._leaf_of[at - is_there]), is_there

    def put(self, end: End, right: int) -> None:
        at, cut = self._place(end)
        size = doubled(len(self._cut), self._n + 1)
        self._cut, self._leaf_of = grown(self._cut, size), grown(self._leaf_of, size)
        self._uses = grown(self._uses, size)
        for array, value in ((self._cut, cut), (self._leaf_of, right), (self._uses, 0)):
            array[at + 2 : self._n + 1] = array[at + 1 : self._n].copy()
            array[at + 1] = value
        self._n += 1

    def use(self, end: End, step: int) -> bool:
        at, _ = self._place(end)
        self._uses[at] += step
        return bool(self._uses[at] > 0)

    def drop(self, end: End) -> None:
        at, _ = self._place(end)
        for array in (self._cut, self._leaf_of, self._uses):
            array[at : self._n - 1] = array[at + 1 : self._n].copy()
        self._n -= 1

    def ends(self) -> list[End]:
        return [End(cut, False) for cut in self._cut[1 : self._n].tolist()]


class _Elements:
    """The paper's tree: values as sequences of elements."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._trie = Trie(
            child=np.full((_SMALL, WIDTH), NONE, np.int32),
            leaf=np.full((_SMALL, 3), NONE, np.int32),
            uses=np.zeros((_SMALL, 2), np.int32),
            count=np.ones(1, np.int64),
        )
        self._last_leaf = 0
        self._values: dict[Any, np.ndarray] = {}
        self._path = np.zeros(64, np.int64)

    @property
    def nbytes(self) -> int:
        return sum([array.nbytes for array in self._trie])

    def _elements(self, value: Any) -> np.ndarray:
        found = elements(value, self._kind)
        self._path = grown(self._path, doubled(64, len(found) + 1))
        return found

    def find(self, values: Any) -> np.ndarray:
        rows = [self._elements(value) for value in values]
        return self.find_elements(rows)

    def find_elements(self, rows: list[np.ndarray]) -> np.ndarray:
        sizes = np.array([len(row) for row in rows], np.int64)
        padded = np.zeros((len(rows), int(sizes.max(initial=1))), np.uint8)
        for row, place in zip(rows, padded, strict=True):
            place[: len(row)] = row
        found = np.empty(len(rows), np.int64)
        find_values(self._trie, padded, sizes, self._path, self._last_leaf, found)
        return found

    def boundary(self, end: End) -> tuple[int, bool]:
        row = self._elements(end.value)
        node = self._node(end.value)
        if node is None:
            leaf = find_value(self._trie, row, len(row), self._path, self._last_leaf)
            return int(leaf), False
        below, at, above = self._trie.leaf[node].tolist()
        if end.is_behind:
            return at, at != above
        return below, below != at

    def put(self, end: End, right: int) -> None:
        row = self._elements(end.value)
        node = self._node(end.value)
        if node is None:
            left = int(find_value(self._trie, row, len(row), self._path, self._last_leaf))
            self._make_nodes(len(row))
            node = int(put_value(self._trie, row, len(row), self._path))
            self._trie.leaf[node] = left
            self._values[end.value] = row
        links = self._trie.leaf[node]
        left = int(links[AT if end.is_behind else BELOW])
        is_alone = links[ABOVE] == links[AT]  # nothing yet between the value and the next one
        links[ABOVE if end.is_behind else AT] = right
        if is_alone:
            links[ABOVE] = right
            self._relink(row, node, left, right)

    def _relink(self, row: np.ndarray, node: int, old: int, new: int) -> None:
        """The space behind a value has another leaf: the next value has to know."""
        behind = int(next_value(self._trie, row, len(row), self._walked(row), node))
        if behind == NONE:
            self._last_leaf = new
        else:
            links = self._trie.leaf[behind]
            links[links == old] = new

    def use(self, end: End, step: int) -> bool:
        node = self._node(end.value)
        self._trie.uses[node, int(end.is_behind)] += step
        return bool(self._trie.uses[node, int(end.is_behind)] > 0)

    def drop(self, end: End) -> None:
        row = self._elements(end.value)
        node = self._node(end.value)
        assert node is not None
        links = self._trie.leaf[node]
        left = int(links[AT if end.is_behind else BELOW])
        right = int(links[ABOVE if end.is_behind else AT])
        is_next = links[ABOVE] == right
        links[links == right] = left
        if is_next:
            self._relink(row, node, right, left)
        if not self._trie.uses[node].any():
            self._forget(end.value, row)

    def ends(self) -> list[End]:
        """By walking the trie: a value, and then what continues it."""
        by_node = {self._node(value): value for value in self._values}
        found: list[End] = []
        waiting = [0]
        while waiting:
            node = waiting.pop()
            below, at, above = self._trie.leaf[node].tolist()
            if node in by_node:
                found += [End(by_node[node], False)] * (below != at)
                found += [End(by_node[node], True)] * (at != above)
            children = self._trie.child[node]
            waiting += [int(child) for child in children[::-1] if child != NONE]
        return found

    def _node(self, value: Any) -> int | None:
        row = self._values.get(value)
        if row is None:
            return None
        node = 0
        for element in row.tolist():
            node = int(self._trie.child[node, element])
        return node

    def _walked(self, row: np.ndarray) -> np.ndarray:
        """The path to a value that is there."""
        node = 0
        for d, element in enumerate(row.tolist()):
            self._path[d] = node
            node = int(self._trie.child[node, element])
        return self._path

    def _make_nodes(self, n: int) -> None:
        x = self._trie
        size = doubled(len(x.child), int(x.count[0]) + n + 1)
        self._trie = x._replace(
            child=grown(x.child, size, NONE), leaf=grown(x.leaf, size, NONE),
            uses=grown(x.uses, size),
        )  # fmt: skip

    def _forget(self, value: Any, row: np.ndarray) -> None:
        """Take a value out, and the nodes that lead to no other; a value lies under every node."""
        node = self._node(value)
        assert node is not None
        self._trie.leaf[node] = NONE
        del self._values[value]
        path = self._walked(row)
        for d in range(len(row) - 1, -1, -1):
            if self._trie.leaf[node, AT] != NONE or (self._trie.child[node] != NONE).any():
                break
            node = int(path[d])
            self._trie.child[node, row[d]] = NONE
        if int(self._trie.count[0]) > _SMALL + 4 * sum([len(r) for r in self._values.values()]):
            self._make_again()

    def _make_again(self) -> None:
        before = {value: self._trie_row(value) for value in self._values}
        self._trie.child.fill(NONE)
        self._trie.leaf.fill(NONE)
        self._trie.uses.fill(0)
        self._trie.count[0] = 1
        for value, (leaf, uses) in before.items():
            row = self._values[value]
            node = int(put_value(self._trie, row, len(row), self._path))
            self._trie.leaf[node], self._trie.uses[node] = leaf, uses

    def _trie_row(self, value: Any) -> tuple[list[int], list[int]]:
        node = self._node(value)
        return self._trie.leaf[node].tolist(), self._trie.uses[node].tolist()
