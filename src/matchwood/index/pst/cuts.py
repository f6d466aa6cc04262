"""Where to divide attributes when many expressions come at once: see `pst_bloom`.

All ends of access predicates are cuts where there are few; where there are many, those that leave
about the same number of ends between them.  An attribute whose access predicates are single values,
or nearly all of them, has a space for each value: an equality is listed once however many there
are, and another value finds nothing to verify.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.pst.bloom_build import list_ends
from matchwood.kernel.arrays import slices
from matchwood.kernel.interval_kernels import MIN_KEY

POINTS = 0.875
"""Share of single values among the access predicates of an attribute from which each has a space of
its own; ranges among them go to the coarse division once they meet too many."""


class Cuts(NamedTuple):
    """Dimension dims[i] has the cuts first[i] .. first[i + 1] - 1, ascending, MIN_KEY first."""

    dims: np.ndarray
    first: np.ndarray
    cuts: np.ndarray


def make_cuts(
    p: PredicateLayout,
    access: np.ndarray,
    space_size: int,
    most: int,
    max_points: int,
    division: int,
) -> Cuts:
    """Cuts for one division of the attributes of access predicates (one for each expression).

    max_points  values of an attribute that have a space each, as above; 0: none have
    """
    counts = np.bincount(access)  # predicate ids are dense: much faster than sorting them
    preds = np.flatnonzero(counts)
    known = np.unique(p.attr[preds]).astype(np.int64)
    n = 2 * int(p.n_intervals[preds].sum(dtype=np.int64)) + len(known)
    attrs, cuts, weight = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    attrs[: len(known)], cuts[: len(known)], weight[: len(known)] = known, MIN_KEY, 0
    n = list_ends(p, preds, counts, attrs, cuts, weight, len(known))
    attrs, cuts, weight = _sorted(attrs[:n], cuts[:n], weight[:n])
    is_new = np.ones(n, bool)
    is_new[1:] = (attrs[1:] != attrs[:-1]) | (cuts[1:] != cuts[:-1])
    weight = np.add.reduceat(weight, np.flatnonzero(is_new))
    attrs, cuts = attrs[is_new], cuts[is_new]
    n_cuts = np.diff(np.append(np.searchsorted(attrs, known), len(attrs)))
    is_exact = n_cuts <= 2 * max_points
    is_exact &= _are_points(p, preds, counts[preds], known)
    kept = _thinned(attrs, known, weight, space_size, most)
    kept |= np.repeat(is_exact, n_cuts)
    attrs, cuts = attrs[kept], cuts[kept]
    first = np.searchsorted(attrs, known)
    return Cuts(2 * known + division, np.append(first, len(cuts)), cuts)


def _sorted(
    attrs: np.ndarray, cuts: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By attribute and cut: as one number, a third of the time, where both fit into one."""
    inside = cuts[cuts != MIN_KEY]
    low = int(inside.min(initial=0)) - 1  # stands for MIN_KEY
    bits = (int(inside.max(initial=0)) - low).bit_length()
    if bits + int(attrs.max(initial=0)).bit_length() > 63:
        order = np.lexsort((cuts, attrs))
        return attrs[order], cuts[order], weight[order]
    both = np.maximum(cuts, low)
    both -= low
    both |= attrs << bits
    order = np.argsort(both)
    both, weight = both[order], weight[order]
    attrs = both >> bits
    both &= (1 << bits) - 1
    both += low
    both[both == low] = MIN_KEY
    return attrs, both, weight


def _are_points(
    p: PredicateLayout, preds: np.ndarray, counts: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """For which attributes nearly all uses of access predicates are of sets of single values."""
    is_point = p.lo[preds] == p.hi[preds]
    several = np.flatnonzero(p.n_intervals[preds] > 1)
    sizes = p.n_intervals[preds[several]].astype(np.int64)
    at = slices(p.interval_start[preds[several]].astype(np.int64), sizes)
    is_wide = p.interval_lo[at] != p.interval_hi[at]
    first = np.cumsum(sizes) - sizes
    if len(several):
        is_point[several] = np.add.reduceat(is_wide, first) == 0
    attrs = np.searchsorted(known, p.attr[preds])
    total = np.bincount(attrs, counts, len(known))
    return np.bincount(attrs, counts * is_point, len(known)) >= POINTS * total


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
