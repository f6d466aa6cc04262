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
    grown: int = 0
    """Subscriptions of the row `growth`; 0: not measured."""


PRESETS = {
    "smoke": Sizes(10_000, 60, 500, 300, 500, 100, 2),
    "small": Sizes(1_000_000, 200, 50_000, 20_000, 20_000, 5_000, 5),
    "large": Sizes(1_000_000, 200, 50_000, 20_000, 100_000, 5_000, 5, 10_000_000),
}
"""`small` has the sizes of the goals and takes some minutes; `large` adds 10M subscriptions."""
