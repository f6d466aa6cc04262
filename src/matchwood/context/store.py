"""Context store: entities, their attributes, and the values these have now.

Idea.    A table with a row for every context and a column for every attribute holds the keys of the
         values (`table`).  A subscription is linked to its row; reading a value is one look.
Source.  Context management of the AGILE paper, section 3.2 and 6.1 (1).
Differs. Beside each key lies the range it may move in before an index has to know (see
         `member_kernels`), so an update that no index cares for touches one cache line.
Changes. An update that is refused changes nothing.  What an update writes goes through a journal,
         so that the engine can bring it back when it is interrupted (`engine.stores.savepoint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matchwood.context.objects import without_objects
from matchwood.context.table import (
    KEY,
    LINK,
    SAFE_HI,
    SAFE_LO,
    ContextTable,
    Follower,
    empty_cells,
    renumbered,
)
from matchwood.context.update_kernels import write_cells
from matchwood.context.values import ABSENT, Id, ValueEncoder, fits, value_of
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.dictionary import Relabelling
from matchwood.encode.expressions import ExpressionTable
from matchwood.kernel.arrays import doubled, grown
from matchwood.lang.names import CONTEXT

__all__ = ["KEY", "LINK", "SAFE_HI", "SAFE_LO", "ContextStore", "Follower"]


class ContextStore(ContextTable):
    """The values of all contexts of one matcher."""

    def __init__(self, attributes: Attributes, table: ExpressionTable) -> None:
        super().__init__()
        self.attributes = attributes
        attributes.when_moved = self._moved
        attributes.when_dropped = self._dropped
        attributes.has_values = self._has_values
        self._table = table
        self._encoder = ValueEncoder(self, table)
        self.n_strings_kept = 0
        """Strings that were in use when those that were not were last forgotten."""

    # -- changing ----------------------------------------------------------------------------

    def set(self, id_: Id, values: Mapping[str, Any]) -> None:
        """Change values of one context; None makes a value absent.  All of them or none."""
        changes = self._encoder.changes(values)
        row = self.row(id_)
        self.journal.remember(self.cells, row)
        self._put(row, changes)
        emptied = [col for col, key in changes if key == ABSENT]
        if emptied or not changes:
            self._give_back(np.array([row]), emptied)

    def known(self, id_: Id, values: Mapping[str, Any]) -> tuple[int, list[tuple[int, int]]] | None:
        """The row of a context and the columns and keys of an update that does nothing but write
        these values; None: it takes `set`.
        """
        row = self._row_of.get(id_)
        changes = None if row is None else self._encoder.plain_changes(values)
        if row is None or not changes:
            return None
        for _, key in changes:
            if key == ABSENT:
                return None
        return row, changes

    def write_safe(self, row: int, changes: Sequence[tuple[int, int]]) -> bool:
        """Write other values into one row in one step, which nothing can interrupt.

        False, and nothing is written, if a value was absent, or an index has to follow.
        """
        cells, follower = self.cells, self.follower
        for col, key in changes:
            before, lo, hi, _ = cells[row, col].tolist()
            if before == ABSENT or not lo <= key <= hi:
                return False
        if follower is not None:
            follower.note_updates(len(changes))
        if len(changes) == 1:
            cells[row, col, KEY] = key
        else:
            first, width = row * cells.shape[1], cells.shape[2]
            cells.put(
                [width * (first + col) + KEY for col, _ in changes], [key for _, key in changes]
            )
        return True

    def write_known(self, row: int, changes: Sequence[tuple[int, int]]) -> None:
        """Write what `known` gave, the indexes following; the journal has what was there before."""
        self.journal.remember(self.cells, row)
        self._put(row, changes)

    def set_each(self, updates: Sequence[tuple[Id, Mapping[str, Any]]]) -> None:
        """Change values of many contexts, one after the other.  All of them or none."""
        each: list[Any] = [self._encoder.plain_changes(values) for _, values in updates]
        if None in each:
            self._encoder.prepare([values for _, values in updates])
            each = [self._encoder.changes(values) for _, values in updates]
        rows = self.rows([id_ for id_, _ in updates])
        self.journal.remember(self.cells, rows)
        flat = np.array([change for changes in each for change in changes], np.int64)
        cols, keys = np.ascontiguousarray(flat.reshape(-1, 2).T)
        self.write(np.repeat(rows, [len(changes) for changes in each]), cols, keys)
        self._give_back(rows, np.unique(cols[keys == ABSENT]).tolist())

    def set_many(self, ids: Sequence[Id], columns: Mapping[str, Any]) -> None:
        """Change one value per context and name: `columns` are Arrow arrays as long as `ids`.

        Null leaves a value as it is.  All of them or none.
        """
        encoded = self._encoder.columns(columns)
        rows = self.rows(ids)
        self.journal.remember(self.cells, rows)
        for col, at, fresh in encoded:
            self.write(rows if len(at) == len(rows) else rows[at], col, fresh)
        self._give_back(rows, [])

    def remove(self, id_: Id) -> None:
        """Make all values of a context absent; without subscriptions, forget its id as well."""
        row = self._row_of.get(id_)
        if row is None:
            return
        self.journal.remember(self.cells, row)
        emptied = np.flatnonzero(self.cells[row, :, KEY] != ABSENT).tolist()
        self._put(row, [(col, ABSENT) for col in emptied])
        self._give_back(np.array([row]), emptied)

    def write(self, rows: np.ndarray, col: int | np.ndarray, keys: np.ndarray) -> None:
        """Write keys into cells, the indexes following."""
        cols = np.full(len(rows), col, np.int64) if isinstance(col, int) else col
        keys = np.require(keys, np.int64, ("C", "W"))  # a value for many cells cannot be written
        if self.follower is None:
            write_cells(self.cells, self.n_set, rows, cols, keys)
            return
        self.follower.update(rows, cols, keys)
        self.follower.note_updates(len(keys))

    def _put(self, row: int, changes: Sequence[tuple[int, int]]) -> None:
        """Write columns and keys into one row."""
        cells, follower, n_set = self.cells, self.follower, self.n_set
        for col, key in changes:
            if follower is not None and not (
                cells.item(row, col, SAFE_LO) <= key <= cells.item(row, col, SAFE_HI)
            ):
                follower.update(np.array([row]), np.array([col]), np.array([key], np.int64))
                continue
            if (cells.item(row, col, KEY) == ABSENT) != (key == ABSENT):
                n_set[col] += -1 if key == ABSENT else 1
            cells[row, col, KEY] = key
        if follower is not None:
            follower.note_updates(len(changes))

    def _give_back(self, rows: np.ndarray, emptied: list[int]) -> None:
        """After an update: give back rows and names that nothing uses any more."""
        self.free_rows(rows)
        names = [self.columns[col] for col in emptied if not self.n_set[col]]
        if names:
            self.attributes.drop_unused(names, self._table.uses)

    # -- asking ------------------------------------------------------------------------------

    def known_row(self, id_: Id) -> int | None:
        """The row of a context that has a value or a subscription."""
        return self._row_of.get(id_)

    def encoded(self, values: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Columns and keys of what a context would get, without giving it."""
        return self._encoder.changes(values)

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
        return without_objects(found)

    def _has_values(self, attr: int) -> bool:
        """Whether some context has a value of an attribute."""
        col = self.column_of.get(attr)
        return col is not None and self.n_set[col] > 0

    # -- names and strings -------------------------------------------------------------------

    def pattern_column(self, source: int, pattern: str) -> int:
        """The column that tells whether a context's string fits a LIKE pattern."""
        col = self.patterns.get(source, {}).get(pattern)
        if col is None:
            from_ = self.column(source)
            col = self._new_column(source)
            self._fill_pattern(pattern, from_, col)
            self.patterns.setdefault(source, {})[pattern] = col
        return col

    def _fill_pattern(self, pattern: str, source: int, col: int) -> None:
        """A pattern that is new: which of the strings that are set fit it."""
        strings = self.attributes.context_strings.dictionary
        keys = self.cells[: len(self._ids), source, KEY]
        for label in np.unique(keys[keys != ABSENT]).tolist():
            is_fit = fits(pattern, strings.value_of(label))
            self.cells[: len(self._ids), col, KEY][keys == label] = is_fit
        self.n_set[col] = self.n_set[source]

    def _dropped(self, attribute: Attribute) -> None:
        """No subscription tests an attribute any more, and no context has a value of it."""
        if attribute.pattern is not None:
            patterns = self.patterns.get(attribute.source, {})
            col = patterns.pop(attribute.pattern, None)
            if not patterns:
                self.patterns.pop(attribute.source, None)
        else:
            self.journal.remember_item(self.column_of, attribute.id)
            col = self.column_of.pop(attribute.id, None)
        if col is not None:
            self._free_column(col)

    def _moved(self, moved: Relabelling) -> None:
        """Strings have other keys now."""
        cells = self.cells.copy()
        for col in self.string_columns():
            keys = cells[:, col, KEY]
            present = keys != ABSENT
            at = np.searchsorted(moved.old, keys[present])
            cells[present, col, KEY] = moved.new[at]
        self.cells = cells
        if self.follower is not None:
            self.follower.forget_layout()

    def string_columns(self) -> list[int]:
        """The columns of strings."""
        strings, all_ = self.attributes.context_strings, self.attributes.all
        return [col for attr, col in self.column_of.items() if all_[attr].keys is strings]

    def forget_strings(self, ends: np.ndarray) -> None:
        """Drop strings that no context has and no predicate, by the ends of its sets, tests."""
        used = self.cells[: len(self._ids)][:, self.string_columns(), KEY].ravel()
        strings = self.attributes.context_strings
        strings.dictionary.keep(np.concatenate([used, ends]))
        self.n_strings_kept = strings.n_constants

    # -- keeping -----------------------------------------------------------------------------

    def compact(self, old: np.ndarray) -> None:
        """Follow slots that were renumbered; slot `old[i]` is slot i now."""
        self.renumber_slots(old)
        if self.follower is not None:
            self.follow_with(None)
        self.shrink()

    def layout(self, n_slots: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Settings and arrays for a snapshot, rows and columns without gaps."""
        rows, cols = self.used()
        slot_row = grown(self.slot_row, n_slots, -1)[:n_slots]
        new_col = renumbered(cols, len(self.columns)).tolist()
        settings = {
            "ids": self.ids(),
            "columns": [self.columns[col] for col in cols.tolist()],
            "patterns": [
                [source, pattern, new_col[col]]
                for source, patterns in self.patterns.items()
                for pattern, col in patterns.items()
            ],
        }
        keys = np.ascontiguousarray(self.cells[np.ix_(rows, cols)][:, :, KEY])
        return settings, {"slot_row": renumbered(rows, len(self._ids))[slot_row], "keys": keys}

    def take(self, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the values of a snapshot."""
        self._ids = list(settings["ids"])
        self._row_of = {id_: i for i, id_ in enumerate(settings["ids"])}
        self.columns = list(settings["columns"])
        for source, pattern, col in settings["patterns"]:
            self.patterns.setdefault(source, {})[pattern] = col
        of_patterns = {col for patterns in self.patterns.values() for col in patterns.values()}
        self.column_of = {
            attr: col for col, attr in enumerate(self.columns) if col not in of_patterns
        }
        keys = arrays["keys"]
        self.cells = empty_cells(doubled(16, len(keys)), doubled(4, len(self.columns)))
        self.cells[: len(keys), : len(self.columns), KEY] = keys
        self.count_set()
        self.slot_row = grown(np.array(arrays["slot_row"]), 1, -1)  # never empty: see `is_linked`
        self.n_strings_kept = self.attributes.context_strings.n_constants
