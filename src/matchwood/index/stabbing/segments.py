"""Making elementary segments from the ends of predicates; see `segment_kernels`."""

from __future__ import annotations

import numpy as np

from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.kernel.arrays import slices
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY


def no_segments() -> Segments:
    return Segments(np.zeros(1, np.int64), np.empty(0, np.int64))


def segments_of(p: PredicateLayout, preds: np.ndarray) -> Segments:
    """The segments that these predicates tell apart."""
    if not len(preds):
        return no_segments()
    one, several = preds[p.n_intervals[preds] == 1], preds[p.n_intervals[preds] > 1]
    at = slices(p.interval_start[several], p.n_intervals[several])
    attr = np.concatenate([p.attr[one], np.repeat(p.attr[several], p.n_intervals[several])])
    lo = np.concatenate([p.lo[one], p.interval_lo[at]])
    hi = np.concatenate([p.hi[one], p.interval_hi[at]])
    is_open = hi == MAX_KEY
    known = np.unique(attr)
    attrs = np.concatenate([attr, attr[~is_open]])
    cuts = np.concatenate([lo, hi[~is_open] + 1])
    return Segments(*sorted_cuts(attrs, cuts, known, int(known[-1]) + 1))


def sorted_cuts(
    attrs: np.ndarray, cuts: np.ndarray, known: np.ndarray, n_attributes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where the cuts of each attribute begin, and all cuts, each once; MIN_KEY first for those that
    are known.
    """
    attrs = np.concatenate([attrs, known])
    cuts = np.concatenate([cuts, np.full(len(known), MIN_KEY)])
    order = np.lexsort((cuts, attrs))
    attrs, cuts = attrs[order], cuts[order]
    is_new = np.ones(len(cuts), bool)
    is_new[1:] = (attrs[1:] != attrs[:-1]) | (cuts[1:] != cuts[:-1])
    attrs, cuts = attrs[is_new], cuts[is_new]
    return np.searchsorted(attrs, np.arange(n_attributes + 1)).astype(np.int64), cuts
