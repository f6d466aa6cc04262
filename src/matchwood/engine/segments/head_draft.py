"""HeadDraft: where subscriptions are while a change is prepared, and what it does to the head.

Recent additions wait until they are some dozens; then the spare store of the head takes them, in
steps that its other store takes later (`head`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.input.fields import NO_FIELDS
from matchwood.engine.input.given import Given
from matchwood.engine.segments import tiers
from matchwood.engine.segments.head import Step, writable
from matchwood.engine.segments.places import Places
from matchwood.engine.segments.recent import Addition, Taking, encoded
from matchwood.engine.segments.view import Part, View
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id
from matchwood.kernel.arrays import positions
from matchwood.kernel.marks import marked

if TYPE_CHECKING:
    from matchwood.engine.access import Access

RECENT, HEAD = -2, -1
"""Places of a subscription that is not in a segment."""


class HeadDraft:
    """Segments, head and recent additions of a view that is being changed."""

    def __init__(self, view: View, access: Access) -> None:
        self._view = view
        self._access = access
        self._places = Places(view.segments)
        self._shown: Part | None = view.stored[-1]
        """The head as the view shows it; None once steps change the spare store."""
        self._head: Store | None = None
        """The store that takes the steps, from the first one on."""
        self._is_spare = False
        self._steps: list[Step] = []
        self._recent: Mapping[Id, Addition] = {} if view.recent is None else view.recent.additions
        """Those of the view until they change (`_own_recent`)."""
        self._n_put = 0  # additions of this change
        self._gone: dict[int, set[int]] = {}
        self._n_added = view.n_added
        self._now = time.time_ns() // 1000
        self._plain = NO_FIELDS._replace(added=np.array([self._now]))
        """The fields of one addition that gives none."""
        self.changed: dict[Id, bool] | None = None
        """Ids that changed, and whether they were removed on the way, where a log asks for them."""
        self.known: dict[Id, Addition | None] | None = {}
        """What has become of them, None: gone; None once a store was changed by many at once."""

    # -- asking ------------------------------------------------------------------------------

    def has(self, id_: Any) -> bool:
        return self._position(id_) is not None

    def check_types(self, expr: Given) -> None:
        self._view.head.check_types(expr)

    def _position(self, id_: Any) -> tuple[int, int] | None:
        """The number of the segment that an id is in, or RECENT or HEAD, and its slot there."""
        if id_ in self._recent:
            return RECENT, -1
        if self._head is not None:
            if id_ in self._head.subscriptions:
                return HEAD, -1
        elif self._shown is not None:
            slot = self._shown.slot_of(id_)
            if slot is not None and slot not in self._gone.get(HEAD, ()):
                return HEAD, slot
        return self._places.find(id_, self._gone)

    def _own_recent(self) -> dict[Id, Addition]:
        """Recent additions, to be changed."""
        if self._view.recent is not None and self._recent is self._view.recent.additions:
            self._recent = {**self._recent}
        return self._recent  # type: ignore[return-value]

    # -- what is left --------------------------------------------------------------------------

    def _left(self) -> list[Part]:
        """The segments that hold something."""
        parts = [self._left_of(number) for number in range(len(self._places.parts))]
        return [part for part in parts if len(part)]

    def _left_of(self, number: int) -> Part:
        """A segment, or the head that is shown, without what is gone."""
        part = self._shown if number == HEAD else self._places.parts[number]
        assert part is not None
        gone = self._gone.get(number)
        return part.without(np.fromiter(gone, np.int32, len(gone))) if gone else part

    def _stored(self) -> list[Part]:
        """Segments and the head."""
        head = self._left_of(HEAD) if self._head is None else Part(self._head)
        return [*self._left(), head]

    # -- the steps ---------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether the head has to take recent additions, or give up what is gone."""
        is_asked = self._view.n_asked and self._n_put >= tiers.AT_ONCE
        if len(self._recent) >= (1 if is_asked else min(tiers.RECENT_MOST, tiers.HEAD_MOST)):
            return True
        sizes = [each.expr.batch.size for each in self._recent.values()]
        if sum(sizes) >= tiers.RECENT_SIZE_MOST:
            return True
        if self._shown is None:
            return False
        n_gone = self._shown.n_gone + len(self._gone.get(HEAD, ()))
        n_left = len(self._shown.store.subscriptions) - n_gone
        return n_gone > (tiers.RECENT_MOST + n_left if n_left else 0)

    def _flush(self) -> None:
        """Have the head take recent additions, in their order; of many make a segment."""
        self._recent = dict(sorted(self._recent.items(), key=lambda each: each[1].order))
        if len(self._recent) >= tiers.HEAD_MOST:
            store = encoded(self._recent, self._view.head, is_segment=True)
            self._places.append(Part(store))
        elif self._recent:
            taking = Taking(self._recent)
            self._opened(taking)
            if taking not in self._steps:
                self._do(taking)
        else:
            self._opened()
        self._recent = {}

    def _opened(self, more: Taking | None = None) -> Store:
        """The store that takes steps: it holds what the head does, without what is gone.

        more  the next step; it is among `_steps` if it was carried out here
        """
        if self._head is None:
            shown, gone = self._left_of(HEAD), []
            if shown.n_gone:
                gone = shown.store.subscriptions.ids_of(positions(marked(shown.gone))).tolist()
            is_used_up, store = shown.n_gone and not len(shown), None
            if not is_used_up:
                more = None if more is None or more.has_any(gone) else more
                store, more = writable(self._view, self._access, more)
                self._steps += [] if more is None else [more]
            if store is None:  # all of it is gone, or it is in use: then it becomes a segment
                if not is_used_up:
                    self._places.append(shown)
                store = blank(self._view.head)
            else:
                self._is_spare = True
            self._head, self._shown = store, None
            self._gone.pop(HEAD, None)
            store.is_whole = True
            if self._is_spare and gone:
                self._do(lambda store: store.remove_ids(gone))
        return self._head

    def _do(
        self,
        step: Callable[[Store], Any],
        again: Step | None = None,
        changed: dict[Id, bool] | None = None,
    ) -> Any:
        """Carry out a step, and note it, or `again`, for the other store of the head.

        changed  takes the ids that the store changes
        """
        store = self._opened()
        if self._view.spare is not None:  # it is no longer what the view says it is
            self._view.spare.is_clean = False
        store.subscriptions.changed = changed
        self._access.breathe()
        found = step(store)
        store.subscriptions.changed = None
        self._steps.append(step if again is None else again)
        return found
