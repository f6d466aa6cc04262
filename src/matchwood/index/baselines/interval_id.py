"""Interval ID: a tree is true when intervals of its true leaves lead from its beginning to its end.

Idea.    AND lays its operands one behind the other on a line, OR one above the other.  A leaf is
         then an interval, and an expression is true when intervals of true leaves, each beginning
         where another one ended, lead from the first point to the last.

             (P1 OR P2 OR P3) AND P4 AND (P5 OR P6)

             1    4 5 6      10        P1, P2, P3 <1,4>    P4 <5,5>    P5, P6 <6,10>
             |----|-|---------|

Source.  Fontoura et al., SIGMOD 2010, as described in section 2 and Figure 1 of the A-Tree paper.
Differs. What is inside two operands of an OR has no point in common, so the answer is exact and
         nothing is verified.  Negation is part of the predicates.  Built again after
         changes, as there in bulk.
Cost.    Match O(leaves that are true, sorted by expression).  Memory 12 bytes a leaf and 8 an
         expression, and the stabbing tree.
Layout   see expression_postings; the words of a leaf are its expression and first << 16 | last
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchwood.index.baselines.leaf_id_kernels import annotate_intervals
from matchwood.index.baselines.leaf_ids import LeafIds
from matchwood.kernel.arrays import offsets_of


class IntervalId(LeafIds):
    """Leaves with intervals."""

    name: ClassVar[str] = "interval_id"
    is_dewey: ClassVar[bool] = False

    def _words(self, slots: np.ndarray, n_leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        longest = int(self._table.layout.size[slots].max(initial=0))
        word_start = offsets_of(2 * n_leaves.astype(np.int64))
        words = np.empty(int(word_start[-1]), np.int32)
        scratch = np.empty((4, longest), np.int64)
        annotate_intervals(self._table.layout, slots, words, word_start, scratch)
        return words, word_start
