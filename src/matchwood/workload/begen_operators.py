"""Operators of BEGen: the classes of Table 2(a), what they accept, and predicates as trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import islice
from operator import and_, eq, ge, gt, le, lt, ne

import numpy as np

from matchwood.lang.builder import Attribute, attr
from matchwood.lang.nodes import Expr
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
from matchwood.workload.begen_survey import Predicates

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


def conjunctions(sizes: np.ndarray, found: Predicates, names: Sequence[str]) -> list[Expr]:
    """Predicates as trees, the next sizes[i] of them in tree i."""
    values = iter(found.values.tolist())
    leaves = iter(
        _leaf(attr(names[a]), op, list(islice(values, n)))
        for a, op, n in zip(found.attr.tolist(), found.op.tolist(), found.n_values, strict=True)
    )
    return [reduce(and_, islice(leaves, n)) for n in sizes.tolist()]


def _leaf(attribute: Attribute, op: int, values: list[int]) -> Expr:
    if op == BETWEEN:
        return attribute.between(*values)
    if op in (IN, NOT_IN):
        return attribute.isin(values) if op == IN else ~attribute.isin(values)
    compare = {EQ: eq, NE: ne, LT: lt, LE: le, GE: ge, GT: gt}[op]
    found: Expr = compare(attribute, values[0])
    return found


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
