r"""A-Tree: trees of predicates, put together where they are equal.

Idea.    Every expression is a tree of AND and OR over predicates.  Equal subtrees are one node, so
         a million expressions become one graph: predicates below, expressions above.  An event
         makes some predicates true; from them truth climbs, level by level, each node once for all
         expressions that share it.
Source.  A-Tree (Ji and Jacobsen, SIGMOD 2021): structure 4.1, sharing and algorithms 1 to 5 in 4.2,
         matching and its optimisations in 5.
Differs. NOT, XOR and XNOR never get here: zero suppression (5.2.1) is the normal form of all
         expressions; `a_tree_three_valued` is the version before that.  Ids are sums of mixed node
         numbers over one operator's elements instead of sums and products of 64 bits, and equal ids
         are compared element by element.  The use count is the number of expressions and of parents
         of the other operator, which the lists of parents know.  Searches look at search_limit
         parents of a child at most.  Algorithm 3 asks the parents of every child; here of the child
         with the fewest and of those with few.  See docs/decisions/0011.
Cost.    Match O(satisfied predicates + their parents + nodes that become true).  Insert: a few
         lookups a subexpression.  Memory 27 bytes a node, 4 to 8 for the table, 8 to 10 a link,
         12 a node that has parents, 4 an expression, and the predicate index.

    level 4         18 AND S1                                 Figure 6 (c) of the paper:
                     /   \                                    S1 to S6 are its expressions
    level 3   16 AND S4   \      17 AND S2      15 OR S3
               /  \        \      /     \        /   \
    level 2   4   11 OR    12 OR S5   13 OR    11     4       14 AND S6
                  / | \     /  \       /  \                     /  \
    level 1      1  2  3   5    6     7    8                   9    10

Layout   (M node ids, P predicate ids, S slots)
         hot       int32[M, 2]  TELL, SLOT: what matching reads; see a_tree_block_kernels
         node      int32[M, 3]  UP, DOWN, ID
         level     int16[M]     1 for a leaf, else one more than the highest child
         op        int8[M]      FREE, LEAF, AND, OR
         rarity    uint8[M]     -12 log2 of the share of events it is expected to hold for
         leaf_of   int32[P]     node of a predicate, or -1
         root_of   int32[S]     node of an expression, or -1
         table     int32[2^k]   inner nodes by ID, open addressing, at most three quarters full
         word      int32[]      blocks of parents, children and slots
         free      int32[128]   first free block of each size class
         count     int64[7]     HIGH, NEXT_FREE, N_NODES, N_LEAVES, TOP, FREED, MAX_LEVEL
         hull      int64[A, 2]  outermost constants of an attribute, for rarity
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.a_tree_delete_kernels import delete_batch
from matchwood.index.a_tree_draw import draw_dot, draw_text, sharing_by_level
from matchwood.index.a_tree_insert_kernels import DONE, NODES_FULL, TABLE_FULL, insert_batch
from matchwood.index.a_tree_level_kernels import Levels, match_levels
from matchwood.index.a_tree_match_kernels import Matching, match_batch
from matchwood.index.a_tree_memory import ATreeMemory, new_levels, new_matching
from matchwood.index.a_tree_node_kernels import CHANGED, WAITING, Settings
from matchwood.index.config import IndexConfig
from matchwood.index.frame import IndexFrame, Step
from matchwood.index.protocol import ANY
from matchwood.index.stabbing import StabbingTree

SELECTIVITY, RANDOM = "selectivity", "random"
MATCHING = ON_DEMAND, ZERO_SUPPRESSION, THREE_VALUED = (
    "on_demand",
    "zero_suppression",
    "three_valued",
)


@dataclass(frozen=True, kw_only=True)
class ATreeConfig(IndexConfig):
    """What can be set.

    share         equal subexpressions are one node; without it the other three have no effect
    reorganise    a new expression is built from existing nodes where they fit (algorithm 2)
    self_adjust   existing nodes are built anew around a new one that fits into them (algorithm 3)
    rehang        a node that is no longer used gives its children to its parents
    access        which child of an AND gives access to it: the rarest by "selectivity", or "random"
    search_limit  parents of a child looked at in a search: more find more to share, in more time
    id_bits       of an expression's id; fewer make collisions, for tests
    matching      "on_demand": an AND is told by one child and asks the others (5.2.2);
                  "zero_suppression": every TRUE goes to all parents (5.2.1);
                  "three_valued": FALSE as well (5.1); the last two are for comparison
    """

    share: bool = True
    reorganise: bool = True
    self_adjust: bool = True
    rehang: bool = True
    access: str = SELECTIVITY
    search_limit: int = 128
    id_bits: int = 31
    matching: str = ON_DEMAND

    def __post_init__(self) -> None:
        for name in ("share", "reorganise", "self_adjust", "rehang"):
            self._expect_flag(name)
        self._expect("access", self.access in (SELECTIVITY, RANDOM), "'selectivity' or 'random'")
        self._expect("matching", self.matching in MATCHING, f"one of {', '.join(MATCHING)}")
        self._expect_integer("search_limit", 1, 2**20)
        self._expect_integer("id_bits", 0, 31)

    def for_kernels(self) -> Settings:
        return Settings(
            int(self.share),
            int(self.share and self.reorganise),
            int(self.share and self.self_adjust),
            int(self.rehang),
            int(self.access == RANDOM),
            self.search_limit,
            self.id_bits,
        )


class ATree(IndexFrame):
    """Owns the graph and the predicate index below it."""

    name: ClassVar[str] = "a_tree"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = ATreeConfig

    def _clear(self) -> None:
        self._memory = ATreeMemory()
        self._stabbing = StabbingTree()
        self._matching: Matching | None = None
        self._levels: Levels | None = None

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        """Short expressions first: the long ones then find them to build on."""
        sizes = self._table.layout.size[slots]
        self._insert(slots[np.argsort(sizes, kind="stable")])
        self._memory.renumber(self._table, self.config.for_kernels())
        uses = (self._memory.layout.leaf_of >= 0).astype(np.int32)
        self._stabbing.build(self._table, uses)

    def _add(self, slots: np.ndarray) -> None:
        changed = self._insert(slots)
        self._stabbing.hold_all(self._table, changed)
        self._stabbing.settle(self._table)

    def _insert(self, slots: np.ndarray) -> np.ndarray:
        """Take expressions in; returns the predicates that are new."""
        table, memory, settings = self._table, self._memory, self.config.for_kernels()
        memory.make_ids(table, slots)
        sizes = table.layout.size[slots]
        longest = int(sizes.max())
        # what is abandoned for lack of room comes, goes and comes again
        changed = np.empty(int(sizes.sum(dtype=np.int64)) + 128 * longest, np.int32)
        scratch = memory.scratch(longest)
        scratch.used[CHANGED] = 0
        done = 0
        while True:
            done, status = insert_batch(
                table.layout, table.predicates.layout, slots, done,
                memory.layout, scratch, settings, memory.hull, changed,
            )  # fmt: skip
            if status == NODES_FULL:
                memory.make_nodes()
                scratch = memory.scratch(longest)
            elif status == TABLE_FULL:
                memory.make_table()
            elif status != DONE:
                memory.make_words()
            if scratch.used[WAITING]:
                self._release(np.empty(0, np.int32), changed)
            if status == DONE:
                break
        self._matching = self._levels = None
        kept = np.unique(changed[: scratch.used[CHANGED]])
        return kept[memory.layout.leaf_of[kept] >= 0]

    def _remove(self, slots: np.ndarray) -> None:
        memory = self._memory
        scratch = memory.scratch()
        changed = np.empty(int(memory.n_leaves), np.int32)
        scratch.used[CHANGED] = 0
        self._release(slots, changed)
        self._stabbing.drop_all(self._table, changed[: scratch.used[CHANGED]])
        self._stabbing.settle(self._table)
        if memory.is_hollow():
            memory.renumber(self._table, self.config.for_kernels(), slack=0.125)
        self._matching = self._levels = None

    def _release(self, slots: np.ndarray, changed: np.ndarray) -> None:
        """Delete expressions, and remove nodes that wait for it."""
        memory, done = self._memory, 0
        scratch, settings = memory.scratch(), self.config.for_kernels()
        while True:
            done, status = delete_batch(slots, done, memory.layout, scratch, settings, changed)
            if status == DONE:
                return
            memory.make_words()

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def _stepper(self, events: EventBatch) -> Step:
        if self.config.matching != ON_DEMAND:
            return self._level_stepper(events)
        board, stabbing, table, x = self._board, self._stabbing, self._table, self._memory.layout
        scratch = stabbing.scratch_for(events)
        if self._matching is None:
            self._matching = new_matching(x)
        matching = self._matching

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_batch(
                x, matching, stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _level_stepper(self, events: EventBatch) -> Step:
        board, stabbing, table, x = self._board, self._stabbing, self._table, self._memory.layout
        scratch = stabbing.scratch_for(events)
        if self._levels is None:
            self._levels = new_levels(x, table)
        levels, suppress = self._levels, int(self.config.matching == ZERO_SUPPRESSION)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_levels(
                x, levels, suppress,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    # ── looking at it ───────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        return {
            **self._memory.stats(),
            "sharing": sharing_by_level(self._memory.layout),
            **self._stabbing.stats(),
            "bytes": self._memory.nbytes + self._stabbing.nbytes,
        }

    def draw(self, style: str = "text") -> str:
        """The graph as text, or with style "dot" for Graphviz."""
        names = self._table.predicates
        return (draw_dot if style == "dot" else draw_text)(self._memory.layout, names)

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**self._memory.arrays(), **self._stabbing.layout()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._memory.take(layout)
        self._stabbing.take(layout)

    def _thaw(self) -> None:
        self._memory.thaw()
        self._stabbing.thaw()
