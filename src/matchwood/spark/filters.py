"""Filters: an event says which subscriptions it is for, by their own attributes.

Idea.    Matching the other way round: the distinct filters of a batch are the subscriptions of a
         small matcher, and the own attributes of what came out are its events.  A match counts
         only where the filter is TRUE.
Types.   Fields of a struct have a type, and so do the values of a map unless they are texts; a
         filter that asks for another is a bad filter.  Texts in maps and in JSON are read as what
         the filter compares them with; where they cannot be, the pair does not match.
Alone.   Each filter means what it means alone: filters share a matcher only if they give every
         attribute the same type, and a row that one of them cannot read is tried by each alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow_types import type_of_arrow
from matchwood.encode.attributes import Attributes
from matchwood.encode.resolve import learned_types, reference_rows
from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Found
from matchwood.engine.store import single
from matchwood.errors import MatchwoodError, SchemaError
from matchwood.spark.shapes import read_events

FILTER = "filter"
"""The column of events."""

TOGETHER = 256
"""Filters that share a matcher at most: all of them are tried on every row."""

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class OwnKind:
    """The shape of own attributes and the types they have, whatever the filters say."""

    shape: str
    types: dict[str, str]
    every: str | None = None
    """The type of all attributes of a map whose values are no texts."""

    @classmethod
    def of(cls, kind: pa.DataType) -> OwnKind:
        if pa.types.is_struct(kind):
            return cls("struct", dict(Schema(type_of_arrow(kind))))
        if pa.types.is_map(kind):
            every = type_of_arrow(kind.item_type)
            return cls("map", {}, every if isinstance(every, str) and every != "string" else None)
        return cls("json", {})

    def types_in(self, text: str) -> dict[str, str]:
        """The types that a filter gives to attributes; raises what is wrong with it."""
        batch = single(text)
        if reference_rows(batch):
            raise SchemaError(
                "expected a filter over the subscriptions' own attributes, found ctx."
            )
        declared = {name: kind for name, kind in self.types.items() if name in batch.names}
        if self.every is not None:
            declared = dict.fromkeys(batch.names, self.every)
        try:
            return {**declared, **learned_types(batch, Attributes(Schema(declared)))}
        except SchemaError as error:
            raise error.at(text) from None


@dataclass
class _Set:
    """Filters that agree on types, in one matcher."""

    kind: OwnKind
    types: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def takes(self, types: dict[str, str]) -> bool:
        agrees = all(self.types.get(name, kind) == kind for name, kind in types.items())
        return agrees and len(self.texts) < TOGETHER

    def add(self, text: str, types: dict[str, str]) -> int:
        self.types |= types
        self.texts.append(text)
        return len(self.texts) - 1

    @cached_property
    def _matcher(self) -> Matcher:
        matcher = Matcher(index="scan", schema=Schema(self.types))
        report = matcher.add_many(list(enumerate(self.texts)), processes=1)
        assert not report.errors, report.errors
        return matcher

    @cached_property
    def _alone(self) -> list[_Set]:
        return [_Set(self.kind, self.kind.types_in(text), [text]) for text in self.texts]

    def truths(self, rows: pa.Table) -> np.ndarray:
        """Which filters (rows of the result) are TRUE for which own attributes (its columns)."""
        truths = np.zeros((len(self.texts), rows.num_rows), bool)
        batch = rows.combine_chunks().to_batches()[0]
        found = self._matcher.match_many(read_events(batch, self.kind.shape))
        truths[found.ids, np.repeat(np.arange(len(found)), np.diff(found.offsets))] = True
        wrong = sorted(found.errors)
        if wrong and len(self.texts) > 1:
            part = rows.take(pa.array(wrong))
            for number, each in enumerate(self._alone):
                truths[number, wrong] = each.truths(part)[0]
        return truths


class Filters:
    """The filters of a batch of events."""

    def __init__(self, column: pa.Array, kind: OwnKind) -> None:
        words = pc.dictionary_encode(column)
        self._code = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._sets: list[_Set] = []
        self._bad: dict[int, MatchwoodError] = {}
        places: list[tuple[int, int]] = []
        for code, text in enumerate(words.dictionary.to_pylist()):
            try:
                types = kind.types_in(text)
            except MatchwoodError as error:
                self._bad[code] = error
                places.append((-1, -1))
                continue
            number = next((n for n, each in enumerate(self._sets) if each.takes(types)), None)
            if number is None:
                number = len(self._sets)
                self._sets.append(_Set(kind))
            places.append((number, self._sets[number].add(text, types)))
        # code -1, no filter, is the last place
        self._set_of, self._place = np.array([*places, (-1, -1)], np.int64).T

    def problems(self) -> dict[int, MatchwoodError]:
        """What is wrong with the filters of events, by the number of the event."""
        if not self._bad:
            return {}
        rows = np.flatnonzero(np.isin(self._code, list(self._bad)))
        return {row: self._bad[int(self._code[row])] for row in rows.tolist()}

    def keep(self, found: Found, first: int, own: pa.Table) -> Found:
        """What counts of what was found for the events `first`, first + 1, ..."""
        n = len(found.offsets) - 1
        event = np.repeat(np.arange(n), np.diff(found.offsets))
        code = self._code[first : first + n][event]
        keep = code < 0
        for number, each in enumerate(self._sets):
            mine = np.flatnonzero(self._set_of[code] == number)
            slots, column = np.unique(found.slots[mine], return_inverse=True)
            for at in range(0, len(slots), ROWS_AT_ONCE):
                truths = each.truths(own.take(pa.array(slots[at : at + ROWS_AT_ONCE])))
                inside = np.flatnonzero((column >= at) & (column < at + ROWS_AT_ONCE))
                asked = mine[inside]
                keep[asked] = truths[self._place[code[asked]], column[inside] - at]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(event[keep], minlength=n))])
        return found._replace(offsets=offsets, slots=found.slots[keep])


def is_tested(matcher: Matcher, name: str) -> bool:
    """Whether a subscription tests an attribute of events."""
    without, with_it = matcher.encode([{}]), matcher.encode([{name: "x"}])
    return bool(with_it.errors) or with_it.batch.attr.tolist() != without.batch.attr.tolist()
