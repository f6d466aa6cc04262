"""Where to divide attributes when many expressions come at once: see `pst_bloom`.

All ends of access predicates are cuts where there are few; where there are many, those that leave
about the same number of ends between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.arrays import slices
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.forms.interval_kernels import MAX_KEY, MIN_KEY


class Cuts(NamedTuple):
    """Dimension dims[i] has the cuts first[i] .. first[i + 1] - 1, ascending, MIN_KEY first."""

    dims: np.ndarray
    first: np.ndarray
    cuts: np.ndarray


def make_cuts(
    p: PredicateLayout, access: np.ndarray, space_size: int, most: int, division: int
) -> Cuts:
    """Cuts for one division of the attributes of access predicates (one for each expression)."""
    preds, uses = np.unique(access, return_counts=True)
    one, several = p.n_intervals[preds] == 1, p.n_intervals[preds] > 1
    many, n = preds[several], p.n_intervals[preds[several]]
    at = slices(p.interval_start[many], n)
    attr = np.concatenate([p.attr[preds[one]], np.repeat(p.attr[many], n)])
    weight = np.concatenate([uses[one], np.repeat(uses[several], n)])
    lo = np.concatenate([p.lo[preds[one]], p.interval_lo[at]])
    hi = np.concatenate([p.hi[preds[one]], p.interval_hi[at]])
    below, above = lo != MIN_KEY, hi != MAX_KEY
    known = np.unique(attr)
    attrs = np.concatenate([attr[below], attr[above], known])
    cuts = np.concatenate([lo[below], hi[above] + 1, np.full(len(known), MIN_KEY)])
    weight = np.concatenate([weight[below], weight[above], np.zeros(len(known), np.int64)])
    order = np.lexsort((cuts, attrs))
    attrs, cuts, weight = attrs[order], cuts[order], weight[order]
    is_new = np.ones(len(cuts), bool)
    is_new[1:] = (attrs[1:] != attrs[:-1]) | (cuts[1:] != cuts[:-1])
    weight = np.add.reduceat(weight, np.flatnonzero(is_new))
    attrs, cuts = attrs[is_new], cuts[is_new]
    kept = _thinned(attrs, known, weight, space_size, most)
    attrs, cuts = attrs[kept], cuts[kept]
    first = np.searchsorted(attrs, known)
    return Cuts(2 * known.astype(np.int64) + division, np.append(first, len(cuts)), cuts)


def _thinned(
    attrs: np.ndarray, known: np.ndarray, weight: np.ndarray, space_size: int, most: int
) -> np.ndarray:
    """Which cuts to keep: all of an attribute, or at even steps of the weight before them."""
    first = np.searchsorted(attrs, known)
    n = np.diff(np.append(first, len(attrs)))
    rising = np.cumsum(weight)
    before = rising[first] - weight[first]
    total = np.add.reduceat(weight, first)
    wanted = np.minimum(most - 1, 1 + (total // max(space_size, 1)))
    share = wanted / np.maximum(total, 1)
    here = np.repeat(np.arange(len(known)), n)
    end = (rising - before[here]) * share[here]
    begin = (rising - weight - before[here]) * share[here]
    kept: np.ndarray = np.floor(end) > np.floor(begin)
    kept |= (n <= wanted)[here]
    kept[first] = True
    return kept
