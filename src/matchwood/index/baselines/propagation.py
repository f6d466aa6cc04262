"""Propagation: look only at expressions whose access predicate holds.

Idea.    Every expression hangs on one of its predicates, one that seldom holds.  An event satisfies
         a set of predicates, found once; the expressions that hang on them are the candidates.
         Their other predicates are looked up in a vector that says which ones are true.
Source.  Fabret et al., SIGMOD 2001: predicate phase and predicate bit vector (section 3), clusters
         by access predicate and size, stored by columns.  Run with one access predicate, the most
         selective, as in section 7.2 (5) of the BE-Tree paper.
Differs. Where an expression has no equality, its most selective other predicate is its access
         predicate (there: a list that every event tests), which costs nothing because all satisfied
         predicates are found anyway.  Selectivity is estimated from the subscriptions, when an
         expression is inserted: an attribute is present as often as they name it, and each segment
         of its keys is equally likely.  Clusters on several attributes and their reorganisation
         are left out, as there.  The bit vector has a byte per predicate.  Clusters are a store of
         their own, not `postings`, whose entries carry keys where these carry predicate ids.
Cost.    Match O(satisfied predicates + rows of their clusters), about one lookup a row.  Insert
         O(predicates log cuts); delete reads the slots of one cluster.  Memory 4 bytes a predicate
         of a row and 8 an expression, 29 a cluster, and the stabbing tree; a matcher 1 a predicate.

Layout   (P predicate ids, C clusters, S slots, A attributes)
         first     int32[P]   first cluster that hangs on a predicate, NONE
         next      int32[C]   the next one (or the next free id), NONE
         access    int32[C]   the predicate it hangs on
         width     int32[C]   predicates of its expressions
         rows      blocks[C]  see id_lists; `width` columns, each as long as the block allows:
                              other predicates, the least likely first, and then the slot
         home      int32[S]   cluster of an expression
         attr_uses int64[A]   predicates of expressions on an attribute
         count     int64[2]   HIGH, FREE
         stabbing             which predicates an event satisfies (see stabbing)
         truth     bool[P]    scratch: the predicate bit vector, all false between events
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.counting_kernels import count_uses
from matchwood.index.baselines.propagation_kernels import (
    CLUSTERS_FULL,
    NODES_FULL,
    NONE,
    Clusters,
    cluster_more,
    propagate_batch,
    uncluster,
)
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import doubled, grown, named, taken, writable
from matchwood.kernel.id_list_kernels import NO_BLOCK
from matchwood.kernel.id_lists import IdListStore


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    equality_first   take an equality as access predicate wherever there is one (the paper); without
                     it the most selective predicate of any kind, which wins where equalities are on
                     crowded attributes
    """

    equality_first: bool = True

    def __post_init__(self) -> None:
        self._expect_flag("equality_first")


class Propagation(IndexFrame):
    """Owns the clusters, the stabbing tree and the bit vector."""

    name: ClassVar[str] = "propagation"
    Config = Config

    def _clear(self) -> None:
        self._stabbing = StabbingTree()
        self._rows = IdListStore(16)
        self._clusters = Clusters(
            first=np.full(16, NONE, np.int32),
            next=np.full(16, NONE, np.int32),
            access=np.zeros(16, np.int32),
            width=np.zeros(16, np.int32),
            home=np.full(16, NONE, np.int32),
            attr_uses=np.zeros(16, np.int64),
            count=np.array([0, NONE], np.int64),
        )
        self._truth = np.zeros(16, np.bool_)

    def _fill(self, slots: np.ndarray) -> None:
        """All statistics are known before any choice is made."""
        self._make_ids(slots)
        p = self._table.predicates.layout
        uses = np.zeros(len(p.attr), np.int32)
        count_uses(self._table.layout, slots, uses)
        self._stabbing.build(self._table, uses)
        used = np.flatnonzero(uses)
        by_attr = np.bincount(p.attr[used], uses[used])
        self._clusters.attr_uses[: len(by_attr)] = by_attr
        self._put(slots, is_new=False)
        self._rows.trim(unused=0.3)

    def _add(self, slots: np.ndarray) -> None:
        self._make_ids(slots)
        self._put(slots, is_new=True)
        self._stabbing.settle(self._table)

    def _put(self, slots: np.ndarray, is_new: bool) -> None:
        stabbing, table = self._stabbing, self._table
        longest = int(table.layout.size[slots].max())
        order, odds = np.empty(longest, np.int32), np.empty(longest, np.float64)
        done = 0
        while done < len(slots):
            done, full = cluster_more(
                self._clusters, self._rows.lists, table.layout, table.predicates.layout,
                slots, done, is_new, self.config.equality_first, order, odds,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
            )  # fmt: skip
            if full == NODES_FULL:
                stabbing.on_node.grow()
            elif full == CLUSTERS_FULL:
                self._make_clusters(2 * len(self._clusters.next))
            elif full:
                self._rows.grow(longest * 2)

    def _remove(self, slots: np.ndarray) -> None:
        stabbing = self._stabbing
        uncluster(
            self._clusters, self._rows.lists, self._table.layout, self._table.predicates.layout,
            slots, stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
        )  # fmt: skip
        stabbing.settle(self._table)
        self._rows.trim()

    def _stepper(self, events: EventBatch) -> Step:
        board, stabbing, table = self._board, self._stabbing, self._table
        scratch = stabbing.scratch_for(events)
        if len(self._truth) < len(self._clusters.first):
            self._truth = np.zeros(len(self._clusters.first), np.bool_)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = propagate_batch(
                self._clusters, self._rows.lists, self._truth,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        own = sum(array.nbytes for array in self._clusters)
        return {
            "clusters": self._n_clusters,
            "access_predicates": int((self._clusters.first != NONE).sum()),
            **self._stabbing.stats(),
            "bytes": own + self._rows.nbytes + self._stabbing.nbytes,
        }

    def draw(self) -> str:
        rows, x = self._rows.lists, self._clusters
        used = np.flatnonzero(rows.room != NO_BLOCK)
        lines = [f"propagation: {self._n_live} conjunctions in {self._n_clusters} clusters"]
        for which in used[np.argsort(-rows.size[used], kind="stable")[:10]].tolist():
            pred = int(x.access[which])
            attr = int(self._table.predicates.layout.attr[pred])
            lines.append(
                f"├── attribute {attr} in {self._table.predicates.intervals(pred)[:3]}: "
                f"{rows.size[which]} conjunctions of {x.width[which]}"
            )
        return "\n".join([*lines, f"└── the ten largest of {len(used)}"])

    def _arrays(self) -> dict[str, np.ndarray]:
        clusters = named(self._clusters, "cluster_")
        return {**clusters, **self._rows.layout("row"), **self._stabbing.layout()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._clusters = taken(Clusters, layout, "cluster_")
        self._rows.take(layout, "row")
        self._stabbing.take(layout)

    @property
    def _n_clusters(self) -> int:
        return int((self._rows.lists.room != NO_BLOCK).sum())

    def _make_clusters(self, n: int) -> None:
        x = self._clusters
        self._rows.make_lists(n)
        n = len(self._rows.lists.size)
        self._clusters = x._replace(
            next=grown(x.next, n), access=grown(x.access, n), width=grown(x.width, n)
        )

    def _make_ids(self, slots: np.ndarray) -> None:
        x, table = self._clusters, self._table
        self._stabbing.make_ids(table)
        self._clusters = x._replace(
            first=grown(x.first, len(self._stabbing.arrays.uses), NONE),
            home=grown(x.home, doubled(len(x.home), int(slots.max()) + 1), NONE),
            attr_uses=grown(x.attr_uses, doubled(len(x.attr_uses), table.n_attributes)),
        )

    def _thaw(self) -> None:
        self._clusters = writable(self._clusters)
        self._rows.thaw()
        self._stabbing.thaw()
