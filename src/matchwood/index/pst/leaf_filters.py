"""Bloom filters in the leaves of PS-Trees: PSTBloom's signatures as published.

Every attribute is divided at the ends of all predicates on it, into `most` leaves at most.  A leaf
knows the expressions that have another predicate than their access predicate on some of its keys;
one that has left is known until the filters are made again.  `leaf_filter_kernels` has the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.pst.bloom_build import list_ends
from matchwood.index.pst.frame import Config
from matchwood.index.pst.leaf_filter_kernels import Leaves, sign_leaves
from matchwood.kernel.interval_kernels import MIN_KEY

RECORDS, LEAVES = "records", "leaves"


@dataclass(frozen=True, kw_only=True)
class BloomConfig(Config):
    """What can be set for PSTBloom alone.

    signatures   "records": with every record, of `signature_bits`; "leaves": a Bloom filter of
                 `leaf_bits` in every leaf of every attribute, over the expressions that have
                 another predicate there, as published
    leaf_bits    of the filter of a leaf, a multiple of 64; more let fewer pass in vain
    """

    signatures: str = RECORDS
    leaf_bits: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        is_known = self.signatures in (RECORDS, LEAVES)
        self._expect("signatures", is_known, f"{RECORDS!r} or {LEAVES!r}")
        self._expect_integer("leaf_bits", 64, 2**16)
        self._expect("leaf_bits", self.leaf_bits % 64 == 0, "a multiple of 64")


def make_leaves(
    table: ExpressionTable, slots: np.ndarray, access: np.ndarray, n_bits: int, most: int
) -> Leaves:
    """Leaves with filters that know these slots, by the access predicate of every slot."""
    p = table.predicates.layout
    uses = uses_of(table, slots)
    preds = np.flatnonzero(uses)
    room = 2 * int(p.n_intervals[preds].sum(dtype=np.int64))
    attrs, cuts = np.empty(room, np.int64), np.empty(room, np.int64)
    n = list_ends(p, preds, uses, attrs, cuts, np.empty(room, np.int64), 0)
    used = np.unique(p.attr[preds]).astype(np.int64)
    ends = np.empty((n + len(used), 2), np.int64)
    ends[:n, 0], ends[:n, 1] = attrs[:n], cuts[:n]
    ends[n:, 0], ends[n:, 1] = used, MIN_KEY
    ends = _thinned(np.unique(ends, axis=0), most)
    leaves = Leaves(
        first=np.searchsorted(ends[:, 0], np.arange(table.n_attributes + 1)),
        cut=np.ascontiguousarray(ends[:, 1]),
        bits=np.zeros((len(ends), n_bits // 64), np.int64),
    )
    sign_leaves(leaves, table.layout, p, access, slots)
    return leaves


def _thinned(ends: np.ndarray, most: int) -> np.ndarray:
    """At most so many cuts of an attribute, the first one among them; (attribute, cut) in order."""
    _, first, sizes = np.unique(ends[:, 0], return_index=True, return_counts=True)
    position = np.arange(len(ends)) - np.repeat(first, sizes)
    kept: np.ndarray = ends[position % np.repeat(-(-sizes // most), sizes) == 0]
    return kept
