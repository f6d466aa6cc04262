"""Locks that a forked child can use.

`fork` copies memory while other threads hold locks, and those threads do not exist in the child:
it would wait for them forever.  So the forking thread takes the locks of every owner first, as
`logging` does with its handlers; the child then starts with new locks and with owners whose last
change is complete.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Owner(Protocol):
    """What has locks that cover all its state."""

    def hold(self) -> None:
        """Take all locks."""

    def release(self) -> None:
        """Give them back."""

    def reset(self) -> None:
        """Replace all locks by new, unlocked ones."""


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_held: list[Owner] = []
"""Owners whose locks the forking thread has taken; `fork` itself never runs twice at a time."""


def watch(owner: Owner) -> None:
    """Register an owner: from now on its locks are taken before each fork."""
    _owners.add(owner)


def _before() -> None:
    for owner in list(_owners):
        owner.hold()
        _held.append(owner)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    for owner in _held:
        owner.reset()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
