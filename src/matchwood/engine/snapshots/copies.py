"""Copies of a matcher: its parts as a snapshot has them, in memory."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.snapshots.pairs import collect_pair, rebuild_pair
from matchwood.errors import FormatError

if TYPE_CHECKING:
    from matchwood.engine.stores.store import Store

FORM = 1
"""Of pickled matchers; raised whenever an older version could misread one."""


def state_of(store: Store, linked: Store | None = None) -> dict[str, Any]:
    """What a copy is made of: independent of the stores (`pairs`), which have no gaps."""
    settings, arrays = collect_pair(store, linked)
    return {
        "form": FORM,
        "settings": copy.deepcopy(settings),
        "column_types": dict(store.attributes.column_types),
        "arrays": {name: array.copy() for name, array in arrays.items()},
    }


def stores_of(state: dict[str, Any]) -> tuple[Store, Store | None]:
    """The stores from what `state_of` gave."""
    if state.get("form") != FORM:
        raise FormatError(
            f"expected a matcher pickled in form {FORM}, found {state.get('form')!r}: "
            "use save() and load() between versions"
        )
    stores = rebuild_pair(state["settings"], state["arrays"], verify=False, is_current=True)
    for store in stores:
        if store is not None:
            store.attributes.column_types = dict(state["column_types"])
    return stores


def copy_of(store: Store) -> Store:
    """An independent copy of a store without gaps, with its numbers in the order of addition."""
    copied, _ = stores_of(state_of(store))
    facts = store.subscriptions
    copied.subscriptions.take_order(np.array(facts.order[: facts.n_slots]))
    return copied


def new_matcher(state: dict[str, Any], kind: type[Any] | None = None) -> Any:
    """An independent matcher in memory, of a class; `Matcher` if the pickle tells none."""
    from matchwood.engine.matcher import Matcher

    matcher = object.__new__(Matcher if kind is None else kind)
    matcher._hold_stores(*stores_of(state))
    return matcher
