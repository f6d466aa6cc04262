"""Home keys: what decides where a subscription lives (`homes`), and the keys that an event has.

    a = 5        key(a, 5)     events with this very value go there
    a > 5        key(a)        events that have `a` at all go there; any predicate but IS NULL
    a < ctx.b    key(a)        the same, whatever the context says
    (others)     ANY           IS NULL or ctx. alone: every event goes there

Keys     are 64-bit hashes.  Two keys that collide send an event somewhere in vain, never astray.
         Equal values have equal keys whatever their type: 5, 5.0 and the decimal 5.
         Dates and timestamps are compared across types, so they only have key(a).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.tables import flat_columns, readable
from matchwood.encode.arrow.values import python_values, texts
from matchwood.encode.entry_events import EntryEvents
from matchwood.encode.keys import WrongValue, plain_number
from matchwood.lang.cells import read_cell
from matchwood.spark.shapes import JsonEvents

ANY = np.uint64(0)
"""The key of what every event has."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FLOAT, _BOOL = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_MEANINGS = {"": ("string", "bool", "number"), "date": (), "timestamp": ()}
"""As what texts of an attribute have a key(a, v), by its type, if that is not the type alone."""


@lru_cache(maxsize=1 << 14)
def name_key(name: str) -> np.uint64:
    """key(a)."""
    return max(_text_hash(f"a/{name}"), np.uint64(1))


def value_keys(name: np.uint64 | np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """key(a, v) from key(a) and the hashes of values."""
    with np.errstate(over="ignore"):
        keys = _mix(hashes * _ODD + name)
    return np.maximum(keys, np.uint64(1))


@lru_cache(maxsize=1 << 16)
def value_key(name: str, kind: str, value: Any) -> int | None:
    """key(a, v) of a value, by its type, too: True is not 1; None where it has no hash."""
    hashed = hash_of(value)
    return None if hashed is None else int(value_keys(name_key(name), np.array([hashed]))[0])


def hashes_of(column: pa.Array) -> np.ndarray | None:
    """Hashes of values without nulls; None for types that have no key(a, v)."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_boolean(kind):
        return _mix(column.to_numpy(zero_copy_only=False).astype(np.uint64) + _BOOL)
    if pa.types.is_integer(kind):
        return _mix(column.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    if pa.types.is_floating(kind):
        return _float_hashes(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_decimal(kind):
        words = pc.dictionary_encode(column)
        distinct = np.array(
            [hash_of(word) or 0 for word in python_values(words.dictionary)], np.uint64
        )
        return distinct[words.indices.to_numpy(zero_copy_only=False)]
    return None


def hash_of(value: Any) -> np.uint64 | None:
    """The hash of one value; None for numbers that 64 bits do not hold (a constant with more digits
    than a double equals two of them).
    """
    if isinstance(value, str):
        return _text_hash(f"v/{value}")
    if isinstance(value, bool):
        return _mix(np.array([value], np.uint64) + _BOOL)[0]
    try:
        number = plain_number(value)
    except WrongValue:
        return None
    if isinstance(number, int):
        return _mix(np.array([number], np.int64).view(np.uint64))[0]
    return _float_hashes(np.array([number]))[0]


def _float_hashes(values: np.ndarray) -> np.ndarray:
    """As ints where they are whole, so that 5.0 is 5."""
    is_whole = (np.floor(values) == values) & (np.abs(values) < 2.0**63)
    whole = np.where(is_whole, values, 0).astype(np.int64).view(np.uint64)
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return _mix(np.where(is_whole, whole, bits ^ _FLOAT))


def _text_hash(text: str) -> np.uint64:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _mix(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * _MIX[0]
        x = (x ^ (x >> np.uint64(27))) * _MIX[1]
        return x ^ (x >> np.uint64(31))


# -- events ------------------------------------------------------------------------------------


def event_keys(
    events: Any, types: Mapping[str, str], used: Collection[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of events and the keys that they have.

    types  of attributes; one that is only tested for presence, or compared with constants of
           several kinds, has none
    used   all attributes that subscriptions test
    """
    if isinstance(events, pa.Table):
        for name, column in flat_columns(events, used):
            if name in used:
                yield from _column_keys(name, texts(readable(column)), np.arange(len(column)))
        return
    if isinstance(events, JsonEvents):
        yield _object_keys(events.rows(types)[0], used)
        return
    assert isinstance(events, EntryEvents)
    words = pc.dictionary_encode(events.names)
    codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(words.dictionary) + 1))
    for code, name in enumerate(python_values(words.dictionary)):
        if name not in used:
            continue
        at = order[ends[code] : ends[code + 1]]
        values = events.values.take(pa.array(at))
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        columns = values.flatten() if pa.types.is_struct(values.type) else [values]
        for column in columns:
            if is_text:
                yield from _text_keys(name, types.get(name, ""), column, events.event[at])
            else:
                yield from _column_keys(name, column, events.event[at])


def _object_keys(objects: list[Any], used: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and keys of JSON objects.  Those that are none, or hold what no event may, are refused
    elsewhere; here they have no key.
    """
    found: list[tuple[int, Any]] = []
    for row, each in enumerate(objects):
        for name, value in _named_values(each, ""):
            if value is not None and name in used:
                found.append((row, name_key(name)))
                hashed = hash_of(value) if isinstance(value, (bool, int, float, str)) else None
                if hashed is not None:
                    found.append(
                        (row, value_keys(name_key(name), np.array([hashed], np.uint64))[0])
                    )
    rows = np.array([row for row, _ in found], np.int64)
    return rows, np.array([key for _, key in found], np.uint64)


def _named_values(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Nested objects by their names, and what is in them by dotted names."""
    if name:
        yield name, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _named_values(inner, f"{name}.{key}" if name else key)


def _column_keys(
    name: str, column: pa.Array, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    present = column.is_valid().to_numpy(zero_copy_only=False)
    rows = rows[present]
    if not len(rows):
        return
    yield rows, np.full(len(rows), name_key(name))
    hashes = hashes_of(column.drop_null())
    if hashes is not None:
        yield rows, value_keys(name_key(name), hashes)


def _text_keys(
    name: str, type_: str, column: pa.Array, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The same of texts that stand for values of a type; "": of every kind."""
    rows = rows[column.is_valid().to_numpy(zero_copy_only=False)]
    if not len(rows):
        return
    yield rows, np.full(len(rows), name_key(name))
    words = pc.dictionary_encode(column.drop_null())
    texts, codes = python_values(words.dictionary), words.indices.to_numpy(zero_copy_only=False)
    for kind in _MEANINGS.get(type_, (type_,)):
        read = [hash_of(read_cell(kind, t)) or 0 if isinstance(t, str) else 0 for t in texts]
        yield rows, value_keys(name_key(name), np.array(read, np.uint64)[codes])
