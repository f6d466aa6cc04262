"""How many postings a `k_index` may have at most, without counting them at every insertion.

Idea.    A new end cuts only predicates that hold more than single keys, and each of them once.  So
         the bound grows by (new ends) x (predicates that can be cut), attribute by attribute, and
         by the segments that the new predicates themselves cover.  When it exceeds the limit,
         postings are counted, and the bound begins anew from their number.
Cost.    O(log segments) for every end of a new predicate.  16 bytes an attribute.

Layout   (A attributes)
         segments         when postings were last counted
         extra int64[A]   ends that are no cuts of the segments, equal ones counted each time
         wide  int64[A]   uses of predicates that a cut may fall into
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.baselines.k_index_kernels import bound_more
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.index.stabbing.segments import no_segments
from matchwood.kernel.arrays import grown

_NONE = np.zeros(0, np.int64)


class Bound(NamedTuple):
    """At most so many postings; see the module's docstring for the arrays."""

    n_postings: int = 0
    segments: Segments = no_segments()
    extra: np.ndarray = _NONE
    wide: np.ndarray = _NONE

    def with_more(self, p: PredicateLayout, preds: np.ndarray) -> Bound:
        """The bound with the predicates of further expressions."""
        size = max(len(self.extra), int(p.attr[preds].max(initial=-1)) + 1)
        extra, wide = grown(self.extra, size).copy(), grown(self.wide, size).copy()
        more = int(bound_more(self.segments, p, preds, extra, wide))
        return Bound(self.n_postings + more, self.segments, extra, wide)
