"""BE-Tree: cut the space by one attribute, then by halves of its domain, and so on.

Idea.    All expressions begin in one leaf.  A leaf that grows too large is cut by an attribute
         that many of its expressions test; those are then sorted into halves of halves of its
         domain.  A leaf there that grows too large is cut again by another attribute.
Source.  Sadoghi and Jacobsen, "BE-Tree", SIGMOD 2011: Figures 1 to 3, Algorithms 1 to 6, Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from matchwood.arrays import doubled, grown
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import IndexBuildError
from matchwood.forms.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.index.be_tree_change_kernels import change, fill_directory, note_batch
from matchwood.index.be_tree_match_kernels import match_events
from matchwood.index.be_tree_node_kernels import (
    C_FREE,
    C_HIGH,
    C_WIDTH,
    CAP,
    N_C,
    N_COUNTS,
    N_HELD,
    N_P,
    OWNER,
    P_FREE,
    P_HIGH,
    P_WIDTH,
    TreeLayout,
)
from matchwood.index.board import Board
from matchwood.index.postings import (
    closed_up,
    nbytes,
    new_postings,
    with_attributes,
    with_words,
)
from matchwood.index.protocol import CONJUNCTIONS, Hits


@dataclass(frozen=True, kw_only=True)
class Config:
    """What can be tuned.

    max_cap       expressions in a leaf before it is cut; more suits events that match more
    min_size      expressions that an attribute needs to be worth a partition
    """

    max_cap: int = 20
    min_size: int = 3
    rank_window: float = 0.1
    theta: float = 0.0
    alpha_s: float = 1.0
    alpha_c: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0

    @classmethod
    def checked(cls, settings: Mapping[str, Any]) -> Self:
        known = [field.name for field in fields(cls)]
        unknown = sorted(settings.keys() - set(known))
        if unknown:
            raise IndexBuildError(
                f"be_tree: expected settings among {', '.join(known)}, found {', '.join(unknown)}"
            )
        return cls(**settings)


class Scratch(NamedTuple):
    tally: np.ndarray
    loss: np.ndarray
    path: np.ndarray
    skip: np.ndarray
    stack: np.ndarray
    posted: np.ndarray


def _new_tree(max_cap: int) -> TreeLayout:
    tree = TreeLayout(
        c=np.zeros((4, C_WIDTH), np.int32),
        span=np.zeros((4, 2), np.int64),
        p=np.zeros((4, P_WIDTH), np.int32),
        grid=np.zeros((4, 2), np.int64),
        directory=np.full(8, -1, np.int32),
        attr_span=np.tile(np.array([MAX_KEY, MIN_KEY]), (4, 1)),
        attr_n=np.zeros(4, np.int64),
        leaf_of=np.full(16, -1, np.int32),
        todo=np.zeros(4, np.int32),
        pending=np.zeros(16, np.int32),
        count=np.zeros(N_COUNTS, np.int64),
        postings=new_postings(),
    )
    tree.c[0] = (-1, -1, -1, -1, -1, 0, max_cap, 0, 0)
    tree.span[0] = MIN_KEY, MAX_KEY
    tree.count[[C_HIGH, N_C]] = 1
    tree.count[[C_FREE, P_FREE]] = -1
    return tree


class BETree:
    """Owns the layout: grows it, asks the kernels, shrinks it."""

    name: ClassVar[str] = "be_tree"
    language: ClassVar[str] = CONJUNCTIONS

    def __init__(self, table: ExpressionTable, config: Config) -> None:
        self._table = table
        self.config = config
        self._board = Board()
        self._posted = np.full(64, -1, np.int64)
        self._longest = 0
        self.tree = _new_tree(config.max_cap)
        self._make_scratch()

    @classmethod
    def build(cls, table: ExpressionTable, slots: np.ndarray, **config: Any) -> Self:
        index = cls(table, Config.checked(config))
        index.insert(slots)
        return index

    def __len__(self) -> int:
        return int(self.tree.count[N_HELD])

    def insert(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        self._thaw()
        self._make_places(int(slots.max()) + 1)
        self._longest = max(self._longest, int(self._table.layout.size[slots].max()))
        note_batch(self.tree, self._table.layout, self._table.predicates.layout, slots)
        self._change(slots, False)

    def delete(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        self._thaw()
        self._change(slots, True)
        self._shrink()

    def match(self, event: EventBatch) -> np.ndarray:
        return self.match_batch(event).slots

    def match_batch(self, events: EventBatch) -> Hits:
        board, table = self._board, self._table
        width = max(table.n_attributes, int(events.attr.max(initial=-1)) + 1)
        self._posted = grown(self._posted, doubled(len(self._posted), width), -1)
        scratch = self._scratch._replace(posted=self._posted)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_events(
                self.tree, table.layout, table.predicates.layout, events, first, stamp,
                board.event, board.entry, scratch, offsets, out, counters,
            )  # fmt: skip
            return done

        return board.run(events, table.n_attributes, step)

    def stats(self) -> dict[str, Any]:
        return {
            "index": self.name,
            "conjunctions": len(self),
            "c_nodes": int(self.tree.count[N_C]),
            "p_nodes": int(self.tree.count[N_P]),
            "bytes": self.nbytes,
        }

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.tree[:-1]) + nbytes(self.tree.postings)

    def draw(self) -> str:
        return "be_tree"

    def layout(self) -> dict[str, np.ndarray]:
        if self.tree.postings.word.flags.writeable:
            self.tree = self.tree._replace(
                postings=closed_up(self.tree.postings, int(self.tree.count[C_HIGH]))
            )
        tree = self.tree
        n_c, n_p = int(tree.count[C_HIGH]), int(tree.count[P_HIGH])
        kept = {"c": n_c, "span": n_c, "p": n_p, "grid": n_p, "todo": 0, "pending": 0}
        arrays = {
            name: array[: kept.get(name, len(array))]
            for name, array in tree._asdict().items()
            if name != "postings"
        }
        for name, array in tree.postings._asdict().items():
            arrays[f"posting_{name}"] = array[:n_c] if name == "lists" else array
        return arrays

    @classmethod
    def restore(
        cls, table: ExpressionTable, layout: Mapping[str, np.ndarray], **config: Any
    ) -> Self:
        index = cls(table, Config.checked(config))
        postings = type(index.tree.postings)(
            *[layout[f"posting_{name}"] for name in index.tree.postings._fields]
        )
        index.tree = TreeLayout(
            *[layout[name] for name in TreeLayout._fields if name != "postings"], postings
        )
        held = np.flatnonzero(index.tree.leaf_of >= 0)
        index._longest = int(table.layout.size[held].max(initial=0))
        index._make_scratch()
        return index

    # ── memory ──────────────────────────────────────────────────────────────────────────────────

    def _change(self, slots: np.ndarray, is_delete: bool) -> None:
        done, is_done = 0, False
        while not is_done:
            done, is_done = change(
                self.tree, self._table.layout, self._table.predicates.layout, slots, done,
                is_delete, self._scratch, self.config.max_cap, self.config.min_size,
            )  # fmt: skip
            if not is_done:
                self._grow()

    def _thaw(self) -> None:
        """Copy arrays that cannot be written: those of a snapshot."""
        tree = self.tree
        if not tree.c.flags.writeable:
            postings = type(tree.postings)(*[array.copy() for array in tree.postings])
            self.tree = TreeLayout(*[array.copy() for array in tree[:-1]], postings)
        self._make_places(len(self.tree.leaf_of))

    def _make_places(self, n_slots: int) -> None:
        """Room for slots and attributes."""
        tree = self.tree
        n_attributes = doubled(len(tree.attr_n), self._table.n_attributes)
        places = doubled(len(tree.leaf_of), n_slots)
        span = np.tile(np.array([MAX_KEY, MIN_KEY]), (n_attributes, 1))
        span[: len(tree.attr_span)] = tree.attr_span
        self.tree = tree._replace(
            attr_span=span,
            attr_n=grown(tree.attr_n, n_attributes),
            leaf_of=grown(tree.leaf_of, places, -1),
            pending=grown(tree.pending, places),
            todo=grown(tree.todo, len(tree.c)),
            postings=with_attributes(tree.postings, n_attributes),
        )
        self._make_scratch()

    def _make_scratch(self) -> None:
        tree = self.tree
        n_attributes = len(tree.attr_n)
        self._scratch = Scratch(
            tally=np.zeros(n_attributes, np.int32),
            loss=np.zeros(len(tree.p), np.float64),
            path=np.full(n_attributes, -1, np.int32),
            skip=np.zeros(n_attributes, np.int8),
            stack=np.zeros(len(tree.c) + 1, np.int32),
            posted=self._posted,
        )

    def _grow(self) -> None:
        """Double the nodes that are short (see `has_nodes`), else the words."""
        tree = self.tree
        n_c, n_p = int(tree.count[C_HIGH]), int(tree.count[P_HIGH])
        if n_c + 2 * self._longest + 2 > len(tree.c):
            size = doubled(2 * len(tree.c), n_c + 2 * self._longest + 2)
            self.tree = tree._replace(
                c=_taller(tree.c, size),
                span=_taller(tree.span, size),
                todo=grown(tree.todo, size),
                postings=tree.postings._replace(lists=_taller(tree.postings.lists, size)),
            )
        elif n_p == len(tree.p):
            size = 2 * max(len(tree.p), 2)
            self.tree = tree._replace(
                p=_taller(tree.p, size),
                grid=_taller(tree.grid, size),
                directory=np.full(doubled(len(tree.directory), 2 * size), -1, np.int32),
            )
            fill_directory(self.tree)
        else:
            self.tree = tree._replace(postings=with_words(tree.postings, n_c))
        self._make_scratch()

    def _shrink(self) -> None:
        if len(self) == 0:
            self.tree = _new_tree(self.config.max_cap)
            self._make_scratch()


def _taller(array: np.ndarray, size: int) -> np.ndarray:
    if size <= len(array):
        return array
    fresh = np.zeros((size, array.shape[1]), array.dtype)
    fresh[: len(array)] = array
    return fresh
