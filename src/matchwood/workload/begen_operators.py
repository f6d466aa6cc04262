"""Operators of BEGen: the four classes of Table 2(a), and what their predicates accept."""

from __future__ import annotations

import numpy as np

from matchwood.workload.begen_kernels import (
    BETWEEN,
    EQ,
    GE,
    GT,
    IN,
    LE,
    LT,
    MAX_LIST,
    NE,
    NOT_IN,
)

NAMES = ["=", "<>", "<", "<=", ">=", ">", "IN", "NOT IN", "BETWEEN"]
"""Operators by their code in the kernels."""

CLASSES: dict[str, tuple[int, ...]] = {
    "min": (EQ,),
    "low": (IN,),
    "med": (LT, LE, GE, GT, IN, BETWEEN),
    "high": (LT, LE, NE, GE, GT, IN, NOT_IN, BETWEEN),
}
"""What predicates that do not stay equalities become, each equally often."""


def range_widths(cardinality: int, share: float) -> tuple[float, float]:
    """The narrowest and the widest range: two values and more where the average allows it."""
    mean = max(1.0, share * cardinality)
    spread = max(0.0, min(mean - 2, cardinality - mean))
    return mean - spread, mean + spread


def accepted_share(operators: str, equality: float, cardinality: int, share: float) -> float:
    """The chance that a derived predicate accepts an unrelated value of its attribute."""
    chances = [_accepted(op, cardinality, share) for op in CLASSES[operators]]
    return equality / cardinality + (1 - equality) * sum(chances) / len(chances)


def _accepted(op: int, cardinality: int, share: float) -> float:
    if op == EQ:
        return 1 / cardinality
    if op == NE:
        return 1 - 1 / cardinality
    if op == IN:
        return _mean_list(cardinality) / cardinality
    if op == NOT_IN:
        return 1 - _mean_list(cardinality - 1) / cardinality
    if op == BETWEEN:
        return max(1.0, share * cardinality) / cardinality
    # The base's value, even in 0 .. c - 1, and half of what lies on one side of it, and the other.
    return (3 * (cardinality - 1) / 4 + 1) / cardinality


def _mean_list(most: int) -> float:
    """Average number of values in a list."""
    return float(np.minimum(np.arange(2, MAX_LIST + 1), most).mean())
