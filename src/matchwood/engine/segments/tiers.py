"""How large the head and the segments of a view become, in one place."""

from __future__ import annotations

from collections.abc import Sequence

HEAD_MOST = 4_096
"""Subscriptions from which the head is frozen, and `add_many` makes a segment of its own."""

RECENT_MOST = 64
"""Additions that wait until the head takes them together; fewer where heads are smaller."""

RECENT_SIZE_MOST = 2_048
"""Tokens and constants of waiting additions, all together: the first search after every change
encodes them again, so a few long expressions must not wait."""

AT_ONCE = 16
"""Additions of one change that do not wait if searches come between changes: encoding them for the
next search takes as long as the head does."""

FACTOR = 4
"""Segments of one tier before they are merged; each tier is so many times larger.  A search costs
more with every segment, a subscription is moved once for every tier."""


def chosen(sizes: Sequence[int], n_gone: Sequence[int]) -> list[int]:
    """Which of the segments, by their numbers, are merged next; empty: none.

    A tier's segments are merged once there are FACTOR of them, with all smaller ones.  A segment
    of which half is gone is written again.
    """
    for number, (size, gone) in enumerate(zip(sizes, n_gone, strict=True)):
        if gone > size:
            return [number]
    tiers = [_tier(size) for size in sizes]
    for tier in sorted(set(tiers)):
        if tiers.count(tier) >= FACTOR:
            return [number for number, each in enumerate(tiers) if each <= tier]
    return []


def _tier(size: int) -> int:
    tier = 0
    while size > HEAD_MOST:
        size //= FACTOR
        tier += 1
    return tier
