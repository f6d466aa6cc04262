"""The workloads of BE-Tree's evaluation: Table 3, columns 1 to 8, as presets and their sweeps.

A preset holds what is the same in all points of its column; its sweep lists the points, each as
changes for `find_workload`.  Both distributions of the paper apply to all of them:

    for point in SWEEPS["equality"]:
        find_workload("begen:equality", **point, distribution="zipf")

The paper prints the ends of its sweeps (50-1400 dimensions); the points between are chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood.workload.interface import points

_100K = {"n_subscriptions": 100_000}
_1M = {"n_subscriptions": 1_000_000}
_LOW_MATCH = {"min_predicates": 4, "exponent": 1.0}
"""Under Zipf's law as it is elsewhere, subscriptions match by accident more often than 0.01 %."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"n_subscriptions": 10_000},
    "small": _100K,
    "default": _1M,
    "zipf": {**_1M, "distribution": "zipf"},
    "workload-size": _1M,
    "workload-distribution": _1M,
    "dimensionality": _1M,
    "dimension-cardinality": _100K,
    "predicate-selectivity": _100K,
    "dimension-selectivity": {
        **_100K,
        "cardinality": 10,
        "equality": 1.0,
        "operators": "min",
        "match_probability": None,
    },
    "sub-event-size": {**_100K, "min_predicates": 3},
    "equality": _1M,
    "match-probability": {**_1M, **_LOW_MATCH},
}
"""Parameters by column of the table, over the defaults of `BEGen`."""


_SIZES = ((5, 13), (7, 15), (14, 25), (27, 40), (40, 54), (53, 68), (66, 81))

SWEEPS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "workload-size": points("n_subscriptions", *range(100_000, 1_000_001, 100_000)),
    "workload-distribution": points("distribution", "uniform", "zipf"),
    "dimensionality": points("n_attributes", 50, 100, 200, 400, 800, 1_400),
    "dimension-cardinality": points("cardinality", 48, 150, 1_200, 6_000, 30_000, 150_000),
    "predicate-selectivity": points("range_size", 0.06, 0.12, 0.2, 0.3, 0.4, 0.5),
    "dimension-selectivity": points("cardinality", 2, 3, 4, 5, 7, 10),
    "sub-event-size": tuple({"predicates": s, "event_size": e} for s, e in _SIZES),
    "equality": points("equality", 0.2, 0.3, 0.4, 0.6, 0.8, 1.0),
    "match-probability": tuple(
        {"operators": operators, "match_probability": probability}
        for operators in ("low", "med", "high")
        for probability in (0.0001, 0.001, 0.01, 0.03, 0.05, 0.09)
    ),
}
"""Points of each column."""
