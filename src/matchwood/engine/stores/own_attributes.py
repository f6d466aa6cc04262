"""Filters over the subscriptions' own attributes (symmetric matching).

Idea.    Matching with exchanged roles: distinct filters are the subscriptions of a small matcher,
         and the own attributes of what was found are its events.  A match counts only where the
         filter is TRUE; an attribute that a subscription does not have is absent.
Types.   Fields of an Arrow struct have a type, and so do the values of a map unless they are texts;
         a filter that asks for another is a bad filter.  All others are open, as attributes of
         events are: each predicate looks at values of its own kind, and texts in maps are read as
         the kind that the predicate asks for (`Cell`).
Names.   `subscriber.age` is another name of the own attribute `age`, unless a subscription has an
         own attribute `subscriber`.
Sharing. All filters have the same declared types, so they share matchers; a row that one of them
         cannot read is evaluated by each of them alone: so no filter changes another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.resolve import learned_types, reference_rows
from matchwood.encode.schema import Schema
from matchwood.engine.formats.text_files import with_moments
from matchwood.engine.input.fields import attributes_of
from matchwood.engine.matches import Found, kept
from matchwood.errors import MatchwoodError, SchemaError
from matchwood.lang.cells import Cell, read_cell
from matchwood.lang.nodes import Boolean

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher

TOGETHER = 256
"""Filters that share a matcher at most: all of them are tried on every row."""

ROWS_AT_ONCE = 4096

SUBSCRIBER = "subscriber"
"""The name under which a filter may refer to all own attributes."""

OwnTexts = Callable[[np.ndarray], list[str | None]]
"""Kept own attributes of slots, see `fields`."""


def types_in(text: str, declared: dict[str, str]) -> dict[str, str]:
    """The declared types of the attributes of a filter; raises what is wrong with it."""
    from matchwood.engine.input.given import single

    batch = single(text)
    if reference_rows(batch) or any(name.startswith("ctx.") for name in batch.names):
        raise SchemaError("expected a filter over the subscriptions' own attributes, found ctx.")
    every = declared.get("")
    prefix = SUBSCRIBER + "."
    known = {
        name: declared.get(name, declared.get(name.removeprefix(prefix), every))
        for name in batch.names
    }
    types = {name: kind for name, kind in known.items() if kind is not None}
    try:
        learned_types(batch, Attributes(Schema(types)))
    except SchemaError as error:
        raise error.at(text) from None
    return types


@dataclass
class FilterSet:
    """Filters in one matcher, and the declared types of their attributes."""

    declared: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, expr: str | Boolean, declared: dict[str, str]) -> FilterSet:
        """One filter alone."""
        text = str(expr.expression()) if isinstance(expr, Boolean) else expr
        return cls(declared, types_in(text, declared), [text])

    @property
    def is_full(self) -> bool:
        return len(self.texts) >= TOGETHER

    def add(self, text: str, types: dict[str, str]) -> int:
        self.types |= types
        self.texts.append(text)
        return len(self.texts) - 1

    @cached_property
    def _matcher(self) -> Matcher:
        from matchwood.engine.matcher import Matcher

        matcher = Matcher(index="scan", schema=Schema(self.types))
        report = matcher.add_many(list(enumerate(self.texts)), processes=1)
        assert not report.errors, report.errors
        return matcher

    @cached_property
    def _alone(self) -> list[FilterSet]:
        return [FilterSet.of(text, self.declared) for text in self.texts]

    def truths(self, rows: Sequence[str | None]) -> np.ndarray:
        """Which filters (rows of the result) are TRUE for which own attributes (its columns)."""
        truths = np.zeros((len(self.texts), len(rows)), bool)
        found = self._matcher.match_many([_event(row, self.types) for row in rows])
        truths[found.ids, np.repeat(np.arange(len(found)), np.diff(found.offsets))] = True
        wrong = sorted(found.errors)
        if wrong and len(self.texts) > 1:
            part = [rows[row] for row in wrong]
            for number, each in enumerate(self._alone):
                truths[number, wrong] = each.truths(part)[0]
        return truths

    def keep(self, found: Found, texts: OwnTexts) -> Found:
        """What the first filter lets through of what was found for all events."""
        slots, column = np.unique(found.slots, return_inverse=True)
        passes = np.zeros(len(slots), bool)
        for at in range(0, len(slots), ROWS_AT_ONCE):
            part = slots[at : at + ROWS_AT_ONCE]
            passes[at : at + ROWS_AT_ONCE] = self.truths(texts(part))[0]
        return kept(found, passes[column])


def _event(text: str | None, types: dict[str, str]) -> Any:
    """Own attributes as an event of the small matcher."""
    values = attributes_of(text)
    if values is None:
        return {}
    if isinstance(values, list):
        present = {name: value for name, value in values if value is not None}
        named = {f"{SUBSCRIBER}.{name}": value for name, value in present.items()}
        found = {**named, **present}
        return {
            name: read_cell(types[name], value) if name in types else Cell(value)
            for name, value in found.items()
        }
    return with_moments({SUBSCRIBER: values, **values}, types)


class Filters:
    """The filters of a batch of events, one each or none."""

    def __init__(self, texts: Any, declared: dict[str, str]) -> None:
        """texts: an Arrow array; null: no filter."""
        words = texts.dictionary_encode()
        self._code = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._sets: list[FilterSet] = []
        self._bad: dict[int, MatchwoodError] = {}
        positions: list[tuple[int, int]] = []
        for code, text in enumerate(words.dictionary.to_pylist()):
            try:
                types = types_in(text, declared)
            except MatchwoodError as error:
                self._bad[code] = error
                positions.append((-1, -1))
                continue
            if not self._sets or self._sets[-1].is_full:
                self._sets.append(FilterSet(declared))
            positions.append((len(self._sets) - 1, self._sets[-1].add(text, types)))
        # code -1, no filter, is the last position
        self._set_of, self._position = np.array([*positions, (-1, -1)], np.int64).T

    def problems(self) -> dict[int, MatchwoodError]:
        """What is wrong with the filters of events, by the number of the event."""
        if not self._bad:
            return {}
        rows = np.flatnonzero(np.isin(self._code, list(self._bad)))
        return {row: self._bad[int(self._code[row])] for row in rows.tolist()}

    def keep(self, found: Found, first: int, texts: OwnTexts) -> Found:
        """What counts of what was found for the events `first`, first + 1, ..."""
        n = len(found.offsets) - 1
        event = np.repeat(np.arange(n), np.diff(found.offsets))
        code = self._code[first : first + n][event]
        keep = code < 0
        for number, each in enumerate(self._sets):
            mine = np.flatnonzero(self._set_of[code] == number)
            slots, column = np.unique(found.slots[mine], return_inverse=True)
            for at in range(0, len(slots), ROWS_AT_ONCE):
                truths = each.truths(texts(slots[at : at + ROWS_AT_ONCE]))
                inside = np.flatnonzero((column >= at) & (column < at + ROWS_AT_ONCE))
                asked = mine[inside]
                keep[asked] = truths[self._position[code[asked]], column[inside] - at]
        return kept(found, keep)
