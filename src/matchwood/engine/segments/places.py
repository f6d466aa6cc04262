"""Places: in which segment of a view an id is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matchwood.engine.segments.view import Part


class Places:
    """Segments of a view that is being changed; each id is looked up once."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self._found: dict[Any, tuple[int, int] | None] = {}

    def append(self, segment: Part) -> None:
        """Take one segment more."""
        self.parts.append(segment)
        self._found = {}

    def find(self, id_: Any, gone: dict[int, set[int]]) -> tuple[int, int] | None:
        """The number of the segment that an id is in and its slot there; None if it is in none.

        gone  slots that are gone since, by the number of their segment
        """
        try:
            found = self._found[id_]
        except KeyError:
            found = self._found[id_] = self._first(id_, 0)
        while found is not None and found[1] in gone.get(found[0], ()):
            found = self._first(id_, found[0] + 1)  # in a segment that the same change has made
        return found

    def _first(self, id_: Any, first: int) -> tuple[int, int] | None:
        for number in range(first, len(self.parts)):
            slot = self.parts[number].slot_of(id_)
            if slot is not None:
                return number, slot
        return None
