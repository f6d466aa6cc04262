"""Gryphon: the parallel search tree, in which expressions that begin alike share a path.

Idea.    Put all attributes in one fixed order.  From the root down every node tests the next
         attribute: an edge for each value or range that some expression asks for, and an edge *
         for expressions that do not care.  An event follows all edges that it satisfies, many at
         once; what it finds at the end of a path holds.
Source.  Aguilera et al., PODC 1999: the tree (section 2), equality tests by hashing and general
         tests one by one, trivial test elimination and factoring (section 4,
         `gryphon_factoring.py`); run as in section 7.2 (4) of the BE-Tree paper.
Differs. Chains of * edges are folded into one node: its edges are grouped by attribute, and the
         event looks up only attributes it has; so there is no * edge whose traversal could be
         delayed (delayed branching, section 4).  Edges carry key sets, so one tree is both the
         specialised and the generic algorithm.  A path ends in a leaf as soon as at most
         `leaf_capacity` expressions are left, whose other predicates are tested there (`postings`,
         as in all indexes); 0 builds the paper's full tree.  Built again after changes, level by
         level (there: subscriptions enter and leave one by one, along their paths).
Cost.    Match O(paths that hold + generic edges of their nodes).  Memory 24 bytes a node, 20 a
         group, 24 an edge, 24 to 48 for the hash of a value edge; 8 an expression and 16 for each
         of its predicates below its leaf.

Layout   (V nodes, G groups, E edges)
         first    int64[V+1]   groups of node v: first[v] .. first[v + 1] - 1
         attr     int32[G]     the attribute of a group
         start    int64[2G+1]  edges of list i: start[i] .. start[i + 1] - 1; a group has two lists,
                               2g + EQUALITY and 2g + GENERIC, of equalities and of all others
         lo, hi   int64[E]     first and last key of an edge
         ref      int32[E]     its predicate (see verify_kernels)
         child    int32[E]     the node below
         factoring             the root for an event's values of the factored attributes
         pairs                 (node, equality) -> child; (node, attribute) -> group, for nodes of
                               more than NEARBY groups
         postings lists[V]     expressions that end at a node, and their predicates left

             root ─┬─ a = 1 ─┬─ b in 2..9 ── {s1, s4}
                   │         └─ d = 7     ── {s2}
                   └─ c = 5  ── {s3}              an event without `a` looks up b, c, d here
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.gryphon_factoring import Places, factored
from matchwood.index.baselines.gryphon_kernels import (
    EQUALITY,
    GENERIC,
    IS_GROUP,
    NEARBY,
    ROOT,
    Factoring,
    Leaves,
    Tree,
    arrange,
    fill_leaves,
)
from matchwood.index.baselines.gryphon_match_kernels import View, Walk, search_batch
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Part, Scratch, n_attributes_of
from matchwood.index.core.static import StaticFrame
from matchwood.kernel.arrays import bytes_of, doubled, grown, offsets_of
from matchwood.kernel.pair_map_kernels import PairMap, new_pair_map, put_pairs
from matchwood.kernel.posting_kernels import N, PostingLayout
from matchwood.kernel.postings import closed_up, new_postings, with_attributes, with_words


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    leaf_capacity   expressions a leaf holds before it is split; raising it saves nodes and costs
                    tests, 0 tests every predicate on an edge
    factor          attributes to factor out, at most; each saves the tests of a level and copies
                    expressions that do not test it
    copies          positions of an expression, on average, up to which attributes are factored out
    """

    leaf_capacity: int = 32
    factor: int = 0
    copies: int = 8

    def __post_init__(self) -> None:
        self._expect_integer("leaf_capacity", least=0)
        self._expect_integer("factor", least=0)
        self._expect_integer("copies", least=1)


class Paths(NamedTuple):
    """Where each expression ends, and the nodes that lead there."""

    node: np.ndarray  # int64, by position of an expression
    depth: np.ndarray  # int32, by position: predicates on the way
    parent: np.ndarray  # int64, by node but the roots
    pred: np.ndarray  # int64, by node but the roots: the predicate of the edge from there
    n_roots: int


class Built(NamedTuple):
    """See the module's docstring."""

    tree: Tree
    factoring: Factoring
    pairs: PairMap
    postings: PostingLayout
    n_attributes: int


class Gryphon(StaticFrame[Built]):
    """Owns the tree."""

    name: ClassVar[str] = "gryphon"
    Config = Config

    def new_part(self) -> Part:
        part = Part()
        part.arrays = np.full(64, -1, np.int64)
        return part

    def _build(self, slots: np.ndarray) -> Built:
        self._table.predicates.make_findable()  # equalities are looked up in its hash table
        x, p = self._table.layout, self._table.predicates.layout
        code = self._table.codes_of(slots)
        uses = np.bincount(p.attr[code])
        rank = np.empty(len(uses), np.int64)
        by_use = np.argsort(-uses, kind="stable")
        rank[by_use] = np.arange(len(uses))
        start = offsets_of(x.size[slots])
        order = np.empty(len(code), np.int32)
        arrange(rank, x, p, slots, start, order)
        first = by_use[: self.config.factor]
        factoring, places = factored(
            self._table.predicates, start, order, first, self.config.copies
        )
        paths = self._paths(places, start, order)
        tree, pairs = self._tree(paths)
        postings = with_attributes(new_postings(len(tree.first) - 1), len(uses))
        rows, skip, done = np.argsort(paths.node, kind="stable"), np.zeros(len(uses), np.int8), 0
        leaves = Leaves(slots[places.row], paths.node, paths.depth, start[places.row], order)
        while done < len(rows):
            postings = with_words(postings, len(postings.lists))
            done = fill_leaves(postings, x, p, leaves, rows, done, skip, uses)
        postings = closed_up(postings, len(postings.lists))
        return Built(tree, factoring, pairs, postings, int((uses > 0).sum()))

    def _paths(self, places: Places, start: np.ndarray, order: np.ndarray) -> Paths:
        """Level by level: where more than `leaf_capacity` are, those that can go on do."""
        first, size = start[places.row], np.diff(start)[places.row]
        node, depth = places.root.copy(), places.depth.copy()
        parent, pred = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        here, begin, n_nodes = np.arange(len(node)), ROOT, places.n_roots
        while len(here):
            is_full = np.bincount(node[here] - begin) > self.config.leaf_capacity
            here = here[is_full[node[here] - begin] & (size[here] > depth[here])]
            edges = node[here] << 32 | order[first[here] + depth[here]]
            found, which = np.unique(edges, return_inverse=True)
            parent.append(found >> 32)
            pred.append(found & 0xFFFFFFFF)
            node[here] = n_nodes + which
            depth[here] += 1
            begin, n_nodes = n_nodes, n_nodes + len(found)
        return Paths(node, depth, np.concatenate(parent), np.concatenate(pred), places.n_roots)

    def _tree(self, paths: Paths) -> tuple[Tree, PairMap]:
        p = self._table.predicates.layout
        attr = p.attr[paths.pred]
        kind = np.where(p.lo[paths.pred] == p.hi[paths.pred], EQUALITY, GENERIC)
        edge = np.lexsort((kind, attr, paths.parent))
        pred, child = paths.pred[edge], edge + paths.n_roots
        groups, group = np.unique(paths.parent[edge] << 32 | attr[edge], return_inverse=True)
        of_node, of_attr = groups >> 32, groups & 0xFFFFFFFF
        n_groups = np.bincount(of_node, minlength=len(edge) + paths.n_roots)
        sizes = np.bincount(2 * group + kind[edge], minlength=2 * len(groups))
        tree = Tree(
            first=offsets_of(n_groups),
            attr=of_attr.astype(np.int32),
            start=offsets_of(sizes),
            lo=p.lo[pred],
            hi=p.hi[pred],
            ref=np.where(p.n_intervals[pred] == 1, pred, ~pred).astype(np.int32),
            child=child.astype(np.int32),
        )
        equal, many = kind[edge] == EQUALITY, np.flatnonzero(n_groups[of_node] > NEARBY)
        pairs = new_pair_map(int(equal.sum()) + len(many))
        put_pairs(pairs, paths.parent[edge][equal] << 32 | pred[equal], child[equal])
        put_pairs(pairs, of_node[many] << 32 | IS_GROUP | of_attr[many], many)
        return tree, pairs

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        table, x, part = self._table, self._built, scratch.of(self)
        width = max(table.n_attributes, n_attributes_of(events))
        posted = part.arrays = grown(part.arrays, doubled(len(part.arrays), width), -1)
        stack = np.empty(len(x.tree.first), np.int32)
        equality = np.empty(int(np.diff(events.start).max(initial=0)), np.int64)
        view = View(x.tree, x.factoring, x.pairs, x.postings, table.layout, table.predicates.layout)
        return scratch.step(search_batch, events, view, Walk(posted, stack, equality))

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "nodes": len(x.tree.first) - 1,
            "edges": len(x.tree.child),
            "attributes": x.n_attributes,
            "factored": len(x.factoring.attr),
            "roots": int(x.factoring.root.max()) + 1,
            "bytes": bytes_of(x.tree, x.factoring, x.pairs, x.postings),
        }

    def draw(self) -> str:
        """The tree from the root down, its first 40 edges."""
        self.settle()
        n_nodes = len(self._built.tree.first) - 1
        lines = [f"gryphon: {self._n_live} conjunctions, {n_nodes} nodes"]
        self._draw(ROOT, "", lines)
        return "\n".join(lines)

    def _draw(self, node: int, indent: str, lines: list[str]) -> None:
        tree, predicates = self._built.tree, self._table.predicates
        if count := int(self._built.postings.lists[node, N]):
            lines.append(f"{indent}({count} conjunctions)")
        edges = tree.start[2 * tree.first[node]], tree.start[2 * tree.first[node + 1]]
        for at in range(*edges):
            if len(lines) > 40:
                return
            ref = int(tree.ref[at])
            pred = ref if ref >= 0 else ~ref
            keys, attr = predicates.intervals(pred)[:3], predicates.layout.attr[pred]
            lines.append(f"{indent}├── attribute {attr} in {keys}")
            self._draw(int(tree.child[at]), indent + "│   ", lines)
