"""Context store: entities, their attributes, and the values these have now.

Idea.    A table with a row for every context and a column for every attribute holds the keys of the
         values.  A subscription is linked to its row; reading a value is one look.
Source.  Context management of the AGILE paper, section 3.2 and 6.1 (1).
Differs. Beside each key lies the range it may move in before an index has to know (see
         `profile_kernels`), so an update that no index cares for touches one cache line.

Layout   cells    int64[R, C, 4]  KEY, SAFE_LO, SAFE_HI, LINK; KEY is ABSENT where nothing is set
         slot_row int32[S]        row of the context that a subscription is linked to, -1: none
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Protocol

import numpy as np

from matchwood.arrays import doubled, grown
from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.dictionary import Relabelling
from matchwood.encode.events import key_of
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import EPOCH_DAY, INT_MIN, DictionaryKeys, FloatKeys, float_of_key
from matchwood.encode.like import compile_pattern
from matchwood.encode.relations import spread
from matchwood.encode.schema import literal_type
from matchwood.errors import EventError, SchemaError
from matchwood.lang.builder import as_value
from matchwood.lang.names import CONTEXT

KEY, SAFE_LO, SAFE_HI, LINK = range(4)
ABSENT = INT_MIN
Id = int | str


class Follower(Protocol):
    """An index that has to know when a value leaves its safe range."""

    def update(self, rows: np.ndarray, cols: np.ndarray, keys: np.ndarray) -> None: ...

    def note_updates(self, n: int) -> None: ...

    def forget_layout(self) -> None: ...


class ContextStore:
    """The values of all contexts of one matcher."""

    def __init__(self, attributes: Attributes, table: ExpressionTable) -> None:
        self.attributes = attributes
        self._table = table
        attributes.when_moved = self._moved
        self.follower: Follower | None = None
        self._ids: list[Id] = []
        self._row_of: dict[Id, int] = {}
        self.columns: list[int] = []  # attribute of each column; a pattern's is its source's
        self._column_of: dict[int, int] = {}
        self._patterns: dict[int, dict[str, int]] = {}  # columns of patterns, by source
        self.cells = _empty_cells(16, 4)
        self.slot_row = np.full(64, -1, np.int32)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._row_of

    def ids(self) -> list[Id]:
        """All contexts, in the order of their rows."""
        return list(self._ids)

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self.slot_row.nbytes + 150 * len(self._ids)

    @property
    def n_values(self) -> int:
        """How many values are set."""
        return int((self.cells[: len(self._ids), : len(self.columns), KEY] != ABSENT).sum())

    # -- rows and columns --------------------------------------------------------------------

    def row(self, id_: Id) -> int:
        """The row of a context, made at its first mention."""
        row = self._row_of.get(id_)
        if row is None:
            row = self._row_of[id_] = len(self._ids)
            self._ids.append(id_)
            if row >= len(self.cells):
                self._resize(2 * len(self.cells), self.cells.shape[1])
        return row

    def rows(self, ids: Sequence[Id]) -> np.ndarray:
        """The rows of many contexts."""
        fresh = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._row_of]
        if fresh:
            first = len(self._ids)
            self._ids += fresh
            self._row_of.update(zip(fresh, range(first, len(self._ids)), strict=True))
            if len(self._ids) > len(self.cells):
                self._resize(doubled(len(self.cells), len(self._ids)), self.cells.shape[1])
        return np.fromiter(map(self._row_of.__getitem__, ids), np.int64, len(ids))

    def column(self, attr: int) -> int:
        """The column of a context's value, made at its first mention."""
        col = self._column_of.get(attr)
        if col is None:
            col = self._column_of[attr] = self._new_column(attr)
        return col

    def pattern_column(self, source: int, pattern: str) -> int:
        """The column that tells whether a context's string fits a LIKE pattern.

        It is kept up to date from then on, whether a subscription still asks for it or not.
        """
        col = self._patterns.get(source, {}).get(pattern)
        if col is None:
            from_ = self.column(source)
            col = self._new_column(source)
            self._patterns.setdefault(source, {})[pattern] = col
            self._fill_pattern(pattern, from_, col)
        return col

    def _new_column(self, attr: int) -> int:
        self.columns.append(attr)
        if len(self.columns) > self.cells.shape[1]:
            self._resize(len(self.cells), 2 * self.cells.shape[1])
        return len(self.columns) - 1

    def _resize(self, rows: int, cols: int) -> None:
        fresh = _empty_cells(rows, cols)
        had = self.cells.shape
        fresh[: had[0], : had[1]] = self.cells
        self.cells = fresh

    def link(self, slots: np.ndarray, contexts: Sequence[Id | None]) -> None:
        """Link subscriptions to their contexts."""
        size = doubled(len(self.slot_row), int(slots.max(initial=-1)) + 1)
        self.slot_row = grown(self.slot_row, size, -1)
        for slot, id_ in zip(slots.tolist(), contexts, strict=True):
            self.slot_row[slot] = -1 if id_ is None else self.row(id_)

    def is_linked(self, slots: np.ndarray) -> np.ndarray:
        """Which subscriptions have a context."""
        inside = slots < len(self.slot_row)
        linked: np.ndarray = inside & (self.slot_row[np.where(inside, slots, 0)] >= 0)
        return linked

    def context_of(self, slot: int) -> Id | None:
        """The context that a subscription is linked to."""
        row = int(self.slot_row[slot]) if slot < len(self.slot_row) else -1
        return self._ids[row] if row >= 0 else None

    def unlink(self, slots: np.ndarray) -> None:
        self.slot_row[slots[slots < len(self.slot_row)]] = -1

    def compact(self, old: np.ndarray) -> None:
        """Follow slots that were renumbered; forget contexts without values or subscriptions, and
        strings that are no context's any more.
        """
        row = np.full(doubled(64, len(old)), -1, np.int32)
        inside = old < len(self.slot_row)
        row[: len(old)][inside] = self.slot_row[old[inside]]
        n, n_cols = len(self._ids), len(self.columns)
        used = np.zeros(n, bool)
        used[row[row >= 0]] = True
        used |= (self.cells[:n, :n_cols, KEY] != ABSENT).any(axis=1)
        kept = np.flatnonzero(used)
        if len(kept) < n:
            renumbered = np.full(n + 1, -1, np.int32)
            renumbered[kept] = np.arange(len(kept))
            row = renumbered[row]
            fresh = _empty_cells(doubled(16, len(kept)), self.cells.shape[1])
            fresh[: len(kept)] = self.cells[kept]
            self.cells = fresh
            self._ids = [self._ids[i] for i in kept.tolist()]
            self._row_of = {id_: i for i, id_ in enumerate(self._ids)}
        self.slot_row = row
        self.reset_safety()

    def reset_safety(self) -> None:
        """No index is linked to any cell."""
        self.cells[:, :, SAFE_LO] = INT_MIN
        self.cells[:, :, SAFE_HI] = 2**63 - 1
        self.cells[:, :, LINK] = -1

    def forget_strings(self, ends: np.ndarray) -> None:
        """Drop strings that no context has and no predicate, by the ends of its sets, tests."""
        strings = [
            self._column_of[each.id]
            for each in self.attributes.by_name.values()
            if each.keys is self.attributes.context_strings and each.id in self._column_of
        ]
        used = self.cells[: len(self._ids)][:, strings, KEY].ravel()
        self.attributes.context_strings.dictionary.keep(np.concatenate([used, ends]))

    # -- values ------------------------------------------------------------------------------

    def set(self, id_: Id, values: Mapping[str, Any]) -> None:
        """Change values of one context; None makes a value absent.  All of them or none."""
        changes = self._encode(values)
        row = self.row(id_)
        cells, follower = self.cells, self.follower
        for col, key in changes:
            if follower is not None and not (
                cells.item(row, col, SAFE_LO) <= key <= cells.item(row, col, SAFE_HI)
            ):
                follower.update(np.array([row]), np.array([col]), np.array([key], np.int64))
            else:
                cells[row, col, KEY] = key
        if follower is not None:
            follower.note_updates(len(changes))

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse what `set` would refuse; new strings and types are learned."""
        self._encode(values)

    def _encode(self, values: Mapping[str, Any]) -> list[tuple[int, int]]:
        by_name, columns = self.attributes.by_name, self._column_of
        changes: list[tuple[int, int]] = []
        for name, value in values.items():
            attribute = by_name.get(CONTEXT + name)
            if (
                attribute is None
                or attribute.type is None
                or attribute.keys is self.attributes.context_strings
                or isinstance(value, Mapping)
                or attribute.id not in columns
            ):
                return self._encode_any(values)
            changes.append((columns[attribute.id], self._key(attribute, value)))
        return changes

    def _encode_any(self, values: Mapping[str, Any]) -> list[tuple[int, int]]:
        """The same for new attributes, nested mappings and strings."""
        flat = list(_flat(values, CONTEXT))
        learned: dict[str, str] = {}
        for name, value in flat:
            known = self.attributes.by_name.get(name)
            if value is not None and (known is None or known.type is None):
                learned.setdefault(name, _type_of(name, value))
        self._learn(learned)
        found = [(self.attributes.get(name, None), value) for name, value in flat]
        keys = [self._key(attribute, value) for attribute, value in found]
        changes: list[tuple[int, int]] = []
        for (attribute, value), key in zip(found, keys, strict=True):
            if attribute.keys is self.attributes.context_strings and value is not None:
                key = self._string_key(value)
            changes.append((self.column(attribute.id), key))
            for pattern, col in self._patterns.get(attribute.id, {}).items():
                fits = ABSENT if value is None else int(_fits(pattern, value))
                changes.append((col, fits))
        return changes

    def _learn(self, learned: dict[str, str]) -> None:
        if learned:
            spread(self.attributes, learned, self.attributes.links())
            for name, kind in learned.items():
                self.attributes.get(name, kind)
            self.attributes.settle_terms()
            self.attributes.version += 1

    def _key(self, attribute: Attribute, value: Any) -> int:
        if value is None:
            return ABSENT
        key = key_of(attribute, value)
        if key == ABSENT:
            raise EventError(
                f"{attribute.name!r}: expected a value above -2^63, found {value!r}: "
                "no context can hold it"
            )
        return key

    def _string_key(self, value: str) -> int:
        strings = self.attributes.context_strings
        label = strings.dictionary.label_of.get(value)
        if label is None:
            strings.literals([value])
            self._take_relabelling()
            label = strings.dictionary.label_of[value]
        return label

    def _take_relabelling(self) -> None:
        moved = self.attributes.context_strings.take_relabelling()
        if moved is not None:
            self.attributes.follow(None, moved, self._table.rekey)

    def set_many(self, ids: Sequence[Id], columns: Mapping[str, Any]) -> None:
        """Change one value per context and name: `columns` are Arrow arrays as long as `ids`.

        Null leaves a value as it is.  All of them or none.
        """
        from matchwood.encode.arrow_events import readable
        from matchwood.encode.columns import column_keys

        encoded: list[tuple[int, np.ndarray, np.ndarray]] = []
        learned: dict[str, str] = {}
        arrays = {CONTEXT + name: readable(column) for name, column in columns.items()}
        for name, column in arrays.items():
            known = self.attributes.by_name.get(name)
            if known is None or known.type is None:
                present = column.drop_null()
                if len(present):
                    learned[name] = _type_of(name, present[0].as_py())
        self._learn(learned)
        for name, column in arrays.items():
            attribute = self.attributes.get(name, None)
            at = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            known = column if len(at) == len(column) else column.drop_null()
            if not len(known):
                continue
            if attribute.keys is self.attributes.context_strings:
                encoded += self._string_column(attribute, known, at)
                continue
            keys, bad = column_keys(attribute.keys, known)
            bad = (keys == ABSENT) if bad is None else bad | (keys == ABSENT)
            if bad.any():
                first = int(np.flatnonzero(bad)[0])
                value = known[first].as_py()
                row = int(at[first])
                raise EventError(
                    f"{name!r}: expected {attribute.type}, found {value!r} at row {row}; "
                    "change the value, or declare another type with Schema"
                )
            encoded.append((self.column(attribute.id), at, keys))
        rows = self.rows(ids)
        for col, at, keys in encoded:
            self.write(rows if len(at) == len(rows) else rows[at], col, keys)

    def _string_column(
        self, attribute: Attribute, known: Any, at: np.ndarray
    ) -> list[tuple[int, np.ndarray, np.ndarray]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = known.type.value_type if pa.types.is_dictionary(known.type) else known.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise EventError(
                f"{attribute.name!r}: expected string, found a column of {known.type}; "
                "change the column, or declare another type with Schema"
            )
        encoded = known if pa.types.is_dictionary(known.type) else pc.dictionary_encode(known)
        words = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self.attributes.context_strings.literals(words)
        self._take_relabelling()
        label_of = self.attributes.context_strings.dictionary.label_of
        labels = np.array([label_of[word] for word in words], np.int64)
        parts = [(self.column(attribute.id), at, labels[codes])]
        for pattern, col in self._patterns.get(attribute.id, {}).items():
            fits = np.array([_fits(pattern, word) for word in words], np.int64)
            parts.append((col, at, fits[codes]))
        return parts

    def write(self, rows: np.ndarray, col: int | np.ndarray, keys: np.ndarray) -> None:
        """Write keys into cells, the indexes following."""
        if self.follower is None:
            self.cells[rows, col, KEY] = keys
            return
        cols = np.full(len(rows), col, np.int64) if isinstance(col, int) else col
        self.follower.update(rows, cols, keys)
        self.follower.note_updates(len(keys))

    def values(self, id_: Id) -> dict[str, Any]:
        """The values of a context that are set, by name."""
        row = self._row_of.get(id_)
        if row is None:
            return {}
        found = {}
        for attr, col in self._column_of.items():
            attribute = self.attributes.all[attr]
            key = int(self.cells[row, col, KEY])
            if key != ABSENT:
                found[attribute.name.removeprefix(CONTEXT)] = _value(attribute, key)
        return found

    # -- strings -----------------------------------------------------------------------------

    def _moved(self, moved: Relabelling) -> None:
        """Strings have other keys now."""
        for attr, col in self._column_of.items():
            if self.attributes.all[attr].keys is self.attributes.context_strings:
                keys = self.cells[:, col, KEY]
                present = keys != ABSENT
                at = np.searchsorted(moved.old, keys[present])
                self.cells[present, col, KEY] = moved.new[at]
        if self.follower is not None:
            self.follower.forget_layout()

    def _fill_pattern(self, pattern: str, source: int, col: int) -> None:
        """A pattern that is new: which of the strings that are set fit it."""
        strings = self.attributes.context_strings.dictionary
        keys = self.cells[: len(self._ids), source, KEY]
        for label in np.unique(keys[keys != ABSENT]).tolist():
            fits = int(_fits(pattern, strings.value_of(label)))
            self.cells[: len(self._ids), col, KEY][keys == label] = fits

    # -- snapshot ----------------------------------------------------------------------------

    def layout(self, n_slots: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Settings and arrays for a snapshot; call after `compact`."""
        n = len(self._ids)
        row = grown(self.slot_row, n_slots, -1)[:n_slots]
        keys = np.ascontiguousarray(self.cells[:n, : len(self.columns), KEY])
        settings = {
            "ids": self._ids,
            "columns": self.columns,
            "patterns": [
                [source, pattern, col]
                for source, patterns in self._patterns.items()
                for pattern, col in patterns.items()
            ],
        }
        return settings, {"slot_row": row, "keys": keys}

    def take(self, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the values of a snapshot."""
        self._ids = list(settings["ids"])
        self._row_of = {id_: i for i, id_ in enumerate(self._ids)}
        self.columns = list(settings["columns"])
        for source, pattern, col in settings["patterns"]:
            self._patterns.setdefault(source, {})[pattern] = col
        of_patterns = {col for patterns in self._patterns.values() for col in patterns.values()}
        self._column_of = {
            attr: col for col, attr in enumerate(self.columns) if col not in of_patterns
        }
        keys = arrays["keys"]
        self.cells = _empty_cells(doubled(16, len(keys)), doubled(4, len(self.columns)))
        self.cells[: len(keys), : len(self.columns), KEY] = keys
        self.slot_row = np.array(arrays["slot_row"])


def _empty_cells(rows: int, cols: int) -> np.ndarray:
    cells = np.empty((rows, cols, 4), np.int64)
    cells[:, :, KEY] = ABSENT
    cells[:, :, SAFE_LO] = INT_MIN
    cells[:, :, SAFE_HI] = 2**63 - 1
    cells[:, :, LINK] = -1
    return cells


def _flat(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if not isinstance(name, str):
            raise EventError(f"expected names of values as str, found {type(name).__name__}")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return compile_pattern(pattern)


def _fits(pattern: str, value: str) -> bool:
    return _regex(pattern).fullmatch(value) is not None


def _type_of(name: str, value: Any) -> str:
    try:
        return literal_type(as_value(value))
    except (TypeError, SchemaError) as error:
        raise EventError(f"{name!r}: {error}") from None


def _value(attribute: Attribute, key: int) -> Any:
    if isinstance(attribute.keys, DictionaryKeys):
        return attribute.keys.dictionary.value_of(key)
    if isinstance(attribute.keys, FloatKeys):
        number = float_of_key(key)
        is_whole = attribute.type == "number" and number.is_integer() and abs(number) < 2**53
        return int(number) if is_whole else number
    if attribute.type == "bool":
        return bool(key)
    if attribute.type == "date":
        return date.fromordinal(key + EPOCH_DAY)
    if attribute.type == "timestamp":
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=key)
    return key
