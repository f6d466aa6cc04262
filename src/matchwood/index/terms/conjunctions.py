"""Which conjunctions `terms` holds itself, and which are verified by `blocks`.

    one predicate       terms     slots side by side, nothing to test; in `blocks` each is a member
    two or more, few    terms     entering one more index would take longer than testing their rests
    two or more, many   blocks    a row of bits answers for 64 members, a rest for one term

The planner of a segment decides by the same rule, so that no part of a plan is divided again.
"""

from __future__ import annotations

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.blocks.words import MOST_ATTRIBUTES

FEW_BESIDE, SHARE = 2_000, 8
"""Conjunctions of two or more predicates up to which `terms` holds them, whatever else it holds; of
more, up to 1 / SHARE of the other expressions.  An event that looks for those has set the bits of
its leaves, and rests are cheap then.  In µs, with rests in `terms` and in `blocks`: 98,000 of a
million ad trees, 36 and 39; 12,800 of 200,000 of ABE-Gen, 45 and 48; 100,000 conjunctions of begen
alone, 45 and 13.
"""


ONE_IN = 2
"""Without trees conjunctions of one predicate have an index of their own if they are this share of
the others.  In µs, `blocks` and `terms` for 2,000, 22,000 and 111,000 of them alone: 2.4 / 1.2,
9.7 / 3.6, 34.8 / 9.0; for 6,200 beside 43,800 of `ads` one index more takes 2 µs longer.
"""


def is_several(table: ExpressionTable, slots: np.ndarray) -> np.ndarray:
    """Which slots are conjunctions of two or more predicates."""
    found: np.ndarray = (table.layout.kind[slots] == CONJUNCTION) & (table.layout.size[slots] > 1)
    return found


def are_few(n_several: int, n_others: int) -> bool:
    """Whether `terms` holds so many conjunctions of several predicates beside its other ones."""
    return n_several <= max(FEW_BESIDE, n_others // SHARE)


def for_blocks(table: ExpressionTable, slots: np.ndarray) -> np.ndarray:
    """Which of these slots, all that `terms` is given, are verified by `blocks`."""
    found = is_several(table, slots)
    is_conjunction = table.layout.kind[slots] == CONJUNCTION
    n, n_single = int(found.sum()), int((is_conjunction & ~found).sum())
    if are_few(n, len(slots) - n) or table.n_attributes > MOST_ATTRIBUTES:
        return np.zeros(len(slots), bool)
    are_alone = is_conjunction.all() and n_single <= n // ONE_IN
    return is_conjunction if are_alone else found
