"""Store: the whole chain of one matcher, from text and events to ids, without locks.

    text -> parse -> nnf -> leaf rows -> resolve -> expression table -> index
    event -> encode -> index -> hits -> arrange -> ids

attributes     names, types, dictionaries          subscriptions  ids, texts, order: one slot each
table          expressions as integers, by slot    routing        the indexes that hold the slots

All four use the same slots.  A change goes through them in one order: resolve (may refuse,
changing nothing), subscriptions, table, routing; a removal goes the other way round.  That order,
and what undoes each step, is kept in this one file, which is longer than others for it.  Searches
are in `finding`.

A change is a transaction: its owner opens it with `savepoint.Change`.  An error that is raised
while all parts agree (`is_whole`), such as the refusal of a text, costs nothing.  After any other
exception the facts are as before, and the owner replaces the store by one that is built again from
them (`recovery`) before it is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.decode import decode
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import is_plain, learned_types, resolve
from matchwood.engine.changes import Progress, add_chunks
from matchwood.engine.input.fields import NO_FIELDS, FieldColumns
from matchwood.engine.input.given import Given, Parsed, placed, single, text_of, tree
from matchwood.engine.input.loading import BatchReport, Chunk
from matchwood.engine.stores.context_checks import checked_context, checked_contexts
from matchwood.engine.stores.expiry import expired_slots
from matchwood.engine.stores.ids import are_plain, check_id, used_id
from matchwood.engine.stores.routing import Routing
from matchwood.engine.stores.savepoint import Savepoint
from matchwood.engine.stores.subscriptions import Id, Subscriptions
from matchwood.engine.stores.tidy import forget, tidy
from matchwood.errors import MatchwoodError, SchemaError, SubscriptionError
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.lang.nodes import Expr
from matchwood.lang.parser import parse

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.context.store import ContextStore
    from matchwood.encode.translate import Rows
    from matchwood.engine.access import Reader
    from matchwood.engine.stores.flips import Flips

ReadUpdates = Callable[["ContextStore"], tuple[Sequence[Id], Callable[[], None]]]
"""What tells the contexts that an update changes, and what carries it out."""

COMPACT_ABOVE = 1024
"""Slots below which compacting is not worth the trouble."""


class Facts(NamedTuple):
    """What is kept of some subscriptions besides their expressions."""

    ids: list[Id]
    texts: list[str | None]
    fields: FieldColumns
    order: np.ndarray


@dataclass
class Store:
    """The parts of a matcher, and the changes that keep them in step."""

    is_aside: ClassVar[bool] = False

    attributes: Attributes
    table: ExpressionTable
    subscriptions: Subscriptions
    routing: Routing
    work: np.ndarray = field(default_factory=lambda: np.zeros(len(COUNTERS), np.int64))
    pending: Savepoint | None = None
    """The facts before the change that is under way."""
    is_whole: bool = True
    """Whether all parts agree with each other; False in the middle of a change."""
    holds_strings: bool = False
    """Whether strings of contexts stay though nothing has them, see `Matcher.hold_strings`."""
    changed_contexts: dict[Id, None] | None = None
    """Contexts that changed, where a log asks for them."""
    file: str | None = None
    """Of a segment: the name of its files in the folder of a durable matcher (`segment_files`)."""
    is_between_events: bool = False
    """Whether contexts are being changed between encoded events, whose integers have to hold."""

    def __post_init__(self) -> None:
        self.attributes.tested_by = self.table

    # -- changing ----------------------------------------------------------------------------

    def has(self, id_: Any) -> bool:
        return id_ in self.subscriptions

    def add(
        self,
        id_: Any,
        expr: Given,
        context: Any = None,
        fields: FieldColumns = NO_FIELDS,
        order: np.ndarray | None = None,
    ) -> None:
        """One new subscription; `order` is its number in the order of addition, if not the next."""
        id_ = self.check_new(id_)
        batch = single(expr)
        context = checked_context(batch, context, expr)
        leaves = self._resolve(batch, expr)
        slots = self.subscriptions.add([id_], [text_of(expr)], fields, order)
        self._encode(batch, leaves, slots)
        self.link(slots, [context])
        for error in self.insert(slots).values():
            self.is_whole = True  # it was taken out again
            raise error

    def insert(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Hand encoded slots to the indexes; what they refuse is taken out again and returned.

        If an index fails all the same, all of them are taken out.
        """
        refused = self.routing.refusals(slots)
        if refused:
            gone = np.array(list(refused), np.int32)
            self._take_out(gone)
            slots = slots[~np.isin(slots, gone)]
        try:
            self.routing.insert(slots)
        except MatchwoodError:
            self._take_out(slots)
            self.routing.rebuild()
            self.is_whole = True
            raise
        return refused

    def _take_out(self, slots: np.ndarray) -> None:
        """Forget slots that no index holds."""
        mentioned = self.table.attributes_of(slots)
        self.table.release(slots)
        self._forget(mentioned)
        self.link(slots, [None] * len(slots))
        self.subscriptions.remove(slots)

    def replace(
        self,
        id_: Id,
        expr: Given,
        context: Any = None,
        fields: FieldColumns = NO_FIELDS,
    ) -> None:
        """Another expression for an id that is there; if an index refuses it, the old one stays.

        It stays linked to its context unless another one is given, and keeps fields that are not.
        """
        old = self.expression(id_)
        batch = single(expr)
        slots = np.array([self.subscriptions.slot_of[id_]], np.int32)
        linked = None if self.contexts is None else self.contexts.context_of(int(slots[0]))
        context = checked_context(batch, linked if context is None else context, expr)
        leaves = self._resolve(batch, expr)
        mentioned = self._release(slots)
        self._encode(batch, leaves, slots)
        self.link(slots, [context])
        self._forget(mentioned)  # not before: the new expression may test the same ones
        refused = self.routing.refusals(slots)
        try:
            for error in refused.values():
                raise error
            self.routing.insert(slots)
        except MatchwoodError:
            mentioned = self.table.attributes_of(slots)
            self.table.release(slots)
            if not refused:
                self.routing.rebuild()
            batch = single(old)
            self.link(slots, [linked])
            self._encode(batch, resolve(batch, self.attributes, self.table), slots)
            self._forget(mentioned)
            self.routing.insert(slots)
            self.is_whole = True
            raise
        self.subscriptions.texts.put(slots, [text_of(expr)])
        self.subscriptions.columns.put(slots, fields, is_new=False)
        self.subscriptions.note([id_])
        tidy(self)

    def check_new(self, id_: Any) -> Id:
        """A valid id that is not taken."""
        id_ = check_id(id_)
        if id_ in self.subscriptions:
            raise used_id(id_)
        return id_

    def admit(self, ids: Sequence[Any], refused: dict[int, Exception]) -> list[Id]:
        """Check the ids of a chunk; those that cannot be taken join the refused ones."""
        checked: list[Any] = list(ids)
        known = self.subscriptions.slot_of.keys()
        is_plain = not refused and are_plain(checked) and len(set(checked)) == len(checked)
        if is_plain and known.isdisjoint(checked):
            return checked  # the usual case: all new, in a few passes of C
        seen: set[Id] = set()
        for row, id_ in enumerate(ids):
            try:
                checked[row] = self.check_new(id_)
                if checked[row] in seen:
                    raise SubscriptionError(f"expected a new id, found {id_!r} twice in one batch")
                if row not in refused:
                    seen.add(checked[row])
            except SubscriptionError as error:
                refused.setdefault(row, error)
        return checked

    def add_chunk(self, ids: list[Id], chunk: Chunk) -> list[np.ndarray]:
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
                    contexts = checked_contexts(batch, chunk.contexts, rows)
                    leaves = self._resolve(batch)
                    slots.append(self._store(batch, leaves, ids, chunk, rows))
                    if contexts is not None:
                        self.link(slots[-1], contexts)
                    continue
                except (SchemaError, SubscriptionError) as error:
                    if len(rows) == 1:
                        chunk.refused[rows[0]] = chunk.placed(rows[0], error)
            if len(rows) > 1:
                middle = (first + last) // 2
                pending += [(middle, last), (first, middle)]
        return slots

    def add_chunks(
        self, chunks: Iterable[Chunk], progress: Progress = None, report: BatchReport | None = None
    ) -> BatchReport:
        """Add what was read; rows that are refused never stop the others."""
        return add_chunks(self, chunks, progress, report)

    def sweep(self, now: int | None) -> int:
        """Forget what has expired; returns how many."""
        slots = expired_slots(self.subscriptions, now)
        if len(slots):
            self.remove(slots)
        return len(slots)

    def clear(self) -> None:
        """Forget all subscriptions."""
        slots = self.subscriptions.slots()
        if len(slots):
            self.remove(slots)

    def renumber(self) -> pa.Array:
        """Number subscriptions from 0 in their order, as slots and as ids; returns the old ids."""
        self.compact()
        return self.subscriptions.renumber()

    def remove_ids(self, ids: Sequence[Id]) -> None:
        """Forget subscriptions by id, each once; all of them are there."""
        self.remove(np.array([self.subscriptions.find(id_) for id_ in ids], np.int32))

    def note_removed(self, ids: Sequence[Id]) -> None:
        self.subscriptions.note(ids, removed=True)

    def remove(self, slots: np.ndarray) -> None:
        """Forget subscriptions."""
        self.is_whole = False
        self._forget(self._release(slots))
        self.link(slots, [None] * len(slots))
        self.subscriptions.remove(slots)
        n_slots, n_left = self.subscriptions.n_slots, len(self.subscriptions)
        n_rows = 0 if self.contexts is None else self.contexts.n_rows
        if n_slots > max(COMPACT_ABOVE, 4 * n_left) or (not n_left and n_rows < COMPACT_ABOVE):
            self.compact()
        tidy(self)

    def compact(self) -> None:
        """Renumber slots and predicates without gaps, shrink every table, forget old constants."""
        self.is_whole = False
        old = self.subscriptions.compact()
        self.table.compact(old)
        if self.contexts is not None:
            self.contexts.compact(old)
        forget(self)
        self.routing.rebuild()

    def spoil(self) -> None:
        """What was done so far has to be undone."""
        self.is_whole = False

    def settled_change(self) -> None:
        """End a change that succeeded: what would have undone it is forgotten."""
        self.is_whole = True
        self.subscriptions.journal.clear()
        self.attributes.journal.clear()

    # -- context -----------------------------------------------------------------------------

    @property
    def contexts(self) -> ContextStore | None:
        """The values of contexts; None before the first context is named."""
        return self.routing.contexts

    def with_contexts(self) -> ContextStore:
        """The values of contexts, made at their first mention."""
        contexts = self.routing.contexts
        if contexts is None:
            from matchwood.context.store import ContextStore

            contexts = ContextStore(self.attributes, self.table)
            self.routing.follow(contexts)
        return contexts

    def set_contexts(self, read: ReadUpdates, flips: bool) -> Flips | None:
        """Carry out an update of contexts; with `flips`, tell what it has opened and closed."""
        self.is_whole = False
        try:
            ids, apply = read(self.with_contexts())
            if self.changed_contexts is not None:
                self.changed_contexts.update(dict.fromkeys(ids))
            found = None
            if flips:
                from matchwood.engine.stores.flips import flips_of

                found = flips_of(self, ids, apply)
            else:
                apply()
        except MatchwoodError:
            self.is_whole = self.pending is None or self.pending.is_untouched
            raise
        tidy(self)
        return found

    def link(self, slots: np.ndarray, contexts: Sequence[Id | None]) -> None:
        """Link subscriptions to their contexts, before an index takes them."""
        if self.contexts is not None or any(id_ is not None for id_ in contexts):
            self.with_contexts().link(slots, contexts)

    def move_in(self, facts: Facts, rows: Rows) -> np.ndarray:
        """Take subscriptions of other stores (`merge`); returns the slots, which no index has."""
        slots = self.subscriptions.add(facts.ids, facts.texts, facts.fields, facts.order)
        self.table.encode(rows.leaves, rows.start, rows.code, slots)
        return slots

    # -- asking ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Build what searches need; for an owner that has the store for itself."""
        self.routing.settle()

    def freeze(self) -> None:
        """Take the smallest form of what is settled; from now on it is only read."""
        if self.subscriptions.is_compact:
            self.subscriptions.freeze()
        self.routing.freeze()

    def absorb(self, readers: Sequence[Reader]) -> None:
        """Take over what searches have counted and learned; for the owner, as `settle`."""
        was_whole, self.is_whole = self.is_whole, False
        for reader in readers:
            if reader.n_events:
                reader.n_events = 0
                self.routing.absorb(reader.scratch)
                self.work += reader.work
                reader.work[:] = 0
        self.is_whole = was_whole

    def check(self, expr: Given) -> Expr:
        """Parse and type-check; changes nothing."""
        self.check_types(expr)
        return tree(expr)

    def check_types(self, expr: Given) -> None:
        """Raise what is wrong with the types of an expression; changes nothing."""
        batch = single(expr)
        if not is_plain(batch, self.attributes):
            try:
                learned_types(batch, self.attributes)
            except SchemaError as error:
                raise placed(error, expr) from None

    def check_unbound(self, expr: Parsed) -> None:
        """Raise what `add` would, of an expression without a context; changes nothing."""
        if not is_plain(expr.batch, self.attributes):
            checked_context(expr.batch, None, expr)
            self.check_types(expr)

    def expression(self, id_: Id) -> Expr:
        """A subscription's expression: its text read again, or decoded where there is none."""
        slot = self.subscriptions.find(id_)
        text = self.subscriptions.texts.get(slot)
        if text is None:
            return decode(self.table, self.attributes, slot)
        return parse(text, limit=len(text))

    def context_values(self, id_: Id) -> dict[str, Any]:
        """The values of the context that a subscription is linked to."""
        if self.contexts is None:
            return {}
        context = self.contexts.context_of(self.subscriptions.find(id_))
        return {} if context is None else self.contexts.values(context)

    # -- the steps ---------------------------------------------------------------------------

    def _resolve(self, batch: LeafBatch, expr: Given | None = None) -> Any:
        was_whole = self.is_whole
        self.is_whole = False
        try:
            return resolve(batch, self.attributes, self.table)
        except SchemaError as error:
            self.is_whole = was_whole
            raise placed(error, expr) from None

    def _encode(self, batch: LeafBatch, leaves: Any, slots: np.ndarray) -> None:
        expr_start = np.array(batch.expr_start, np.int64)
        self.table.encode(leaves, expr_start, np.array(batch.code, np.int32), slots)

    def _store(
        self, batch: LeafBatch, leaves: Any, ids: list[Id], chunk: Chunk, rows: Sequence[int]
    ) -> np.ndarray:
        order = None if chunk.order is None else chunk.order[list(rows)]
        slots = self.subscriptions.add(
            [ids[row] for row in rows], chunk.texts_of(rows), chunk.fields.part(rows), order
        )
        self._encode(batch, leaves, slots)
        return slots

    def _release(self, slots: np.ndarray) -> list[int]:
        """Take slots out of the indexes and the table; returns their attributes, to `_forget`."""
        is_stale = self.routing.epoch != self.table.epoch  # keys moved: built anew below
        if not is_stale:
            self.routing.delete(slots)
        mentioned = self.table.attributes_of(slots)
        self.table.release(slots)
        if is_stale:
            self.routing.rebuild()
        return mentioned

    def _forget(self, mentioned: list[int]) -> None:
        """Drop attributes that no expression mentions any more, derived ones among them."""
        self.attributes.drop_unused(mentioned, self.table.uses)
