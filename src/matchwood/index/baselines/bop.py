"""BoP: an expression is evaluated once enough of its predicates are satisfied.

Idea.    For every tree one knows how many predicates must hold at least: 1 for a leaf, the sum for
         AND, the least for OR.  Count satisfied predicates by expression; one with enough of them
         is a candidate, and its compact code is evaluated.

             (P1 OR P2 OR P3) AND P4 AND (P5 OR P6)     needs 3;  P1, P2, P3 make it a candidate
             code  AND 3  OR 3  P1 P2 P3  P4  OR 2  P5 P6

Source.  Bittner and Hinze, DEBS 2007, as described in section 2 and Figure 2 of the A-Tree paper.
Differs. A token of the code is a word: operator and number of operands, or predicate (the paper: 2
         and 5 bytes).  What needs more than 255 predicates is a candidate from 255 on.  Built
         again after changes (there: inserted in place).
Cost.    Match O(satisfied predicates and their postings + candidates' code).  Memory 8 bytes a
         predicate of a tree, 4 an operator and 12 an expression, and the stabbing tree.
Layout   see expression_postings; the words of an expression are what it needs, then its code
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.index.baselines.bop_kernels import Counting, encode_bop, match_bop
from matchwood.index.baselines.expression_postings import ExpressionPostings
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.arrays import offsets_of


class BoP(ExpressionPostings):
    """Expressions with codes."""

    name: ClassVar[str] = "bop"
    posts_leaves: ClassVar[bool] = False

    def _words(self, slots: np.ndarray, n_leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._table.layout
        sizes = x.size[slots].astype(np.int64)
        n_words = sizes + 1 + ((x.kind[slots] == CONJUNCTION) & (sizes > 1))
        word_start = offsets_of(n_words)
        words = np.empty(int(word_start[-1]), np.int32)
        last_seen = np.zeros(len(self._table.predicates.layout.attr), np.int64)
        stack = np.empty((int(sizes.max(initial=0)) + 1, 2), np.int64)
        encode_bop(x, slots, words, word_start, last_seen, 0, stack)
        return words, word_start

    def _new_arrays(self) -> Counting:
        n_slots, longest = len(self._built.words.start), self._built.longest
        return Counting(
            stamp=np.zeros(n_slots, np.int64),
            count=np.empty(n_slots, np.int32),
            candidate=np.empty(n_slots + 1, np.int32),
            truth=np.zeros(len(self._table.predicates.layout.attr), np.int64),
            stack=np.empty((longest + 2, 2), np.int64),
            clock=np.zeros(1, np.int64),
        )

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        x, counting = self._built, self._arrays_in(scratch)
        return self._step(match_bop, events, scratch, x.stabbing, x.posts, x.words, counting)
