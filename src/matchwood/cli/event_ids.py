"""What stands for an event in the output of `matchwood match`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.engine.formats.files import PLAIN_INTEGER, EventRows
from matchwood.engine.matches import Matches
from matchwood.errors import EventError


class EventIds:
    """What stands for an event in the output: its `event_id`, or its number from 0.

    The first batch decides whether there are ids, and whether they are whole numbers or texts; an
    event whose id is missing or of the other type is bad.

    as_they_are  ids of a stream are whole numbers or texts, each as it is
    """

    def __init__(self, head: EventRows, as_they_are: bool = False) -> None:
        bad = {each.row for each in head.unreadable}
        ids = [id_ for row, id_ in enumerate(head.ids or []) if row not in bad]
        present = [id_ for id_ in ids if id_ is not None]
        self._as_they_are = as_they_are and bool(present)
        self._kind = None if not present else int if _all_whole(present) else str
        self._reads_text = self._kind is int and isinstance(present[0], str)
        self.type = pa.string() if self._kind is str else pa.int64()

    def check(self, batch: EventRows, first: int, found: Matches) -> np.ndarray:
        """Which events are good; adds errors for ids that are not."""
        if self._kind is not None:
            for row, id_ in enumerate(self._read(batch, len(found))):
                if not self._is_id(id_):
                    wanted = "a whole number of 64 bits" if self._kind is int else "a text"
                    wanted += " or a text" if self._as_they_are and self._kind is int else ""
                    message = f"expected {wanted} as event_id, found {id_!r}"
                    found.errors.setdefault(row, EventError(message))
        keep = np.ones(len(found), bool)
        keep[list(found.errors)] = False
        return keep

    def values(self, batch: EventRows, first: int, n: int) -> list[Any]:
        """An id per event; None where it is bad."""
        if self._kind is None:
            return list(range(first, first + n))
        return [id_ if self._is_id(id_) else None for id_ in self._read(batch, n)]

    def _is_id(self, id_: Any) -> bool:
        """Whether an id is of the type of all others, and can be written."""
        is_typed = type(id_) in (int, str) if self._as_they_are else type(id_) is self._kind
        if not is_typed:
            return False
        if isinstance(id_, str):
            return id_.isascii() or not any("\ud800" <= each <= "\udfff" for each in id_)
        return bool(-(2**63) <= id_ < 2**63)

    def _read(self, batch: EventRows, n: int) -> list[Any]:
        ids = batch.ids or [None] * n
        if self._as_they_are:
            return ids
        if self._reads_text:
            return [int(id_) if isinstance(id_, str) and _is_whole(id_) else id_ for id_ in ids]
        if self._kind is str:
            return [str(id_) if type(id_) is int else id_ for id_ in ids]
        return ids


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number, written in the one way that prints as itself."""
    return PLAIN_INTEGER.fullmatch(text) is not None


def _all_whole(ids: list[Any]) -> bool:
    return all(type(id_) is int or (isinstance(id_, str) and _is_whole(id_)) for id_ in ids)
