"""BDD: all expressions in one binary decision diagram.

Idea.    A node tests a predicate and goes to its low or its high side, down to FALSE or TRUE.
         Predicates are always tested in the same order and equal nodes are one, so equal
         expressions are one diagram.  An event is matched by evaluating every node once, children
         first.
Source.  Campailla et al., ICSE 2001 (Bryant 1986), as described in section 2 of the A-Tree paper.
Differs. One traversal evaluates all diagrams.  Compiled here: the library `dd` is far too slow
         (docs/decisions/0012-diagrams-compiled-here.md).  Predicates are ordered by attribute and
         keys, not by their coming, so that an expression's diagram depends on the expression alone:
         what is too large is known before anything is changed, and all diagrams together only
         become smaller when some leave.
Cost.    Match O(nodes + expressions).  Memory 12 bytes a node and 8 to 16 for its table, which may
         be exponentially many.  Building: a step for every pair of nodes that are joined;
         `step_limit` says when to give an expression up, `node_limit` when there are too many.

Layout   (N nodes, S slots)
         node         int32[N, 3]   PREDICATE, LOW, HIGH; 0 is FALSE, 1 is TRUE; children come first
         table        int32[2^k]    nodes by content, open addressing, at most half full
         root_of      int32[S]      node of an expression, or -1
         count        int64[1]      N_NODES
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.baselines.bdd_kernels import (
    DONE,
    MEMO_FULL,
    N_NODES,
    STEPS,
    TOO_MANY_STEPS,
    Diagrams,
    Joining,
    fill_table,
    insert_diagrams,
    match_diagrams,
    sweep,
)
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.core.protocol import ANY
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import doubled, grown, named, slices, taken, writable

_SMALL, _MEMO, _MANY = 16, 256, 1024
_NO_LIMIT = 2**62


@dataclass(frozen=True, kw_only=True)
class BDDConfig(IndexConfig):
    """What can be set.

    node_limit  most nodes of all diagrams together; what would make more is refused
    step_limit  most steps that the diagram of one expression takes, which is about its size and
                that of its parts; more are refused
    """

    node_limit: int = 50_000_000
    step_limit: int = 2**18

    def __post_init__(self) -> None:
        self._expect_integer("node_limit", 2)
        self._expect_integer("step_limit", 0)


class BDD(IndexFrame):
    """Owns the diagram and the predicate index."""

    name: ClassVar[str] = "bdd"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = BDDConfig

    def _clear(self) -> None:
        self._diagrams = _no_diagrams(_SMALL)
        self._stabbing = StabbingTree()
        self._scratch: tuple[np.ndarray, ...] | None = None
        self._n_gone = self._n_steps = self._n_swept = 0

    # ── what it refuses ─────────────────────────────────────────────────────────────────────────

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions whose diagrams take too many steps, found out on diagrams of their own."""
        refused: dict[int, MatchwoodError] = {}
        chosen = self._large(slots)
        if not len(chosen):
            return refused
        table, limit = self._table, self.config.step_limit
        most = 2 * self._most_nodes(chosen)
        trial, joining = _no_diagrams(_MANY, int(chosen.max()) + 1), self._joining(chosen)
        done = 0
        while True:
            done, status = insert_diagrams(
                table.layout, table.predicates.layout, chosen, done, trial, joining, limit
            )
            if status == DONE:
                break
            if status == TOO_MANY_STEPS:
                refused[int(chosen[done])] = IndexBuildError(
                    f"bdd: expected an expression whose diagram takes at most {limit:,} steps, "
                    "found one that takes more: raise step_limit, or use a_tree"
                )
                done += 1
            elif status == MEMO_FULL:
                joining = _with_memo(joining)
            elif len(trial.node) < most:
                trial = _with_nodes(trial, min(4 * len(trial.node), most))
            else:  # what was built is not needed any more
                trial = _no_diagrams(most, len(trial.root_of))
        self._n_steps += int(joining.work[STEPS])
        return refused

    def _large(self, slots: np.ndarray) -> np.ndarray:
        """Those that may take too many steps.

        n leaves are joined n - 1 times, and after i predicates at most 2^i pairs are reached.  A
        conjunction's are in order, so that joining neighbours takes one step a leaf and level.
        """
        x, limit = self._table.layout, self.config.step_limit
        few = max(n for n in range(63) if n << n <= limit)
        chosen = slots[x.size[slots] > few]
        if not len(chosen):
            return chosen
        is_leaf = x.code[slices(x.start[chosen], x.size[chosen])] >= 0
        firsts = np.cumsum(x.size[chosen]) - x.size[chosen]
        n_leaves = np.add.reduceat(is_leaf.astype(np.int64), firsts)
        levels = np.ceil(np.log2(n_leaves))
        is_chain = (x.kind[chosen] == CONJUNCTION) & (n_leaves * levels <= limit)
        large: np.ndarray = chosen[(n_leaves > few) & ~is_chain]
        return large

    def _most_nodes(self, slots: np.ndarray) -> int:
        """What the diagram of one of these expressions and all of its parts have at most."""
        return self.config.step_limit + int(self._table.layout.size[slots].max()) + 2

    def _joining(self, slots: np.ndarray) -> Joining:
        longest = int(self._table.layout.size[slots].max())
        return Joining(
            memo=np.zeros((_MEMO, 4), np.int64),
            operand=np.empty(longest + 1, np.int64),
            stack=np.empty((longest + 2, 4), np.int64),
            work=np.zeros(3, np.int64),
        )

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _add(self, slots: np.ndarray) -> None:
        table, d, joining = self._table, self._diagrams, self._joining(slots)
        n_slots = doubled(len(d.root_of), int(slots.max()) + 1)
        self._diagrams = d._replace(root_of=grown(d.root_of, n_slots, -1))
        # the last expression may need that many beyond the limit before they are swept
        most = self.config.node_limit + self._most_nodes(slots)
        done = 0
        while True:
            done, status = insert_diagrams(
                table.layout, table.predicates.layout, slots, done, self._diagrams, joining,
                _NO_LIMIT,
            )  # fmt: skip
            if status == DONE:
                break
            if status == MEMO_FULL:
                joining = _with_memo(joining)
            elif len(self._diagrams.node) < most:
                size = min(2 * len(self._diagrams.node), most)
                self._diagrams = _with_nodes(self._diagrams, size)
            else:
                self._keep_limit(slots)
        self._keep_limit(slots)
        if self._diagrams.count[N_NODES] > 2 * self._n_swept + _MANY:
            self._sweep()  # half of them were of parts of expressions
        self._n_steps += int(joining.work[STEPS])
        self._stabbing.hold_all(table, self._predicates(slots))
        self._stabbing.settle(table)
        self._scratch = None

    def _keep_limit(self, slots: np.ndarray) -> None:
        """Sweep when there are too many nodes; if there still are, refuse these expressions."""
        limit = self.config.node_limit
        if self._diagrams.count[N_NODES] <= limit:
            return
        self._sweep()
        if self._diagrams.count[N_NODES] <= limit:
            return
        self._diagrams.root_of[slots] = -1
        self._sweep()
        raise IndexBuildError(
            f"bdd: expected diagrams of at most {limit:,} nodes, found some that need more: raise "
            "node_limit, or use a_tree"
        )

    def _predicates(self, slots: np.ndarray) -> np.ndarray:
        """The predicates of expressions, as often as they occur."""
        x = self._table.layout
        code = x.code[slices(x.start[slots], x.size[slots])]
        leaves: np.ndarray = code[code >= 0]
        return leaves

    def _remove(self, slots: np.ndarray) -> None:
        self._diagrams.root_of[slots] = -1
        self._stabbing.drop_all(self._table, self._predicates(slots))
        self._stabbing.settle(self._table)
        self._n_gone += len(slots)
        if self._n_gone > len(self):
            self._sweep()
        self._scratch = None

    def _sweep(self) -> None:
        """Drop nodes that no expression needs."""
        n = sweep(self._diagrams, np.empty(int(self._diagrams.count[N_NODES]), np.int32))
        self._diagrams = _with_nodes(self._diagrams, n + n // 8 + _SMALL)
        self._n_gone, self._n_swept = 0, n

    def _stepper(self, events: EventBatch) -> Step:
        board, stabbing, table, d = self._board, self._stabbing, self._table, self._diagrams
        scratch = stabbing.scratch_for(events)
        if self._scratch is None:
            self._scratch = (
                np.flatnonzero(d.root_of >= 0).astype(np.int32),
                np.zeros(len(d.node), np.uint8),
                np.zeros(len(stabbing.arrays.uses), np.int64),
                np.zeros(1, np.int64),
            )
        held, value, holds, clock = self._scratch

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_diagrams(
                d, held, value, holds, clock,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        own = sum(array.nbytes for array in self._diagrams)
        return {
            "nodes": int(self._diagrams.count[N_NODES]),
            "steps": self._n_steps,
            **self._stabbing.stats(),
            "bytes": own + self._stabbing.nbytes,
        }

    def draw(self) -> str:
        n = int(self._diagrams.count[N_NODES])
        return (
            f"bdd\n├── {len(self._stabbing)} predicates\n└── {n} nodes of {len(self)} expressions"
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**named(self._diagrams, "diagram_"), **self._stabbing.layout()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._diagrams = taken(Diagrams, layout, "diagram_")
        self._n_swept = int(self._diagrams.count[N_NODES])
        self._stabbing.take(layout)

    def _thaw(self) -> None:
        self._diagrams = writable(self._diagrams)
        self._stabbing.thaw()


def _no_diagrams(n_nodes: int, n_slots: int = _SMALL) -> Diagrams:
    """Room for nodes and slots, and the two nodes FALSE and TRUE, which test nothing."""
    return Diagrams(
        node=np.zeros((n_nodes, 3), np.int32),
        table=np.full(doubled(32, 2 * n_nodes), -1, np.int32),
        root_of=np.full(n_slots, -1, np.int32),
        count=np.array([2], np.int64),
    )


def _with_nodes(d: Diagrams, size: int) -> Diagrams:
    """The same with room for so many nodes."""
    n = int(d.count[N_NODES])
    node = np.empty((size, 3), np.int32)
    node[:n] = d.node[:n]
    made = d._replace(node=node, table=np.full(doubled(32, 2 * size), -1, np.int32))
    fill_table(made)
    return made


def _with_memo(joining: Joining) -> Joining:
    """The same with room for four times the joins; the expression at hand is begun again."""
    return joining._replace(memo=np.zeros((4 * len(joining.memo), 4), np.int64))
