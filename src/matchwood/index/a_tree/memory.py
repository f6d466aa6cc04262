"""Memory of an A-Tree: its arrays grow, close up, are saved and read back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.a_tree.blocks import (
    DOWN,
    FREED,
    HAS_TOPS,
    HIGH,
    LEAF,
    MAX_LEVEL,
    N_CLASSES,
    N_LEAVES,
    N_NODES,
    NEXT_FREE,
    NOTHING,
    SEED,
    TOP,
    ATreeLayout,
    make_plain,
    make_tops,
)
from matchwood.index.a_tree.levels import Levels
from matchwood.index.a_tree.match import Matching
from matchwood.index.a_tree.nodes import Scratch, Settings, fill_table
from matchwood.index.a_tree.renumber import copy_nodes, enter_ids, rank_nodes
from matchwood.kernel.arrays import doubled, grown, writable_array
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.owner import Owner

_SMALL = 16


class ATreeMemory(Owner):
    """Owns the layout, the hull of every attribute's constants, and scratch for changes."""

    OWNED: ClassVar = {"layout": "a_tree_"}

    def __init__(self) -> None:
        self.layout = ATreeLayout(
            hot=np.empty((_SMALL, 2), np.int32),
            node=np.empty((_SMALL, 3), np.int32),
            level=np.zeros(_SMALL, np.int16),
            op=np.zeros(_SMALL, np.int8),
            rarity=np.zeros(_SMALL, np.uint8),
            leaf_of=np.full(_SMALL, NOTHING, np.int32),
            root_of=np.full(_SMALL, NOTHING, np.int32),
            table=np.full(_SMALL, NOTHING, np.int32),
            word=np.empty(64, np.int32),
            free=np.full(N_CLASSES, NOTHING, np.int32),
            count=np.zeros(9, np.int64),
        )
        self.layout.count[NEXT_FREE] = NOTHING
        self.layout.count[SEED] = int.from_bytes(os.urandom(8), signed=True)
        self.hull = np.empty((0, 2), np.int64)
        self._scratch: Scratch | None = None

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.hull.nbytes

    @property
    def n_leaves(self) -> int:
        return int(self.layout.count[N_LEAVES])

    def stats(self) -> dict[str, Any]:
        count = self.layout.count
        return {
            "nodes": int(count[N_NODES]),
            "leaves": int(count[N_LEAVES]),
        }

    # ── growing ─────────────────────────────────────────────────────────────────────────────────

    def make_ids(self, table: ExpressionTable, slots: np.ndarray) -> None:
        """Make arrays long enough for slots, predicates and attributes of new expressions."""
        x, p = self.layout, table.predicates.layout
        self.layout = x._replace(
            leaf_of=grown(x.leaf_of, doubled(len(x.leaf_of), len(p.attr)), NOTHING),
            root_of=grown(x.root_of, _larger(x.root_of, int(slots.max()) + 1), NOTHING),
        )
        n = len(self.hull)
        if table.n_attributes > n:
            fresh = np.empty((doubled(n, table.n_attributes), 2), np.int64)
            fresh[:n] = self.hull
            fresh[n:] = MAX_KEY, MIN_KEY
            self.hull = fresh
        code = table.codes_of(slots)
        preds = np.unique(code[code >= 0])
        lo, hi, attr = p.lo[preds], p.hi[preds], p.attr[preds]
        low, high = lo != MIN_KEY, hi != MAX_KEY
        for known, keys in ((low, lo), (high, hi)):
            np.minimum.at(self.hull[:, 0], attr[known], keys[known])
            np.maximum.at(self.hull[:, 1], attr[known], keys[known])

    def make_nodes(self) -> None:
        x = self.layout
        size = len(x.level) + len(x.level) // 2 + _SMALL
        hot, node = np.empty((size, 2), np.int32), np.empty((size, 3), np.int32)
        hot[: len(x.hot)], node[: len(x.node)] = x.hot, x.node
        self.layout = x._replace(
            hot=hot,
            node=node,
            level=grown(x.level, size),
            op=grown(x.op, size),
            rarity=grown(x.rarity, size),
        )

    def make_words(self) -> None:
        x = self.layout
        word = np.empty(len(x.word) + len(x.word) // 2 + 256, np.int32)
        word[: len(x.word)] = x.word
        self.layout = x._replace(word=word)

    def make_table(self) -> None:
        self._fill_table(2 * len(self.layout.table))

    def _fill_table(self, size: int) -> None:
        self.layout = self.layout._replace(table=np.full(size, NOTHING, np.int32))
        fill_table(self.layout)

    def renumber(self, table: ExpressionTable, settings: Settings, slack: float = 0.0) -> None:
        """Nodes and blocks in the order in which matching meets them, and no longer than needed."""
        self.make_plain()
        x, p = self.layout, table.predicates.layout
        leaves = np.flatnonzero(x.op[: x.count[HIGH]] == LEAF)
        preds = x.node[leaves, DOWN]
        leaves = leaves[np.lexsort((p.hi[preds], p.lo[preds], p.attr[preds]))]
        n = int(x.count[N_NODES])
        order, rank = np.empty(n, np.int32), np.empty(int(x.count[HIGH]), np.int32)
        rank_nodes(x, leaves.astype(np.int32), order, rank)
        size = n + int(slack * n) + _SMALL
        fresh = ATreeLayout(
            hot=np.empty((size, 2), np.int32),
            node=np.empty((size, 3), np.int32),
            level=np.zeros(size, np.int16),
            op=np.zeros(size, np.int8),
            rarity=np.zeros(size, np.uint8),
            leaf_of=np.full(len(x.leaf_of), NOTHING, np.int32),
            root_of=np.full(len(x.root_of), NOTHING, np.int32),
            table=np.full(doubled(_SMALL, 4 * (n - self.n_leaves) // 3 + 1), NOTHING, np.int32),
            word=np.empty(int(x.count[TOP] - x.count[FREED]) + 256, np.int32),
            free=x.free.copy(),
            count=x.count.copy(),
        )
        copy_nodes(x, order, rank, fresh)
        top = int(fresh.count[TOP])
        self.layout = fresh._replace(word=_cut(fresh.word, top, top + int(slack * top) + 64))
        self._scratch = None
        enter_ids(self.layout, self.scratch(), settings.share, settings.id_bits)
        self._scratch = None
        make_tops(self.layout)

    def make_plain(self) -> None:
        """Turn links to tops into nodes again; changes need that."""
        if self.layout.count[HAS_TOPS]:
            make_plain(self.layout)

    def is_hollow(self) -> bool:
        """Whether most of the memory is no longer in use."""
        x = self.layout
        return bool(
            (len(x.word) > 4096 and x.count[FREED] * 2 > x.count[TOP])
            or x.count[HIGH] > 2 * x.count[N_NODES] + 1024
        )

    # ── scratch ─────────────────────────────────────────────────────────────────────────────────

    def scratch(self, n_tokens: int = 0) -> Scratch:
        """Room to change the tree, for expressions of so many tokens."""
        size = max(len(self.layout.node), n_tokens) + 64
        before = self._scratch
        if before is None or len(before.mark) < size:
            words = [np.zeros(size, np.int32) for _ in range(10)]
            rest = [np.zeros(size, np.int8), np.zeros(2, np.int32), np.zeros(2, np.int64)]
            fresh = Scratch(*words, *rest)
            if before is not None:
                n = len(before.mark)
                for name in ("operand", "waiting", "waits"):
                    getattr(fresh, name)[:n] = getattr(before, name)
                fresh.used[:] = before.used
            self._scratch = fresh
        assert self._scratch is not None
        if self._scratch.clock.max() > 2**30:
            self._scratch.mark[:] = 0
            self._scratch.seen[:] = 0
            self._scratch.clock[:] = 0
        return self._scratch

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    def saved(self, prefix: str = "") -> dict[str, np.ndarray]:
        return {**super().saved(prefix), f"{prefix}a_tree_hull": self.hull}

    def _to_save(self, name: str, arrays: ATreeLayout) -> ATreeLayout:
        x, high = arrays, int(arrays.count[HIGH])
        return x._replace(
            hot=x.hot[:high],
            node=x.node[:high],
            level=x.level[:high],
            op=x.op[:high],
            rarity=x.rarity[:high],
            table=x.table[:0],
            word=x.word[: int(x.count[TOP])],
        )

    def take(self, layout: Mapping[str, np.ndarray], prefix: str = "") -> None:
        super().take(layout, prefix)
        self.hull = layout[f"{prefix}a_tree_hull"]
        self._scratch = None

    def _owned(self, name: str, arrays: ATreeLayout) -> ATreeLayout:
        """Without free blocks: the links between them were not checked; without the table."""
        free, table = np.full_like(arrays.free, NOTHING), np.empty(0, np.int32)
        return arrays._replace(free=free, table=table)

    def thaw(self) -> None:
        """Copy arrays that cannot be written, before the first change, and make the table."""
        super().thaw()
        self.hull = writable_array(self.hull)
        if not len(self.layout.table):
            n = int(self.layout.count[N_NODES])
            self._fill_table(doubled(_SMALL, 4 * (n - self.n_leaves) // 3 + 1))


def new_matching(x: ATreeLayout) -> Matching:
    """Scratch to match with; memory that is not touched costs nothing."""
    n = max(1, len(x.node))
    return Matching(
        truth=np.zeros(len(x.root_of) + n, np.uint8),
        queue=np.empty(n + 1, np.int32),  # one more is written before it is known to count
        row=np.empty((n, 2), np.int32),
        sole=np.empty(n + 1, np.int32),
        opened=np.empty((n + 1, 3), np.int32),
        pending=np.empty(n + 1, np.int32),
        ready=np.empty(n + 1, np.int32),
        clock=np.zeros(1, np.int64),
    )


def new_levels(x: ATreeLayout, table: ExpressionTable) -> Levels:
    """Scratch for matching level by level: a predicate marks its leaf."""
    p = table.predicates.layout
    preds = np.flatnonzero(x.leaf_of >= 0)
    leaves = x.leaf_of[preds]
    by_attr = np.argsort(p.attr[preds], kind="stable")
    n = len(x.node)
    return Levels(
        stamp=np.zeros(n, np.int64),
        operands=np.zeros((n, 2), np.int32),
        next=np.zeros(n, np.int32),
        first=np.full(int(x.count[MAX_LEVEL]) + 1, NOTHING, np.int32),
        told_start=np.searchsorted(preds, np.arange(len(x.leaf_of) + 1)),
        told_leaf=leaves,
        told_value=np.ones(len(leaves), np.int8),
        attr_start=np.searchsorted(p.attr[preds][by_attr], np.arange(table.n_attributes + 1)),
        attr_leaf=leaves[by_attr],
        constant=np.empty((0, 2), np.int32),
        clock=np.zeros(1, np.int64),
    )


def _cut(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """The used part of an array, with room up to a size."""
    fresh = np.empty(size, array.dtype)
    fresh[:used] = array[:used]
    return fresh


def _larger(array: np.ndarray, needed: int) -> int:
    """An exact size for a first load, doubled later on."""
    return needed if len(array) <= _SMALL else doubled(len(array), needed)
