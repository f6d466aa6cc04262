"""Tidy: give back constants, strings and rows that nothing uses, so that a matcher under steady
change stays as large as what it holds.

Names and contexts are dropped at once, because users can list them.  Constants are internal and
are dropped in bulk: finding those in use reads all predicates and values once.  This runs after a
number of new constants in proportion to that work, so the work per change is constant on average,
and unused constants stay below a constant multiple of those in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood.encode.predicate_kernels import GARBAGE, N_INTERVALS

if TYPE_CHECKING:
    from matchwood.engine.stores.store import Store

SPARE = 256
"""Constants that are never worth looking for."""

PER_CONSTANT = 16
"""Predicates and cells that a new constant pays for."""


def tidy(store: Store) -> None:
    """Forget what nothing uses, if enough was learned since the last time."""
    attributes = store.attributes
    if attributes.n_new > SPARE + attributes.n_kept and not store.is_between_events:
        n_intervals, n_strings, n_cells = _in_use(store)
        is_cheap = attributes.n_new * PER_CONSTANT > n_intervals + n_cells
        # One in use is a value, or the end of an interval: of most of them both ends are one.
        has_dead = attributes.n_new + attributes.n_kept > n_intervals + n_strings
        if is_cheap and has_dead:
            forget(store)
    if store.contexts is not None and not store.is_between_events:
        store.contexts.shrink()


def hold_strings(store: Store) -> None:
    """Forget strings of contexts if most are no context's, and then none before the next call."""
    strings, contexts = store.attributes.context_strings, store.contexts
    store.holds_strings = False
    if contexts is not None and strings.n_constants > SPARE + 2 * contexts.n_strings_kept:
        forget(store)
    store.holds_strings = True


def forget(store: Store) -> None:
    """Forget constants and names that no expression and no context uses."""
    attributes, predicates = store.attributes, store.table.predicates
    attributes.drop_unused(range(len(attributes)), store.table.uses)
    attributes.trim()
    attributes.forget_unused(predicates)
    if store.contexts is not None and not store.holds_strings:
        store.contexts.forget_strings(predicates.ends()[1])
    attributes.n_new, attributes.n_kept = 0, attributes.n_constants


def _in_use(store: Store) -> tuple[int, int, int]:
    """Intervals of predicates; contexts' strings that are set; cells that could hold one."""
    predicates, contexts = store.table.predicates, store.contexts
    count = predicates.layout.count
    n_intervals = len(predicates) + int(count[N_INTERVALS] - count[GARBAGE])
    if contexts is None:
        return n_intervals, 0, 0
    columns = contexts.string_columns()
    n_strings = sum([contexts.n_set[col] for col in columns])
    return n_intervals, n_strings, contexts.n_rows * len(columns)
