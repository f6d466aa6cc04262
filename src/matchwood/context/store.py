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

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from matchwood.arrays import doubled, grown
from matchwood.context.values import ABSENT, Id, ValueEncoder, fits, value_of
from matchwood.encode.attributes import Attributes
from matchwood.encode.dictionary import Relabelling
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import INT_MIN
from matchwood.journal import Journal
from matchwood.lang.names import CONTEXT

KEY, SAFE_LO, SAFE_HI, LINK = range(4)


class Follower(Protocol):
    """An index that has to know when a value leaves its safe range."""

    def update(self, rows: np.ndarray, cols: np.ndarray, keys: np.ndarray) -> None: ...

    def note_updates(self, n: int) -> None: ...

    def forget_layout(self) -> None: ...


class ContextStore:
    """The values of all contexts of one matcher."""

    def __init__(self, attributes: Attributes, table: ExpressionTable) -> None:
        self.attributes = attributes
        attributes.when_moved = self._moved
        self.follower: Follower | None = None
        self._encoder = ValueEncoder(self, table)
        self._ids: list[Id] = []
        self._row_of: dict[Id, int] = {}
        self.columns: list[int] = []  # attribute of each column; a pattern's is its source's
        self.column_of: dict[int, int] = {}
        self.patterns: dict[int, dict[str, int]] = {}  # columns of patterns, by source
        self.cells = _empty_cells(16, 4)
        self.slot_row = np.full(64, -1, np.int32)
        self.journal = Journal()

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
        col = self.column_of.get(attr)
        if col is None:
            col = self.column_of[attr] = self._new_column(attr)
        return col

    def pattern_column(self, source: int, pattern: str) -> int:
        """The column that tells whether a context's string fits a LIKE pattern.

        It is kept up to date from then on, whether a subscription still asks for it or not.
        """
        col = self.patterns.get(source, {}).get(pattern)
        if col is None:
            from_ = self.column(source)
            col = self._new_column(source)
            self.patterns.setdefault(source, {})[pattern] = col
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
        self.journal.remember(self.slot_row, slots)
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

    def forget_from(self, n: int) -> None:
        """Back to the first n contexts, after a change was undone."""
        self._ids = self._ids[:n]
        self._row_of = {id_: row for row, id_ in enumerate(self._ids)}

    def reset_safety(self) -> None:
        """No index is linked to any cell."""
        self.cells[:, :, SAFE_LO] = INT_MIN
        self.cells[:, :, SAFE_HI] = 2**63 - 1
        self.cells[:, :, LINK] = -1

    def forget_strings(self, ends: np.ndarray) -> None:
        """Drop strings that no context has and no predicate, by the ends of its sets, tests."""
        strings = [
            self.column_of[each.id]
            for each in self.attributes.by_name.values()
            if each.keys is self.attributes.context_strings and each.id in self.column_of
        ]
        used = self.cells[: len(self._ids)][:, strings, KEY].ravel()
        self.attributes.context_strings.dictionary.keep(np.concatenate([used, ends]))

    # -- values ------------------------------------------------------------------------------

    def set(self, id_: Id, values: Mapping[str, Any]) -> None:
        """Change values of one context; None makes a value absent.  All of them or none."""
        changes = self._encoder.changes(values)
        row = self.row(id_)
        cells, follower = self.cells, self.follower
        self.journal.remember(cells, row)
        for col, key in changes:
            if follower is not None and not (
                cells.item(row, col, SAFE_LO) <= key <= cells.item(row, col, SAFE_HI)
            ):
                follower.update(np.array([row]), np.array([col]), np.array([key], np.int64))
            else:
                cells[row, col, KEY] = key
        if follower is not None:
            follower.note_updates(len(changes))

    def set_each(self, updates: Sequence[tuple[Id, Mapping[str, Any]]]) -> None:
        """Change values of many contexts, one after the other.  All of them or none."""
        self._encoder.prepare([values for _, values in updates])
        for id_, values in updates:
            self.set(id_, values)

    def set_many(self, ids: Sequence[Id], columns: Mapping[str, Any]) -> None:
        """Change one value per context and name: `columns` are Arrow arrays as long as `ids`.

        Null leaves a value as it is.  All of them or none.
        """
        encoded = self._encoder.columns(columns)
        rows = self.rows(ids)
        self.journal.remember(self.cells, rows)
        for col, at, keys in encoded:
            self.write(rows if len(at) == len(rows) else rows[at], col, keys)

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
        for attr, col in self.column_of.items():
            attribute = self.attributes.all[attr]
            key = int(self.cells[row, col, KEY])
            if key != ABSENT:
                found[attribute.name.removeprefix(CONTEXT)] = value_of(attribute, key)
        return found

    # -- strings -----------------------------------------------------------------------------

    def _moved(self, moved: Relabelling) -> None:
        """Strings have other keys now."""
        cells = self.cells.copy()
        for attr, col in self.column_of.items():
            if self.attributes.all[attr].keys is self.attributes.context_strings:
                keys = cells[:, col, KEY]
                present = keys != ABSENT
                at = np.searchsorted(moved.old, keys[present])
                cells[present, col, KEY] = moved.new[at]
        self.cells = cells
        if self.follower is not None:
            self.follower.forget_layout()

    def _fill_pattern(self, pattern: str, source: int, col: int) -> None:
        """A pattern that is new: which of the strings that are set fit it."""
        strings = self.attributes.context_strings.dictionary
        keys = self.cells[: len(self._ids), source, KEY]
        for label in np.unique(keys[keys != ABSENT]).tolist():
            is_fit = fits(pattern, strings.value_of(label))
            self.cells[: len(self._ids), col, KEY][keys == label] = is_fit

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
                for source, patterns in self.patterns.items()
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
            self.patterns.setdefault(source, {})[pattern] = col
        of_patterns = {col for patterns in self.patterns.values() for col in patterns.values()}
        self.column_of = {
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
