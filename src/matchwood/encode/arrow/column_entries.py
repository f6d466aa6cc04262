"""Entries of a column's values: of a declared attribute, or of an open one for each kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.made import Entries
from matchwood.encode.arrow.values import Misfit, is_text, python_value, python_values
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.columns import column_keys, float_places, is_double
from matchwood.encode.keys import describe
from matchwood.encode.kinds import MOMENTS
from matchwood.encode.value_entries import as_kind, wrong_type
from matchwood.errors import EventError


def known_entries(
    attributes: Attributes,
    attribute: Attribute,
    known: pa.Array,
    rows: np.ndarray,
    errors: dict[int, EventError],
) -> Iterator[Entries]:
    """Entries of values without nulls, `known[i]` that of event `rows[i]`, and what they derive."""
    if pa.types.is_binary(known.type):  # texts, as far as they are UTF-8
        known = known.view(pa.string())
    if attribute.keys is None:
        yield from open_column(attributes, attribute, known, rows)
        return
    keys, bad = column_keys(attribute.keys, known)
    if bad is not None:
        for i in np.flatnonzero(bad):
            errors.setdefault(int(rows[i]), wrong_type(attribute, _described(known[int(i)])))
        known = known.filter(pa.array(~bad))
        rows, keys = rows[~bad], keys[~bad]
    yield Entries(attribute.id, rows, keys)
    if attribute.patterns and len(rows):
        yield from _pattern_entries(attribute, known, rows)
    if attribute.beside_id >= 0 and len(rows):
        derived = attributes.all[attribute.beside_id]
        if derived.type == "string":
            yield Entries(derived.id, rows, column_keys(derived.keys, known)[0])
        else:
            yield Entries(derived.id, rows, *float_places(known))
    exact = attributes.exact(attribute)
    if exact is not None and len(rows) and not is_double(known.type):
        yield Entries(exact.id, rows, column_keys(exact.keys, known)[0])


def open_column(
    attributes: Attributes, attribute: Attribute, known: pa.Array, rows: np.ndarray
) -> Iterator[Entries]:
    """Entries of an open attribute: its presence, and its values for each kind."""
    if attribute.is_asked:
        yield Entries(attribute.id, rows, np.zeros(len(rows), np.int64))
    for kind, each in attribute.kinds.items():
        column, of_kind = known, rows
        if kind in MOMENTS:
            column = moments(kind, known)
            if column.null_count:
                of_kind = rows[column.is_valid().to_numpy(zero_copy_only=False)]
                column = column.drop_null()
        others: dict[int, EventError] = {}
        yield from known_entries(attributes, each, column, of_kind, others)
        n_unknown = len(rows) - len(of_kind) + len(others)
        if n_unknown:
            attributes.unknown[attribute.label] += n_unknown


def moments(kind: str, known: pa.Array) -> pa.Array:
    """A column of strings as dates or timestamps, null where one does not read so."""
    is_coded = pa.types.is_dictionary(known.type)
    if not is_text(known.type.value_type if is_coded else known.type):
        return known
    words = known if is_coded else pc.dictionary_encode(known)
    read = [as_kind(kind, text) for text in python_values(words.dictionary)]
    found = [None if isinstance(each, (str, bytes)) else each for each in read]
    time_type = pa.timestamp("us", "UTC") if kind == "timestamp" else pa.date32()
    return pa.array(found, time_type).take(words.indices)


def _described(value: pa.Scalar) -> str:
    found = python_value(value)
    return repr(found) if isinstance(found, Misfit) else describe(found)


def _pattern_entries(attribute: Attribute, known: pa.Array, rows: np.ndarray) -> Iterator[Entries]:
    if not pa.types.is_dictionary(known.type):
        known = pc.dictionary_encode(known)
    codes = known.indices.to_numpy(zero_copy_only=False)
    # a dictionary may hold words that no row has, null and invalid ones among them
    distinct = [each if isinstance(each, str) else "" for each in python_values(known.dictionary)]
    for pattern in attribute.patterns.values():
        fits = [pattern.regex.fullmatch(value) is not None for value in distinct]
        yield Entries(pattern.attr_id, rows, np.array(fits, np.int64)[codes])
