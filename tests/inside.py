"""The parts inside a matcher, for tests that check a layout on purpose.

The only file of the tests that names private attributes of `Matcher`: if the engine keeps its parts
elsewhere, this file changes and no test does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matchwood import Matcher
from matchwood.encode.attributes import Attributes
from matchwood.encode.dicts.plan import make_plans
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.durable.checkpoint import Checkpoints
from matchwood.engine.durable.log import Log
from matchwood.engine.segments.background import Merger
from matchwood.engine.segments.view import View
from matchwood.engine.stores.routing import Routing
from matchwood.engine.stores.subscriptions import Subscriptions


def view_of(m: Matcher) -> View:
    """The segments and the head."""
    return m._view


@contextmanager
def searching(m: Matcher) -> Iterator[None]:
    """As while a search goes on in what the matcher holds now."""
    with m._access.shared(is_guarded=False) as reader:
        reader.view = m._view
        yield


def merger_of(m: Matcher) -> Merger:
    """The thread that merges segments."""
    return m._merger


def checkpoints_of(m: Matcher) -> Checkpoints:
    """The thread that writes checkpoints."""
    return m._checkpoints


def attributes_of(m: Matcher) -> Attributes:
    """Names, types and dictionaries."""
    return m._store.attributes


def table_of(m: Matcher) -> ExpressionTable:
    """Expressions and predicates as integers, by slot."""
    return m._store.table


def subscriptions_of(m: Matcher) -> Subscriptions:
    """Ids, texts and order, by slot."""
    return m._store.subscriptions


def routing_of(m: Matcher) -> Routing:
    """The indexes, and the slots that every event satisfies."""
    return m._store.routing


def context_cells(m: Matcher) -> int:
    """Cells of the table of context values; 0 before the first context."""
    contexts = m._view.contexts
    return 0 if contexts is None else contexts.cells.size


def lock_of_contexts(m: Matcher) -> Any:
    """What is held while the context part is changed or searched."""
    return m._access.contexts


def slot_of(m: Matcher, id_: Any) -> int:
    """The slot of a subscription."""
    return m._store.subscriptions.find(id_)


def access_of(m: Matcher) -> Any:
    """Who searches and who changes, and who waits."""
    return m._access


def is_waited_for(m: Matcher) -> bool:
    """Whether a change waits for searches to end."""
    return m._access._is_wanted


def log_of(m: Matcher) -> Any:
    """What writes changes to the folder of a matcher."""
    return m._durable.log


def database_of(m: Matcher) -> Any:
    """The connection of the log."""
    return m._durable.log._db


def group_thread_of(m: Matcher) -> Any:
    """The thread that commits groups of changes."""
    return m._durable.group._thread


def merge_thread_of(m: Matcher) -> Any:
    """The thread that merges segments; None before the first merge."""
    return m._merger._thread


def table_of_routing(routing: Any) -> Any:
    """The table that indexes were built from."""
    return routing._table


def is_packed(table: Any) -> bool:
    """Whether nobody unpacked the table of a segment."""
    return table._layout is None


def has_map_of_ids(subscriptions: Any) -> bool:
    """Whether ids are found in a dict."""
    return subscriptions._slot_of is not None


def graph_of(index: Any) -> Any:
    """The nodes of an A-Tree."""
    return index._memory.layout


def visit_tops(index: Any) -> None:
    """Have searches of an A-Tree visit nodes above all others, too, instead of giving them out."""
    index._memory.make_plain()


def is_built(index: Any) -> bool:
    """Whether a static index has what a search needs."""
    return index._kept is not None


def built_of(index: Any) -> Any:
    """What a static index has built."""
    return index._built


def is_bound(m: Matcher) -> bool:
    """Whether all parts that are searched are bound for one event after the other."""
    return bool(m._view.bound)


def database_in(log: Log) -> Any:
    """The connection to SQLite of a log."""
    return log._db


def have_database(log: Log, database: Any) -> None:
    """Have a log use another connection."""
    log._db = database


def plan_parts(m: Matcher) -> None:
    """Plan how all parts of the view read dicts, so that one event goes the compiled way.

    As a search does, with the view's lock if it has one: a change would write to what is read here.
    """
    with m._reading() as view:
        for part in view.searched:
            make_plans(part.store.attributes)
