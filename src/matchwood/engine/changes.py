"""Changes of many subscriptions inside one transaction: what `Matcher` and `Batch` both do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from matchwood.engine.input.fields import FieldColumns
from matchwood.engine.input.loading import BatchReport, Chunk, Refused
from matchwood.engine.stores.ids import check_id, missing, used_id
from matchwood.engine.stores.subscriptions import Id, Subscriptions
from matchwood.errors import MatchwoodError, SubscriptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.input.given import Given
    from matchwood.engine.stores.store import Store

Progress = Callable[[int, int], None] | None


class Target(Protocol):
    """What a change is carried out on: a store that changes in place, or a draft of a view."""

    @property
    def is_aside(self) -> bool:
        """Whether nothing has to be undone if the change fails."""

    def has(self, id_: Any) -> bool: ...

    def check_types(self, expr: Given) -> None:
        """Raise what is wrong with the types of an expression; changes nothing."""

    def add(
        self, id_: Any, expr: Given, context: Any, fields: FieldColumns,
        order: np.ndarray | None = None,
    ) -> None: ...  # fmt: skip

    def replace(self, id_: Id, expr: Given, context: Any, fields: FieldColumns) -> None: ...

    def remove_ids(self, ids: Sequence[Id]) -> None: ...

    def note_removed(self, ids: Sequence[Id]) -> None:
        """Remember for a log that ids are gone, which are not held."""

    def add_chunks(
        self, chunks: Iterable[Chunk], progress: Progress = None, report: BatchReport | None = None
    ) -> BatchReport: ...

    def set_contexts(self, read: Any, flips: bool) -> Any: ...

    def sweep(self, now: int | None) -> int: ...

    def clear(self) -> None: ...

    def compact(self) -> None: ...

    def renumber(self) -> pa.Array: ...

    def spoil(self) -> None:
        """What was done so far must not be seen."""


def add_chunks(
    store: Store,
    chunks: Iterable[Chunk],
    progress: Progress = None,
    report: BatchReport | None = None,
) -> BatchReport:
    """Add what was read; rows that are refused never stop the others."""
    report = BatchReport() if report is None else report
    added: list[np.ndarray] = []
    rows: list[int] = []
    for chunk in chunks:
        ids = store.admit(chunk.ids, chunk.refused)
        added += store.add_chunk(ids, chunk)
        rows += [chunk.first + row for row in chunk.rows if row not in chunk.refused]
        report.take(chunk, sum(map(len, added)))
        if progress is not None:
            progress(chunk.done, chunk.total)
    if added:
        slots = np.concatenate(added)
        names = store.subscriptions.ids_of(slots)
        report.refuse(store.insert(slots), slots, rows, names)
    return report


def refuse_known(
    chunk: Chunk,
    places: Sequence[Subscriptions | Mapping[Id, Any]],
    is_there: Callable[[Id], bool],
) -> None:
    """Refuse the rows of a chunk whose ids are in use elsewhere."""
    for known in places:
        if not _is_disjoint(known, chunk.ids):
            for row, id_ in enumerate(chunk.ids):
                with suppress(SubscriptionError):  # what is no id is refused later
                    checked = check_id(id_)
                    if checked in known and is_there(checked):
                        chunk.refused.setdefault(row, used_id(checked))


def _is_disjoint(known: Subscriptions | Mapping[Id, Any], ids: Sequence[Any]) -> bool:
    try:
        if isinstance(known, Mapping):
            return known.keys().isdisjoint(ids)
        return not known.has_any(ids)
    except TypeError:  # something that cannot be an id
        return False


def replace_one(store: Target, id_: Any, expr: Given, context: Any, fields: FieldColumns) -> None:
    """Another expression for an id; adds it when it is new."""
    id_ = check_id(id_)
    change = store.replace if store.has(id_) else store.add
    change(id_, expr, context, fields)


def remove_one(store: Target, id_: Id) -> None:
    """Forget a subscription; SubscriptionError if there is none."""
    id_ = check_id(id_)
    if not store.has(id_):
        raise missing(id_)
    store.remove_ids([id_])


def replace_chunks(store: Target, chunks: Iterable[Chunk]) -> BatchReport:
    """Replace those whose id is there, keeping their order; add the others, in bulk."""
    report, n_replaced = BatchReport(), 0
    known: list[Chunk] = list(chunks)  # all read before the first change
    seen: set[Id] = set()
    for chunk in known:
        kept: list[int] = []
        for number, row in enumerate(chunk.rows):
            id_ = chunk.ids[row]
            if row in chunk.refused:
                continue
            if not isinstance(id_, (int, str)) or not store.has(id_):
                kept.append(number)
                continue
            try:
                if id_ in seen:
                    raise SubscriptionError(
                        f"expected id {id_!r} once, found it twice in one batch"
                    )
                seen.add(id_)
                linked = None if chunk.contexts is None else chunk.contexts[row]
                store.replace(check_id(id_), _text(chunk, row), linked, chunk.given(row))
                n_replaced += 1
            except MatchwoodError as error:
                chunk.refused[row] = error
        replaced = set(chunk.rows) - {chunk.rows[number] for number in kept}
        for row in replaced - chunk.refused.keys():
            chunk.refused[row] = _DONE
    report = store.add_chunks(known)
    report.errors = [each for each in report.errors if each.error is not _DONE]
    report.count += n_replaced
    return report


_DONE = SubscriptionError("replaced")
"""Marks rows of a chunk that were replaced, so that they are not added again."""


def _text(chunk: Chunk, row: int) -> str:
    text = chunk.texts_of([row])[0]
    return text if isinstance(text, str) else str(text.as_py())


def remove_ids(store: Target, ids: Iterable[Any]) -> BatchReport:
    """Forget many; unknown ids are reported and never stop the others."""
    report = BatchReport()
    found: dict[Id, None] = {}
    for row, id_ in enumerate(ids):
        try:
            checked = check_id(id_)
            if checked in found:
                raise SubscriptionError(f"expected id {id_!r} once, found it again")
            if not store.has(checked):
                raise missing(checked)
            found[checked] = None
        except SubscriptionError as error:
            report.errors.append(Refused(row, id_, error))
    if found:
        store.remove_ids(list(found))
    report.count = len(found)
    return report
