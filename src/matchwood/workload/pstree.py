"""PSTree: the synthetic workloads of the PS-Tree paper, drawn by BEGen.

Source.  PS-Tree, section 7.1 and Table 1; the defaults are the bold values there, with 100
         dimensions (dense).  `dims-30k` is the sparse half of every experiment.
Chosen   where the paper is silent: operators other than equality are those of BEGen's class `med`;
         BETWEEN covers 12 % of the values.  Short subscriptions match by accident: with 100
         dimensions 0.5 % of those of any size, so a matching probability of 0.1 % needs at least 3
         predicates (4 with Zipf's law of exponent 1, with events of 42 attributes, with a
         cardinality of 3).  Where even those with 5, the average, match more often than that by
         accident, the probability is 1 % or 5 %: from exponent 2 on, and with 100 dimensions for
         events of 54 attributes and more.  Sparse sweeps of events and cardinality stay at 0.1 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from matchwood.workload.begen import BEGen
from matchwood.workload.interface import points

_DENSE, _SPARSE = 100, 30_000


def _zipf(exponent: int) -> Mapping[str, Any]:
    changes = {"distribution": "zipf", "exponent": float(exponent)}
    if exponent == 1:
        return {**changes, "min_predicates": 4}
    return {**changes, "min_predicates": 4, "match_probability": 0.01}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"n_subscriptions": 10_000},
    "small": {"n_subscriptions": 100_000},
    "dims-100": {},
    "dims-300": {"n_attributes": 300},
    "dims-1k": {"n_attributes": 1_000},
    "dims-3k": {"n_attributes": 3_000},
    "dims-10k": {"n_attributes": 10_000},
    "dims-30k": {"n_attributes": _SPARSE},
    **{f"zipf-{alpha}": _zipf(alpha) for alpha in range(1, 6)},
}
"""The number of dimensions and the exponent of Zipf's law: what the algorithms differ by."""


SWEEPS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "n_subscriptions": points(
        "n_subscriptions", 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000
    ),
    "exponent": ({}, *[_zipf(alpha) for alpha in range(1, 6)]),
    "n_attributes": points("n_attributes", _DENSE, 300, 1_000, 3_000, 10_000, _SPARSE),
    "cardinality": (
        {"cardinality": 3, "min_predicates": 4},
        *points("cardinality", 10, 30, 100, 300, 1_000),
    ),
    "cardinality-sparse": points("cardinality", 3, 10, 30, 100, 300, 1_000),
    "predicates": (
        *points("predicates", 5, 10, 15, 20, 25),
        {"predicates": 30, "min_predicates": 30},
    ),
    "event_size": (
        {"event_size": 30},
        {"event_size": 42, "min_predicates": 4},
        *[
            {"event_size": size, "min_predicates": 4, "match_probability": 0.01}
            for size in (54, 66, 78)
        ],
        {"event_size": 90, "min_predicates": 4, "match_probability": 0.05},
    ),
    "event_size-sparse": points("event_size", 30, 42, 54, 66, 78, 90),
    "match_probability": points("match_probability", 0.001, 0.005, 0.01, 0.05, 0.1, 0.5),
    "equality": points("equality", 0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
}
"""Table 1, row by row: changes for `find_workload`, both for 100 dimensions and for 30,000.  A
probability that 30,000 dimensions reach at 0.1 % and 100 do not has another sweep."""


@dataclass(frozen=True, kw_only=True)
class PSTreeWorkload(BEGen):
    """Table 1 of the PS-Tree paper (parameters as of BEGen)."""

    name: ClassVar[str] = "pstree"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sweeps: ClassVar[Mapping[str, tuple[Mapping[str, Any], ...]]] = SWEEPS

    n_attributes: int = _DENSE
    cardinality: int = 100
    predicates: float = 5
    min_predicates: int = 3
    event_size: int = 30
    equality: float = 0.2
    match_probability: float | None = 0.001
