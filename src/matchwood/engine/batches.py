"""Batch: several changes that happen together, all or none.

    with matcher.batch() as b:
        b.add("s1", "x > 3")
        b.remove("s0")

Changes are noted while the block runs and carried out when it ends, in one transaction: a search
sees none of them or all.  An exception in the block drops them.  A change that is refused undoes
the others and is raised: texts at once, everything else at the end of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from matchwood.engine.changes import remove_ids, remove_one, replace_chunks, replace_one
from matchwood.engine.input.fields import KEEP, fields_of, fields_of_new
from matchwood.engine.input.given import Parsed, parsed
from matchwood.engine.input.loading import BatchReport, load_batches
from matchwood.engine.stores.ids import check_id, list_of_ids
from matchwood.engine.stores.subscriptions import Id
from matchwood.errors import EventError, MatchwoodError, SubscriptionError
from matchwood.lang.nodes import Boolean

if TYPE_CHECKING:
    from matchwood.engine.changes import Target
    from matchwood.engine.matcher import Matcher

Step = Callable[["Target"], object]


class Batch:
    """Notes changes; see the module's docstring."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._steps: list[Step] = []
        self._checks: list[tuple[str, Id, Parsed | None]] = []
        self._is_open = False
        self._has_context = False
        """Whether a change refers to contexts."""

    def __enter__(self) -> Self:
        self._is_open = True
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._is_open = False
        if error is None and self._steps:
            self._matcher._batch(self._check, self._steps, self._has_context)

    def __len__(self) -> int:
        return len(self._steps)

    def add(
        self, id: Id, expr: str | Boolean, *, context: Id | None = None, priority: int = 0,
        attributes: Any = None, expires: Any = None, payload: Any = None,
    ) -> None:  # fmt: skip
        """As `Matcher.add`."""
        fields = fields_of_new(priority, attributes, expires, payload)
        self._has_context |= context is not None
        id_, read = check_id(id), parsed(expr)
        self._note(lambda store: store.add(id_, read, context, fields), ("add", id_, read))

    def replace(
        self, id: Id, expr: str | Boolean, *, context: Id | None = None, priority: Any = KEEP,
        attributes: Any = KEEP, expires: Any = KEEP, payload: Any = KEEP,
    ) -> None:  # fmt: skip
        """As `Matcher.replace`."""
        fields = fields_of(priority, attributes, expires, payload)
        self._has_context |= context is not None
        id_, read = check_id(id), parsed(expr)
        self._note(
            lambda store: replace_one(store, id_, read, context, fields), ("replace", id_, read)
        )

    def remove(self, id: Id) -> None:
        """As `Matcher.remove`."""
        id_ = check_id(id)
        self._note(lambda store: remove_one(store, id_), ("remove", id_, None))

    def add_many(self, subscriptions: Any, *, processes: int | None = None) -> None:
        """As `Matcher.add_many`, but one that is refused undoes the batch."""
        chunks = list(load_batches(subscriptions, processes))
        self._has_context |= any(chunk.contexts is not None for chunk in chunks)
        self._note(lambda store: _all(store.add_chunks(chunks)))

    def replace_many(self, subscriptions: Any, *, processes: int | None = None) -> None:
        """As `Matcher.replace_many`, but one that is refused undoes the batch."""
        chunks = list(load_batches(subscriptions, processes))
        self._has_context |= any(chunk.contexts is not None for chunk in chunks)
        self._note(lambda store: _all(replace_chunks(store, chunks)))

    def remove_many(self, ids: Iterable[Id]) -> None:
        """As `Matcher.remove_many`, but an unknown id undoes the batch."""
        wanted = list_of_ids(ids)
        self._note(lambda store: _all(remove_ids(store, wanted)))

    def clear(self) -> None:
        """As `Matcher.clear`."""
        self._note(lambda store: store.clear())

    def set_context(self, id: Id, values: Mapping[str, Any]) -> None:
        """As `Matcher.set_context`."""
        id_ = check_id(id, "a context's id")
        if not isinstance(values, Mapping):
            raise EventError(
                f"expected a mapping from names to values, found {type(values).__name__}"
            )
        given = dict(values)
        self._has_context = True
        self._note(
            lambda store: store.set_contexts(
                lambda contexts: ([id_], lambda: contexts.set(id_, given)), False
            )
        )

    def remove_context(self, id: Id) -> None:
        """As `Matcher.remove_context`."""
        id_ = check_id(id, "a context's id")
        self._has_context = True
        self._note(
            lambda store: store.set_contexts(
                lambda contexts: ([id_], lambda: contexts.remove(id_)), False
            )
        )

    def _note(self, step: Step, check: tuple[str, Id, Parsed | None] | None = None) -> None:
        if not self._is_open:
            raise MatchwoodError(
                "expected a change inside the with block of batch(), found one outside"
            )
        self._matcher._access.breathe()
        self._steps.append(step)
        if check is not None:
            self._checks.append(check)

    def _check(self, store: Target) -> None:
        """Raise errors that can be found before anything changes: undoing then costs nothing."""
        if len(self._checks) < len(self._steps):
            return  # changes of many: what they do to ids is not known here
        known: dict[Id, bool] = {}
        for verb, id_, expr in self._checks:
            is_there = known.get(id_, store.has(id_))
            if verb == "add" and is_there:
                raise SubscriptionError(
                    f"expected a new id, found {id_!r}, which is taken: use replace() to change it"
                )
            if verb == "remove" and not is_there:
                raise SubscriptionError(
                    f"expected the id of a subscription, found {id_!r}: no such subscription"
                )
            known[id_] = verb != "remove"
            if expr is not None:
                store.check_types(expr)


def carry_out(store: Target, check: Callable[[Target], None], steps: Iterable[Step]) -> None:
    """The steps of a batch inside an open transaction; an error undoes all of them."""
    if not store.is_aside:
        check(store)
    try:
        for step in steps:
            step(store)
    except BaseException:
        store.spoil()  # what was done so far is undone with the rest
        raise


def _all(report: BatchReport) -> None:
    for each in report.errors:
        raise each.error
