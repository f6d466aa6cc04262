"""Events as entries: event, name, value; one row an attribute of an event.

Events of 15 attributes among thousands would be nearly empty rows of a wide table, and events from
a message or a map have names as data.  Entries of one name are encoded together, column-wise.

Values have one type, or are a struct with a field per type, of which one is not null.  Texts may
stand for values of every type: `read` then says what a text means for a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.columns import column_keys
from matchwood.encode.events import EncodedEvents, EventBatch, key_of, wrong_type
from matchwood.encode.keys import describe
from matchwood.errors import EventError

Part = tuple[int, np.ndarray, np.ndarray]
"""An attribute's id, the events that have it, and their keys."""


@dataclass
class EntryEvents:
    """Entries of `n_events` events: entry i gives `values[i]` to `names[i]` of `event[i]`."""

    n_events: int
    event: np.ndarray
    names: pa.Array
    values: pa.Array
    read: Callable[[str, str], Any] | None = None
    errors: dict[int, EventError] = field(default_factory=dict)

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        """Encode all events; those that cannot be read are in the errors and match nothing."""
        errors = dict(self.errors)
        parts: list[Part] = []
        has: dict[int, np.ndarray] = {}
        for name, at in _by_name(self.names):
            attribute = attributes.by_name.get(name)
            if attribute is None:
                continue
            rows, found = self._attribute(attribute, at, errors)
            parts += found
            has[attribute.id] = rows
        for attribute in attributes.absences:
            absent = np.ones(self.n_events, bool)
            absent[has.get(attribute.id, [])] = False
            rows = np.flatnonzero(absent)
            parts.append((attribute.absence_id, rows, np.ones(len(rows), np.int64)))
        batch, twice = _assemble(parts, self.n_events, errors)
        if twice:
            for row, attr in twice:
                name = attributes.all[attr].name
                message = f"expected attribute {name!r} once, found it twice"
                errors.setdefault(row, EventError(message))
            batch, _ = _assemble(parts, self.n_events, errors)
        return EncodedEvents(batch, errors)

    def _attribute(
        self, attribute: Attribute, at: np.ndarray, errors: dict[int, EventError]
    ) -> tuple[np.ndarray, list[Part]]:
        """The events that have an attribute, and its parts."""
        values, rows = self.values.take(pa.array(at)), self.event[at]
        if not values.null_count and not pa.types.is_struct(values.type):
            return rows, list(self._column(attribute, values, rows, errors))
        seen: list[np.ndarray] = [np.empty(0, np.int64)]
        parts: list[Part] = []
        for column in values.flatten() if pa.types.is_struct(values.type) else [values]:
            present = column.is_valid().to_numpy(zero_copy_only=False)
            if present.any():
                where = rows[present]
                seen.append(where)
                parts += self._column(attribute, column.drop_null(), where, errors)
        return np.concatenate(seen), parts

    def _column(
        self, attribute: Attribute, known: pa.Array, rows: np.ndarray, errors: dict[int, EventError]
    ) -> Iterator[Part]:
        is_text = pa.types.is_string(known.type) or pa.types.is_large_string(known.type)
        if self.read is not None and is_text and attribute.type not in (None, "string"):
            keys, bad = _read_texts(attribute, known, self.read)
        else:
            keys, bad = column_keys(attribute.keys, known)
        if bad is not None:
            for i in np.flatnonzero(bad).tolist():
                found = describe(known[i].as_py())
                errors.setdefault(int(rows[i]), wrong_type(attribute, found))
            known, rows, keys = known.filter(pa.array(~bad)), rows[~bad], keys[~bad]
        yield attribute.id, rows, keys
        if attribute.patterns:
            words = pc.dictionary_encode(known)
            codes = words.indices.to_numpy(zero_copy_only=False)
            for pattern in attribute.patterns.values():
                fits = [
                    pattern.regex.fullmatch(w) is not None for w in words.dictionary.to_pylist()
                ]
                yield pattern.attr_id, rows, np.array(fits, np.int64)[codes]


def _by_name(names: pa.Array) -> Iterator[tuple[str, np.ndarray]]:
    """Every name and the positions of its entries; entries without a name are passed over."""
    words = names if pa.types.is_dictionary(names.type) else pc.dictionary_encode(names)
    codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(words.dictionary) + 1))
    for code, name in enumerate(words.dictionary.to_pylist()):
        if ends[code] < ends[code + 1]:
            yield name, order[ends[code] : ends[code + 1]]


def _read_texts(
    attribute: Attribute, known: pa.Array, read: Callable[[str, str], Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Keys of texts, each distinct one read once."""
    words = pc.dictionary_encode(known)
    keys = np.zeros(len(words.dictionary), np.int64)
    bad = np.zeros(len(words.dictionary), bool)
    for i, text in enumerate(words.dictionary.to_pylist()):
        try:
            keys[i] = key_of(attribute, read(attribute.type or "", text))
        except EventError:
            bad[i] = True
    codes = words.indices.to_numpy(zero_copy_only=False)
    return keys[codes], bad[codes] if bad.any() else None


def _assemble(
    parts: list[Part], n: int, errors: dict[int, EventError]
) -> tuple[EventBatch, list[tuple[int, int]]]:
    """Entries of an event side by side, ascending by attribute; and which came twice."""
    if not parts:
        return EventBatch(np.zeros(n + 1, np.int64), np.empty(0, np.int32), *_NO_KEYS), []
    rows = np.concatenate([rows for _, rows, _ in parts])
    attr = np.repeat([attr for attr, _, _ in parts], [len(rows) for _, rows, _ in parts])
    keys = np.concatenate([keys for _, _, keys in parts])
    if errors:
        good = np.ones(n, bool)
        good[list(errors)] = False
        keep = good[rows]
        rows, attr, keys = rows[keep], attr[keep], keys[keep]
    place = rows * (int(attr.max(initial=0)) + 1) + attr
    order = np.argsort(place)
    again = order[1:][np.diff(place[order]) == 0]
    twice = list(zip(rows[again].tolist(), attr[again].tolist(), strict=True))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=start[1:])
    keys = keys[order]
    return EventBatch(start, attr[order].astype(np.int32), keys, keys), twice


_NO_KEYS = (np.empty(0, np.int64), np.empty(0, np.int64))
