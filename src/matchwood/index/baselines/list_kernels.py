"""Posting lists that are filled once: the items of list i are item[start[i]:start[i + 1]].

Layout   (L lists, M items)
         start  int64[L+1]
         item   int32[M]     or int64 where items are larger
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel


class Lists(NamedTuple):
    """See the module's docstring for the arrays."""

    start: np.ndarray
    item: np.ndarray


@kernel
def post_slots(expressions, slots, last, start, item):
    """Write slots to the lists of their predicates, once to each; `start` is used up.

    last   by predicate, the slot that was last written to its list; none at first
    """
    for slot in slots:
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            pred = expressions.code[k]
            if pred >= 0 and last[pred] != slot:
                last[pred] = slot
                item[start[pred]] = slot
                start[pred] += 1
