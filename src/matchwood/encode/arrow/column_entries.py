"""Entries of a column's values: of a declared attribute, or of an open one for each kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.columns import column_keys, float_places, is_double
from matchwood.encode.arrow.made import Entries
from matchwood.encode.arrow.values import Misfit, is_text, plain_values, python_values
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.keys import describe
from matchwood.encode.kinds import MOMENTS
from matchwood.encode.value_entries import as_kind, wrong_type
from matchwood.errors import EventError

_DATE = "^[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_USUAL_DATE = f"(?s){_DATE}(?:[ T].*)?\\z"
_USUAL_TIME = _DATE + r"[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z?\z"
"""Texts that Arrow reads as `lang.moments` does, but for days that a month does not have."""


def known_entries(
    attributes: Attributes,
    attribute: Attribute,
    known: pa.Array,
    rows: np.ndarray,
    errors: dict[int, EventError],
) -> Iterator[Entries]:
    """Entries of values without nulls, `known[i]` that of event `rows[i]`, and what they derive."""
    if attribute.keys is None:
        yield from open_column(attributes, attribute, known, rows)
        return
    keys, bad = column_keys(attribute.keys, known)
    if bad is not None:
        for i in np.flatnonzero(bad):
            errors.setdefault(int(rows[i]), wrong_type(attribute, _described(known, int(i))))
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
    return _read_moments(kind, words.dictionary).take(words.indices)


def _read_moments(kind: str, texts: pa.Array) -> pa.Array:
    """Texts as dates or timestamps: of the usual forms many at a time, others one by one."""
    time_type = pa.timestamp("us", "UTC") if kind == "timestamp" else pa.date32()
    form = _USUAL_TIME if kind == "timestamp" else _USUAL_DATE
    is_usual = pc.fill_null(pc.match_substring_regex(texts, form), False)
    try:
        usual = _usual_moments(kind, texts.filter(is_usual))
    except pa.ArrowInvalid:  # a day that its month does not have
        is_usual = pa.array(np.zeros(len(texts), bool))
        usual = pa.array([], time_type)
    others = pc.invert(is_usual)
    read = [as_kind(kind, text) for text in python_values(texts.filter(others))]
    found = [None if isinstance(each, (str, bytes)) else each for each in read]
    flags = others.to_numpy(zero_copy_only=False)
    order = np.argsort(np.argsort(flags, kind="stable"), kind="stable")
    return pa.concat_arrays([usual, pa.array(found, time_type)]).take(pa.array(order))


def _usual_moments(kind: str, texts: pa.Array) -> pa.Array:
    if kind != "timestamp":
        return pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32())
    instants = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us"))
    return instants.view(pa.timestamp("us", "UTC"))


def _described(column: pa.Array, i: int) -> str:
    (found,) = plain_values(column.slice(i, 1))
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
