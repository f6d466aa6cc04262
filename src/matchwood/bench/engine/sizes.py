"""How much of everything the suite `engine` measures, by preset."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    subscriptions: int
    """Of all cases but the contests."""
    contest: int
    """Subscriptions of a contest, at most."""
    events: int
    rounds: int
    """Timed passes."""
    seconds: float
    """How long searches are timed, with and without changes."""
    adds: int
    """Durable additions, one by one."""


PRESETS = {
    "smoke": Sizes(2_000, 600, 40, 2, 0.2, 40),
    "small": Sizes(200_000, 50_000, 100, 3, 5.0, 1_000),
    "large": Sizes(1_000_000, 200_000, 100, 5, 20.0, 5_000),
}
