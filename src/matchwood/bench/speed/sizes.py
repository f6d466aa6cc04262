"""How much of everything the suite `speed` measures, by preset."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    subscriptions: int
    """Of the large cases; the small ones take a tenth, JSON rules are scaled by it."""
    events: int
    """Of the large cases."""
    many_events: int
    """Of the case with equalities."""
    lines: int
    texts: int
    calls: int
    rounds: int
    """Timed passes of the large cases."""


PRESETS = {
    "smoke": Sizes(10_000, 60, 500, 300, 500, 100, 2),
    "small": Sizes(1_000_000, 200, 50_000, 20_000, 20_000, 5_000, 5),
}
"""`small` has the sizes of the goals, takes some minutes, and needs 5 GB for 10M subscriptions."""
