"""The owner of a BE-Tree; see the page of this folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError
from matchwood.index.be_tree.change import (
    DELETE,
    INSERT,
    NOTE_AND_INSERT,
    change,
    note_batch,
    partition_root,
    settle_root,
)
from matchwood.index.be_tree.check import check_tree
from matchwood.index.be_tree.draw import draw_dot, draw_text
from matchwood.index.be_tree.match import MINE, VIEW, Mine, View, absorb_visits, match_events
from matchwood.index.be_tree.memory import TreeMemory, new_search, tree_of, with_room
from matchwood.index.be_tree.nodes import N_C, N_P, Rules, TreeLayout
from matchwood.index.be_tree.rank import recycle
from matchwood.index.be_tree.shape import shape
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Saved, Step
from matchwood.index.core.scratch import Part, Scratch, n_attributes_of, new_version

MIN_WINDOW = 64
"""Fewest operations between two looks at the ranks: fewer would say nothing."""


FIXED, FEEDBACK = "fixed", "feedback"
TREE, NODE = "tree", "node"

TABLE_4 = ((0.01, 5), (0.1, 20), (1.0, 160))
"""Shares of expressions that events match, and max_cap up to each."""

NODE_LOOKS = 16
"""With windows of nodes: how often in a window of the tree they are looked at."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be tuned.

    max_cap      expressions in an l-node before it is cut; raise it when events match much
    min_size     expressions that an attribute needs to become a partition; raise it for fewer nodes
    capacity     "fixed": max_cap.  "feedback": by the share of expressions that events match, 5
                 below 1 %, 20 up to 10 %, 160 above (the paper's Table 4), for cuts to come
    rank_window  operations, as a share of the expressions, between two looks at the ranks; raise
                 it to adapt more slowly and cheaply
    windows      "tree": all p-nodes are ranked when the tree's window is over.  "node": each when
                 events have reached it as often as its own window, a share of the expressions below
                 it, says; and an inner node has a loss in addition to that of its l-nodes, both
                 as in section 5.  For comparison
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
    capacity: str = FIXED
    rank_window: float = 0.1
    windows: str = TREE
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
        self._expect_one("capacity", FIXED, FEEDBACK)
        self._expect_one("windows", TREE, NODE)

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
            node_window=float(self.rank_window) if self.windows == NODE else 0.0,
        )


class BETree(IndexFrame):
    """Owns the tree: asks the kernels, and gives them memory when they run out of it."""

    name: ClassVar[str] = "be_tree"
    is_kept: ClassVar[bool] = True
    LAYOUT = VIEW
    SEARCH = MINE
    Config = Config

    def _clear(self) -> None:
        self._rules = self.config.rules()
        self._memory = TreeMemory(self.config.max_cap)
        self._n_operations = 0
        self._n_recycled = 0
        self._version = new_version()
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

    def new_part(self) -> Part:
        part = Part()
        part.arrays = new_search()
        return part

    def _view(self) -> View:
        return View(self._memory.tree, self._table.layout, self._table.predicates.layout)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        table, tree, part = self._table, self._memory.tree, scratch.of(self)
        n_attributes = max(table.n_attributes, n_attributes_of(events))
        if part.version != self._version:  # what was learned is about other nodes
            part.arrays, part.version, part.n_events = new_search(), self._version, 0
        arrays = part.arrays = with_room(part.arrays, len(tree.c), n_attributes)
        part.n_events += events.n_events
        step = self._bound_step(match_events, events, scratch, lambda: Mine(arrays, scratch.board))
        return step if self.config.capacity == FIXED else self._counting_matches(step, part)

    def _counting_matches(self, step: Step, part: Part) -> Step:
        def counting(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done = step(first, stamp, offsets, out, counters)
            part.learned = (part.learned or 0) + int(offsets[done] - offsets[first])
            return done

        return counting

    def _learn(self, part: Part) -> None:
        """Count visits of nodes; when a window of operations is over, recycle."""
        n_events, part.n_events = part.n_events, 0
        n_matches, part.learned = part.learned or 0, None
        if self.config.capacity == FEEDBACK and n_events and len(self):
            self._rules = self._rules._replace(max_cap=_best_cap(n_matches / n_events / len(self)))
        if n_events == 0 or part.version != self._version:
            return
        absorb_visits(part.arrays, self._memory.scratch)
        self._after(n_events)

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
    def _check(cls, saved: Saved) -> None:
        check_tree(saved.table, saved.slots, saved.layout)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._memory.take(tree_of(layout))
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
        window = self.config.rank_window * len(self)
        window /= NODE_LOOKS if self.config.windows == NODE else 1
        if self._n_operations < max(MIN_WINDOW, window):
            return
        self._n_operations = 0
        if self._memory.is_writeable and self._memory.scratch.visits.any():
            self._memory.thaw()  # a snapshot's stacks have no room: recycling fills them
            self._n_recycled += recycle(
                self.tree, self._table.layout, self._memory.scratch, self._rules
            )
            self._change(np.empty(0, np.int32), INSERT)
            self._version = new_version()

    def _build_again(self) -> None:
        held = np.flatnonzero(self.tree.leaf_of >= 0).astype(np.int32)
        fresh = type(self).build(self._table, held, **asdict(self.config))
        self._memory, self._n_most = fresh._memory, len(held)
        self._version = new_version()


def _best_cap(share: float) -> int:
    """max_cap for a share of expressions that events match."""
    return next((cap for most, cap in TABLE_4 if share < most), TABLE_4[-1][1])
