"""Context changes: contexts that change between the events of one batch.

    events     0   1   2 | 3   4 | 5            one batch for indexes that know no contexts
    contexts             ▲       ▲              one window, or three, for the one that does
                      changes before events 3 and 5

A call of an index costs more than a few events do, and so does an update that it has to follow.  So
changes that say what they do to which contexts are made some at a time: the events between them are
searched at once, and what is linked to these contexts apart (`matchwood.context.versions`).

Events are integers by then.  A change that would have given them others is refused (`Compared`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.context.event_ranges import joined
from matchwood.context.versions import MOST_COPIES, Versions
from matchwood.encode.attributes import Attributes
from matchwood.encode.event_batch import EventBatch, part_of
from matchwood.errors import EventError
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.lang.names import is_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matchwood.context.cif import Cif


class ContextChange(NamedTuple):
    """A change of contexts that events from number `event` on see, and none before."""

    event: int
    change: Callable[[], object]
    updates: Sequence[tuple[Any, Mapping[str, Any]]] | None = None
    """What it does, after the change before it; then it can be made without that one, and does
    what both do.  None: not known."""


class Compared:
    """What events are compared with in contexts, as it was when they were encoded.

    A value that no subscription could be compared with then, because it had no type, or
    because it is a string that no context had, is one that no integer of an event stands for.
    """

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._links = attributes.links()
        self._untyped = [each for pair in self._links for each in pair if not self._type_of(each)]
        self._n_strings = attributes.context_strings.n_constants

    def check(self) -> None:
        """EventError if a change has taught a type, or a string, that events are compared with."""
        for name in self._untyped:
            if is_context(name) and self._type_of(name):
                raise EventError(
                    f"expected changes between encoded events of values whose types are known, "
                    f"found the first value of {name!r}, which a subscription compares: set a "
                    "value before events are encoded, or declare its type with Schema"
                )
        if self._attributes.context_strings.n_constants == self._n_strings:
            return
        for name, reference in self._links:
            if not is_context(name) and self._type_of(reference) == "string":
                raise EventError(
                    "expected changes between encoded events to bring no new string, found one, "
                    f"and a subscription compares {name!r} with {reference!r}: set it once before "
                    "events are encoded"
                )

    def _type_of(self, name: str) -> str | None:
        known = self._attributes.by_name.get(name)
        return None if known is None else known.type


Window = tuple[int, int, list[ContextChange]]
"""First event and last + 1, and changes after the first, which are not made yet."""


def search_between(
    index: Cif, events: EventBatch, scratch: Scratch, changes: Sequence[ContextChange]
) -> Hits:
    """Search events before, between and after the changes, which ascend; makes all of them."""
    parts = []
    linked = _Linked(index)
    for first, last, inside in _windows(events.n_events, changes, linked):
        if len(index):
            index.settle()
            part = part_of(events, first, last)
            steps = [(each.event - first, each.updates or ()) for each in inside]
            parts.append(linked.now().search(part, scratch, steps))
    if not parts:
        n = events.n_events
        none = np.zeros(len(COUNTERS), np.int64)
        return Hits(np.zeros(n + 1, np.int64), np.empty(0, np.int32), none)
    return joined(parts)


class _Linked:
    """The profiles of contexts, found again when the index was built anew."""

    def __init__(self, index: Cif) -> None:
        self._index = index
        self._versions: Versions | None = None

    def now(self) -> Versions:
        store = self._index.contexts
        assert store is not None
        if self._versions is None or self._versions.made_for != self._index.layout_version:
            self._versions = Versions(self._index, store)
        return self._versions


def _windows(n: int, changes: Sequence[ContextChange], linked: _Linked) -> Iterator[Window]:
    """Events between changes, which are made before the next events are given."""
    at, inside, n_copies = 0, list[ContextChange](), 0
    for each in changes:
        if each.event > at:
            # versions before and after every update
            more = 0 if each.updates is None else 2 * linked.now().n_copies(each.updates)
            if each.updates is not None and n_copies + more <= MOST_COPIES:
                inside.append(each)
                n_copies += more
                continue
            yield at, each.event, inside
            at, inside, n_copies = each.event, [], 0
        each.change()
    if n > at:
        yield at, n, inside
    if inside:
        inside[-1].change()
