"""Matcher: what users hold.

Every public method holds one lock: an `add` that has returned is seen by every later `match`, from
any thread.  What the methods do is in `store`.  A change happens whole or not at all, whatever is
raised in the middle of it (`savepoint`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EncodedEvents, encode_event, encode_events
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.plain_values import as_mapping
from matchwood.encode.schema import Schema
from matchwood.engine import forks
from matchwood.engine.explain import Explanation, explain
from matchwood.engine.loading import BatchReport, Chunk, Refused, load_batches
from matchwood.engine.matches import Found, Matches
from matchwood.engine.moments import Moment
from matchwood.engine.recovery import settled
from matchwood.engine.routing import Routing, with_ids
from matchwood.engine.savepoint import Change
from matchwood.engine.store import Store
from matchwood.engine.subscriptions import Id, Subscriptions, check_id
from matchwood.engine.tidy import hold_strings
from matchwood.errors import EventError, MatchwoodError, SubscriptionError
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.flips import Flips


class Matcher:
    """Keeps subscriptions and tells, for every event, which of them hold.

    index   "auto", or a name from the registry; settings of that index follow as keywords
    schema  declared types of attributes; others are learned from their first use, and forgotten
            with the last subscription that mentions them
    column_types  types of the events' columns, where all events come from one table.  As `schema`,
            but an attribute is made when a subscription first tests it, so that columns without a
            subscription are never read.  `schema` wins.  With a type that is none of `Schema`'s an
            attribute can be tested for presence and not be compared

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
        column_types: Mapping[str, str] | None = None,
        **config: Any,
    ) -> None:
        declared = schema if isinstance(schema, Schema) else Schema(schema)
        table = ExpressionTable()
        attributes = Attributes(declared, column_types)
        routing = Routing(table, index, with_ids(index, config, attributes))
        self._hold(Store(attributes, table, Subscriptions(), routing))

    # -- changing ----------------------------------------------------------------------------

    def add(self, id: Id, expr: str | Boolean, *, context: Id | None = None) -> None:
        """Register a subscription; its id must be new.

        context  the id of the context that `ctx.` in the expression refers to; its values are set
                 with `set_context`, before or after
        """
        with self._changing():
            self._store.add(id, expr, context)

    def add_many(
        self,
        subscriptions: Any,
        *,
        progress: Callable[[int, int], None] | None = None,
        processes: int | None = None,
    ) -> BatchReport:
        """Register many subscriptions; what is wrong with some never stops the others.

        An exception of another kind, such as KeyboardInterrupt or one that `progress` raises,
        leaves the matcher as it was.

        subscriptions  a table (Arrow, pandas, polars) with columns `id`, `expr` and, where they
                       refer to one, `context`; a table of
                       predicates with columns `id`, `attribute`, `operator` and `value` (or
                       `values`), whose rows of one id form a conjunction, perhaps with the column
                       `context`, which is the same in all of them; or an iterable of
                       (id, text) pairs or (id, text, context) triples
        progress       called with (done, total) after every chunk
        processes      how many processes parse texts; by default one per core for large batches

        Returns the number added and the refused ones: (row, id, error).
        """
        return self.add_chunks(load_batches(subscriptions, processes), progress=progress)

    def add_chunks(
        self, chunks: Iterable[Chunk], *, progress: Callable[[int, int], None] | None = None
    ) -> BatchReport:
        """Register what was read elsewhere, as `engine.loading` and `engine.parsing` give it."""
        with self._changing():
            report = BatchReport()
            added: list[np.ndarray] = []
            rows: list[int] = []
            for chunk in chunks:
                ids = self._store.admit(chunk.ids, chunk.refused)
                added += self._store.add_chunk(ids, chunk)
                rows += [chunk.first + row for row in chunk.rows if row not in chunk.refused]
                report.take(chunk, sum(map(len, added)))
                if progress is not None:
                    progress(chunk.done, chunk.total)
            if added:
                slots = np.concatenate(added)
                names = self._store.subscriptions.ids_of(slots)
                report.refuse(self._store.insert(slots), slots, rows, names)
            return report

    def replace(self, id: Id, expr: str | Boolean, *, context: Id | None = None) -> None:
        """Give a subscription a new expression, keeping its place; adds it when it is new.

        It keeps its context too, unless another one is given.
        """
        with self._changing():
            id_ = check_id(id)
            change = self._store.replace if id_ in self._store.subscriptions else self._store.add
            change(id_, expr, context)

    def remove(self, id: Id) -> None:
        """Forget a subscription."""
        with self._changing():
            self._store.remove(np.array([self._store.subscriptions.find(id)], np.int32))

    def remove_many(self, ids: Iterable[Id]) -> BatchReport:
        """Forget many; unknown ids are reported and never stop the others."""
        wanted = list(ids)  # first: an iterable may be one that uses this matcher
        with self._changing():
            report = BatchReport()
            slots: dict[int, None] = {}
            for row, id_ in enumerate(wanted):
                try:
                    slot = self._store.subscriptions.find(id_)
                    if slot in slots:
                        raise SubscriptionError(f"expected id {id_!r} once, found it again")
                    slots[slot] = None
                except SubscriptionError as error:
                    report.errors.append(Refused(row, id_, error))
            if slots:
                self._store.remove(np.array(list(slots), np.int32))
            report.count = len(slots)
            return report

    # -- context -----------------------------------------------------------------------------

    def set_context(
        self, id: Id, values: Mapping[str, Any], *, flips: bool = False
    ) -> Flips | None:
        """Change values of a context: every later match sees them.  None makes a value absent.

        flips  also tell which subscriptions the change has opened and closed: those whose
               predicates on the context alone became TRUE, or are no longer

        >>> m = Matcher()
        >>> m.add("s1", "price < ctx.budget AND NOT ctx.away", context="ann")
        >>> m.set_context("ann", {"budget": 20, "away": False})
        >>> m.match({"price": 12})
        ['s1']
        >>> m.set_context("ann", {"away": True}, flips=True)
        Flips(opened=[], closed=['s1'])
        """
        id_ = check_id(id, "a context's id")
        if not isinstance(values, Mapping):
            raise EventError(
                f"expected a mapping from names to values, found {type(values).__name__}"
            )
        with self._changing():
            return self._store.set_contexts(
                lambda contexts: ([id_], lambda: contexts.set(id_, values)), flips
            )

    def remove_context(self, id: Id, *, flips: bool = False) -> Flips | None:
        """Make all values of a context absent, as if none had ever been set.

        Subscriptions that name the context stay, and so does their link to it: values that are set
        later count for them again.  The matcher forgets the id once no subscription has it.  A
        context without values, or an unknown one, is left as it is.

        flips  also tell which subscriptions the change has opened and closed, see `set_context`

        >>> m = Matcher()
        >>> m.add("s1", "price < ctx.budget", context="ann")
        >>> m.set_context("ann", {"budget": 20})
        >>> m.remove_context("ann")
        >>> m.match({"price": 12}), m.context("ann")
        ([], {})
        """
        id_ = check_id(id, "a context's id")
        with self._changing():
            return self._store.set_contexts(
                lambda contexts: ([id_], lambda: contexts.remove(id_)), flips
            )

    def set_context_many(self, contexts: Any, *, flips: bool = False) -> Flips | None:
        """Change values of many contexts at once, all of them or none.

        contexts  a table (Arrow, pandas, polars) with a column `context` and one column per value,
                  where null leaves a value as it is; or a mapping from ids to values, or pairs
        """
        from matchwood.engine.context_tables import read_updates

        with self._changing():
            return self._store.set_contexts(lambda store: read_updates(store, contexts), flips)

    def hold_strings(self) -> None:
        """Forget strings that no context has any more, and from here to the next call none.

        For owners that set earlier values again between encoded events, see `find`.
        """
        with self._changing():
            self._store.is_whole = False
            hold_strings(self._store)

    def context(self, id: Id) -> dict[str, Any]:
        """The values of a context that are set now."""
        with self._exclusive():
            contexts = self._store.contexts
            return {} if contexts is None else contexts.values(check_id(id, "a context's id"))

    def context_ids(self) -> list[Id]:
        """The contexts that have a value or a subscription."""
        with self._exclusive():
            contexts = self._store.contexts
            return [] if contexts is None else contexts.ids()

    # -- matching ----------------------------------------------------------------------------

    def match(self, event: Mapping[str, Any] | Expr) -> list[Id]:
        """Ids of the subscriptions that hold for an event, in the order they were added.

        An event is a mapping from attribute names to values, or an expression: a conjunction of
        predicates that stands for all values it allows.
        """
        with self._searching():
            encoded = encode_event(self._store.attributes, event)
            return self._store.match(EncodedEvents(encoded, {})).ids.tolist()

    def match_many(self, events: Any) -> Matches:
        """Matches of many events: a list of them, an Arrow table or batch, or a data frame.

        Events that cannot be read are in `Matches.errors`; they match nothing and stop nothing.
        """
        with self._searching():
            return self._store.match(encode_events(self._store.attributes, events))

    def match_json(self, document: bytes | str) -> list[Id]:
        """Ids of the subscriptions that hold for an event that is a JSON object, as text.

        The same answer as that of `match(json.loads(document))`, but only what subscriptions use
        is read.  Strings of attributes that are declared as dates or times are read as such.
        """
        found = self.match_many_json([document])
        for error in found.errors.values():
            raise error
        return found[0]

    def match_many_json(self, documents: Any) -> Matches:
        """Matches of many JSON documents: a buffer with one per line, or an iterable of them.

        Documents that cannot be read are in `Matches.errors`; they match nothing and stop nothing.
        """
        from matchwood.encode.json_events import JsonLines

        return self.match_many(JsonLines(documents))

    def encode(self, events: Any) -> EncodedEvents:
        """Events as integers, for `find`; they hold until the next change."""
        with self._exclusive():
            return encode_events(self._store.attributes, events)

    def find(self, events: EncodedEvents, moments: Sequence[Moment] = ()) -> Found:
        """The slots that hold for encoded events; `arrow_ids` tells the id of each slot.

        moments  changes of contexts between the events, ascending; they may bring no new strings,
                 which would give other integers to events.  One that no context has any more may be
                 new again, unless `hold_strings` was called before it was set
        """
        with self._searching(moments):
            return self._store.find(events, moments)

    def arrow_ids(self) -> pa.Array:
        """Ids by slot, as an Arrow array; they hold until the next change."""
        with self._exclusive():
            return self._store.subscriptions.to_arrow()

    def renumber(self) -> pa.Array:
        """Make every subscription's id its number in the order they were added, from 0.

        For owners that keep ids of their own; returns the ids so far, by number.
        """
        with self._changing():
            self._store.compact()
            return self._store.subscriptions.renumber()

    # -- asking ------------------------------------------------------------------------------

    def explain(self, id: Id, event: Mapping[str, Any]) -> Explanation:
        """TRUE, FALSE or UNKNOWN for every part of a subscription, and why it does not match."""
        with self._exclusive():
            values = as_mapping(event)
            if values is None or isinstance(event, Expr):
                raise EventError(
                    f"expected a mapping to explain, found {type(event).__name__}: "
                    "give one event with values"
                )
            context = self._store.context_values(id)
            return explain(id, self._store.expression(id), self._store.attributes, values, context)

    def validate(self, text: str | Boolean) -> Expr:
        """Parse and type-check without adding; returns the tree, or raises with a position."""
        with self._exclusive():
            return self._store.check(text)

    def expression(self, id: Id) -> Expr:
        """A subscription's expression as a tree."""
        with self._exclusive():
            return self._store.expression(id)

    @property
    def schema(self) -> Schema:
        """The types of all attributes known so far, declared or learned."""
        with self._exclusive():
            return self._store.attributes.schema()

    def __len__(self) -> int:
        return len(self._store.subscriptions)

    def __contains__(self, id: object) -> bool:
        with self._exclusive():
            return id in self._store.subscriptions

    def stats(self) -> dict[str, Any]:
        """Sizes, memory in bytes, and the work done since this matcher was made."""
        with self._exclusive():
            return self._store.stats()

    def draw(self) -> str:
        """The structure of every index as text."""
        with self._exclusive():
            return "\n".join([index.draw() for index in self._store.routing.indexes])

    # -- keeping -----------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        beside: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write a snapshot directory; an existing snapshot there is replaced in one step.

        Waits while another process saves to the same directory.  If it fails (StorageError), what
        was there is untouched and nothing is left behind.

        beside  arrays of the caller's own, kept and checked with it (`snapshot.read_beside`)
        """
        from matchwood.engine.snapshot import save

        with self._exclusive():
            if not self._store.subscriptions.is_compact:
                with Change(self._store):
                    self._store.compact()
            save(self._store, path, beside)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True, verify: bool = True) -> Matcher:
        """Open a snapshot.

        mmap    map the arrays, so that processes on one machine share one copy; changes made
                afterwards stay in this process
        verify  check every file's checksum, and every value that compiled code relies on; a
                worker that opens a snapshot which was already checked may skip this
        """
        from matchwood.engine.snapshot import load

        matcher = cls.__new__(cls)
        matcher._hold(load(path, mmap, verify))
        return matcher

    def _hold(self, store: Store) -> None:
        self._store = store
        self._lock = forks.new_lock(self)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """The lock, and behind it a store whose parts agree."""
        is_nested = forks.is_held(self._lock)
        with self._lock:
            if self._store.pending is not None and not self._store.is_between_events:
                if is_nested:
                    raise MatchwoodError(
                        "expected a callback or an iterable that leaves the matcher alone, found "
                        "one that uses it inside a change: it is not ready before that returns"
                    )
                self._store = settled(self._store)
            yield

    def _searching(self, moments: Sequence[Moment] = ()) -> AbstractContextManager[None]:
        """The lock for a search; one that follows contexts may change their index."""
        has_contexts = self._store.contexts is not None or bool(moments)
        return self._changing() if has_contexts else self._exclusive()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The lock for a change, which happens whole or not at all."""
        with self._exclusive(), Change(self._store):
            yield
