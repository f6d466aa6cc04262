"""Matcher: the whole chain, from text and events to ids.

    text -> parse -> nnf -> leaf rows -> resolve -> expression table -> index
    event -> encode -> index -> hits -> arrange -> ids

Every public method holds one lock: an `add` that has returned is seen by every later `match`, from
any thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.decode import decode
from matchwood.encode.events import EncodedEvents, encode_event, encode_events
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import learned_types, resolve
from matchwood.encode.schema import Schema
from matchwood.engine.arrange_kernels import arrange
from matchwood.engine.explain import Explanation, explain
from matchwood.engine.loading import BatchReport, Chunk, Refused, load_batches
from matchwood.engine.matches import Matches
from matchwood.engine.routing import Routing
from matchwood.engine.subscriptions import Id, Subscriptions, check_id
from matchwood.errors import (
    EventError,
    MatchwoodError,
    ParseError,
    SchemaError,
    SubscriptionError,
)
from matchwood.index.protocol import Hits
from matchwood.index.verify_kernels import COUNTERS
from matchwood.jit import compile_seconds
from matchwood.lang.nodes import Boolean, Expr
from matchwood.lang.parser import parse
from matchwood.lang.tokens import MAX_TEXT

COMPACT_ABOVE = 1024
"""Slots below which compacting is not worth the trouble."""


class Matcher:
    """Keeps subscriptions and tells, for every event, which of them hold.

    index   "auto", or a name from the registry; settings of that index follow as keywords
    schema  declared types of attributes; others are learned from their first use

    >>> m = Matcher()
    >>> m.add("cheap", "price < 20 AND genre = 'classics'")
    >>> m.match({"price": 19.99, "genre": "classics"})
    ['cheap']
    """

    def __init__(
        self,
        index: str = "auto",
        *,
        schema: Schema | Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        declared = schema if isinstance(schema, Schema) else Schema(schema)
        self._lock = threading.RLock()
        self._attributes = Attributes(declared)
        self._table = ExpressionTable()
        self._subscriptions = Subscriptions()
        self._routing = Routing(self._table, index, config)
        self._work = np.zeros(len(COUNTERS), np.int64)
        self._loading = False

    # -- changing ----------------------------------------------------------------------------

    def add(self, id: Id, expr: str | Boolean) -> None:
        """Register a subscription; its id must be new."""
        with self._exclusive():
            id_ = self._check_new(id)
            batch = _single(expr)
            leaves = self._resolve(batch, expr)
            slots = self._subscriptions.add([id_], [_text(expr)])
            self._encode(batch, leaves, slots)
            self._routing.insert(slots)

    def add_many(
        self,
        subscriptions: Any,
        *,
        progress: Callable[[int, int], None] | None = None,
        processes: int | None = None,
    ) -> BatchReport:
        """Register many subscriptions; what is wrong with some never stops the others.

        subscriptions  a table (Arrow, pandas, polars) with columns `id` and `expr`; a table of
                       predicates with columns `id`, `attribute`, `operator` and `value` (or
                       `values`), whose rows of one id form a conjunction; or an iterable of
                       (id, text) pairs
        progress       called with (done, total) after every chunk
        processes      how many processes parse texts; by default one per core for large batches

        Returns the number added and the refused ones: (row, id, error).
        """
        with self._exclusive():
            report = BatchReport()
            added: list[np.ndarray] = []
            self._loading = True
            try:
                for chunk in load_batches(subscriptions, processes):
                    ids = self._admit(chunk.ids, chunk.refused)
                    added += self._add_chunk(ids, chunk)
                    report.take(chunk, sum(map(len, added)))
                    if progress is not None:
                        progress(chunk.done, chunk.total)
            finally:  # also when a callback or a key press ends it: what was taken is served
                self._loading = False
                if added:
                    self._routing.insert(np.concatenate(added))
            return report

    def replace(self, id: Id, expr: str | Boolean) -> None:
        """Give a subscription a new expression, keeping its place; adds it when it is new."""
        with self._exclusive():
            id_ = check_id(id)
            if id_ not in self._subscriptions:
                self.add(id_, expr)
                return
            batch = _single(expr)
            leaves = self._resolve(batch, expr)
            slots = np.array([self._subscriptions.slot_of[id_]], np.int32)
            derived = self._release(slots)
            self._subscriptions.texts.drop(slots)
            self._subscriptions.texts.put(slots, [_text(expr)])
            self._encode(batch, leaves, slots)
            self._forget(derived)  # not before: the new expression may test the same ones
            self._routing.insert(slots)

    def remove(self, id: Id) -> None:
        """Forget a subscription."""
        with self._exclusive():
            self._remove(np.array([self._subscriptions.find(id)], np.int32))

    def remove_many(self, ids: Iterable[Id]) -> BatchReport:
        """Forget many; unknown ids are reported and never stop the others."""
        with self._exclusive():
            report = BatchReport()
            slots: dict[int, None] = {}
            for row, id_ in enumerate(ids):
                try:
                    slot = self._subscriptions.find(id_)
                    if slot in slots:
                        raise SubscriptionError(f"expected id {id_!r} once, found it again")
                    slots[slot] = None
                except SubscriptionError as error:
                    report.errors.append(Refused(row, id_, error))
            if slots:
                self._remove(np.array(list(slots), np.int32))
            report.count = len(slots)
            return report

    # -- matching ----------------------------------------------------------------------------

    def match(self, event: Mapping[str, Any] | Expr) -> list[Id]:
        """Ids of the subscriptions that hold for an event, in the order they were added.

        An event is a mapping from attribute names to values, or an expression: a conjunction of
        predicates that stands for all values it allows.
        """
        with self._exclusive():
            encoded = encode_event(self._attributes, event)
            return self._match(EncodedEvents(encoded, {})).ids.tolist()

    def match_many(self, events: Any) -> Matches:
        """Matches of many events: a list of them, an Arrow table or batch, or a data frame.

        Events that cannot be read are in `Matches.errors`; they match nothing and stop nothing.
        """
        with self._exclusive():
            return self._match(encode_events(self._attributes, events))

    # -- asking ------------------------------------------------------------------------------

    def explain(self, id: Id, event: Mapping[str, Any]) -> Explanation:
        """TRUE, FALSE or UNKNOWN for every part of a subscription, and why it does not match."""
        with self._exclusive():
            if not isinstance(event, Mapping):
                raise EventError(
                    f"expected a mapping to explain, found {type(event).__name__}: "
                    "give one event with values"
                )
            return explain(id, self.expression(id), self._attributes, event)

    def validate(self, text: str | Boolean) -> Expr:
        """Parse and type-check without adding; returns the tree, or raises with a position."""
        with self._exclusive():
            batch = _single(text)
            try:
                learned_types(batch, self._attributes)
            except SchemaError as error:
                raise _placed(error, text) from None
            return _tree(text)

    def expression(self, id: Id) -> Expr:
        """A subscription's expression as a tree."""
        with self._exclusive():
            slot = self._subscriptions.find(id)
            text = self._subscriptions.texts.get(slot)
            return decode(self._table, self._attributes, slot) if text is None else parse(text)

    @property
    def schema(self) -> Schema:
        """The types of all attributes known so far, declared or learned."""
        with self._exclusive():
            return self._attributes.schema()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: object) -> bool:
        with self._exclusive():
            return id in self._subscriptions

    def stats(self) -> dict[str, Any]:
        """Sizes, memory in bytes, and the work done since this matcher was made."""
        with self._exclusive():
            kinds = self._table.layout.kind
            indexes = [index.stats() for index in self._routing.indexes]
            memory = {
                "subscriptions": self._subscriptions.nbytes,
                "expressions": self._table.nbytes,
                "indexes": sum([each["bytes"] for each in indexes]),
            }
            return {
                "subscriptions": len(self),
                "conjunctions": int((kinds == CONJUNCTION).sum()),
                "trees": int((kinds == TREE).sum()),
                "always_true": int((kinds == ALWAYS).sum()),
                "never_true": int((kinds == NEVER).sum()),
                "attributes": len(self._attributes.by_name),
                "predicates": len(self._table.predicates),
                "bytes": memory,
                "bytes_per_subscription": round(sum(memory.values()) / max(1, len(self)), 1),
                "indexes": indexes,
                "work": dict(zip(COUNTERS, self._work.tolist(), strict=True)),
                "compile_seconds": round(compile_seconds(), 3),
            }

    def draw(self) -> str:
        """The structure of every index as text."""
        with self._exclusive():
            return "\n".join([index.draw() for index in self._routing.indexes])

    # -- keeping -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot directory; an existing snapshot there is replaced in one step."""
        from matchwood.engine.snapshot import save

        with self._exclusive():
            if not self._subscriptions.is_compact:
                self._compact()
            save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True, verify: bool = True) -> Matcher:
        """Open a snapshot.

        mmap    map the arrays, so that processes on one machine share one copy; changes made
                afterwards stay in this process
        verify  check every file's checksum first; a worker that opens a snapshot which was
                already checked may skip this
        """
        from matchwood.engine.snapshot import load

        return load(cls, path, mmap, verify)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._lock:
            if self._loading:
                raise MatchwoodError(
                    "expected a progress callback that only reports, found one that uses the "
                    "matcher: it is not ready before add_many returns"
                )
            yield

    # -- the chain ---------------------------------------------------------------------------

    def _check_new(self, id_: Any) -> Id:
        id_ = check_id(id_)
        if id_ in self._subscriptions:
            raise SubscriptionError(
                f"expected a new id, found {id_!r}, which is taken: use replace() to change it"
            )
        return id_

    def _resolve(self, batch: LeafBatch, expr: str | Boolean) -> Any:
        try:
            return resolve(batch, self._attributes, self._table)
        except SchemaError as error:
            raise _placed(error, expr) from None

    def _encode(self, batch: LeafBatch, leaves: Any, slots: np.ndarray) -> None:
        expr_start = np.array(batch.expr_start, np.int64)
        self._table.encode(leaves, expr_start, np.array(batch.code, np.int32), slots)

    def _admit(self, ids: Sequence[Any], refused: dict[int, Exception]) -> list[Id]:
        """Check the ids of a chunk; those that cannot be taken join the refused ones."""
        checked: list[Any] = list(ids)
        taken = self._subscriptions.slot_of.keys()
        is_plain = not refused and _are_plain(checked) and len(set(checked)) == len(checked)
        if is_plain and taken.isdisjoint(checked):
            return checked  # the usual case: all new, in a few passes of C
        seen: set[Id] = set()
        for row, id_ in enumerate(ids):
            try:
                checked[row] = self._check_new(id_)
                if checked[row] in seen:
                    raise SubscriptionError(f"expected a new id, found {id_!r} twice in one batch")
                if row not in refused:
                    seen.add(checked[row])
            except SubscriptionError as error:
                refused.setdefault(row, error)
        return checked

    def _add_chunk(self, ids: list[Id], chunk: Chunk) -> list[np.ndarray]:
        """Encode a chunk; returns the slots.

        A part of the chunk that holds something refused is halved until only that is left out.
        """
        slots: list[np.ndarray] = []
        pending = [(0, len(chunk.rows))]
        while pending:
            first, last = pending.pop()
            rows = chunk.rows[first:last]
            if chunk.refused.keys().isdisjoint(rows):
                batch = chunk.batch.part(first, last)
                try:
                    leaves = resolve(batch, self._attributes, self._table)
                    slots.append(self._store(batch, leaves, ids, chunk.texts, rows))
                    continue
                except SchemaError as error:
                    if len(rows) == 1:
                        chunk.refused[rows[0]] = chunk.placed(rows[0], error)
            if len(rows) > 1:
                middle = (first + last) // 2
                pending += [(middle, last), (first, middle)]
        return slots

    def _store(
        self, batch: LeafBatch, leaves: Any, ids: list[Id], texts: Any, rows: Sequence[int]
    ) -> np.ndarray:
        slots = self._subscriptions.add([ids[row] for row in rows], [texts[row] for row in rows])
        self._encode(batch, leaves, slots)
        return slots

    def _release(self, slots: np.ndarray) -> list[int]:
        """Take slots out of the indexes and the table; returns derived attributes to `_forget`."""
        is_stale = self._routing.epoch != self._table.epoch  # keys moved: built anew below
        if not is_stale:
            self._routing.delete(slots)
        derived = self._derived_in(slots)
        self._table.release(slots)
        if is_stale:
            self._routing.rebuild()
        return derived

    def _forget(self, derived: list[int]) -> None:
        """Stop supplying derived attributes that no expression tests any more."""
        for attr in derived:
            if not self._table.predicates.uses(attr):
                self._attributes.drop_derived(attr)

    def _derived_in(self, slots: np.ndarray) -> list[int]:
        """The derived attributes that expressions test."""
        if not self._attributes.n_derived:
            return []
        attributes = self._attributes.all
        return [attr for attr in self._table.attributes_of(slots) if attributes[attr].is_derived]

    def _remove(self, slots: np.ndarray) -> None:
        self._forget(self._release(slots))
        self._subscriptions.remove(slots)
        if self._subscriptions.n_slots > max(COMPACT_ABOVE, 4 * len(self)) or not len(self):
            self._compact()

    def _compact(self) -> None:
        """Renumber slots and predicates without gaps, shrink every table, forget old constants."""
        self._table.compact(self._subscriptions.compact())
        self._attributes.forget_unused(self._table.predicates)
        self._routing.rebuild()

    def _match(self, events: EncodedEvents) -> Matches:
        n = events.batch.n_events
        found = self._routing.match_batch(events.batch)
        none = Hits(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.zeros_like(self._work))
        first, second = (*found, none, none)[:2]
        skip = np.zeros(n, bool)
        skip[list(events.errors)] = True
        subscriptions = self._subscriptions
        words = subscriptions.n_slots // 64 + 1 if subscriptions.in_order else 0
        offsets = np.zeros(n + 1, np.int64)
        total = len(first.slots) + len(second.slots) + n * len(self._routing.always)
        slots = np.empty(total, np.int32)
        used = arrange(
            first.offsets, first.slots, second.offsets, second.slots, self._routing.always,
            skip, subscriptions.order, np.zeros(words, np.uint64), offsets, slots,
        )  # fmt: skip
        work = first.counters + second.counters
        work[0] = n
        work[-1] = used
        self._work += work
        counters = dict(zip(COUNTERS, work.tolist(), strict=True))
        ids = subscriptions.ids_of(slots[:used])
        return Matches(offsets, ids, events.errors, counters)


def _are_plain(ids: list[Any]) -> bool:
    """Whether ids are surely valid: all ints of 64 bits, or all ASCII strings."""
    kinds = {type(id_) for id_ in ids}
    if kinds == {int}:
        return bool(min(ids) >= -(2**63) and max(ids) < 2**63)
    return kinds == {str} and "".join(ids).isascii()


def _tree(expr: str | Boolean) -> Expr:
    return expr.expression() if isinstance(expr, Boolean) else parse(expr)


def _single(expr: str | Boolean) -> LeafBatch:
    """A batch of one expression."""
    batch = LeafBatch()
    batch.add(_tree(expr))
    return batch


def _text(expr: str | Boolean) -> str | None:
    """What is kept to show it again; a built tree too large to be read as text is decoded instead."""
    if not isinstance(expr, Boolean):
        return expr
    text = str(expr.expression())
    return text if len(text) <= MAX_TEXT else None


def _placed(error: SchemaError, expr: str | Boolean) -> SchemaError | ParseError:
    """The error with its place in the text; built trees have none."""
    return error.at(expr) if isinstance(expr, str) else error  # type: ignore[return-value]
