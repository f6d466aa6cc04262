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

FEW_BESIDE, SHARE = 2_000, 8
"""Conjunctions of two or more predicates up to which `terms` holds them, whatever else it holds; of
more, up to 1 / SHARE of the other expressions.  An event that looks for those has set the bits of
its leaves, and rests are cheap then.  In µs, with rests in `terms` and in `blocks`: 98,000 of a
million ad trees, 36 and 39; 12,800 of 200,000 of ABE-Gen, 45 and 48; 100,000 conjunctions of begen
alone, 45 and 13.
"""


def is_several(table: ExpressionTable, slots: np.ndarray) -> np.ndarray:
    """Which slots are conjunctions of two or more predicates."""
    found: np.ndarray = (table.layout.kind[slots] == CONJUNCTION) & (table.layout.size[slots] > 1)
    return found


def are_few(n_several: int, n_others: int) -> bool:
    """Whether `terms` holds so many conjunctions of several predicates beside its other ones."""
    return n_several <= max(FEW_BESIDE, n_others // SHARE)
