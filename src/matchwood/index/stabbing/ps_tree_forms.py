"""How a `ps_tree` finds the space of a value: by sorted cuts, or by the paper's tree of elements.

Both know where one space ends and the next begins.  What is in the spaces is the tree's business.

Layout   (C cuts; K nodes; see element_trie_kernels for the trie)
         cut      int64[C]  first key of a space, ascending, MIN_KEY first
         leaf_of  int32[C]  its leaf
         uses     int32[C]  ends of predicates at a cut
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from matchwood.index.stabbing.element_trie_kernels import (
    ABOVE,
    AT,
    BELOW,
    N_NODES,
    WIDTH,
    Trie,
    find_value,
    find_values,
    next_value,
    put_value,
)
from matchwood.index.stabbing.elements import elements
from matchwood.index.stabbing.ps_tree_kernels import NONE, find_leaves
from matchwood.kernel.arrays import bytes_of, doubled, grown
from matchwood.kernel.interval_kernels import MIN_KEY

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


class Cuts:
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

    def _position(self, end: End) -> tuple[int, int]:
        cut = int(end.value) + end.is_behind
        return int(np.searchsorted(self._cut[: self._n], cut, "right")) - 1, cut

    def boundary(self, end: End) -> tuple[int, bool]:
        at, cut = self._position(end)
        is_there = int(self._cut[at]) == cut
        return int(self._leaf_of[at - is_there]), is_there

    def put(self, end: End, right: int) -> None:
        at, cut = self._position(end)
        size = doubled(len(self._cut), self._n + 1)
        self._cut, self._leaf_of = grown(self._cut, size), grown(self._leaf_of, size)
        self._uses = grown(self._uses, size)
        for array, value in ((self._cut, cut), (self._leaf_of, right), (self._uses, 0)):
            array[at + 2 : self._n + 1] = array[at + 1 : self._n].copy()
            array[at + 1] = value
        self._n += 1

    def use(self, end: End, step: int) -> bool:
        at, _ = self._position(end)
        self._uses[at] += step
        return bool(self._uses[at] > 0)

    def drop(self, end: End) -> None:
        at, _ = self._position(end)
        for array in (self._cut, self._leaf_of, self._uses):
            array[at : self._n - 1] = array[at + 1 : self._n].copy()
        self._n -= 1

    def ends(self) -> list[End]:
        return [End(cut, False) for cut in self._cut[1 : self._n].tolist()]


class Elements:
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
        return bytes_of(self._trie)

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
        for row, cells in zip(rows, padded, strict=True):
            cells[: len(row)] = row
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
        size = doubled(len(x.child), int(x.count[N_NODES]) + n + 1)
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
        if int(self._trie.count[N_NODES]) > _SMALL + 4 * sum(
            [len(r) for r in self._values.values()]
        ):
            self._make_again()

    def _make_again(self) -> None:
        before = {value: self._trie_row(value) for value in self._values}
        self._trie.child.fill(NONE)
        self._trie.leaf.fill(NONE)
        self._trie.uses.fill(0)
        self._trie.count[N_NODES] = 1
        for value, (leaf, uses) in before.items():
            row = self._values[value]
            node = int(put_value(self._trie, row, len(row), self._path))
            self._trie.leaf[node], self._trie.uses[node] = leaf, uses

    def _trie_row(self, value: Any) -> tuple[list[int], list[int]]:
        node = self._node(value)
        return self._trie.leaf[node].tolist(), self._trie.uses[node].tolist()
