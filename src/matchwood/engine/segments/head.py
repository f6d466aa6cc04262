"""Head: the store that small changes go to, twice, so that no search waits for a change.

    view ── head: shown, only read          spare: shown by no view, changed by the writer
                        └────────── behind by these steps ──────────┘

A change first brings the spare store up to the shown one, by the steps that it is behind.  It then
changes the spare, and the view that it publishes shows it: the two have changed places.  Before
that the writer waits for searches that still use the spare, which began before the last change.  If
one stays, such as a large batch, the shown store becomes a segment, and the head begins anew.

If the last of those steps and the change both add subscriptions, the spare takes them in one step.
Steps name subscriptions by id: slots of the two stores may differ.  A step that fails in the middle
spoils the spare store, and not the shown one: the next change makes another spare.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matchwood.engine.segments.merge import merged
from matchwood.engine.segments.recent import Taking
from matchwood.engine.segments.view import Part, View
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Store
from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    from matchwood.engine.access import Access

Step = Callable[[Store], object]

PATIENCE = 0.01
"""Seconds that a writer waits for a search that uses the spare store."""
COPIED_MOST = 256
"""Subscriptions of a head that are read again for another spare; a larger head is frozen."""


@dataclass
class Spare:
    """A store that no view shows; see the module's docstring."""

    store: Store | None = None
    behind: list[Step] = field(default_factory=list)
    is_clean: bool = True
    """Whether `store` is as it was, behind by these steps; False once it is being changed."""


def writable(
    view: View, access: Access, more: Taking | None = None
) -> tuple[Store | None, Taking | None]:
    """The spare store, equal to the head; None if the head has to be frozen.

    more  what the change adds, of ids that the head does not have; returned if it was taken, too
    """
    spare = view.spare
    assert spare is not None
    store = spare.store
    if store is not None and spare.is_clean:
        if _is_used(store, access):
            return None, None
        spare.is_clean = False
        steps = [*spare.behind]
        if more is None or not steps or not isinstance(steps[-1], Taking):
            more = None
        else:
            steps[-1] = steps[-1].then(more)
            spare.store = None  # it will be ahead of the head: never used again if all is dropped
        with suppress(MatchwoodError):  # what one store took, the other may refuse for its size
            for step in steps:
                access.breathe()
                step(store)
            store.settled_change()
        n_more = 0 if more is None else len(more)
        if len(store.subscriptions) == len(view.head.subscriptions) + n_more:
            spare.behind, spare.is_clean = [], more is None
            return store, more
    if not len(view.head.subscriptions):
        return blank(view.head), None
    if len(view.head.subscriptions) <= COPIED_MOST:
        return merged([Part(view.head)], is_segment=False), None
    return None, None


def _is_used(store: Store, access: Access) -> bool:
    """Whether a search is still inside of a store after some waiting."""
    until = time.monotonic() + PATIENCE
    while any(each is not None and each.head is store for each in access.views()):
        if time.monotonic() > until:
            return True
        time.sleep(0.0001)
    return False
