"""AGILE: indexes that give up accuracy where values change, and win it back where messages come.

Idea.    An index may hold an identifier under more keys than its own: K(i) holds k(i).  While
         updates stay inside K(i) there is nothing to do.  One that leaves it *escalates* the
         identifier to a larger range; false positives *deescalate* it again.  Each identifier has
         the accuracy that its own updates and messages call for.
Source.  The AGILE paper, section 5: figures 5 to 7 (search tree), 9 and 10 (interval skip list),
         the hash table of section 5.4.
Differs. k(i) is an interval of keys in all three, so a half line `x <= ctx.stock` in the search
         tree may shrink inside its K(i) for free.  A deescalation first takes the smallest ranges
         there are; only the next one splits ranges.  In the tree it goes down one node at a time.
         Where updates are many, policy `rent` holds what escalates in the cell of every key, with a
         K(i) that probes look at: further escalations move no marker.
Cost.    Update inside K(i): one comparison.  Escalation O(markers moved), no new node.
         Deescalation as an insertion.  The skip list needs no memory beyond its own, the tree two
         sets a node.

Layout   see index.marker_kernels, and the kernels of each structure
"""

from __future__ import annotations

import numpy as np

from matchwood.context.agile_entry_kernels import (
    deescalate_one,
    open_trees,
    probe_one,
    put_again,
    put_one,
    rebuild_hash,
    take_out_one,
    under_every_key,
    update_one,
)
from matchwood.context.agile_kernels import (
    AGILE,
    FULL,
    HASH_TABLE,
    SEARCH_TREE,
    SKIP_LIST,
    Following,
)
from matchwood.context.policy_kernels import AS_PUBLISHED
from matchwood.context.search_tree_kernels import MIRRORED
from matchwood.context.update_kernels import make_nodes
from matchwood.index.stabbing.interval_skip_list import (
    empty_structure,
    with_identifiers,
    with_room,
)
from matchwood.index.stabbing.interval_skip_list_kernels import LEVELS
from matchwood.index.stabbing.marker_kernels import (
    FIRST_NODE,
    KIND,
    MAX_KEY,
    MIN_KEY,
    NODES,
    VISITED,
    Structure,
)
from matchwood.kernel.arrays import doubled, grown

STRUCTURES = {
    "interval_skip_list": SKIP_LIST,
    "search_tree": SEARCH_TREE,
    "hash_table": HASH_TABLE,
}
"""What each holds by key: any interval; half lines; single keys.  The rest it holds in the cell of
every key, whose ranges every probe reads."""


def new_structure(kind: int, n_lists: int, is_mirrored: np.ndarray | None = None) -> Structure:
    """Empty structures of one kind that share their arrays."""
    s = empty_structure(n_lists if kind == SKIP_LIST else 0)
    s.count[KIND] = kind
    s.count[FIRST_NODE] = 2 * n_lists
    if kind == SKIP_LIST:
        return s
    size = doubled(64, 4 * n_lists)
    s = s._replace(node_key=grown(s.node_key, size), node=grown(s.node, size, -1))
    s = _with_cells(s)
    if kind == SEARCH_TREE:
        mirrored = np.zeros(n_lists, np.int64) if is_mirrored is None else is_mirrored
        open_trees(s, n_lists, mirrored.astype(np.int64))
    else:
        s.edge[:] = 0
        s.count[NODES] = 2 * n_lists
    return s


def renewed(old: Structure, n_lists: int, listed: np.ndarray, before: np.ndarray) -> Structure:
    """A copy of a structure that leaves out nodes which no range ends at any more.

    Each identifier i keeps its range K(i) and its list, listed[i].
    """
    kind, n = int(old.count[KIND]), len(old.ends)
    is_mirrored = old.node[: 2 * n_lists : 2, MIRRORED] if kind == SEARCH_TREE else None
    s = with_identifiers(new_structure(kind, n_lists, is_mirrored), n)
    s.count[VISITED] = old.count[VISITED]
    n_used = min(n, len(listed))  # identifiers behind them have room, and were never given
    is_everywhere = np.zeros(n_used, bool)
    under_every_key(old, listed, is_everywhere)
    order = np.argsort(listed[:n], kind="stable")
    order = order[~is_everywhere[order]]
    ends = np.searchsorted(listed[order], np.arange(n_lists + 1))
    for k in range(n_lists if kind == SKIP_LIST else 0):
        s = _with_nodes(s, k, old.range[order[ends[k] : ends[k + 1]]], before)
    done = 0
    while done < n_used:
        done = put_again(old, s, listed, done, n_used, before)
        if done < n_used:
            s = roomier(s)
    return s


def _with_nodes(s: Structure, k: int, ranges: np.ndarray, before: np.ndarray) -> Structure:
    """The ends of ranges as nodes of list k, before any range is on it: none is split."""
    lo, hi = ranges[ranges[:, 0] <= ranges[:, 1]].T
    keys, done = np.unique(np.concatenate([lo[lo != MIN_KEY], hi[hi != MAX_KEY] + 1])), 0
    while done < len(keys):
        done = make_nodes(s, k, keys, done, before)
        if done < len(keys):
            s = roomier(s)
    return s


def roomier(s: Structure) -> Structure:
    """The structure with more room where it is short."""
    s = with_room(s)
    if s.count[KIND] != SKIP_LIST:
        if 2 * s.count[NODES] > len(s.node_key):
            size = 2 * len(s.node_key)
            s = s._replace(node_key=grown(s.node_key, size), node=grown(s.node, size, -1))
        s = _with_cells(s)
    return s


def _with_cells(s: Structure) -> Structure:
    n = len(s.node_key)
    if s.count[KIND] == SEARCH_TREE:
        return s._replace(
            cell_head=grown(s.cell_head, 3 * n + 1, -1), cell_size=grown(s.cell_size, 3 * n + 1)
        )
    s = s._replace(cell_head=grown(s.cell_head, n + 1, -1), cell_size=grown(s.cell_size, n + 1))
    if len(s.edge) < 4 * n:
        s = s._replace(edge=np.zeros((doubled(64, 4 * n), 2), np.int32))
        rebuild_hash(s, int(s.count[FIRST_NODE]))
    return s


class AgileIndex:
    """One index over one structure, one identifier at a time: what the CIF does in bulk."""

    def __init__(self, structure: str = "interval_skip_list", is_mirrored: bool = False) -> None:
        self._kind = STRUCTURES[structure]
        self._mirrored = np.array([is_mirrored])
        self.structure = new_structure(self._kind, 1, self._mirrored)
        self._exact: dict[int, tuple[int, int]] = {}
        self._before = np.zeros(LEVELS, np.int64)
        self._following = Following(AGILE, np.zeros((1, 2), np.int64), self._before, False)
        self.growth = AS_PUBLISHED
        """Above: an update that leaves K(i) moves it as well, and lets it grow (below 0: shrink) by
        so much."""

    def insert(self, i: int, lo: int, hi: int) -> None:
        """Hold identifier i under [lo, hi] exactly."""
        self.structure = with_identifiers(self.structure, i + 1)
        while not put_one(self.structure, 0, i, lo, hi, self._before):
            self.structure = roomier(self.structure)
        self._exact[i] = (lo, hi)

    def delete(self, i: int) -> None:
        """Forget an identifier."""
        take_out_one(self.structure, i)
        del self._exact[i]
        if not self._exact:
            self.structure = new_structure(self._kind, 1, self._mirrored)

    def update(self, i: int, lo: int, hi: int) -> bool:
        """k(i) is [lo, hi] now; whether that took an escalation."""
        self._exact[i] = (lo, hi)
        while True:
            done = update_one(self.structure, 0, i, lo, hi, self._following, self.growth)
            if done != FULL:
                return bool(done)
            self.structure = roomier(self.structure)

    def deescalate(self, i: int) -> None:
        """Bring K(i) nearer to k(i)."""
        lo, hi = self._exact[i]
        while not deescalate_one(self.structure, 0, i, lo, hi, self._before):
            self.structure = roomier(self.structure)

    def probe(self, key: int) -> list[int]:
        """{i | key in K(i)}, ascending."""
        out = np.empty(len(self._exact), np.int32)
        return sorted(out[: probe_one(self.structure, 0, key, out)].tolist())

    def key_of(self, i: int) -> tuple[int, int]:
        """k(i)."""
        return self._exact[i]

    def keys_of(self, i: int) -> tuple[int, int]:
        """K(i); nothing when its first key is above its last."""
        lo, hi = self.structure.range[i].tolist()
        return lo, hi
