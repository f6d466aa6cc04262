"""Gathering: what a matcher holds as one store or two, as a copy, and with its head frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from matchwood.engine.segments.context_draft import ContextDraft
from matchwood.engine.segments.context_part import ContextPart, LiveStore
from matchwood.engine.segments.head import COPIED_MOST, Spare
from matchwood.engine.segments.merge import merged
from matchwood.engine.segments.recent import Recent
from matchwood.engine.segments.view import Part, View
from matchwood.engine.stores.recovery import blank, joined_store

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.changes import Target
    from matchwood.engine.stores.store import Store


class Gathering:
    """The methods of a matcher that bring together what it holds."""

    _view: View
    _access: Access
    _hold: Callable[[Store], None]
    _absorb: Callable[[], None]
    _compact: Callable[[], None]
    _exclusive: Callable[[], AbstractContextManager[None]]
    _changing: Callable[..., AbstractContextManager[Target]]

    @contextmanager
    def _as_stores(self, is_compact: bool = False) -> Iterator[tuple[Store, Store | None]]:
        """All subscriptions in one store, or those with contexts in a second one.

        Without gaps if asked for, while nothing changes them.
        """
        with self._exclusive():
            if self._view.is_guarded:
                self._absorb()
            part = self._view.context_part
            parts = [*self._view.searched, *([] if part is None else [part])]
            others = [each for each in parts if each is not part]
            has_gaps = is_compact and not all(p.store.subscriptions.is_compact for p in parts)
            if len(others) > 1 or any(each.n_gone for each in others) or has_gaps:
                self._compact()
            view = self._view
            part = view.context_part
            if part is None:
                yield view.searched[0].store, None
                return
            others = [each for each in view.searched if each is not part]
            with self._access.contexts:
                store = part.live.mended(part)
                yield (others or view.stored[-1:])[0].store, store

    @contextmanager
    def _as_one(self) -> Iterator[Store]:
        """All subscriptions in one store, while nothing changes them.

        Where some have contexts and others not, a store that is made for it from the texts.
        """
        with self._as_stores() as (store, linked):
            if linked is None or not len(linked.subscriptions):
                yield store
            else:
                yield joined_store(store, linked) if len(store.subscriptions) else linked

    def __copy__(self) -> Any:
        """An independent matcher in memory; of segments it shares those there are."""
        from matchwood.engine.snapshots.copies import copy_of, new_matcher, state_of

        if self._view.is_guarded:
            with self._as_stores(is_compact=True) as (store, _):
                return new_matcher(state_of(store), type(self))
        with self._access.writing():
            # a large head is frozen, so that both may have it
            is_large = len(self._view.stored[-1]) > COPIED_MOST
            view = self._frozen() if is_large else self._view
            recent, n_added = view.recent, view.n_added
            head = merged(view.stored[-1:], is_segment=False)
            with self._compact_contexts() as linked:
                live = None if linked is None else LiveStore(copy_of(linked))
        other = type(self).__new__(type(self))
        other._hold(head)
        parts = [*view.segments, Part(head)]
        recent = None if recent is None else Recent(recent.additions, head)
        part = None if live is None else ContextPart(live)
        other._view = View(parts, {}, Spare(), n_added=n_added, recent=recent, context_part=part)
        return other

    @contextmanager
    def _compact_contexts(self) -> Iterator[Store | None]:
        """The live store without gaps, while nothing changes or searches it; while writing."""
        part = self._view.context_part
        if part is None:
            yield None
            return
        if not part.store.subscriptions.is_compact:
            with self._changing(is_logged=False) as target:
                assert isinstance(target, ContextDraft)
                target.compact_contexts()
        part = self._view.context_part
        assert part is not None
        with self._access.contexts:
            yield part.live.mended(part)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.__copy__()

    def _frozen(self) -> View:
        """The view with what was the head, and recent additions, as segments; while writing."""
        view = self._view
        if len(view.stored[-1]) or view.recent is not None:
            parts = [part for part in view.stored if len(part)]
            if view.recent is not None:
                parts.append(Part(view.recent.store, singles=view.recent.singles))
            self._view = view = View(
                [*parts, Part(blank(view.head))], view.filters, Spare(), n_added=view.n_added,
                n_changes=view.n_changes, context_part=view.context_part,
            )  # fmt: skip
        return view
