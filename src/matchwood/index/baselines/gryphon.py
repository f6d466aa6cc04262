"""Gryphon: the parallel search tree, in which expressions that begin alike share a path.

Idea.    Put all attributes in one fixed order.  From the root down every node tests the next
         attribute: an edge for each value or range that some expression asks for, and an edge *
         for expressions that do not care.  An event follows all edges that it satisfies, many at
         once; what it finds at the end of a path holds.
Source.  Aguilera et al., PODC 1999: the tree (section 2), equality tests by hashing and general
         tests one by one, trivial test elimination (section 4); run as in section 7.2 (4) of the
         BE-Tree paper.
Differs. Chains of * edges are folded into one node: its edges are grouped by attribute, and the
         event looks up only attributes it has.  Edges carry key sets, so one tree is both the
         specialised and the generic algorithm.  A path ends in a leaf as soon as at most
         `leaf_capacity` expressions are left, whose other predicates are tested there (`postings`,
         as in all indexes); 0 builds the paper's full tree.  Dynamic: a leaf that overflows is
         split, a node that becomes empty goes.  Attributes that come later follow in the order.
Cost.    Match O(paths that hold + generic edges of their nodes).  Insert and delete O(predicates).
         Memory 36 bytes a node, 54 a group, 24 to 36 an edge, 24 to 48 for its place in the hash
         table; 8 an expression and 16 for each of its predicates below its leaf.

Layout   (V nodes, G groups, A attributes)
         node     int32[V,5]  PARENT, PRED, GROUPS, N_GROUPS, IS_OPEN
         group    int32[G,3]  OF_NODE, ATTR, NEXT
         edges    blocks[2G]  see id_lists; EDGE words each: keys, ref, child; a group has two
                              lists, of equalities and of all others
         pairs                (node, predicate) -> child, (node, attribute) -> group
         postings lists[V]    expressions that end at a node, and their predicates left
         rank     int32[A]    place of an attribute in the order, UNRANKED
         rarity   int64[A]    predicates on it, for the order of tests in a leaf
         count    int64[7]    NODE_HIGH, NODE_FREE, GROUP_HIGH, GROUP_FREE, LONGEST, WIDEST and
                              TO_SPLIT

             root ─┬─ a = 1 ─┬─ b in 2..9 ── {s1, s4}
                   │         └─ d = 7     ── {s2}
                   └─ c = 5  ── {s3}              an event without `a` looks up b, c, d here
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.gryphon_kernels import (
    EDGE,
    GROUP_HIGH,
    GROUPS,
    LONGEST,
    NODE_HIGH,
    NONE,
    ROOT,
    WIDEST,
    Tree,
    delete_slots,
    insert_slots,
)
from matchwood.index.baselines.gryphon_match_kernels import search_batch
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.kernel.arrays import doubled, grown, named, slices, taken, writable
from matchwood.kernel.id_lists import IdListStore
from matchwood.kernel.pair_map_kernels import PairMap, move_pairs, new_pair_map
from matchwood.kernel.posting_kernels import FREED, N, PostingLayout
from matchwood.kernel.posting_kernels import TOP as TOP_WORD
from matchwood.kernel.postings import closed_up, nbytes, new_postings, with_attributes, with_words

UNRANKED = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    leaf_capacity   expressions a leaf holds before it is split; raising it saves nodes and costs
                    tests, 0 tests every predicate on an edge
    rare_first      order attributes with the rarest first: fewer paths hold, but fewer expressions
                    share one; the paper puts those first that most expressions test
    """

    leaf_capacity: int = 32
    rare_first: bool = False

    def __post_init__(self) -> None:
        self._expect_integer("leaf_capacity", least=0)
        self._expect_flag("rare_first")


class Gryphon(IndexFrame):
    """Owns the tree."""

    name: ClassVar[str] = "gryphon"
    Config = Config

    def _clear(self) -> None:
        self._tree = Tree(
            node=np.array([[NONE, NONE, NONE, 0, 0]] * 4, np.int32),
            group=np.zeros((4, 3), np.int32),
            rank=np.full(4, UNRANKED, np.int32),
            rarity=np.zeros(4, np.int64),
            count=np.array([ROOT + 1, NONE, 0, NONE, 0, 0, NONE], np.int64),
        )
        self._edges = IdListStore(8)
        self._pairs = new_pair_map()
        self._postings = new_postings()
        self._n_ranked = 0
        self._posted = np.full(64, -1, np.int64)

    def _add(self, slots: np.ndarray) -> None:
        self._rank(slots)
        longest = int(self._table.layout.size[slots].max())
        self._tree.count[LONGEST] = max(int(self._tree.count[LONGEST]), longest)
        skip = np.zeros(len(self._tree.rank), np.int8)
        order = np.empty(int(self._tree.count[LONGEST]), np.int32)
        done, is_done = 0, False
        while not is_done:
            done, is_done = insert_slots(
                self._tree, self._edges.lists, self._pairs, self._postings,
                self._table.layout, self._table.predicates.layout, slots, done,
                self.config.leaf_capacity, skip, order,
            )  # fmt: skip
            if not is_done and not self._grow():  # then it is a leaf that has no room
                self._postings = with_words(self._postings, int(self._tree.count[NODE_HIGH]))

    def _remove(self, slots: np.ndarray) -> None:
        order = np.empty(int(self._tree.count[LONGEST]), np.int32)
        delete_slots(
            self._tree, self._edges.lists, self._pairs, self._postings,
            self._table.layout, self._table.predicates.layout, slots, order,
        )  # fmt: skip
        self._edges.trim()
        if self._postings.count[FREED] * 2 > self._postings.count[TOP_WORD]:
            self._postings = closed_up(self._postings, int(self._tree.count[NODE_HIGH]))

    def _rank(self, slots: np.ndarray) -> None:
        """Give attributes that are new their places behind the others, by how many test them."""
        x, n = self._tree, doubled(len(self._tree.rank), self._table.n_attributes)
        rank, rarity = grown(x.rank, n, UNRANKED), grown(x.rarity, n)
        code = self._table.layout.code[
            slices(self._table.layout.start[slots], self._table.layout.size[slots])
        ]
        uses = np.bincount(self._table.predicates.layout.attr[code], minlength=n)
        rarity += uses
        new = np.flatnonzero((uses > 0) & (rank == UNRANKED))
        by_use = new[np.argsort(uses[new] if self.config.rare_first else -uses[new], kind="stable")]
        rank[by_use] = self._n_ranked + np.arange(len(by_use))
        self._n_ranked += len(by_use)
        self._tree = x._replace(rank=rank, rarity=rarity)
        self._postings = with_attributes(self._postings, n)

    def _grow(self) -> bool:
        """Whatever is short by the measure of `has_room` becomes larger; whether anything was."""
        x, most, before = self._tree, self.config.leaf_capacity + 2, self._nbytes
        if x.count[NODE_HIGH] + most > len(x.node):
            size = doubled(len(x.node), int(x.count[NODE_HIGH]) + 2 * most)
            x = x._replace(node=grown(x.node, size))
            self._postings = self._postings._replace(lists=grown(self._postings.lists, size))
        if x.count[GROUP_HIGH] + most > len(x.group):
            x = x._replace(
                group=grown(x.group, doubled(len(x.group), int(x.count[GROUP_HIGH]) + 2 * most))
            )
            self._edges.make_lists(2 * len(x.group))
        self._tree = x
        self._edges.make_room(2 * EDGE * (int(x.count[WIDEST]) + 4 * most))
        if 2 * (self._pairs.count[0] + 2 * most) > len(self._pairs.key):
            places = 2 * (int(self._pairs.count[0]) + 2 * most)
            fresh = new_pair_map(doubled(len(self._pairs.key), places))
            move_pairs(self._pairs, fresh)
            self._pairs = fresh
        words = most * (16 + 4 * int(x.count[LONGEST]))
        if self._postings.count[TOP_WORD] + words + words // 4 + 64 > len(self._postings.word):
            self._postings = with_words(self._postings, int(x.count[NODE_HIGH]))
        return self._nbytes > before

    def _stepper(self, events: EventBatch) -> Step:
        board, table = self._board, self._table
        table.predicates.make_findable()  # equalities are looked up in its hash table
        width = max(table.n_attributes, int(events.attr.max(initial=-1)) + 1)
        self._posted = grown(self._posted, doubled(len(self._posted), width), -1)
        stack = np.empty(int(self._tree.count[NODE_HIGH]) + 1, np.int32)
        equality = np.empty(int(np.diff(events.start).max(initial=0)), np.int64)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = search_batch(
                self._tree, self._edges.lists, self._pairs, self._postings, self._posted,
                table.layout, stack, equality, events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        return {
            "nodes": self._n_nodes,
            "edges": int(self._edges.n_ids),
            "attributes": self._n_ranked,
            "bytes": self._nbytes,
        }

    @property
    def _nbytes(self) -> int:
        own = sum(array.nbytes for array in (*self._tree, *self._pairs))
        return own + self._edges.nbytes + nbytes(self._postings)

    @property
    def _n_nodes(self) -> int:
        return self._edges.n_ids + 1

    def draw(self) -> str:
        """The tree from the root down, its first 40 edges."""
        lines = [f"gryphon: {self._n_live} conjunctions, {self._n_nodes} nodes"]
        self._draw(ROOT, "", lines)
        return "\n".join(lines)

    def _draw(self, node: int, indent: str, lines: list[str]) -> None:
        edges = self._edges.lists
        group = int(self._tree.node[node, GROUPS])
        if count := int(self._postings.lists[node, N]):
            lines.append(f"{indent}({count} conjunctions)")
        while group != NONE:
            for which in (2 * group, 2 * group + 1):
                start = int(edges.start[which])
                for at in range(start, start + EDGE * int(edges.size[which]), EDGE):
                    if len(lines) > 40:
                        return
                    ref, child = int(edges.item[at + 4]), int(edges.item[at + 5])
                    pred = ref if ref >= 0 else ~ref
                    keys = self._table.predicates.intervals(pred)[:3]
                    attr = self._table.predicates.layout.attr[pred]
                    lines.append(f"{indent}├── attribute {attr} in {keys}")
                    self._draw(child, indent + "│   ", lines)
            group = int(self._tree.group[group, 2])

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "n_ranked": np.array([self._n_ranked], np.int64),
            **named(self._tree),
            **self._edges.layout("edge"),
            **named(self._pairs, "pair_"),
            **named(self._postings, "posting_"),
        }

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._n_ranked = int(layout["n_ranked"][0])
        self._tree = taken(Tree, layout)
        self._edges.take(layout, "edge")
        self._pairs = taken(PairMap, layout, "pair_")
        self._postings = taken(PostingLayout, layout, "posting_")

    def _thaw(self) -> None:
        self._tree = writable(self._tree)
        self._pairs = writable(self._pairs)
        self._postings = writable(self._postings)
        self._edges.thaw()
