"""Locks that a forked child can use.

`fork` copies memory while other threads hold locks, and those threads do not exist in the child:
it would wait for them forever.  So the forking thread takes the locks of every owner first, as
`logging` does with its handlers; the child then starts with new locks and with owners whose last
change is complete.
"""

from __future__ import annotations

import os
import time
import weakref
from typing import Protocol


class Owner(Protocol):
    """What has locks that cover all its state."""

    def hold(self, patience: float) -> bool:
        """Take all locks, each in so many seconds; False if that failed and none is taken."""

    def release(self) -> None:
        """Give them back."""

    def reset(self) -> None:
        """Replace all locks by new, unlocked ones."""


PATIENCE = 0.05
"""Seconds that a fork waits for a lock before it gives back those it has; more each time."""

_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_held: list[Owner] = []
"""Owners whose locks the forking thread has taken; `fork` itself never runs twice at a time."""


def watch(owner: Owner) -> None:
    """Register an owner: from now on its locks are taken before each fork."""
    _owners.add(owner)


def _before() -> None:
    """Take the locks of all owners.

    A search of one may ask another (a filter over own attributes), in any order.  So whoever has
    some of the locks and does not get the next one gives all back, and tries again.
    """
    patience = PATIENCE
    while not all(_take(owner, patience) for owner in list(_owners)):
        _in_parent()
        time.sleep(PATIENCE)
        patience = min(2 * patience, 1.0)


def _take(owner: Owner, patience: float) -> bool:
    if not owner.hold(patience):
        return False
    _held.append(owner)
    return True


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    for owner in _held:
        owner.reset()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
