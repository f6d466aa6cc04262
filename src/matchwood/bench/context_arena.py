"""One filter of AGILE's evaluation on its own copy of the values, driven message by message.

Profiles that follow their context all have the same expression, so it is encoded once and the slots
share its code: loading is not what is measured.
"""

from __future__ import annotations

import gc
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.bench.searching import searched
from matchwood.context.agile_kernels import NO_INDEX
from matchwood.context.store import ContextStore
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import float_keys
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import resolve
from matchwood.engine.input.loading import load_batches
from matchwood.index.core.protocol import Hits
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.lang.parser import parse
from matchwood.workload.context import Context, Walk
from matchwood.workload.loading import encode_entries
from matchwood.workload.tables import coded, predicate_table

WARM_UP = 500
"""Messages, as many as the paper's, with their updates before a filter is timed.  How far entries
have escalated by then is what AGILE is about, so none is left out where updates are many."""

_AT_ONCE = 20

Update = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, columns and keys of cells that change, in order."""


class Stretch(NamedTuple):
    """Some messages and the updates between them, encoded."""

    events: list[EventBatch]
    updates: list[Update]
    first: int


def load_profiles(workload: Context) -> tuple[Attributes, ExpressionTable, ContextStore]:
    """All profiles, each in the slot of its number, linked to contexts with their first values."""
    attributes, table = Attributes(workload.schema()), ExpressionTable()
    store = ContextStore(attributes, table)
    n = workload.n_subscriptions
    bound = workload.is_bound(0, n)
    fixed = np.flatnonzero(~bound)
    if len(fixed):
        _encode_fixed(workload, attributes, table, fixed)
    slots = np.flatnonzero(bound).astype(np.int32)
    if len(slots):
        batch = LeafBatch()
        batch.add(parse(workload.bound_text()))
        leaves = resolve(batch, attributes, table)
        start = np.array(batch.expr_start, np.int64)
        table._make_slots(n)
        table.encode(leaves, start, np.array(batch.code, np.int32), slots[:1])
        for column in (table.layout.kind, table.layout.start, table.layout.size):
            column[slots] = column[slots[0]]
    contexts = workload.contexts(0, n)
    ids = contexts.column("context").to_pylist()
    columns = {name: contexts.column(name).combine_chunks() for name in workload.names}
    store.set_many(ids, columns)
    store.slot_row = np.full(n, -1, np.int32)
    store.slot_row[slots] = np.arange(len(slots))  # set_many made the rows in this order
    return attributes, table, store


def _encode_fixed(
    workload: Context, attributes: Attributes, table: ExpressionTable, rows: np.ndarray
) -> None:
    names = workload.names
    values = workload.values(0, workload.n_subscriptions)[rows]
    half = np.array([workload.half_width(i) for i in range(len(names))])
    ends = np.stack([values - half, values + half], axis=2).ravel()
    predicates = predicate_table(
        np.repeat(rows, len(names)),
        coded(np.tile(np.arange(len(names)), len(rows)), names),
        coded(np.zeros(len(rows) * len(names), np.int32), ["BETWEEN"]),
        np.full(len(rows) * len(names), 2),
        pa.array(ends),
    )
    done = 0
    for chunk in load_batches(predicates, None):
        batch = chunk.batch
        leaves = resolve(batch, attributes, table)
        slots = rows[done : done + len(batch)].astype(np.int32)
        done += len(batch)
        start, code = np.asarray(batch.expr_start, np.int64), np.asarray(batch.code, np.int32)
        table.encode(leaves, start, code, slots)


class Stream:
    """The messages and updates of a workload, cut into stretches; the same for every filter."""

    def __init__(self, workload: Context, attributes: Attributes, store: ContextStore) -> None:
        self._workload = workload
        self._walk = Walk(workload)
        self._attributes = attributes
        n = workload.n_subscriptions
        self._row = np.full(n, -1, np.int64)
        bound = np.flatnonzero(workload.is_bound(0, n))
        self._row[bound] = np.arange(len(bound))
        self._column = np.array(
            [store.column(attributes.by_name[f"ctx.{name}"].id) for name in workload.names]
        )

    def stretch(self, first: int, last: int) -> Stretch:
        """Messages first .. last - 1; stretches are asked for in order."""
        table = self._workload.events(first, last)
        events = [
            encode_entries(self._attributes, table.slice(i * n, n), first + i, first + i + 1)
            for n in [len(self._workload.names)]
            for i in range(last - first)
        ]
        updates = []
        for message in range(first, last):
            profile, attribute, value = self._walk.steps(*self._workload.updates_before(message))
            updates.append((self._row[profile], self._column[attribute], float_keys(value)))
        return Stretch(events, updates, first)

    def updates(self, first: int, last: int) -> Update:
        """Updates first .. last - 1 of the workload, without messages."""
        profile, attribute, value = self._walk.steps(first, last)
        return self._row[profile], self._column[attribute], float_keys(value)


class Filter:
    """One filter with its settings, over values of its own."""

    def __init__(self, index: str, config: dict[str, Any], workload: Context) -> None:
        self.attributes, self.table, self.store = load_profiles(workload)
        slots = np.arange(workload.n_subscriptions, dtype=np.int32)
        began = time.process_time()
        filter_class: Any = find_index(index)
        self.index = filter_class.build(self.table, slots, **config)
        self.index.contexts = self.store
        self._scratch = Scratch()
        self.index.settle()
        self.build_seconds = time.process_time() - began
        self.update_seconds = 0.0
        """Of all updates before messages so far."""

    def run(self, stretch: Stretch) -> tuple[list[float], list[Hits]]:
        """Updates, then the message, again and again; seconds of each, and the answers."""
        seconds, answers = [], []
        store, index, scratch = self.store, self.index, self._scratch
        gc.disable()
        try:
            for event, (rows, cols, keys) in zip(stretch.events, stretch.updates, strict=True):
                began = time.process_time()
                if len(keys):
                    store.write(rows, cols, keys)
                self.update_seconds += time.process_time() - began
                hits = searched(index, event, scratch)
                seconds.append(time.process_time() - began)
                answers.append(hits)
        finally:
            gc.enable()
        return seconds, answers


def warm_up_stream(filter_: Filter, stream: Stream, workload: Context) -> None:
    """Messages and their updates, after those of the case; no message where there is no index."""
    if workload.burst:
        return
    first, last = workload.n_events, workload.n_events + WARM_UP
    for at in range(first, last, _AT_ONCE):
        stretch = stream.stretch(at, min(at + _AT_ONCE, last))
        if filter_.index.mode != NO_INDEX:
            filter_.run(stretch)
            continue
        for update in stretch.updates:
            filter_.store.write(*update)
