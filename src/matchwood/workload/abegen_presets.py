"""The workloads of A-Tree's evaluation: Table 3 as presets, and the points of its rows as sweeps.

for point in SWEEPS["depth"]:
    find_workload("abegen:default", **point)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood.workload.interface import points

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"n_subscriptions": 10_000},
    "small": {"n_subscriptions": 100_000},
    "default": {},
}


SWEEPS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "workload-size": points(
        "n_subscriptions", 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000
    ),
    "depth": points("depth", 1, 2, 3, 4, 5, 6),
    "children": points("children", 2, 4, 6, 8, 10, 12),
    "sharing": points("exponent", 0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "dimensionality": points("n_attributes", 30, 100, 300, 1_000, 3_000, 10_000),
    "dimension-cardinality": points("cardinality", 3, 10, 30, 100, 300, 1_000),
    "dimension-distribution": points("attribute_exponent", 0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "event-size": points("event_size", 5, 10, 15, 20, 25, 30),
}
"""Points of each row of the table; the dimension distribution is Figure 12(g)'s."""
