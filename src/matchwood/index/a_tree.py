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
         with the fewest and of those with few.  The predicate phase is `stabbing`, the segment tree
         that section 5 names first; a PS-Tree for every attribute can be had (`predicates`).  See
         docs/decisions/0011 and 0018.
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
         table     int32[2^k]   inner nodes by ID, open addressing, at most three quarters full; of
                                a snapshot it is made at the first change
         word      int32[]      blocks of parents, children and slots
         free      int32[128]   first free block of each size class
         count     int64[9]     HIGH, NEXT_FREE, N_NODES, N_LEAVES, TOP, FREED, MAX_LEVEL, HAS_TOPS,
                                SEED
         hull      int64[A, 2]  outermost constants of an attribute, for rarity
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.a_tree_check import check_a_tree, check_stabbing
from matchwood.index.a_tree_config import ON_DEMAND, PS_TREE, ZERO_SUPPRESSION, ATreeConfig
from matchwood.index.a_tree_delete_kernels import delete_batch
from matchwood.index.a_tree_draw import draw_dot, draw_text, sharing_by_level
from matchwood.index.a_tree_insert_kernels import DONE, NODES_FULL, TABLE_FULL, insert_batch
from matchwood.index.a_tree_level_kernels import Levels, match_levels
from matchwood.index.a_tree_match_kernels import Matching, match_batch, match_found
from matchwood.index.a_tree_memory import ATreeMemory, new_levels, new_matching
from matchwood.index.a_tree_node_kernels import CHANGED, WAITING
from matchwood.index.config import IndexConfig
from matchwood.index.frame import IndexFrame, Step, check_live
from matchwood.index.protocol import ANY
from matchwood.index.ps_trees import PSTrees
from matchwood.index.stabbing import StabbingTree

MANY, SHARE = 1024, 8
"""A batch of at least MANY expressions, and one for each SHARE held, is followed by `rebalance`."""

EVENTS_AT_ONCE = 256
"""Events whose predicates are found before any is matched, with `predicates="ps_tree"`."""


class ATree(IndexFrame):
    """Owns the graph and the predicate index below it."""

    name: ClassVar[str] = "a_tree"
    language: ClassVar[str] = ANY
    is_kept: ClassVar[bool] = True
    Config: ClassVar[type[IndexConfig]] = ATreeConfig

    def _clear(self) -> None:
        self._memory = ATreeMemory()
        self._found_by: StabbingTree | PSTrees
        self._found_by = PSTrees() if self.config.predicates == PS_TREE else StabbingTree()
        self._matching: Matching | None = None
        self._levels: Levels | None = None

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        """Short expressions first: the long ones then find them to build on."""
        sizes = self._table.layout.size[slots]
        self._insert(slots[np.argsort(sizes, kind="stable")])
        self._memory.renumber(self._table, self.config.for_kernels())
        self._found_by.build(self._table, self._uses())

    def _uses(self) -> np.ndarray:
        """By predicate: 1 for those that are leaves."""
        return (self._memory.layout.leaf_of >= 0).astype(np.int32)

    def _add(self, slots: np.ndarray) -> None:
        changed = self._insert(slots)
        self._found_by.hold_all(self._table, changed)
        self._found_by.settle(self._table)
        if len(slots) >= max(MANY, self._n_live // SHARE):
            self.rebalance()

    def rebalance(self) -> None:
        """Number nodes anew, so that those which become true together are neighbours again.

        Takes about a sixth of the time that building takes.  A large batch does it by itself;
        after many small ones matching takes three quarters of the time.
        """
        if not self._memory.n_leaves:
            return
        self._thaw()
        self._memory.renumber(self._table, self.config.for_kernels(), slack=0.125)
        self._matching = self._levels = None

    def _insert(self, slots: np.ndarray) -> np.ndarray:
        """Take expressions in; returns the predicates that are new."""
        table, memory, settings = self._table, self._memory, self.config.for_kernels()
        memory.make_plain()
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
        memory.make_plain()
        scratch = memory.scratch()
        changed = np.empty(int(memory.n_leaves), np.int32)
        scratch.used[CHANGED] = 0
        self._release(slots, changed)
        self._found_by.drop_all(self._table, changed[: scratch.used[CHANGED]])
        self._found_by.settle(self._table)
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
        board, stabbing, table, x = self._board, self._found_by, self._table, self._memory.layout
        if self._matching is None:
            self._matching = new_matching(x)
        matching = self._matching
        if isinstance(stabbing, PSTrees):
            return self._found_stepper(events, stabbing, matching)
        scratch = stabbing.scratch_for(events)

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

    def _found_stepper(self, events: EventBatch, trees: PSTrees, matching: Matching) -> Step:
        x = self._memory.layout

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            while first < events.n_events:
                last = min(first + EVENTS_AT_ONCE, events.n_events)
                starts, found = trees.find(events, first, last)
                done: int = match_found(x, matching, starts, found, first, offsets, out, counters)
                if done < last:
                    return done
                first = last
            return first

        return step

    def _level_stepper(self, events: EventBatch) -> Step:
        board, stabbing, table, x = self._board, self._found_by, self._table, self._memory.layout
        assert isinstance(stabbing, StabbingTree)
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
            **self._found_by.stats(),
            "bytes": self._memory.nbytes + self._found_by.nbytes,
        }

    def draw(self, style: str = "text") -> str:
        """The graph as text, or with style "dot" for Graphviz."""
        names = self._table.predicates
        return (draw_dot if style == "dot" else draw_text)(self._memory.layout, names)

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**self._memory.arrays(), **self._found_by.layout()}

    @classmethod
    def check(
        cls,
        table: ExpressionTable,
        slots: np.ndarray,
        layout: Mapping[str, np.ndarray],
        **config: Any,
    ) -> None:
        check_live(layout, slots)
        is_leaf = check_a_tree(table, slots, layout)
        if ATreeConfig.checked(cls.name, config).predicates != PS_TREE:
            check_stabbing(table, is_leaf, layout)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._memory.take(layout)
        if isinstance(self._found_by, PSTrees):
            self._found_by.build(self._table, self._uses())
        else:
            self._found_by.take(layout)

    def _thaw(self) -> None:
        self._memory.thaw()
        self._found_by.thaw()
