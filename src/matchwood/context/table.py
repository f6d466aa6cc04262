"""Context table: a row for every context, a column for every attribute, and their numbers.

A context has a row while it has a value or a subscription; an attribute has a column while a
subscription or a context uses it.  Rows and columns that were given back are used again first.

Layout   cells    int64[R, C, 4]  KEY, SAFE_LO, SAFE_HI, LINK; KEY is ABSENT where nothing is set
         slot_row int32[S]        row of the context that a subscription is linked to, -1: none
         n_linked int32[R]        subscriptions linked to a row
         n_set    int64[C]        contexts that have a value in a column
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from matchwood.context.values import ABSENT, Id
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.journal import Journal

KEY, SAFE_LO, SAFE_HI, LINK = range(4)
FREE = -1
"""The attribute of a column that was given back."""

_SPARE_ROWS, _SPARE_COLUMNS = 1024, 16
"""Free rows and columns that are never worth moving the others for."""


class Follower(Protocol):
    """An index that has to know when a value leaves its safe range."""

    def update(self, rows: np.ndarray, cols: np.ndarray, keys: np.ndarray) -> None: ...

    def note_updates(self, n: int) -> None: ...

    def forget_layout(self) -> None: ...


class ContextTable:
    """The cells of one matcher, the row of every context, and the index that follows the values."""

    def __init__(self) -> None:
        self.follower: Follower | None = None
        self._ids: list[Id | None] = []  # by row; None: the row is free
        self._row_of: dict[Id, int] = {}
        self._free_rows: list[int] = []
        self.columns: list[int] = []  # attribute of each column; a pattern's is its source's
        self.column_of: dict[int, int] = {}
        self.patterns: dict[int, dict[str, int]] = {}  # columns of patterns, by source
        self._free_columns: list[int] = []
        self.n_set = np.zeros(4, np.int64)
        self.cells = empty_cells(16, 4)
        self.slot_row = np.full(64, -1, np.int32)
        self._n_linked: np.ndarray | None = None  # counted when it is first needed
        self.journal = Journal()

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._row_of

    def ids(self) -> list[Id]:
        """All contexts, in the order of their rows."""
        return sorted(self._row_of, key=self._row_of.__getitem__)

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self.slot_row.nbytes + 150 * len(self._ids)

    @property
    def n_values(self) -> int:
        """How many values are set."""
        return int(self.n_set[list(self.column_of.values())].sum())

    @property
    def n_rows(self) -> int:
        """Rows, free ones among them."""
        return len(self._ids)

    # -- rows --------------------------------------------------------------------------------

    def row(self, id_: Id) -> int:
        """The row of a context, made at its first mention."""
        row = self._row_of.get(id_)
        if row is None:
            if not self._free_rows:
                self._make_rows(1)
            row = self._free_rows.pop()
            self.journal.remember_item(self._ids, row)
            self._ids[row], self._row_of[id_] = id_, row
        return row

    def rows(self, ids: Sequence[Id]) -> np.ndarray:
        """The rows of many contexts."""
        fresh = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._row_of]
        if len(fresh) > len(self._free_rows):
            self._make_rows(len(fresh) - len(self._free_rows))
        for id_ in fresh:
            self.row(id_)
        return np.fromiter(map(self._row_of.__getitem__, ids), np.int64, len(ids))

    def _make_rows(self, n: int) -> None:
        """Free rows at the end, the first of which is taken first."""
        had = len(self._ids)
        if had + n > len(self.cells):
            self._resize(doubled(len(self.cells), had + n), self.cells.shape[1])
        self._ids += [None] * n
        self._free_rows[:0] = range(had + n - 1, had - 1, -1)

    def free_rows(self, rows: np.ndarray) -> None:
        """Give back those rows that have neither a value nor a subscription."""
        if not len(rows):
            return
        has_value = (self.cells[rows, : len(self.columns), KEY] != ABSENT).any(axis=1)
        for row in np.unique(rows[~has_value & (self.n_linked[rows] == 0)]).tolist():
            id_ = self._ids[row]
            if id_ is not None and self._row_of.pop(id_, None) is not None:
                self.journal.remember_item(self._ids, row)
                self._ids[row] = None
                self._free_rows.append(row)

    # -- subscriptions -----------------------------------------------------------------------

    @property
    def n_linked(self) -> np.ndarray:
        """Subscriptions by row, as long as the cells."""
        if self._n_linked is None:
            linked = self.slot_row[self.slot_row >= 0]
            self._n_linked = np.bincount(linked, minlength=len(self.cells)).astype(np.int32)
        self._n_linked = grown(self._n_linked, len(self.cells))
        return self._n_linked

    def link(self, slots: np.ndarray, contexts: Sequence[Id | None]) -> None:
        """Link subscriptions to their contexts; None: to none."""
        size = doubled(len(self.slot_row), int(slots.max(initial=-1)) + 1)
        self.slot_row = grown(self.slot_row, size, -1)
        self.journal.remember(self.slot_row, slots)
        if len(slots) == 1:
            self._link_one(int(slots[0]), contexts[0])
            return
        named = [id_ for id_ in contexts if id_ is not None]
        after = np.full(len(slots), -1, np.int32)
        if named:
            after[[id_ is not None for id_ in contexts]] = self.rows(named)
        before = self.slot_row[slots]
        n_linked = self.n_linked
        self.slot_row[slots] = after
        np.add.at(n_linked, after[after >= 0], 1)
        np.subtract.at(n_linked, before[before >= 0], 1)
        self.free_rows(before[before >= 0])

    def _link_one(self, slot: int, id_: Id | None) -> None:
        before, after = int(self.slot_row[slot]), -1 if id_ is None else self.row(id_)
        if before == after:
            return
        n_linked = self.n_linked
        self.slot_row[slot] = after
        if after >= 0:
            n_linked[after] += 1
        if before >= 0:
            n_linked[before] -= 1
            self.free_rows(np.array([before]))

    def is_linked(self, slots: np.ndarray) -> np.ndarray:
        """Which subscriptions have a context."""
        inside = slots < len(self.slot_row)
        linked: np.ndarray = inside & (self.slot_row[np.where(inside, slots, 0)] >= 0)
        return linked

    def context_of(self, slot: int) -> Id | None:
        """The context that a subscription is linked to."""
        row = int(self.slot_row[slot]) if slot < len(self.slot_row) else -1
        return self._ids[row] if row >= 0 else None

    def renumber_slots(self, old: np.ndarray) -> None:
        """Slot `old[i]` is slot i now, and there are no others."""
        row = np.full(doubled(64, len(old)), -1, np.int32)
        inside = old < len(self.slot_row)
        row[: len(old)][inside] = self.slot_row[old[inside]]
        self.slot_row = row

    def derive(self) -> None:
        """Make again what follows from the ids of rows, after a change was undone."""
        self._row_of = {id_: row for row, id_ in enumerate(self._ids) if id_ is not None}
        self._free_rows = [row for row, id_ in enumerate(self._ids) if id_ is None]
        self._n_linked = None

    # -- columns -----------------------------------------------------------------------------

    def column(self, attr: int) -> int:
        """The column of a context's value, made at its first mention."""
        col = self.column_of.get(attr)
        if col is None:
            self.journal.remember_item(self.column_of, attr)
            col = self.column_of[attr] = self._new_column(attr)
        return col

    def _new_column(self, attr: int) -> int:
        if self._free_columns:
            col = self._free_columns.pop()
            self.columns[col] = attr
            return col
        if len(self.columns) == self.cells.shape[1]:
            self._resize(len(self.cells), 2 * self.cells.shape[1])
        self.columns.append(attr)
        return len(self.columns) - 1

    def _free_column(self, col: int) -> None:
        """Give back a column that no subscription tests."""
        self.cells[:, col, KEY] = ABSENT
        self.n_set[col] = 0
        self.columns[col] = FREE
        self._free_columns.append(col)

    # -- cells -------------------------------------------------------------------------------

    def _resize(self, rows: int, cols: int) -> None:
        fresh = empty_cells(rows, cols)
        had = self.cells.shape
        fresh[: had[0], : had[1]] = self.cells
        self.cells, self.n_set = fresh, grown(self.n_set, cols)

    def count_set(self) -> None:
        """Count the values in each column anew."""
        keys = self.cells[: len(self._ids), : len(self.columns), KEY]
        self.n_set = np.zeros(self.cells.shape[1], np.int64)
        self.n_set[: len(self.columns)] = (keys != ABSENT).sum(axis=0)

    def follow_with(self, follower: Follower | None) -> None:
        """Let another index follow, or none; it begins with no links."""
        if self.follower is not None and self.follower is not follower:
            self.follower.forget_layout()
        self.reset_safety()
        self.follower = follower

    def reset_safety(self) -> None:
        """No index is linked to any cell."""
        self.cells[:, :, SAFE_LO] = INT_MIN
        self.cells[:, :, SAFE_HI] = INT_MAX
        self.cells[:, :, LINK] = -1

    def used(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns in use, ascending."""
        rows = np.sort(np.fromiter(self._row_of.values(), np.int64, len(self._row_of)))
        return rows, np.flatnonzero(np.array(self.columns, np.int64) != FREE)

    def shrink(self) -> None:
        """Close the gaps when most rows or columns are free; the follower is built anew then.

        That takes time in proportion to the rows, and comes after as many were given back.
        """
        n_rows, n_columns = len(self._row_of), len(self.columns) - len(self._free_columns)
        if len(self._free_rows) > _SPARE_ROWS + 3 * n_rows or (
            len(self._free_columns) > _SPARE_COLUMNS + 3 * n_columns
        ):
            self.close_gaps()

    def close_gaps(self) -> None:
        """Renumber rows and columns without gaps."""
        rows, cols = self.used()
        fresh = empty_cells(doubled(16, len(rows)), doubled(4, len(cols)))
        fresh[: len(rows), : len(cols), KEY] = self.cells[np.ix_(rows, cols)][:, :, KEY]
        ids: list[Id | None] = [self._ids[i] for i in rows.tolist()]
        row_of = {id_: i for i, id_ in enumerate(ids) if id_ is not None}
        slot_row = renumbered(rows, len(self._ids))[self.slot_row]
        new_col = renumbered(cols, len(self.columns)).tolist()
        columns = [self.columns[i] for i in cols.tolist()]
        column_of = {attr: new_col[col] for attr, col in self.column_of.items()}
        patterns = {
            source: {pattern: new_col[col] for pattern, col in each.items()}
            for source, each in self.patterns.items()
        }
        n_set = np.zeros(fresh.shape[1], np.int64)
        n_set[: len(cols)] = self.n_set[cols]
        self.follow_with(None)
        self.cells, self._ids, self._row_of, self.slot_row = fresh, ids, row_of, slot_row
        self.columns, self.column_of, self.patterns, self.n_set = (
            columns,
            column_of,
            patterns,
            n_set,
        )
        self._free_rows, self._free_columns, self._n_linked = [], [], None


def renumbered(used: np.ndarray, n: int) -> np.ndarray:
    """New number by old one, of n; -1 for those not in use, and for -1 itself."""
    new = np.full(n + 1, -1, np.int32)
    new[used] = np.arange(len(used))
    return new


def empty_cells(rows: int, cols: int) -> np.ndarray:
    """Cells without values, two in a cache line, so that none lies in two lines."""
    size = 4 * rows * cols
    room = np.empty(size + 7, np.int64)
    first = -(room.ctypes.data // 8) % 8
    cells = room[first : first + size].reshape(rows, cols, 4)
    cells[:, :, KEY] = ABSENT
    cells[:, :, SAFE_LO] = INT_MIN
    cells[:, :, SAFE_HI] = INT_MAX
    cells[:, :, LINK] = -1
    return cells
