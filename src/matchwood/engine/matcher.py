"""Matcher: what users hold.

What it holds is a view (`view`): an `add` that has returned is seen by every later `match`, from
any thread, and no search waits for it.  A change happens whole or not at all, whatever is raised in
the middle of it (`draft`, `savepoint`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.resolve import reference_rows
from matchwood.encode.schema import Schema
from matchwood.engine.answers.explain import Explanation, event_values, explain
from matchwood.engine.changes import remove_ids, remove_one, replace_one
from matchwood.engine.collection import Collection
from matchwood.engine.context_values import ContextValues
from matchwood.engine.durable.opening import opened
from matchwood.engine.holding import Holding
from matchwood.engine.input.fields import KEEP, fields_of, fields_of_new
from matchwood.engine.input.given import read_path, single
from matchwood.engine.input.loading import BatchReport, Chunk, load_batches
from matchwood.engine.matching import Matching
from matchwood.engine.metrics import measured
from matchwood.engine.questions import Questions
from matchwood.engine.stores.ids import check_id, list_of_ids
from matchwood.engine.stores.routing import Routing, with_ids
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id, Subscriptions
from matchwood.errors import StorageError, SubscriptionError
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    import pyarrow as pa


class Matcher(Holding, Matching, Collection, ContextValues, Questions):
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

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        index: str | None = None,
        *,
        schema: Schema | Mapping[str, Any] | None = None,
        column_types: Mapping[str, str] | None = None,
        read_only: bool = False,
        sync: bool = True,
        commit_every: float = 0.0,
        **config: Any,
    ) -> Matcher:
        """A durable matcher: every change is in the folder's log before its call returns.

        index, schema, column_types, config  as for `Matcher`; left out, those that the folder was
                   made with.  Others build everything again
        read_only  follow the folder's writer: `refresh` takes over what it has changed
        sync       write each change to the disk before its call returns.  False leaves that to the
                   operating system: faster, and safe unless the machine itself fails
        commit_every  seconds after which a change is in the log at the latest; `flush` waits for
                   it.  By default it is before the call of the change returns

        One process writes to a folder at a time.  `close`, or the end of a `with` block, gives it
        free; `checkpoint` writes the snapshot that makes the next opening quick.
        """
        matcher = cls.__new__(cls)
        given = (index, schema, column_types, config)
        matcher._durable = opened(matcher, folder, read_only, sync, commit_every, given)
        return matcher

    # -- changing ----------------------------------------------------------------------------

    @measured
    def add(
        self,
        id: Id,
        expr: str | Boolean,
        *,
        context: Id | None = None,
        priority: int = 0,
        attributes: Mapping[str, Any] | None = None,
        expires: Any = None,
        payload: Any = None,
    ) -> None:
        """Register a subscription; its id must be new.

        context     the id of the context that `ctx.` in the expression refers to; its values are
                    set with `set_context`, before or after
        priority    a whole number; `match(limit=)` gives the highest first
        attributes  the subscription's own attributes, which `match(where=)` filters by
        expires     when it stops to match: a datetime (UTC unless it has a zone) or seconds since
                    1970
        payload     a value that JSON can hold, for the caller's own use

        `m[id]` gives all of it back.
        """
        fields = fields_of_new(priority, attributes, expires, payload)
        with self._changing(bound=context is not None) as target:
            target.add(id, expr, context, fields)

    @measured
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

        subscriptions  a table (Arrow, pandas, polars) with columns `id`, `expr` and perhaps
                       `context`, `priority`, `attributes`, `expires`, `payload`; a table of
                       predicates with columns `id`, `attribute`, `operator` and `value` (or
                       `values`), whose rows of one id form a conjunction, perhaps with the column
                       `context`, which is the same in all of them; or an iterable of
                       (id, text) pairs, (id, text, context) triples, or mappings with the names
                       of the columns
        progress       called with (done, total) after every chunk
        processes      how many processes parse texts; by default one per core for large batches

        Returns the number added and the refused ones: (row, id, error).
        """
        return self.add_chunks(load_batches(subscriptions, processes), progress=progress)

    def add_chunks(
        self, chunks: Iterable[Chunk], *, progress: Callable[[int, int], None] | None = None
    ) -> BatchReport:
        """Register rows that `engine.input.loading` or `engine.input.parsing` has read."""
        with self._one_loading() as report:
            read = iter(chunks)
            first = next(read, None)
            if first is None:
                return report
            has_contexts = first.contexts is not None
            with self._changing(bound=has_contexts, report=report) as target:
                return target.add_chunks(chain([first], read), progress, report)

    @measured
    def replace(
        self,
        id: Id,
        expr: str | Boolean,
        *,
        context: Id | None = None,
        priority: int = KEEP,
        attributes: Mapping[str, Any] | None = KEEP,
        expires: Any = KEEP,
        payload: Any = KEEP,
    ) -> None:
        """Give a subscription a new expression, keeping its order; adds it when it is new.

        It keeps its context and whatever else is not given, too.
        """
        fields = fields_of(priority, attributes, expires, payload)
        with self._changing(bound=context is not None) as target:
            replace_one(target, id, expr, context, fields)

    @measured
    def remove(self, id: Id) -> None:
        """Forget a subscription."""
        with self._changing() as target:
            remove_one(target, id)

    @measured
    def remove_many(self, ids: Iterable[Id]) -> BatchReport:
        """Forget many, a list, an Arrow column or the like; unknown ids are reported and never stop
        the others.
        """
        wanted = list_of_ids(ids)  # first: an iterable may be one that uses this matcher
        with self._changing() as target:
            return remove_ids(target, wanted)

    def renumber(self) -> pa.Array:
        """Make every subscription's id its number in the order they were added, from 0.

        For owners that keep ids of their own; returns the ids so far, by number.
        """
        if self._durable is not None:
            raise StorageError("expected a matcher in memory, found a folder, whose ids stay")
        with self._changing() as target:
            return target.renumber()

    # -- asking ------------------------------------------------------------------------------

    @measured
    def explain(self, id: Id, event: Mapping[str, Any]) -> Explanation:
        """TRUE, FALSE or UNKNOWN for every part of a subscription, and why it does not match."""
        with self._reading() as view:
            values = event_values(event)
            store = self._locate(view, id)[0].store
            context = store.context_values(id)
            return explain(check_id(id), store.expression(id), store.attributes, values, context)

    def validate(self, text: str | Boolean) -> Expr:
        """Parse and type-check without adding; returns the tree, or raises with a position."""
        with self._reading() as view:
            part = view.context_part
            is_linked = part is not None and bool(reference_rows(single(text)))
            store = view.head if part is None or not is_linked else part.store
            return store.check(text)

    def expression(self, id: Id) -> Expr:
        """A subscription's expression as a tree."""
        with self._reading() as view:
            return self._locate(view, id)[0].store.expression(id)

    @property
    def schema(self) -> Schema:
        """The types of all attributes known so far, declared or learned.

        Those of subscriptions that were removed from a segment stay until it is merged.
        """
        with self._reading() as view:
            return view.schema()

    def text_types(self) -> dict[str, str]:
        """For each attribute, the type that the texts in a file of events are read as.

        `cell` if several formulas read the attribute: then each of them says what it reads the
        text as (`lang.functions.cell_reading`).
        """
        with self._reading() as view:
            return view.text_types()

    def __len__(self) -> int:
        return len(self._view)

    def __contains__(self, id: object) -> bool:
        try:
            checked = check_id(id)
        except SubscriptionError:  # nothing that could be held
            return False
        with self._reading() as view:
            return checked in view

    # -- keeping -----------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        extra_arrays: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write a snapshot directory; an existing snapshot there is replaced in one step.

        Waits while another process saves to the same directory.  If it fails (StorageError), what
        was there is untouched and nothing is left behind.

        beside  arrays of the caller's own, kept and checked with it (`snapshot.read_beside`)
        """
        from matchwood.engine.snapshots.snapshot import save

        path = read_path(path)
        with self._as_stores(is_compact=True) as (store, linked):
            save(store, path, extra_arrays, linked=linked)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True, verify: bool = True) -> Matcher:
        """Open a snapshot, or a version that Spark has made (`engine.snapshots.versions`).

        mmap    map the arrays, so that processes on one machine share one copy; changes made
                afterwards stay in this process
        verify  check every file's checksum, and every value that compiled code relies on; a
                worker that opens a snapshot which was already checked may skip this
        """
        from matchwood.engine.snapshots.snapshot import load_stores
        from matchwood.engine.snapshots.versions import is_version, load_version

        path = read_path(path)
        if is_version(path):
            return load_version(path, verify=verify)
        matcher = cls.__new__(cls)
        matcher._hold_stores(*load_stores(path, mmap, verify))
        return matcher
