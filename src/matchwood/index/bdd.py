"""BDD: all expressions in one binary decision diagram.

Idea.    A node tests a predicate and goes to its low or its high side, down to FALSE or TRUE.
         Predicates are always tested in the same order and equal nodes are one, so equal
         expressions are one diagram.  An event is matched by evaluating every node once, children
         first.
Source.  Campailla et al., ICSE 2001 (Bryant 1986), as described in section 2 of the A-Tree paper.
Differs. One traversal evaluates all diagrams.  Compiled here: the library `dd` is far too slow
         (docs/decisions/0012-diagrams-compiled-here.md).
Cost.    Match O(nodes + expressions).  Memory 12 bytes a node and 8 to 16 for its table, which may
         be exponentially many; `node_limit` says when to give up.

Layout   (N nodes, P predicate ids, S slots)
         node         int32[N, 3]   VARIABLE, LOW, HIGH; 0 is FALSE, 1 is TRUE; children come first
         table        int32[2^k]    nodes by content, open addressing, at most half full
         variable_of  int32[P]      variable of a predicate, in the order of first use; or -1
         root_of      int32[S]      node of an expression, or -1
         cache        int64[2^k,3]  results of AND and OR; scratch
         count        int64[2]      N_NODES, N_VARIABLES
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.arrays import doubled, grown, slices
from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError
from matchwood.index.bdd_kernels import (
    DONE,
    FALSE,
    LAST_VARIABLE,
    N_NODES,
    N_VARIABLES,
    TRUE,
    VARIABLE,
    Diagrams,
    fill_table,
    insert_diagrams,
    match_diagrams,
    sweep,
)
from matchwood.index.config import IndexConfig
from matchwood.index.frame import IndexFrame, Step
from matchwood.index.protocol import ANY
from matchwood.index.stabbing import StabbingTree

_SMALL = 16
_CACHE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class BDDConfig(IndexConfig):
    """What can be set.

    node_limit  most nodes of the diagram; an expression that needs more is refused
    """

    node_limit: int = 50_000_000

    def __post_init__(self) -> None:
        self._expect_integer("node_limit", 2)


class BDD(IndexFrame):
    """Owns the diagram and the predicate index."""

    name: ClassVar[str] = "bdd"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = BDDConfig

    def _clear(self) -> None:
        self._diagrams = Diagrams(
            node=np.zeros((_SMALL, 3), np.int32),
            table=np.full(2 * _SMALL, -1, np.int32),
            variable_of=np.full(_SMALL, -1, np.int32),
            root_of=np.full(_SMALL, -1, np.int32),
            cache=np.full((1, 3), -1, np.int64),
            count=np.array([2, 0], np.int64),
        )
        self._diagrams.node[[FALSE, TRUE], VARIABLE] = LAST_VARIABLE
        self._stabbing = StabbingTree()
        self._scratch: tuple[np.ndarray, ...] | None = None
        self._n_gone = 0

    def _add(self, slots: np.ndarray) -> None:
        table, d = self._table, self._diagrams
        sizes = table.layout.size[slots]
        n_preds = doubled(len(d.variable_of), len(table.predicates.layout.attr))
        n_slots = doubled(len(d.root_of), int(slots.max()) + 1)
        self._diagrams = d._replace(
            variable_of=grown(d.variable_of, n_preds, -1),
            root_of=grown(d.root_of, n_slots, -1),
            cache=np.full((_CACHE if len(slots) > 1000 else 256, 3), -1, np.int64),
        )
        operand = np.empty(int(sizes.max()) + 1, np.int64)
        stack = np.empty((2 * int(sizes.max()) + 16, 4), np.int64)
        done = 0
        while True:
            done, status = insert_diagrams(
                table.layout, slots, done, self._diagrams, operand, stack
            )
            if status == DONE:
                break
            self._make_nodes(slots)
        self._stabbing.hold_all(table, self._predicates(slots))
        self._stabbing.settle(table)
        self._diagrams = self._diagrams._replace(cache=np.full((1, 3), -1, np.int64))
        self._scratch = None

    def _predicates(self, slots: np.ndarray) -> np.ndarray:
        """The predicates of expressions, as often as they occur."""
        x = self._table.layout
        code = x.code[slices(x.start[slots], x.size[slots])]
        leaves: np.ndarray = code[code >= 0]
        return leaves

    def _make_nodes(self, slots: np.ndarray) -> None:
        d = self._diagrams
        size = min(2 * len(d.node), self.config.node_limit)
        if size <= len(d.node):
            d.root_of[slots] = -1
            self._sweep()
            raise IndexBuildError(
                f"bdd: expected a diagram of at most {self.config.node_limit:,} nodes, found one "
                "that needs more: raise node_limit, or use a_tree"
            )
        node = np.empty((size, 3), np.int32)
        node[: len(d.node)] = d.node
        self._diagrams = d._replace(node=node, table=np.full(doubled(32, 2 * size), -1, np.int32))
        fill_table(self._diagrams)

    def _remove(self, slots: np.ndarray) -> None:
        self._diagrams.root_of[slots] = -1
        self._stabbing.drop_all(self._table, self._predicates(slots))
        self._stabbing.settle(self._table)
        # an id without a use may come back as another predicate
        gone = self._predicates(slots)
        gone = gone[self._stabbing.arrays.uses[gone] == 0]
        self._diagrams.variable_of[gone] = -1
        self._n_gone += len(slots)
        if self._n_gone > len(self):
            self._sweep()
        self._scratch = None

    def _sweep(self) -> None:
        """Drop nodes that no expression needs, and variables that no predicate has."""
        d = self._diagrams
        used = np.zeros(len(d.variable_of), bool)
        used[: len(self._stabbing.arrays.uses)] = self._stabbing.arrays.uses[: len(used)] > 0
        d.variable_of[~used] = -1
        n = sweep(d, np.empty(int(d.count[N_NODES]), np.int32))
        size = n + n // 8 + _SMALL
        node = np.empty((size, 3), np.int32)
        node[:n] = d.node[:n]
        live = np.sort(d.variable_of[used])
        node[2:n, VARIABLE] = np.searchsorted(live, node[2:n, VARIABLE])
        d.variable_of[used] = np.searchsorted(live, d.variable_of[used])
        d.count[N_VARIABLES] = len(live)
        self._diagrams = d._replace(node=node, table=np.full(doubled(32, 2 * size), -1, np.int32))
        fill_table(self._diagrams)
        self._n_gone = 0

    def _stepper(self, events: EventBatch) -> Step:
        board, stabbing, table, d = self._board, self._stabbing, self._table, self._diagrams
        scratch = stabbing.scratch_for(events)
        if self._scratch is None:
            self._scratch = (
                np.flatnonzero(d.root_of >= 0).astype(np.int32),
                np.zeros(len(d.node), np.uint8),
                np.zeros(int(d.count[N_VARIABLES]) + 1, np.int64),
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
            **self._stabbing.stats(),
            "bytes": own + self._stabbing.nbytes,
        }

    def draw(self) -> str:
        n = int(self._diagrams.count[N_NODES])
        return f"bdd\n├── {len(self._stabbing)} variables\n└── {n} nodes of {len(self)} expressions"

    def _arrays(self) -> dict[str, np.ndarray]:
        own = {f"bdd_{name}": array for name, array in self._diagrams._asdict().items()}
        return {**own, **self._stabbing.layout()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._diagrams = Diagrams(*[layout[f"bdd_{name}"] for name in Diagrams._fields])
        self._stabbing.take(layout)

    def _thaw(self) -> None:
        self._diagrams = Diagrams(
            *[each if each.flags.writeable else each.copy() for each in self._diagrams]
        )
        self._stabbing.thaw()
