"""What an update of the context says, in keys.

An update is taken whole or not at all, so everything is checked before anything is learned: first
the types of names that are new, then every value, and only then the types and the strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.context.objects import flat_values, is_struct, objects_above, wrong_name
from matchwood.encode.attribute import Attribute
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import (
    EPOCH_DAY,
    INT_MIN,
    OBJECT,
    DictionaryKeys,
    FloatKeys,
    float_of_key,
)
from matchwood.encode.like import compile_pattern
from matchwood.encode.relations import compatible, spread
from matchwood.encode.schema import literal_type
from matchwood.encode.value_entries import key_of
from matchwood.errors import EventError, ParseError, SchemaError
from matchwood.lang.names import CONTEXT
from matchwood.lang.python_values import as_value

if TYPE_CHECKING:
    from matchwood.context.store import ContextStore

ABSENT = INT_MIN
Id = int | str
Column = tuple[int, np.ndarray, np.ndarray]
"""A column of the store, the positions in an update that have a value for it, and their keys."""


class ValueEncoder:
    """Makes keys of the values that contexts are given, for the columns of a store."""

    def __init__(self, store: ContextStore, table: ExpressionTable) -> None:
        self._store = store
        self._attributes = store.attributes
        self._strings = store.attributes.context_strings
        self._table = table

    # -- one context -------------------------------------------------------------------------

    def changes(self, values: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Columns and keys of an update of one context."""
        changes = self.plain_changes(values)
        return self._changes_of_any(values) if changes is None else changes

    def plain_changes(self, values: Mapping[str, Any]) -> list[tuple[int, int]] | None:
        """The same where nothing is learned; None for new attributes and strings, patterns and
        nested values.
        """
        by_name, columns = self._attributes.by_name, self._store.column_of
        changes: list[tuple[int, int]] = []
        for name, value in values.items():
            if not isinstance(name, str):
                raise wrong_name(name)
            attribute = by_name.get(CONTEXT + name)
            if attribute is None or attribute.type is None or attribute.type == OBJECT:
                return None
            col = columns.get(attribute.id)
            if col is None or "." in name:
                return None
            if attribute.keys is self._strings:
                key = self._known_string(attribute, value)
                if key is None:
                    return None
                changes.append((col, key))
            elif type(value) is not float and isinstance(value, Mapping):
                return None
            else:
                changes.append((col, _key(attribute, value)))
        return changes

    def _known_string(self, attribute: Attribute, value: Any) -> int | None:
        """The key of a string that was set before; None where it is new, or patterns ask for it."""
        if attribute.id in self._store.patterns:
            return None
        if value is None:
            return ABSENT
        return self._strings.dictionary.label_of.get(value) if type(value) is str else None

    def prepare(self, updates: Iterable[Mapping[str, Any]]) -> None:
        """Refuse what cannot be set; learn the types and strings of the rest at once."""
        self._learn([each for values in updates for each in self._flat(values)])

    def _changes_of_any(self, values: Mapping[str, Any]) -> list[tuple[int, int]]:
        """The same for new attributes, nested mappings and strings."""
        flat = self._flat(values)
        self._learn(flat)
        changes: list[tuple[int, int]] = []
        for name, value in flat:
            attribute = self._attributes.get(name, None)
            if value is None and attribute.type == OBJECT:
                changes += [(col, ABSENT) for col in self._columns_below(name)]
            if value is not None and attribute.keys is self._strings:
                key = self._strings.dictionary.label_of[value]
            else:
                key = _key(attribute, value)
            changes.append((self._store.column(attribute.id), key))
            for pattern, col in self._store.patterns.get(attribute.id, {}).items():
                changes.append((col, ABSENT if value is None else int(fits(pattern, value))))
        return changes

    def _flat(self, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Names and values; {} stands for an object, unless its name has values of its own."""
        found = []
        for name, value in flat_values(values, CONTEXT):
            if not isinstance(value, Mapping) or self._may_be_object(name):
                found.append((name, value))
        return found

    def _may_be_object(self, name: str) -> bool:
        known = self._attributes.by_name.get(name)
        return known is None or (known.type in (None, OBJECT) and not known.n_references)

    def _columns_below(self, name: str) -> list[int]:
        """The columns of an object's fields, and of patterns on them."""
        found = []
        for attr, col in self._store.column_of.items():
            if self._attributes.all[attr].name.startswith(f"{name}."):
                found += [col, *self._store.patterns.get(attr, {}).values()]
        return found

    def _learn(self, flat: Sequence[tuple[str, Any]]) -> None:
        types: dict[str, str] = {}
        for name, value in flat:
            if value is not None and name not in types and self._is_new(name):
                types[name] = _type_of(name, value)
        self._spread(types)
        probes: dict[str, Attribute] = {}
        words: dict[str, None] = {}
        for name, value in flat:
            probe = probes.get(name)
            if probe is None:
                probe = probes[name] = self._probe(name, types)
            _key(probe, value)
            if value is not None and probe.keys is self._strings:
                words[value] = None
        self._learn_types(types)
        self._learn_strings(list(words))

    # -- columns of many contexts ------------------------------------------------------------

    def columns(self, columns: Mapping[str, Any]) -> list[Column]:
        """The same for Arrow columns that have one value per context; null leaves it as it is."""
        from matchwood.encode.arrow.tables import readable

        types: dict[str, str] = {}
        found: list[tuple[str, Any, np.ndarray]] = []
        objects: dict[str, np.ndarray] = {}
        for name, each in columns.items():
            column = each if is_struct(each) else readable(each)
            at = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            for parent in (*objects_above(name), *([name] if is_struct(each) else [])):
                is_there = objects.setdefault(CONTEXT + parent, np.zeros(len(column), bool))
                is_there[at] = True
            if len(at) and not is_struct(each):
                known = column if len(at) == len(column) else column.drop_null()
                found.append((CONTEXT + name, known, at))
                if self._is_new(CONTEXT + name):
                    types[CONTEXT + name] = _type_of_column(CONTEXT + name, known)
        self._spread(types)
        checked = [_checked(self._probe(name, types), known, at) for name, known, at in found]
        self._learn_types(types)
        self._learn_strings(
            [word for each in checked if isinstance(each, _Words) for word in each.words]
        )
        encoded: list[Column] = []
        for (name, _, at), keys in zip(found, checked, strict=True):
            attribute = self._attributes.get(name, None)
            col = self._store.column(attribute.id)
            if not isinstance(keys, _Words):
                encoded.append((col, at, keys))
                continue
            label_of = self._strings.dictionary.label_of
            encoded.append((col, at, keys.each(label_of.__getitem__)))
            for pattern, its_col in self._store.patterns.get(attribute.id, {}).items():
                encoded.append((its_col, at, keys.each(partial(fits, pattern))))
        return encoded + self._object_columns(objects)

    def _object_columns(self, objects: Mapping[str, np.ndarray]) -> list[Column]:
        """Objects that fields or structs make present."""
        found: list[Column] = []
        for name, is_there in objects.items():
            at = np.flatnonzero(is_there)
            if len(at) and self._may_be_object(name):
                self._learn_types({name: OBJECT})
                col = self._store.column(self._attributes.get(name, None).id)
                found.append((col, at, np.zeros(len(at), np.int64)))
        return found

    # -- what is new -------------------------------------------------------------------------

    def _is_new(self, name: str) -> bool:
        known = self._attributes.by_name.get(name)
        return known is None or known.type is None

    def _spread(self, types: dict[str, str]) -> None:
        """Types of what is compared with new names; EventError when two of them clash."""
        if not types:
            return
        links = self._attributes.links()
        spread(self._attributes, types, links)
        for name, reference in links:
            mine, other = types.get(name), types.get(reference)
            if mine is not None and other is not None and not compatible(mine, other):
                raise EventError(
                    f"{name!r} would be of type {mine} and {reference!r} of type {other}, and a "
                    "subscription compares them: expected values of one type"
                )

    def _probe(self, name: str, types: Mapping[str, str]) -> Attribute:
        """The attribute as it will be once its type is learned."""
        known = self._attributes.by_name.get(name)
        kind = types.get(name)
        if known is not None and (known.type is not None or kind is None):
            return known
        keys = None if kind is None else self._attributes.keys_of(name, kind)
        return Attribute(-1, name, kind, keys)

    def _learn_types(self, types: Mapping[str, str]) -> None:
        if types:
            for name, kind in types.items():
                self._attributes.get(name, kind)
            self._attributes.settle_terms()
            self._attributes.version += 1

    def _learn_strings(self, words: list[str]) -> None:
        n_known = len(self._strings.dictionary)
        self._strings.literals(words)
        self._attributes.n_new += len(self._strings.dictionary) - n_known
        moved = self._strings.take_relabelling()
        if moved is not None:
            self._attributes.follow(None, moved, self._table.rekey)


def _key(attribute: Attribute, value: Any) -> int:
    if value is None:
        return ABSENT
    key = key_of(attribute, value)
    if key == ABSENT:
        raise EventError(
            f"{attribute.name!r}: expected a value above -2^63, found {value!r}: "
            "no context can hold it"
        )
    return key


class _Words(NamedTuple):
    """A column of strings: its distinct words, and which of them each value is."""

    words: list[str]
    codes: np.ndarray

    def each(self, key: Callable[[str], int]) -> np.ndarray:
        """A key of every value, made once per word."""
        keys: np.ndarray = np.array([key(word) for word in self.words], np.int64)[self.codes]
        return keys


def _checked(attribute: Attribute, known: Any, at: np.ndarray) -> np.ndarray | _Words:
    """The keys of a column without nulls; of strings, which have none yet, their words."""
    from matchwood.encode.arrow.columns import column_keys
    from matchwood.encode.arrow.values import python_value

    if attribute.type == "string":
        return _words(attribute, known, at)
    keys, bad = column_keys(attribute.keys, known)
    bad = (keys == ABSENT) if bad is None else bad | (keys == ABSENT)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        found = python_value(known[first])
        raise EventError(
            f"{attribute.name!r}: expected {attribute.type}, found {found!r} at row {at[first]}; "
            "change the value, or declare another type with Schema"
        )
    return keys


def _words(attribute: Attribute, known: Any, at: np.ndarray) -> _Words:
    import pyarrow as pa
    import pyarrow.compute as pc

    from matchwood.encode.arrow.values import python_values

    is_coded = pa.types.is_dictionary(known.type)
    kind = known.type.value_type if is_coded else known.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise EventError(
            f"{attribute.name!r}: expected string, found a column of {known.type}; "
            "change the column, or declare another type with Schema"
        )
    coded = known if is_coded else pc.dictionary_encode(known)
    words, codes = python_values(coded.dictionary), coded.indices.to_numpy(zero_copy_only=False)
    is_bad = np.array([not isinstance(word, str) for word in words], bool)[codes]
    if is_bad.any():
        first = int(np.flatnonzero(is_bad)[0])
        raise EventError(
            f"{attribute.name!r}: expected a string in UTF-8, found {words[codes[first]]!r} at row "
            f"{at[first]}; change the value"
        )
    # words that no row has are left out; they may be none
    used, codes = np.unique(codes, return_inverse=True)
    return _Words([words[code] for code in used.tolist()], codes)


def _type_of(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return OBJECT
    try:
        return literal_type(as_value(value))
    except (TypeError, SchemaError, ParseError) as error:
        raise EventError(f"{name!r}: {error}") from None


def _type_of_column(name: str, known: Any) -> str:
    from matchwood.encode.arrow.values import is_text, python_value

    return "string" if is_text(known.type) else _type_of(name, python_value(known[0]))


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    return compile_pattern(pattern)


def fits(pattern: str, value: str) -> bool:
    """Whether a string fits a LIKE pattern."""
    return _regex(pattern).fullmatch(value) is not None


def value_of(attribute: Attribute, key: int) -> Any:
    """The value that a key stands for."""
    if isinstance(attribute.keys, DictionaryKeys):
        return attribute.keys.dictionary.value_of(key)
    if isinstance(attribute.keys, FloatKeys):
        number = float_of_key(key)
        is_whole = attribute.type == "number" and number.is_integer() and abs(number) < 2**53
        return int(number) if is_whole else number
    if attribute.type == "bool":
        return bool(key)
    if attribute.type == OBJECT:
        return {}
    if attribute.type in ("date", "timestamp"):
        return _moment_of(attribute.type, key)
    return key


def _moment_of(kind: str, key: int) -> Any:
    """A date or a timestamp; one beyond the years of Python's types is NumPy's."""
    try:
        if kind == "date":
            return date.fromordinal(key + EPOCH_DAY)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=key)
    except (OverflowError, ValueError):
        return np.datetime64(key, "D" if kind == "date" else "us")
