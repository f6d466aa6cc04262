"""Dewey ID: a tree is evaluated from the paths of its true leaves, without looking at the others.

Idea.    A leaf's id is its path from the root: the number of the operand on every level, AND and OR
         in turn, marked when it is the last operand of an AND.  With ids in order, an AND is true
         when 1, 2, ... follow each other up to the marked one; an OR when there is any.

             (P1 OR P2 OR P3) AND P4 AND (P5 OR P6)       1.1  1.2  1.3  2  3*.1  3*.2

Source.  Fontoura et al., SIGMOD 2010, as described in section 2 and Figure 1 of the A-Tree paper.
Differs. Negation is part of the predicates.  Built again after changes, as there in bulk.
Cost.    Match O(leaves that are true and their depth, sorted by expression).  Memory 12 bytes a
         leaf, 4 for its depth and 4 a level, 8 an expression, and the stabbing tree.
Layout   see expression_postings; the words of a leaf are its expression and the offset of its path
         (length, components) behind the words of all leaves
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchwood.index.baselines.leaf_id_kernels import annotate_dewey
from matchwood.index.baselines.leaf_ids import LeafIds


class DeweyId(LeafIds):
    """Leaves with paths."""

    name: ClassVar[str] = "dewey_id"
    is_dewey: ClassVar[bool] = True

    def _words(self, slots: np.ndarray, n_leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        longest = int(self._table.layout.size[slots].max(initial=0))
        word_start = np.zeros(len(slots) + 1, np.int64)
        scratch = np.empty((4, longest), np.int64)
        words = np.empty(0, np.int32)
        for _ in range(2):  # how many words, then the words
            annotate_dewey(self._table.layout, slots, words, word_start, scratch)
            words = np.empty(int(word_start[-1]), np.int32) if not len(words) else words
        return words, word_start
