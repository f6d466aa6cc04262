"""Repair: a change of a folder of which some subscriptions are set aside (`refused`).

An id that is set aside is taken: `add` refuses it, `replace` gives it an expression, with its
place, its context and its fields, and `remove` lets the log forget it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.changes import Progress, Target, refuse_known
from matchwood.engine.durable.replay import fields_of_rows
from matchwood.engine.input.fields import FieldColumns, with_given
from matchwood.engine.stores.ids import check_id, used_id

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.durable.refused import RefusedRow
    from matchwood.engine.input.given import Given
    from matchwood.engine.input.loading import BatchReport, Chunk
    from matchwood.engine.stores.subscriptions import Id


class WithRefused:
    """What a change is carried out on, where some subscriptions are set aside: a `Target`.

    inner  everything else
    left   what is set aside; the change takes out what it replaces or removes
    """

    def __init__(self, inner: Target, left: dict[Any, RefusedRow], own_types: dict[str, str]):
        self.inner = inner
        self._left = left
        self._own_types = own_types

    @property
    def is_aside(self) -> bool:
        return self.inner.is_aside

    def has(self, id_: Any) -> bool:
        return id_ in self._left or self.inner.has(id_)

    def check_types(self, expr: Given) -> None:
        self.inner.check_types(expr)

    def add(
        self, id_: Any, expr: Given, context: Any, fields: FieldColumns,
        order: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        id_ = check_id(id_)
        if id_ in self._left:
            raise used_id(id_)
        self.inner.add(id_, expr, context, fields, order)

    def replace(self, id_: Id, expr: Given, context: Any, fields: FieldColumns) -> None:
        if id_ not in self._left:
            self.inner.replace(id_, expr, context, fields)
            return
        row = self._left[id_].row
        both = with_given(fields_of_rows([row], self._own_types, is_new=True), fields)
        linked = row.context if context is None else context
        self.inner.add(id_, expr, linked, both, np.array([row.position]))
        del self._left[id_]

    def remove_ids(self, ids: Sequence[Id]) -> None:
        self.note_removed(self._take_out(ids))
        self.inner.remove_ids([id_ for id_ in ids if self.inner.has(id_)])

    def note_removed(self, ids: Sequence[Id]) -> None:
        self.inner.note_removed(ids)

    def add_chunks(
        self, chunks: Iterable[Chunk], progress: Progress = None, report: BatchReport | None = None
    ) -> BatchReport:
        return self.inner.add_chunks(map(self._checked, chunks), progress, report)

    def set_contexts(self, read: Any, flips: bool) -> Any:
        return self.inner.set_contexts(read, flips)

    def sweep(self, now: int | None) -> int:
        micros = time.time_ns() // 1000 if now is None else now
        expired = [id_ for id_, each in self._left.items() if each.row.expires <= micros]
        self.remove_ids(expired)
        return len(expired) + self.inner.sweep(micros)

    def clear(self) -> None:
        self.note_removed(self._take_out(list(self._left)))
        self.inner.clear()

    def compact(self) -> None:
        self.inner.compact()

    def renumber(self) -> pa.Array:
        return self.inner.renumber()

    def spoil(self) -> None:
        self.inner.spoil()

    def _take_out(self, ids: Iterable[Id]) -> list[Id]:
        """Those of some ids that are set aside, which no longer are."""
        found = [id_ for id_ in ids if id_ in self._left]
        for id_ in found:
            del self._left[id_]
        return found

    def _checked(self, chunk: Chunk) -> Chunk:
        refuse_known(chunk, [self._left], self._left.__contains__)
        return chunk
