"""Propagation: look only at expressions whose access predicate holds.

Idea.    Every expression hangs on one of its predicates, one that seldom holds.  An event satisfies
         a set of predicates, found once; the expressions that hang on them are the candidates.
         Their other predicates are looked up in a vector that says which ones are true.
Source.  Fabret et al., SIGMOD 2001: predicate phase and predicate bit vector (section 3), clusters
         by access predicate and size, stored by columns.  Run with one access predicate, the most
         selective, as in section 7.2 (5) of the BE-Tree paper.
Differs. Where an expression has no equality, its most selective other predicate is its access
         predicate (there: a list that every event tests), which costs nothing because all satisfied
         predicates are found anyway.  Selectivity is estimated from the subscriptions: an attribute
         is present as often as they name it, and each segment of its keys is equally likely.
         Clusters on several attributes are left out, as there.  Built again after changes (there:
         inserted in place, and reorganised as statistics change).  The bit vector has a byte per
         predicate, and only what an event has set is set back (`full_reset`: all of it, as there).
         Clusters are lists of their own, not `postings`, whose entries carry keys where
         these carry predicate ids.
Cost.    Match O(satisfied predicates + rows of their clusters), about one lookup a row.  Memory 4
         bytes a predicate of a row, 20 a cluster, 4 a predicate, and the stabbing tree; a matcher 1
         a predicate.

Layout   (P predicate ids, C clusters, M cells)
         first     int32[P+1]  clusters that hang on predicate p: first[p] .. first[p + 1] - 1
         access    int32[C]    the predicate it hangs on, ascending
         width     int32[C]    predicates of its expressions
         size      int32[C]    rows
         start     int64[C]    where its `width` columns of `size` cells begin in item
         item      int32[M]    other predicates, the least likely first, and then the slot
         stabbing              which predicates an event satisfies (see stabbing)
         truth     bool[P]     scratch: the predicate bit vector, all false between events
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.list_kernels import Lists
from matchwood.index.baselines.predicate_frame import PredicateFrame
from matchwood.index.baselines.propagation_kernels import (
    Clusters,
    arrange,
    fill_rows,
    propagate_batch,
)
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import bytes_of, offsets_of


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    full_reset   set the whole bit vector back after each event, as in the paper; without it only
                 what the event has set.  For comparison: it costs a byte a predicate
    """

    full_reset: bool = False

    def __post_init__(self) -> None:
        self._expect_flag("full_reset")


class Clustered(NamedTuple):
    """What is built; see the module's docstring."""

    clusters: Clusters
    stabbing: StabbingTree


class Propagation(PredicateFrame[Clustered]):
    """Owns the clusters, the stabbing tree and the bit vector."""

    name: ClassVar[str] = "propagation"
    Config = Config

    def _build(self, slots: np.ndarray) -> Clustered:
        x, p = self._table.layout, self._table.predicates.layout
        uses = uses_of(self._table, slots)
        stabbing = self._stabbing(uses)
        used = np.flatnonzero(uses)
        by_attr = np.bincount(p.attr[used], uses[used], minlength=self._table.n_attributes)
        width = x.size[slots]
        start = offsets_of(width)
        order = np.empty(int(start[-1]), np.int32)
        odds = np.empty(int(width.max(initial=0)), np.float64)
        arrange(by_attr, stabbing.segments, x, p, slots, Lists(start, order), odds)
        keys = order[start[:-1]].astype(np.int64) << 32 | width
        rows = np.argsort(keys, kind="stable")
        found, size = np.unique(keys[rows], return_counts=True)
        cells = offsets_of(size * (found & 0xFFFFFFFF))
        access, n_predicates = found >> 32, len(np.trim_zeros(uses, "b"))
        clusters = Clusters(
            first=np.searchsorted(access, np.arange(n_predicates + 1)).astype(np.int32),
            access=access.astype(np.int32),
            width=(found & 0xFFFFFFFF).astype(np.int32),
            size=size.astype(np.int32),
            start=cells[:-1],
            item=np.empty(int(cells[-1]), np.int32),
        )
        fill_rows(clusters, slots, rows, start, order)
        return Clustered(clusters, stabbing)

    def _new_arrays(self) -> np.ndarray:
        return np.zeros(len(self._built.clusters.first) - 1, np.bool_)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        x, truth = self._built, self._arrays_in(scratch)
        arguments = x.clusters, truth, self.config.full_reset
        return self._step(propagate_batch, events, scratch, x.stabbing, *arguments)

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "clusters": len(x.clusters.size),
            "access_predicates": len(np.unique(x.clusters.access)),
            **x.stabbing.stats(),
            "bytes": bytes_of(x.clusters) + x.stabbing.nbytes,
        }

    def draw(self) -> str:
        self.settle()
        x, n = self._built.clusters, len(self._built.clusters.size)
        lines = [f"propagation: {self._n_live} conjunctions in {n} clusters"]
        for which in np.argsort(-x.size, kind="stable")[:10].tolist():
            pred = int(x.access[which])
            attr = int(self._table.predicates.layout.attr[pred])
            lines.append(
                f"├── attribute {attr} in {self._table.predicates.intervals(pred)[:3]}: "
                f"{x.size[which]} conjunctions of {x.width[which]}"
            )
        return "\n".join([*lines, f"└── the ten largest of {n}"])
