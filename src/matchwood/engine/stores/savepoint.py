"""Savepoint: what a change must be able to bring back, whatever interrupts it.

A matcher has *facts* and *derived* parts.

    facts     ids, order, texts and fields of subscriptions; values and links of contexts; types
    derived   expression table, predicate table, dictionaries, indexes

A change may be interrupted between any two steps: a refusal, KeyboardInterrupt, MemoryError.  Facts
are then restored from the savepoint that was taken before the change; derived parts, which may be
half changed, are built again from the facts (`recovery`).  So no change needs code that undoes it.

How facts are restored.  Objects hold their arrays by reference, and a change that moves things
(growing, compacting) makes new arrays: a shallow copy of the object's attributes is enough to undo
it.  What a change writes in place goes through a `Journal`, which remembers the old content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matchwood.engine.stores.store import Store


class Savepoint:
    """The facts of a store as they are now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.n_changes += 1
        subscriptions = store.subscriptions
        self._journals = [subscriptions.journal, store.attributes.journal]
        self._objects: list[tuple[Any, dict[str, Any]]] = [
            (each, dict(vars(each)))
            for each in (
                subscriptions,
                subscriptions.texts,
                *subscriptions.columns.facts,
                store.attributes,
            )
        ]
        contexts = store.contexts
        self._contexts = contexts
        if contexts is not None:
            self._journals.append(contexts.journal)
            self._objects.append((contexts, dict(vars(contexts))))
            self._strings = store.attributes.context_strings.dictionary
            self._labels = self._strings.label_of
        self.clear()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was written in place since."""
        return not any(map(len, self._journals))

    def clear(self) -> None:
        """Forget what was written in place so far."""
        for journal in self._journals:
            journal.clear()

    def restore(self) -> None:
        """Bring the facts back; the derived parts are the caller's.  Calling it again is safe."""
        store = self._store
        for each, saved in self._objects:
            vars(each).update(saved)
        for journal in self._journals:
            journal.undo()
        store.subscriptions.derive()
        store.routing.follow(self._contexts)
        if self._contexts is not None:
            self._contexts.derive()
            self._strings.take(self._labels)


class ValuesSavepoint:
    """The values of contexts as they are now, for a change that writes no other facts, or none.

    Taking it costs a tenth of a `Savepoint`.
    """

    def __init__(self, store: Store) -> None:
        assert store.contexts is not None
        self._journal = store.contexts.journal
        self.clear()

    @property
    def is_untouched(self) -> bool:
        """As that of a `Savepoint`."""
        return not len(self._journal)

    def clear(self) -> None:
        """Forget what was written so far."""
        self._journal.clear()

    def restore(self) -> None:
        """Bring the values back; the derived parts are the caller's.  Calling it again is safe."""
        self._journal.undo()


Pending = Savepoint | ValuesSavepoint


class Change:
    """A change of a store that happens whole or not at all.

    The store's `pending` is set while a change runs.  A thread that takes the store's lock and
    finds it set must first repair the store: the change was interrupted (`recovery.settled`).
    A change of contexts between the events of a search is part of that search.

    savepoint  takes what the change must be able to bring back
    """

    def __init__(self, store: Store, savepoint: Callable[[Store], Pending] = Savepoint) -> None:
        self._store, self._savepoint = store, savepoint
        self._is_part = store.is_between_events

    def __enter__(self) -> None:
        if not self._is_part:
            self._store.pending = self._savepoint(self._store)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._is_part:
            return
        store = self._store
        store.is_between_events = False
        end_change(store, is_kept=error is None)


def end_change(store: Store, is_kept: bool) -> None:
    """Keep the change that is pending, or bring back what was before it, unless it was whole."""
    assert store.pending is not None
    if is_kept:
        store.is_whole = True
    if store.is_whole:
        store.pending.clear()
        store.pending = None
    else:
        store.pending.restore()
