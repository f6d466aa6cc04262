"""Home keys: by which one predicate a subscription is found, so that events skip most shards.

Idea.    A conjunction holds only if each of its predicates does.  So one of them, its *home*, can
         decide where it lives: an event that does not satisfy the home cannot match it.

    a = 5        key(a, 5)     events with this very value go there
    a > 5        key(a)        events that have `a` at all go there; any predicate but IS NULL
    a < ctx.b    key(a)        the same, whatever the context says
    (others)     ANY           OR at the top, IS NULL or ctx. alone: every event goes there

Keys     are 64-bit hashes.  Two keys that collide send an event somewhere in vain, never astray.
         Equal values have equal keys whatever their type: 5, 5.0 and the decimal 5.
         Dates and timestamps are compared across types, so they only have key(a).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow_events import flat_columns, readable
from matchwood.encode.arrow_values import python_values
from matchwood.encode.entry_events import EntryEvents
from matchwood.encode.keys import WrongValue, plain_number
from matchwood.encode.schema import literal_type
from matchwood.errors import MatchwoodError
from matchwood.lang.cells import read_cell
from matchwood.lang.names import is_context
from matchwood.lang.nodes import And, Comparison, Expr, IsNull, Not, Predicate
from matchwood.lang.parser import parse
from matchwood.lang.scalars import is_computed
from matchwood.spark.shapes import JsonEvents

ANY = np.uint64(0)
"""The key of what every event has."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FLOAT, _BOOL = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
EQUAL = ("=", "==")
_NO_HOMES = np.empty(0, np.uint64)


def name_key(name: str) -> np.uint64:
    """key(a)."""
    return max(_text_hash(f"a/{name}"), np.uint64(1))


def value_keys(name: str, hashes: np.ndarray) -> np.ndarray:
    """key(a, v) from the hashes of values."""
    with np.errstate(over="ignore"):
        keys = _mix(hashes * _ODD + name_key(name))
    return np.maximum(keys, np.uint64(1))


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
            [_one(word) or 0 for word in python_values(words.dictionary)], np.uint64
        )
        return distinct[words.indices.to_numpy(zero_copy_only=False)]
    return None


def _one(value: Any) -> np.uint64 | None:
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


# -- subscriptions -----------------------------------------------------------------------------


class Costs:
    """How often keys occur among subscriptions, from a sample: rarer homes are better."""

    def __init__(self, keys: np.ndarray, shares: np.ndarray) -> None:
        order = np.argsort(keys)
        self.keys, self.shares = keys[order], shares[order]

    def share(self, keys: np.ndarray) -> np.ndarray:
        if not len(self.keys):
            return np.zeros(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found: np.ndarray = np.where(self.keys[at] == keys, self.shares[at], 0.0)
        return found


def candidate_keys(table: pa.Table, types: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """The key that each row of a predicate table offers, and how coarse it is: 0, 1 or 2 (none)."""
    words, code = distinct(table.column("attribute"))
    operators, op_code = distinct(table.column("operator"))
    upper = [" ".join(str(each).upper().split()) for each in operators]
    is_equal = np.array([each in EQUAL for each in upper], bool)[op_code]
    is_absent = np.array([each == "IS NULL" for each in upper], bool)[op_code]
    is_theirs = np.array([is_context(str(word)) for word in words], bool)[code]  # no event has it
    by_name = np.array([name_key(str(word)) for word in words], np.uint64)
    keys, coarse = by_name[code], np.where(is_absent | is_theirs, 2, 1)
    first, known = _first_values(table)
    is_plain = np.array(
        [types.get(str(w), "string") not in ("date", "timestamp") for w in words], bool
    )
    usable = is_equal & known & is_plain[code] & ~is_theirs & _have_hashes(first)
    at = np.flatnonzero(usable)
    if len(at):
        hashes = hashes_of(first.take(pa.array(at)))
        if hashes is not None:
            with np.errstate(over="ignore"):
                found = np.maximum(_mix(hashes * _ODD + keys[at]), np.uint64(1))
            keys[at], coarse[at] = found, 0
    return keys, coarse


def _have_hashes(column: pa.Array) -> np.ndarray:
    """Which constants have the hash of every value that is equal to them (see `_one`)."""
    if column.type == pa.uint64() or pa.types.is_decimal(column.type):
        return np.array([_one(value) is not None for value in column.to_pylist()], bool)
    return np.ones(len(column), bool)


def distinct(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """The distinct values of a column, null among them, and which of them each row has."""
    words = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return words.dictionary.to_pylist(), words.indices.to_numpy(zero_copy_only=False)


def _first_values(table: pa.Table) -> tuple[pa.Array, np.ndarray]:
    """The first constant of each row; unusable where constants are structs."""
    for name in ("value", "values"):
        if name not in table.column_names:
            continue
        column = table.column(name).combine_chunks()
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
            place = np.asarray(column.offsets)[:-1]
            first = column.values.take(pa.array(place, mask=sizes == 0))
        else:
            first = column
        if not pa.types.is_struct(first.type):
            known = first.is_valid().to_numpy(zero_copy_only=False)
            if known.any():
                return first, known
    return pa.nulls(table.num_rows), np.zeros(table.num_rows, bool)


def homes_of_predicates(
    table: pa.Table, costs: Costs, types: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """The home of the subscription of every row; rows of an id lie side by side.

    Also the number of the subscription of every row.
    """
    keys, coarse = candidate_keys(table, types)
    ids, code = distinct(table.column("id"))
    cost = coarse + np.minimum(costs.share(keys), 0.99)
    order = np.lexsort((keys, cost, code))
    first = np.searchsorted(code[order], np.arange(len(ids)))
    best = order[first]
    home = np.where(coarse[best] < 2, keys[best], ANY)
    return home[code], code


def home_of_text(text: str, costs: Costs, types: Mapping[str, str]) -> np.uint64:
    """The home of an expression; ANY also for one that cannot be read."""
    try:
        tree = parse(text)
    except (MatchwoodError, TypeError):
        return ANY
    best: tuple[float, int] = (2.0, int(ANY))
    for node in _conjuncts(tree):
        key, coarse = _key_of(node, types)
        if key is not None:
            share = float(costs.share(np.array([key], np.uint64))[0])
            best = min(best, (coarse + min(share, 0.99), int(key)))
    return np.uint64(best[1])


def keys_of_text(text: str, types: Mapping[str, str]) -> list[np.uint64]:
    """The keys that an expression offers."""
    try:
        tree = parse(text)
    except (MatchwoodError, TypeError):
        return []
    found = [_key_of(node, types)[0] for node in _conjuncts(tree)]
    return [key for key in found if key is not None]


def _conjuncts(tree: Expr) -> Iterator[Expr]:
    if isinstance(tree, And):
        for each in tree.operands:
            yield from _conjuncts(each)
    else:
        yield tree


def _key_of(node: Expr, types: Mapping[str, str]) -> tuple[np.uint64 | None, int]:
    is_negated = isinstance(node, Not)
    inner = node.operand if isinstance(node, Not) else node
    if not isinstance(inner, Predicate):
        return None, 2
    name: str = inner.name
    if is_context(name) or is_computed(name):  # no event has it
        return None, 2
    if isinstance(inner, IsNull):
        asks_presence = inner.negated != is_negated
        return (name_key(name), 1) if asks_presence else (None, 2)
    plain = isinstance(inner, Comparison) and inner.op == "=" and not is_negated
    if plain and _agrees(types.get(name), inner.value):  # type: ignore[attr-defined]
        value = inner.value  # type: ignore[attr-defined]
        if isinstance(value, (bool, int, float, str, Decimal)):
            found = _one(value)
            if found is not None:
                return value_keys(name, np.array([found], np.uint64))[0], 0
    return name_key(name), 1


def _agrees(kind: str | None, value: Any) -> bool:
    """Whether a constant is of the type that events' texts are read as."""
    if kind in (None, "date", "timestamp"):
        return kind is None
    found = literal_type(value)
    return kind == found or (found == "number" and kind in ("int", "float"))


# -- events ------------------------------------------------------------------------------------


def event_keys(
    events: Any, types: Mapping[str, str], homes: np.ndarray = _NO_HOMES
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of events and the keys that they have.

    types  of all attributes in use; one that is only tested for presence, or only compared with
           values of contexts that were never set, has none
    homes  the keys of such attributes are among these, ascending
    """

    @cache
    def is_used(name: str) -> bool:
        key = name_key(name)
        at = int(np.searchsorted(homes, key))
        return name in types or (at < len(homes) and homes[at] == key)

    if isinstance(events, pa.Table):
        for name, column in flat_columns(events):
            if is_used(name):
                yield from _column_keys(name, readable(column), np.arange(len(column)))
        return
    if isinstance(events, JsonEvents):
        yield _object_keys(events.rows(types)[0], is_used)
        return
    assert isinstance(events, EntryEvents)
    words = pc.dictionary_encode(events.names)
    codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(words.dictionary) + 1))
    for code, name in enumerate(python_values(words.dictionary)):
        if not isinstance(name, str) or not is_used(name):
            continue
        at = order[ends[code] : ends[code + 1]]
        values = events.values.take(pa.array(at))
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        columns = values.flatten() if pa.types.is_struct(values.type) else [values]
        for column in columns:
            kind = types.get(name, "string")
            if is_text and kind != "string":
                yield from _text_keys(name, kind, column, events.event[at])
            else:
                yield from _column_keys(name, column, events.event[at])


def _object_keys(
    objects: list[Any], is_used: Callable[[str], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and keys of JSON objects.  Those that are none, or hold what no event may, are refused
    elsewhere; here they have no key.
    """
    found: list[tuple[int, Any]] = []
    for row, each in enumerate(objects):
        for name, value in _named_values(each, ""):
            if value is not None and is_used(name):
                found.append((row, name_key(name)))
                hashed = _one(value) if isinstance(value, (bool, int, float, str)) else None
                if hashed is not None:
                    found.append((row, value_keys(name, np.array([hashed], np.uint64))[0]))
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
        yield rows, value_keys(name, hashes)


def _text_keys(
    name: str, kind: str, column: pa.Array, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    present = column.is_valid().to_numpy(zero_copy_only=False)
    rows = rows[present]
    if not len(rows):
        return
    yield rows, np.full(len(rows), name_key(name))
    if kind not in ("date", "timestamp"):
        words = pc.dictionary_encode(column.drop_null())
        texts = python_values(words.dictionary)
        read = [_one(read_cell(kind, each)) or 0 if isinstance(each, str) else 0 for each in texts]
        hashes = np.array(read, np.uint64)[words.indices.to_numpy(zero_copy_only=False)]
        yield rows, value_keys(name, hashes)
