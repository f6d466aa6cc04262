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
         become smaller when some leave.  Built again after changes.
Cost.    Match O(nodes + expressions).  Memory 12 bytes a node, which may be exponentially many; 8
         to 16 more while they are built.  Building: a step for every pair of nodes that are joined;
         `step_limit` says when to give an expression up, `node_limit` when there are too many.

Layout   (N nodes, S slots)
         node         int32[N, 3]   PREDICATE, LOW, HIGH; 0 is FALSE, 1 is TRUE; children come first
         table        int32[2^k]    nodes by content, open addressing, at most half full; while
                                    they are built
         root_of      int32[S]      node of an expression, or -1
         count        int64[1]      N_NODES
         value        uint8[N]      scratch: what a node is for the event at hand
         holds        int64[P]      scratch: the event that last satisfied a predicate
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
from matchwood.index.baselines.predicate_frame import PredicateFrame
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.protocol import ANY
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import bytes_of, doubled, offsets_of

_MEMO, _MANY = 256, 1024
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


class Compiled(NamedTuple):
    """What is built; see the module's docstring."""

    diagrams: Diagrams
    stabbing: StabbingTree
    held: np.ndarray
    n_predicates: int


class BDD(PredicateFrame[Compiled]):
    """Owns the diagram and the predicate index."""

    name: ClassVar[str] = "bdd"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = BDDConfig

    def _clear(self) -> None:
        super()._clear()
        self._n_steps = 0
        self._bound = 2  # there are at most so many nodes

    # ── what it refuses ─────────────────────────────────────────────────────────────────────────

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions whose diagrams take too many steps, found by building them apart."""
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
        n_leaves = self._n_leaves(chosen)
        levels = np.ceil(np.log2(n_leaves))
        is_chain = (x.kind[chosen] == CONJUNCTION) & (n_leaves * levels <= limit)
        large: np.ndarray = chosen[(n_leaves > few) & ~is_chain]
        return large

    def _n_leaves(self, slots: np.ndarray) -> np.ndarray:
        """Predicates of each expression, as often as they occur; there is one at least."""
        size = self._table.layout.size[slots]
        is_leaf = self._table.codes_of(slots) >= 0
        firsts = offsets_of(size)[:-1]
        found: np.ndarray = np.add.reduceat(is_leaf.astype(np.int64), firsts)
        return found

    def _most_nodes(self, slots: np.ndarray) -> int:
        """What the diagram of one of these expressions and all of its parts have at most."""
        return self.config.step_limit + int(self._table.layout.size[slots].max(initial=0)) + 2

    def _joining(self, slots: np.ndarray) -> Joining:
        longest = int(self._table.layout.size[slots].max(initial=0))
        return Joining(
            memo=np.zeros((_MEMO, 4), np.int64),
            operand=np.empty(longest + 1, np.int64),
            stack=np.empty((longest + 2, 4), np.int64),
            work=np.zeros(3, np.int64),
        )

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _must_build_now(self, slots: np.ndarray) -> bool:
        self._bound += self._nodes_at_most(slots)
        return self._bound > self.config.node_limit or super()._must_build_now(slots)

    def _nodes_at_most(self, slots: np.ndarray) -> int:
        """Nodes of these expressions without counting them.

        A conjunction has one for each predicate; any expression of n predicates at most 2^n, and
        one for each predicate and each step that its diagram takes.
        """
        n_leaves = self._n_leaves(slots)
        most = np.minimum(n_leaves + self.config.step_limit, 1 << np.minimum(n_leaves, 40))
        is_conjunction = self._table.layout.kind[slots] == CONJUNCTION
        return int(np.where(is_conjunction, n_leaves, most).sum())

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        if len(self):
            self._bound += self._nodes_at_most(self._held())

    def _build(self, slots: np.ndarray) -> Compiled:
        table, joining = self._table, self._joining(slots)
        n_slots = int(slots.max(initial=-1)) + 1
        d = _no_diagrams(min(_MANY, self.config.node_limit + 2), n_slots)
        # the last expression may need that many beyond the limit before they are swept
        most = self.config.node_limit + self._most_nodes(slots)
        done, status = 0, None
        while status != DONE:
            done, status = insert_diagrams(
                table.layout, table.predicates.layout, slots, done, d, joining, _NO_LIMIT
            )
            if status == MEMO_FULL:
                joining = _with_memo(joining)
            elif status != DONE and len(d.node) < most:
                d = _with_nodes(d, min(2 * len(d.node), most))
            elif status != DONE:
                self._sweep(d)
                d = _with_nodes(d, len(d.node))
        self._sweep(d)
        self._n_steps += int(joining.work[STEPS])
        self._bound = int(d.count[N_NODES])
        uses = uses_of(self._table, slots)
        return Compiled(
            d._replace(node=d.node[: self._bound].copy(), table=np.empty(0, np.int32)),
            self._stabbing(uses),
            slots,
            len(uses),
        )

    def _sweep(self, d: Diagrams) -> None:
        """Drop nodes that no expression needs; an error if there are too many even so."""
        limit = self.config.node_limit
        n = sweep(d, np.empty(int(d.count[N_NODES]), np.int32))
        if n > limit:
            raise IndexBuildError(
                f"bdd: expected diagrams of at most {limit:,} nodes, found some that need more: "
                "raise node_limit, or use a_tree"
            )

    def _new_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By node whether it is true; by predicate when it last held; the clock."""
        x = self._built
        holds = np.zeros(x.n_predicates, np.int64)
        return np.zeros(len(x.diagrams.node), np.uint8), holds, np.zeros(1, np.int64)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        x = self._built
        arguments = x.diagrams, x.held, *self._arrays_in(scratch)
        return self._step(match_diagrams, events, scratch, x.stabbing, *arguments)

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "nodes": len(x.diagrams.node),
            "steps": self._n_steps,
            **x.stabbing.stats(),
            "bytes": bytes_of(x.diagrams) + x.stabbing.nbytes,
        }

    def draw(self) -> str:
        self.settle()
        x = self._built
        return (
            f"bdd\n├── {len(x.stabbing)} predicates\n"
            f"└── {len(x.diagrams.node)} nodes of {len(self)} expressions"
        )


def _no_diagrams(n_nodes: int, n_slots: int) -> Diagrams:
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
