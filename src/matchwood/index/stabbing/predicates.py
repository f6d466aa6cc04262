"""Stabbing: all predicates that an event satisfies, without touching the others.

Idea.    The ends of an attribute's predicates cut its keys into elementary segments.  Over them
         stands a segment tree: a predicate is put on the few nodes that make up its intervals, and
         a key satisfies exactly the predicates on the way from its segment to the root.
Source.  Segment trees (Bentley 1977), bottom-up over any number of leaves.  The predicate phase of
         SIFT (Yan and Garcia-Molina 1999) and of Propagation (Fabret et al. 2001).
Differs. Those keep a hash table for equality and trees for the other operators, or list a range
         under each of its values; key sets need one structure, whose size does not depend on
         cardinality.  A set of several intervals is put once for each.
Cost.    A key costs O(log cuts + predicates found); an interval-valued entry visits the nodes above
         its segments and finds no predicate twice.  A predicate whose ends are cuts already enters
         and leaves in O(log cuts).  One with a new end waits in a list of its attribute, tested one
         by one, until an eighth of all wait: then cuts and tree are made anew.
         32 bytes a cut, 8 a predicate id, 4 for every node a predicate is on (2 log cuts at most).

Layout   (P predicate ids, A attributes; an attribute with n cuts from `base` has the nodes
         2 base + 1 .. 2 base + 2n - 1, its segment i is the leaf 2 base + n + i)
         segments                    see segment_kernels
         lists                       see id_lists: the predicates on each node
         uses         int32[P]       expressions that use a predicate; 0: not held
         pending_head int32[A]       first predicate of an attribute that waits, LAST when none
         pending_next int32[P]       the next one, LAST, or NOT_PENDING
         count        int64[2]       N_HELD, N_PENDING
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.scratch import Part
from matchwood.index.stabbing.predicate_kernels import (
    LAST,
    N_HELD,
    N_PENDING,
    NOT_PENDING,
    Finder,
    Scratch,
    Stabbing,
    count_on_nodes,
    drop_each,
    hold_each,
    put_all,
)
from matchwood.index.stabbing.segments import no_segments, segments_of
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.id_lists import IdListStore
from matchwood.kernel.owner import Owner

PENDING_SHARE, MOST_PENDING = 8, 64
"""The tree is made anew when more than MOST_PENDING and one in PENDING_SHARE predicates wait."""


class StabbingTree(Owner):
    """Owns the arrays."""

    OWNED: ClassVar = {
        "arrays": "stabbing_",
        "segments": "stabbing_",
        "on_node": "stabbing_node_",
    }
    REPLACED: ClassVar = ("segments",)

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.segments = no_segments()
        self.on_node = IdListStore()
        self._n_in_tree = 0  # when it was made
        self.arrays = Stabbing(
            uses=np.zeros(16, np.int32),
            pending_head=np.full(16, LAST, np.int32),
            pending_next=np.full(16, NOT_PENDING, np.int32),
            count=np.zeros(2, np.int64),
        )

    def __len__(self) -> int:
        return int(self.arrays.count[N_HELD])

    def finder(self, predicates: Any, found: Scratch) -> Finder:
        """What a kernel needs to find predicates, of a table with this layout."""
        return Finder(self.arrays, self.segments, self.on_node.lists, predicates, found)

    def make_ids(self, table: ExpressionTable) -> None:
        """Make the arrays long enough for every predicate and attribute of the table."""
        x = self.arrays
        ids = doubled(len(x.uses), len(table.predicates.layout.attr))
        attributes = doubled(len(x.pending_head), table.n_attributes)
        self.arrays = x._replace(
            uses=grown(x.uses, ids),
            pending_next=grown(x.pending_next, ids, NOT_PENDING),
            pending_head=grown(x.pending_head, attributes, LAST),
        )

    def build(self, table: ExpressionTable, uses: np.ndarray) -> None:
        """Hold the predicates that are used so often (by id)."""
        self.clear()
        if not uses.any():
            return
        self.make_ids(table)
        self.arrays.uses[: len(uses)] = uses
        self.arrays.count[N_HELD] = int((uses > 0).sum())
        self._make_tree(table)

    def hold_all(self, table: ExpressionTable, preds: np.ndarray) -> None:
        """Hold predicates that are not held yet, for one use each."""
        self.make_ids(table)
        done = 0
        while True:
            done = hold_each(
                self.arrays, self.segments, self.on_node.lists, table.predicates.layout, preds, done
            )
            if done == len(preds):
                return
            self.on_node.grow()

    def drop_all(self, table: ExpressionTable, preds: np.ndarray) -> None:
        """Count one use less of each predicate."""
        drop_each(self.arrays, self.segments, self.on_node.lists, table.predicates.layout, preds)

    def settle(self, table: ExpressionTable) -> None:
        """After changes: make the tree anew when too many wait or have left."""
        n_pending = int(self.arrays.count[N_PENDING])
        is_hollow = 4 * len(self) < self._n_in_tree
        if n_pending > max(MOST_PENDING, len(self) // PENDING_SHARE) or is_hollow:
            self._make_tree(table)
        self.on_node.trim()

    def scratch_in(self, part: Part, events: EventBatch) -> Scratch:
        """What a search for these events writes to; it stays in the part of a scratch."""
        x: Scratch = part.stabbing or Scratch(
            np.empty(64, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64)
        )
        if len(x.found) < len(self):
            x = x._replace(found=np.empty(doubled(len(x.found), len(self)), np.int32))
        if not events.are_values and len(x.seen) < len(self.arrays.uses):
            x = x._replace(seen=np.zeros(len(self.arrays.uses), np.int64))
        part.stabbing = x
        return x

    def _make_tree(self, table: ExpressionTable) -> None:
        p = table.predicates.layout
        held = np.flatnonzero(self.arrays.uses > 0).astype(np.int32)
        self._n_in_tree = len(held)
        self.segments = segments_of(p, held)
        n_on_node = np.zeros(2 * len(self.segments.cut), np.int64)
        count_on_nodes(self.segments, p, held, n_on_node)
        self.on_node = IdListStore(len(n_on_node))
        self.on_node.reserve(n_on_node)
        put_all(self.segments, self.on_node.lists, p, held)
        self.arrays.pending_head[:] = LAST
        self.arrays.pending_next[:] = NOT_PENDING
        self.arrays.count[N_PENDING] = 0

    def stats(self) -> dict[str, Any]:
        return {
            "predicates": len(self),
            "segments": len(self.segments.cut),
            "pending_predicates": int(self.arrays.count[N_PENDING]),
        }

    def take(self, layout: Mapping[str, np.ndarray], prefix: str = "") -> None:
        super().take(layout, prefix)
        self._n_in_tree = len(self)
