"""Interval skip list: which of many intervals hold a key, while intervals come and go.

Idea.    The ends of the intervals are the nodes of a skip list.  A *range* leads from a node to the
         next one of its level.  An interval is marked on the fewest ranges that make it up; a key
         lies in one range of each level, and the markers on the way to it are the answer.
Source.  Hanson and Johnson, The interval skip list (1991); the base index of the AGILE paper,
         section 5.4 and Figure 9.
Differs. Intervals of integer keys are half open, [lo, hi + 1), so a node needs no markers of its
         own.  A node's levels follow from a hash of its key, so equal contents give equal lists.
         A new node splits ranges and puts what was on them on both halves; it does not look for
         markers that could now go one level up.  A node whose intervals have left stays until a
         third of the nodes is in use, then the list is made anew.
Cost.    Stab O(log nodes + answers).  Insert and delete O(log nodes) markers; a new node also moves
         the markers of the ranges it splits.  24 bytes a marker and 8 to 64 for its position in a
         range; about 30 a node.

Layout   see marker_kernels; node = (first edge, levels), edge = (target, source, back),
         cell = edge + 1
"""

from __future__ import annotations

import os

import numpy as np

from matchwood.index.stabbing.interval_skip_list_entry_kernels import (
    insert_all,
    make_node,
    open_one,
    remove_one,
    stab_one,
)
from matchwood.index.stabbing.interval_skip_list_kernels import (
    FIRST_EDGE,
    LEVELS,
    N_LEVELS,
    SOURCE,
    TARGET,
)
from matchwood.index.stabbing.marker_kernels import (
    CELL,
    CHUNKS,
    EDGES,
    FREE_CHUNK,
    FREE_MARKER,
    MARKERS,
    MAX_KEY,
    MIN_KEY,
    NEXT,
    NODES,
    SEED,
    Structure,
)
from matchwood.kernel.arrays import bytes_of, doubled, grown

level_seed = int.from_bytes(os.urandom(8), signed=True)
"""The seed of node levels in all structures of a process, so that they can be compared.  Tests set
it: decisions of AGILE depend on what levels cost, and work counters on those decisions."""


def empty_structure(n_lists: int = 0) -> Structure:
    """Arrays for structures that share them; `n_lists` interval skip lists are opened."""
    n_edges = 2 * n_lists * (LEVELS + 1)
    s = Structure(
        node_key=np.zeros(doubled(16, 2 * n_lists), np.int64),
        node=np.full((doubled(16, 2 * n_lists), 4), -1, np.int32),
        edge=np.zeros((doubled(64, n_edges), 3), np.int32),
        cell_head=np.full(doubled(64, n_edges) + 1, -1, np.int32),
        cell_size=np.zeros(doubled(64, n_edges) + 1, np.int32),
        chunk=np.zeros((8, 16), np.int32),
        marker=np.zeros((8, 6), np.int32),
        ends=np.empty((0, 2), np.int32),
        range=np.empty((0, 2), np.int64),
        count=np.zeros(16, np.int64),
    )
    s.count[FREE_CHUNK] = s.count[FREE_MARKER] = -1
    s.count[SEED] = level_seed
    for k in range(n_lists):
        open_one(s, k)
    return s


def with_identifiers(s: Structure, n: int) -> Structure:
    """The same arrays, long enough for n identifiers."""
    had = len(s.ends)
    if n <= had:
        return s
    size = doubled(max(had, 16), n)
    s = s._replace(ends=grown(s.ends, size, -1), range=grown(s.range, size))
    s.range[had:, 0], s.range[had:, 1] = MAX_KEY, MIN_KEY
    return s


def with_room(s: Structure) -> Structure:
    """The same arrays, with twice the room where it is short."""
    if 2 * s.count[NODES] > len(s.node_key):
        size = 2 * len(s.node_key)
        s = s._replace(node_key=grown(s.node_key, size), node=grown(s.node, size, -1))
    if 2 * s.count[EDGES] > len(s.edge):
        size = 2 * len(s.edge)
        s = s._replace(
            edge=grown(s.edge, size),
            cell_head=grown(s.cell_head, size + 1, -1),
            cell_size=grown(s.cell_size, size + 1),
        )
    if 2 * s.count[CHUNKS] > len(s.chunk) or len(s.chunk) < 2048:
        s = s._replace(chunk=grown(s.chunk, 2 * len(s.chunk)))
    if 2 * s.count[MARKERS] > len(s.marker) or len(s.marker) < 2048:
        s = s._replace(marker=grown(s.marker, 2 * len(s.marker)))
    return s


class IntervalSkipList:
    """Owns one list; identifiers are small integers that the caller hands out."""

    def __init__(self) -> None:
        self._before = np.zeros(LEVELS, np.int64)
        self._clear()

    def _clear(self) -> None:
        self.structure = empty_structure(n_lists=1)
        self._interval: dict[int, tuple[int, int]] = {}
        self._ends: dict[int, int] = {}  # uses of each node's key

    def __len__(self) -> int:
        return len(self._interval)

    def insert(self, i: int, lo: int, hi: int) -> None:
        """Hold identifier i under every key from lo to hi, both included."""
        if i in self._interval:
            raise ValueError(f"expected a new identifier, found {i}: delete it first")
        if lo > hi:
            raise ValueError(f"expected an interval, found [{lo}, {hi}]")
        self._put(np.array([i]), np.array([lo], np.int64), np.array([hi], np.int64))

    def _put(self, ids: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
        self.structure = with_identifiers(self.structure, int(ids.max()) + 1)
        done = 0
        while done < len(ids):
            done = insert_all(self.structure, ids, lo, hi, done, self._before)
            if done < len(ids):
                self.structure = with_room(self.structure)
        for i, low, high in zip(ids.tolist(), lo.tolist(), hi.tolist(), strict=True):
            self._interval[i] = (low, high)
            for end in (low, high + 1):
                self._ends[end] = self._ends.get(end, 0) + 1

    def delete(self, i: int) -> None:
        """Forget an identifier."""
        lo, hi = self._interval.pop(i)
        if not self._interval:
            self._clear()
            return
        remove_one(self.structure, i)
        for end in (lo, hi + 1):
            self._ends[end] -= 1
            if not self._ends[end]:
                del self._ends[end]
        if self.n_nodes > 64 + 3 * len(self._ends):
            held = self._interval
            self._clear()
            ends = np.array(list(held.values()), np.int64)
            self._put(np.array(list(held)), ends[:, 0].copy(), ends[:, 1].copy())

    def stab(self, key: int) -> list[int]:
        """The identifiers whose intervals hold a key, ascending."""
        out = np.empty(len(self._interval), np.int32)
        return sorted(out[: stab_one(self.structure, key, out)].tolist())

    def make_node(self, key: int, levels: int) -> None:
        """A node of so many levels, for drawings whose levels are given."""
        while make_node(self.structure, key, levels, self._before) < 0:
            self.structure = with_room(self.structure)

    @property
    def n_nodes(self) -> int:
        return int(self.structure.count[NODES]) - 2

    def ranges(self, i: int) -> list[tuple[int, int, int]]:
        """The ranges an identifier is marked on: level, first key, and the key it ends before."""
        s = self.structure
        found, m = [], int(s.ends[i, 0])
        while m >= 0:
            at = int(s.marker[m, CELL]) - 1
            target, source = s.edge[at, : SOURCE + 1].tolist()
            level = at - int(s.node[source, FIRST_EDGE])
            found.append((level, int(s.node_key[source]), int(s.node_key[target])))
            m = int(s.marker[m, NEXT])
        return found

    @property
    def nbytes(self) -> int:
        return bytes_of(self.structure)

    def draw(self) -> str:
        """One line a level, from the top: nodes, and between them the identifiers on the range."""
        s = self.structure
        on: dict[int, list[int]] = {}
        for i in self._interval:
            m = int(s.ends[i, 0])
            while m >= 0:
                on.setdefault(int(s.marker[m, CELL]) - 1, []).append(i)
                m = int(s.marker[m, NEXT])
        lines = []
        nodes = range(2, int(s.count[NODES]))
        top = max([int(s.node[x, N_LEVELS]) for x in nodes], default=1)
        for level in (LEVELS, *range(top - 1, -1, -1)):
            node, line = 0, "|"
            while node != 1:
                at = int(s.node[node, FIRST_EDGE]) + level
                node = int(s.edge[at, TARGET])
                held = ",".join(map(str, sorted(on.get(at, ()))))
                line += f"-{held}-" + (f"{s.node_key[node]}" if node != 1 else "|")
            lines.append(line)
        return "\n".join(lines)
