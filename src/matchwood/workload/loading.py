"""Loading: a workload as the integers that indexes work on, every phase timed.

    generate   rows from the generator; `events` and `encode events` likewise
    read       columns or texts to leaf rows
    resolve    attributes, types, keys
    store      merge, intern and keep in the expression table

Row i of the workload has slot i.  Ids and texts are left out: they are no index's work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.columns import column_keys
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch, encode_events
from matchwood.encode.expression_kernels import CONJUNCTION, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.resolve import resolve
from matchwood.engine.input.loading import Chunk, load_batches
from matchwood.errors import MatchwoodError
from matchwood.workload.interface import Workload
from matchwood.workload.stopwatch import Stopwatch
from matchwood.workload.tables import Entries, wide_events

CHUNK = 200_000
"""Subscriptions generated and loaded at a time."""


class Loaded(NamedTuple):
    """A workload's subscriptions, encoded."""

    attributes: Attributes
    table: ExpressionTable

    @property
    def slots(self) -> np.ndarray:
        """What an index may be given: everything but the always and the never true."""
        kind = self.table.layout.kind
        return np.flatnonzero((kind == CONJUNCTION) | (kind == TREE)).astype(np.int32)


def load_subscriptions(
    workload: Workload,
    watch: Stopwatch | None = None,
    progress: Callable[[int, int], None] | None = None,
    last: int | None = None,
) -> Loaded:
    """All subscriptions of a workload in an expression table, or those before row `last`."""
    watch = watch or Stopwatch()
    loaded = Loaded(Attributes(workload.schema()), ExpressionTable())
    total = workload.n_subscriptions if last is None else min(last, workload.n_subscriptions)
    for first in range(0, total, CHUNK):
        until = min(first + CHUNK, total)
        for chunk in _chunks(workload, first, until, watch):
            _store(loaded, first + chunk.first, chunk, watch)
        if progress is not None:
            progress(until, total)
    return loaded


def load_into(loaded: Loaded, workload: Workload, first_slot: int) -> None:
    """Add all subscriptions of another workload on the same attributes, from a slot on."""
    watch = Stopwatch()
    for first in range(0, workload.n_subscriptions, CHUNK):
        until = min(first + CHUNK, workload.n_subscriptions)
        for chunk in _chunks(workload, first, until, watch):
            _store(loaded, first_slot + first + chunk.first, chunk, watch)


def _chunks(workload: Workload, first: int, until: int, watch: Stopwatch) -> list[Chunk]:
    """Rows first .. until - 1, read."""
    with watch.phase("generate"):
        batch = workload.leaf_rows(first, until)
        if batch is not None:
            n = until - first
            return [Chunk(0, range(n), [""] * n, batch, range(n), {}, n, n)]
        rows = workload.subscriptions(first, until)
    with watch.phase("read"):
        return list(load_batches(rows, None))


def _store(loaded: Loaded, first: int, chunk: Chunk, watch: Stopwatch) -> None:
    if chunk.refused:
        row, error = min(chunk.refused.items())
        raise MatchwoodError(f"expected a workload without faults, found in row {row}: {error}")
    batch = chunk.batch
    with watch.phase("resolve"):
        leaves = resolve(batch, loaded.attributes, loaded.table)
    with watch.phase("store"):
        loaded.table.encode(
            leaves,
            np.asarray(batch.expr_start, np.int64),
            np.asarray(batch.code, np.int32),
            np.arange(first, first + len(batch), dtype=np.int32),
        )


def load_events(
    workload: Workload, attributes: Attributes, watch: Stopwatch | None = None
) -> EventBatch:
    """All events of a workload as one batch."""
    watch = watch or Stopwatch()
    with watch.phase("events"):
        table = workload.events(0, workload.n_events)
    with watch.phase("encode events"):
        return encode_entries(attributes, table, 0, workload.n_events)


def encode_entries(attributes: Attributes, table: pa.Table, first: int, last: int) -> EventBatch:
    """Encode the events first .. last - 1 of an entry table."""
    if attributes.absences or any(each.patterns for each in attributes.all):
        events = encode_events(attributes, wide_events(table, first, last))
        if events.errors:
            wrong = min(events.errors.items())
            raise MatchwoodError(f"expected events without faults, found {wrong}")
        return events.batch
    entries = Entries(table, first, last)
    attr = np.full(len(entries.code), -1, np.int32)
    keys = np.zeros(len(entries.code), np.int64)
    for code, name in enumerate(entries.names):
        attribute = attributes.by_name.get(name)
        at, values = entries.part(code)
        if attribute is None or not len(at):
            continue
        found, bad = column_keys(attribute.keys, values)
        if bad is not None:
            raise MatchwoodError(f"attribute {name!r}: expected {attribute.type} in every event")
        attr[at], keys[at] = attribute.id, found
    order = np.lexsort((attr, entries.event))
    order = order[attr[order] >= 0]
    start = np.searchsorted(entries.event[order], np.arange(entries.n_events + 1))
    keys = keys[order]
    return EventBatch(start.astype(np.int64), attr[order], keys, keys)
