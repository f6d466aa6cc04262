"""BE-Tree: cut the space by one attribute, then by halves of its domain, and so on.

Idea.    All expressions begin in one leaf.  A leaf that grows too large is cut by an attribute
         that many of its expressions test; those are then sorted into halves of halves of its
         domain.  A leaf there that grows too large is cut again, by another attribute.  An event
         follows only its own attributes and only the halves that hold its values.
Source.  Sadoghi and Jacobsen, "BE-Tree", SIGMOD 2011: Figures 1 to 3, Algorithms 1 to 6, Table 1,
         sections 4.2 (capacity), 4.3 (rules, invariance) and 5 (rank, recycling).
Differs. Keys are 64-bit, so a p-node halves the span of the interval ends it knows and as much on
         either side, and levels of the grid that separate nothing have no bucket; a half is made
         when something goes there.
         An extended l-node grows by a quarter at least.  The window is checked for the tree as a
         whole.  See docs/decisions/0004-be-tree-what-the-paper-leaves-open.md.
Cost.    Insert and delete O(predicates * depth); a path has each attribute once and at most 64
         buckets of it.  Match O(nodes reached + candidates).  Memory: postings, and per c-node 72
         bytes, per p-node 56, per slot 8; 80 to 100 bytes an expression of 7
         predicates in all.

Layout   (C c-nodes, P p-nodes, A attributes, S slots; free nodes among them; c-node 0 is the root)

         c-node ── l-node: postings list of the same number
           └── p-directory: attribute -> p-node
                                           └── c-directory: bucket of the whole domain
                                                 ├── bucket of its lower half, a c-node
                                                 └── bucket of its upper half, a c-node

         c          int32[C,9]  OWNER UP LEFT RIGHT HEAD N_DIR CAP SPLIT TODO, see the kernels
         span       int64[C,2]  the bucket: first and last key; ends of the grid are open
         p          int32[P,6]  ATTR HOME TOP_BUCKET NEXT PREV BELOW, see the kernels
         grid       int64[P,2]  the domain that the p-node halves
         directory  int32[2^k]  p-nodes by (HOME, ATTR): open addressing, at most half full; not
                                in a snapshot
         attr_span  int64[A,2]  smallest and largest finite interval end of an attribute
         attr_n     int64[A]    expressions that test it
         leaf_of    int32[S]    the c-node that holds an expression, -1 for none
         todo       int32[C]    stack of c-nodes to relieve; empty between calls, like
         pending    int32[S]    stack of expressions to insert again
         count      int64[9]    see the kernels
         postings               see `postings.py`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.arrays import taken
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import IndexBuildError
from matchwood.index.be_tree_change_kernels import (
    DELETE,
    INSERT,
    NOTE_AND_INSERT,
    change,
    note_batch,
    partition_root,
    settle_root,
)
from matchwood.index.be_tree_check import check_tree
from matchwood.index.be_tree_draw import draw_dot, draw_text
from matchwood.index.be_tree_match_kernels import match_events
from matchwood.index.be_tree_memory import TreeMemory
from matchwood.index.be_tree_node_kernels import N_C, N_P, Rules, TreeLayout
from matchwood.index.be_tree_rank_kernels import recycle
from matchwood.index.be_tree_shape import shape
from matchwood.index.config import IndexConfig
from matchwood.index.frame import IndexFrame, Step, check_live
from matchwood.index.postings_kernels import PostingLayout
from matchwood.index.protocol import Hits

MIN_WINDOW = 64
"""Fewest operations between two looks at the ranks: fewer would say nothing."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be tuned.

    max_cap      expressions in an l-node before it is cut; raise it when events match much
    min_size     expressions that an attribute needs to become a partition; raise it for fewer nodes
    rank_window  operations, as a share of the expressions, between two looks at the ranks; raise
                 it to adapt more slowly and cheaply
    theta        p-nodes that rank below are taken down and inserted again; raise it to do so early
    alpha_s      what a subsumed predicate gains
    alpha_c      what a covered predicate gains
    beta         weight of gains
    gamma        weight of losses: predicates evaluated in vain
    histogram    estimate the loss of an attribute by the ranges that its predicates cover; without
                 it, the paper's optimistic variant: the loss is 0 until events have shown one, so
                 the attribute that most expressions test is taken first
    """

    max_cap: int = 100
    min_size: int = 3
    rank_window: float = 0.1
    theta: float = 0.0
    alpha_s: float = 1.0
    alpha_c: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    histogram: bool = True

    def __post_init__(self) -> None:
        for name in ("max_cap", "min_size"):
            self._expect_integer(name, least=1)
        for name in ("alpha_s", "alpha_c", "beta", "gamma"):
            self._expect_number(name, 0, 1)
        self._expect_number("theta", -math.inf, math.inf)
        self._expect_number("rank_window", 0, math.inf)
        self._expect("rank_window", self.rank_window > 0, "a share above 0")
        self._expect_flag("histogram")

    def rules(self) -> Rules:
        """The settings as kernels take them."""
        return Rules(
            max_cap=self.max_cap,
            min_size=self.min_size,
            theta=float(self.theta),
            alpha_s=float(self.alpha_s),
            alpha_c=float(self.alpha_c),
            beta=float(self.beta),
            gamma=float(self.gamma),
            histogram=self.histogram,
        )


class BETree(IndexFrame):
    """Owns the tree: asks the kernels, and gives them memory when they run out of it."""

    name: ClassVar[str] = "be_tree"
    is_kept: ClassVar[bool] = True
    Config = Config

    def _clear(self) -> None:
        self._rules = self.config.rules()
        self._memory = TreeMemory(self.config.max_cap)
        self._n_operations = 0
        self._n_recycled = 0
        self._n_most = 0  # expressions, at most, since the tree was last built

    @property
    def tree(self) -> TreeLayout:
        """The layout, for kernels and tests."""
        return self._memory.tree

    def _fill(self, slots: np.ndarray) -> None:
        """BE-B: the attributes of all expressions guide the partitioning of the root."""
        if len(slots) <= self.config.max_cap:
            self._add(slots)
            return
        self._n_most = len(slots)
        self._make_places(slots)
        note_batch(self.tree, self._table.layout, self._table.predicates.layout, slots)
        n_words = len(slots) + 2 * int(self._table.layout.size[slots].sum())
        self._memory.make_words(2 * n_words)  # lists leave segments behind as they grow
        self._partition_root()
        self._change(slots, INSERT)
        settle_root(self.tree, self._rules)
        self._change(slots[:0], INSERT)
        self._memory.close_up()

    def _add(self, slots: np.ndarray) -> None:
        self._n_most = max(self._n_most, self._n_live + len(slots))
        self._make_places(slots)
        self._change(slots, NOTE_AND_INSERT)
        self._after(len(slots))

    def _remove(self, slots: np.ndarray) -> None:
        self._change(slots, DELETE)
        self._after(len(slots))
        # over many attributes a tree can be sparse as built: building again must be worth while
        if self._memory.is_sparse and 2 * self._n_live <= self._n_most:
            self._build_again()

    def match_batch(self, events: EventBatch) -> Hits:
        hits = super().match_batch(events)
        self._after(events.n_events)
        return hits

    def _stepper(self, events: EventBatch) -> Step:
        board, table, memory = self._board, self._table, self._memory
        memory.make_posted(max(table.n_attributes, int(events.attr.max(initial=-1)) + 1))

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_events(
                memory.tree, table.layout, table.predicates.layout, events, first, stamp,
                board.event, board.entry, memory.scratch, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        return {
            "c_nodes": int(self.tree.count[N_C]),
            "p_nodes": int(self.tree.count[N_P]),
            "recycled": self._n_recycled,
            **shape(self.tree),
            "bytes": self._memory.nbytes,
        }

    def draw(self, format: str = "text") -> str:  # noqa: A002 (the word users know)
        if format not in ("text", "dot"):
            raise IndexBuildError(f"be_tree: expected format 'text' or 'dot', found {format!r}")
        return draw_text(self.tree) if format == "text" else draw_dot(self.tree)

    def _arrays(self) -> dict[str, np.ndarray]:
        return self._memory.arrays()

    @classmethod
    def check(
        cls,
        table: ExpressionTable,
        slots: np.ndarray,
        layout: Mapping[str, np.ndarray],
        **config: Any,
    ) -> None:
        check_live(layout, slots)
        check_tree(table, slots, layout)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        postings = taken(PostingLayout, layout, "posting_")
        own = [layout[name] for name in TreeLayout._fields if name != "postings"]
        self._memory.take(TreeLayout._make([*own, postings]))
        held = np.flatnonzero(self.tree.leaf_of >= 0)
        self._memory.longest = int(self._table.layout.size[held].max(initial=0))
        self._n_most = len(held)

    def _thaw(self) -> None:
        self._memory.thaw()

    # ── how it is done ──────────────────────────────────────────────────────────────────────────

    def _make_places(self, slots: np.ndarray) -> None:
        longest = int(self._table.layout.size[slots].max())
        self._memory.make_places(int(slots.max()) + 1, self._table.n_attributes, longest)

    def _change(self, slots: np.ndarray, verb: int) -> None:
        done, is_done = 0, False
        while not is_done:
            done, is_done = change(
                self.tree, self._table.layout, self._table.predicates.layout, slots, done,
                verb, self._memory.scratch, self._rules,
            )  # fmt: skip
            if not is_done:
                self._memory.grow()

    def _partition_root(self) -> None:
        counts = self.tree.attr_n
        attributes = np.flatnonzero(counts >= self.config.min_size)
        self._memory.make_nodes(len(attributes))
        partition_root(self.tree, attributes, self._memory.scratch, self.config.max_cap)

    def _after(self, n_operations: int) -> None:
        """When a window of operations is over, recycle p-nodes that cost more than they save."""
        self._n_operations += n_operations
        if self._n_operations < max(MIN_WINDOW, self.config.rank_window * len(self)):
            return
        self._n_operations = 0
        if self._memory.is_writeable and self._memory.scratch.visits.any():
            self._memory.thaw()  # a snapshot's stacks have no room: recycling fills them
            self._n_recycled += recycle(
                self.tree, self._table.layout, self._memory.scratch, self._rules
            )
            self._change(np.empty(0, np.int32), INSERT)

    def _build_again(self) -> None:
        held = np.flatnonzero(self.tree.leaf_of >= 0).astype(np.int32)
        fresh = type(self).build(self._table, held, **asdict(self.config))
        self._memory, self._n_most = fresh._memory, len(held)
