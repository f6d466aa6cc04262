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

from matchwood.encode.arrow.column_entries import known_entries
from matchwood.encode.arrow.columns import integer_keys
from matchwood.encode.arrow.events import absence_entries
from matchwood.encode.arrow.made import Entries, made_entries
from matchwood.encode.arrow.tables import readable
from matchwood.encode.arrow.values import is_text, python_values, texts
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computing import computing
from matchwood.encode.entry_kernels import order_entries
from matchwood.encode.events import EncodedEvents, EventBatch
from matchwood.encode.interval_events import KeySets
from matchwood.encode.keys import describe
from matchwood.encode.value_entries import value_entries, wrong_type
from matchwood.errors import EventError
from matchwood.lang.cells import Cell

_INT64 = pa.int64().id


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
        entries: list[Entries] = []
        words, order, ends = _by_name(self.names)
        # put in order once: a take per name would cost more than reading its values
        values, rows = self.values.take(pa.array(order)), self.event[order]
        integers = _integers(values)
        for code, name in enumerate(words):
            first, last = ends[code], ends[code + 1]
            if not isinstance(name, str):
                problem = EventError(f"expected the name of an attribute, found {describe(name)}")
                errors.update(dict.fromkeys(rows[first:last].tolist(), problem) | errors)
                continue
            attribute = attributes.by_name.get(name)
            if first == last or attribute is None or attribute.is_hidden:
                continue
            if integers is not None:
                known = _integer_entries(
                    attributes, attribute, rows[first:last], integers[first:last]
                )
                if known is not None:
                    entries.append(known)
                    continue
            part = values.slice(first, last - first)
            entries += self._attribute(attributes, attribute, part, rows[first:last], errors)
        warnings: dict[int, list[EventError]] = {}
        if attributes.computed:
            entries += self._computed(attributes, (words, ends, values, rows), warnings)
        entries += absence_entries(attributes, entries, self.n_events)
        batch, twice = _assemble(entries, self.n_events, errors)
        for row, attr in twice:
            name = _named(attributes, attr)
            errors.setdefault(row, EventError(f"expected attribute {name!r} once, found it twice"))
        if twice:
            batch, _ = _assemble(entries, self.n_events, errors)
        return EncodedEvents(batch, errors, warnings)

    def _computed(
        self,
        attributes: Attributes,
        columns: tuple[list[Any], list[int], pa.Array, np.ndarray],
        warnings: dict[int, list[EventError]],
    ) -> Iterator[Entries]:
        """Entries of computed attributes, event by event; each reads texts in its own way."""
        words, ends, values, rows = columns
        needed = attributes.read_by_computed()
        events: list[dict[str, Any]] = [{} for _ in range(self.n_events)]
        for code, name in enumerate(words):
            if name not in needed:
                continue
            first, last = ends[code], ends[code + 1]
            part = python_values(values.slice(first, last - first))
            for row, value in zip(rows[first:last].tolist(), part, strict=True):
                if isinstance(value, dict):  # a struct with a field per type
                    value = next((each for each in value.values() if each is not None), None)
                elif self.read is not None and isinstance(value, str):
                    kind = attributes.declared_type(name)
                    value = Cell(value) if kind is None else self.read(kind, value)
                events[row][name] = value
        for made in computing(attributes).made_many(events, warnings):
            yield from made_entries(made)

    def _attribute(
        self,
        attributes: Attributes,
        attribute: Attribute,
        values: pa.Array,
        rows: np.ndarray,
        errors: dict[int, EventError],
    ) -> list[Entries]:
        """The entries of an attribute."""
        is_struct = pa.types.is_struct(values.type)
        if not values.null_count and not is_struct:  # the usual case, once for every name
            return list(self._known(attributes, attribute, values, rows, errors))
        entries: list[Entries] = []
        for column in values.flatten() if is_struct else [values]:
            present = column.is_valid().to_numpy(zero_copy_only=False)
            if present.any():
                where = rows[present]
                entries += self._known(attributes, attribute, column.drop_null(), where, errors)
        return entries

    def _known(
        self,
        attributes: Attributes,
        attribute: Attribute,
        known: pa.Array,
        rows: np.ndarray,
        errors: dict[int, EventError],
    ) -> Iterator[Entries]:
        known = readable(known)
        if self.read is None or not is_text(known.type) or attribute.type == "string":
            return known_entries(attributes, attribute, texts(known), rows, errors)
        if attribute.type is not None:
            return _text_entries(attributes, attribute, known, rows, self.read, errors)
        return self._open_texts(attributes, attribute, known, rows)

    def _open_texts(
        self, attributes: Attributes, attribute: Attribute, known: pa.Array, rows: np.ndarray
    ) -> Iterator[Entries]:
        """Entries of texts that stand for values of an open attribute, read for each kind."""
        if attribute.is_asked:
            yield Entries(attribute.id, rows, np.zeros(len(rows), np.int64))
        assert self.read is not None
        for kind, each in attribute.kinds.items():
            others: dict[int, EventError] = {}
            if kind == "string":
                yield from known_entries(attributes, each, known, rows, others)
            else:
                yield from _text_entries(attributes, each, known, rows, self.read, others, kind)
            if others:
                attributes.unknown[attribute.label] += len(others)


def _by_name(names: pa.Array) -> tuple[list[Any], np.ndarray, list[int]]:
    """The names, the positions of entries by name, and where those of each name begin and end.

    Entries without a name are passed over: they lie before the first.
    """
    words = names if pa.types.is_dictionary(names.type) else pc.dictionary_encode(names)
    codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = _stable_order(codes + 1, len(words.dictionary))
    ends = np.searchsorted(codes[order], np.arange(len(words.dictionary) + 1))
    return python_values(words.dictionary), order, ends.tolist()


def _stable_order(numbers: np.ndarray, most: int) -> np.ndarray:
    """As argsort; numbers up to `most`.  Short ones are sorted by radix, several times as fast."""
    short = most < 2**16
    found: np.ndarray = np.argsort(numbers.astype(np.uint16) if short else numbers, kind="stable")
    return found


def _integers(values: pa.Array) -> np.ndarray | None:
    """Values without nulls that are ints of 64 bits."""
    if values.type.id != _INT64 or values.null_count:
        return None
    found: np.ndarray = values.to_numpy(zero_copy_only=False)
    return found


def _integer_entries(
    attributes: Attributes, attribute: Attribute, rows: np.ndarray, values: np.ndarray
) -> Entries | None:
    """The entries of ints where each has one key and nothing else follows from it; else None."""
    if attribute.keys is None and list(attribute.kinds) == ["number"] and not attribute.is_asked:
        attribute = attribute.kinds["number"]
    if attribute.keys is None or attribute.patterns or attribute.beside_id >= 0:
        return None
    if attributes.exact(attribute) is not None:
        return None
    keys = integer_keys(attribute.keys, values)
    return None if keys is None else Entries(attribute.id, rows, keys)


def _text_entries(
    attributes: Attributes,
    attribute: Attribute,
    known: pa.Array,
    rows: np.ndarray,
    read: Callable[[str, str], Any],
    errors: dict[int, EventError],
    kind: str | None = None,
) -> Iterator[Entries]:
    """Entries of texts, each distinct one read once, as the attribute's type or as a kind."""
    words = pc.dictionary_encode(known)
    codes = words.indices.to_numpy(zero_copy_only=False)
    texts = python_values(words.dictionary)
    found: list[dict[int, int | KeySets] | None] = []
    for text in texts:
        try:
            value = read(kind or attribute.type or "", text) if isinstance(text, str) else text
            found.append(dict(value_entries(attributes, attribute, value)))
        except EventError:
            found.append(None)
    bad = np.array([each is None for each in found])[codes]
    for i in np.flatnonzero(bad).tolist():
        errors.setdefault(int(rows[i]), wrong_type(attribute, describe(texts[codes[i]])))
    codes, rows = codes[~bad], rows[~bad]
    for id_ in sorted({id_ for each in found if each is not None for id_ in each}):
        ends = [(0, 0) if each is None else _ends(each[id_]) for each in found]
        first, last = np.array(ends, np.int64).T
        yield Entries(id_, rows, first[codes], last[codes])


def _ends(key: int | KeySets) -> tuple[int, int]:
    """First and last key; a value is one key, or lies in one gap between two."""
    return key.intervals[0] if isinstance(key, KeySets) else (key, key)


def _named(attributes: Attributes, attr: int) -> str:
    """The name of an attribute, or of the one that it is derived from."""
    attribute = attributes.all[attr]
    return attributes.all[attribute.source].name if attribute.is_derived else attribute.name


def _assemble(
    parts: list[Entries], n: int, errors: dict[int, EventError]
) -> tuple[EventBatch, list[tuple[int, int]]]:
    """Entries of an event side by side, ascending by attribute (sorted, as names may be many);
    and which attributes came twice, with their events.
    """
    none = np.empty(0, np.int64)
    parts = sorted(parts, key=lambda each: each.attr)
    rows = np.concatenate([none, *[each.rows for each in parts]])
    part_attr = np.array([each.attr for each in parts], np.int64)
    part_end = np.cumsum([len(each.rows) for each in parts], dtype=np.int64)
    is_bad = np.zeros(n, bool)
    is_bad[list(errors)] = True
    start, order = np.zeros(n + 1, np.int64), np.empty(len(rows), np.int64)
    attr = np.empty(len(rows), np.int32)
    n_twice = order_entries(part_attr, part_end, rows, is_bad, start, attr, order)
    attr, order = attr[: start[-1]], order[: start[-1]]
    is_plain = all(each.hi is None or (each.hi == each.keys).all() for each in parts)
    hi = lo = np.concatenate([none, *[each.keys for each in parts]])[order]
    if not is_plain:
        last = [each.keys if each.hi is None else each.hi for each in parts]
        hi = np.concatenate([none, *last])[order]
    twice: list[tuple[int, int]] = []
    if n_twice:
        of_event = rows[order]
        again = (of_event[1:] == of_event[:-1]) & (attr[1:] == attr[:-1])
        found = zip(of_event[1:][again].tolist(), attr[1:][again].tolist(), strict=True)
        twice = sorted(set(found))
    return EventBatch(start, attr, lo, hi), twice
