"""What subscriptions have of their own, beside the index and by slot: priority and attributes.

    snapshot/g-.../beside/priority.npy     int64[n]
                          attributes.npy   uint8[]   an Arrow file: one column, a row per slot

Both are saved and checked with the snapshot, and mapped by workers: all of a machine share one
copy.  A snapshot of somebody's own has neither; then all priorities are equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.engine.loading import BatchReport
from matchwood.engine.matches import Found
from matchwood.engine.snapshot import read_beside
from matchwood.spark.columns import ATTRIBUTES, OWN, PRIORITY
from matchwood.spark.home_keys import distinct


class Own(NamedTuple):
    """Priorities and attributes by slot, where there are any."""

    priority: np.ndarray | None = None
    attributes: pa.Table | None = None


def read_own(folder: Path, verify: bool = False) -> Own:
    """What lies beside a snapshot."""
    arrays = read_beside(folder, verify)
    packed = arrays.get(ATTRIBUTES)
    rows = None if packed is None else pa.ipc.open_file(pa.py_buffer(packed)).read_all()
    return Own(arrays.get(PRIORITY), rows)


def own_arrays(rows: pa.Table) -> dict[str, np.ndarray]:
    """The arrays to be saved, from rows in the order of slots."""
    arrays: dict[str, np.ndarray] = {}
    if PRIORITY in rows.column_names:
        arrays[PRIORITY] = rows.column(PRIORITY).to_numpy()
    if ATTRIBUTES in rows.column_names:
        sink = pa.BufferOutputStream()
        column = rows.select([ATTRIBUTES]).combine_chunks()
        with pa.ipc.new_file(sink, column.schema) as writer:
            writer.write_table(column)
        arrays[ATTRIBUTES] = np.frombuffer(sink.getvalue(), np.uint8)
    return arrays


def own_rows(table: pa.Table) -> pa.Table | None:
    """The own columns of a table that is sorted by id: a row per subscription."""
    own = [name for name in OWN if name in table.column_names]
    if not own:
        return None
    rows = table.select(own)
    if "attribute" in table.column_names:
        _, code = distinct(table.column("id"))
        rows = rows.take(pa.array(np.unique(code, return_index=True)[1]))
    return rows


def taken_rows(rows: pa.Table, report: BatchReport) -> pa.Table:
    """Without those that a matcher refused: what it took has the slots 0, 1, 2, ... in order."""
    taken = np.ones(rows.num_rows, bool)
    taken[[each.row for each in report.errors]] = False
    assert int(taken.sum()) == report.count
    return rows.filter(pa.array(taken))


def best(found: Found, priority: np.ndarray | None, limit: int) -> Found:
    """At most `limit` slots an event, those of the highest priority, highest first.

    Ties stay in the order they have, which is that of slots.
    """
    sizes, slots = np.diff(found.offsets), found.slots
    if priority is not None:
        event = np.repeat(np.arange(len(sizes)), sizes)
        slots = slots[np.lexsort((~priority[slots], event))]  # ~ turns the order, without overflow
    place = np.arange(len(slots)) - np.repeat(found.offsets[:-1], sizes)
    offsets = np.concatenate([[0], np.cumsum(np.minimum(sizes, limit))])
    return found._replace(offsets=offsets, slots=slots[place < limit])
