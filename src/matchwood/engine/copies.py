"""Copies of a matcher: its parts as a snapshot has them, in memory."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from matchwood.engine.parts import collect, rebuild
from matchwood.errors import FormatError

if TYPE_CHECKING:
    from matchwood.engine.store import Store

FORM = 1
"""Of pickled matchers; raised whenever an older version could misread one."""


def state_of(store: Store) -> dict[str, Any]:
    """What a copy is made of: independent of the store, which has no gaps."""
    settings, arrays = collect(store)
    return {
        "form": FORM,
        "settings": copy.deepcopy(settings),
        "column_types": dict(store.attributes.column_types),
        "arrays": {name: array.copy() for name, array in arrays.items()},
    }


def store_of(state: dict[str, Any]) -> Store:
    """A store from what `state_of` gave."""
    if state.get("form") != FORM:
        raise FormatError(
            f"expected a matcher pickled in form {FORM}, found {state.get('form')!r}: "
            "use save() and load() between versions"
        )
    store = rebuild(state["settings"], state["arrays"], verify=False, is_current=True)
    store.attributes.column_types = state["column_types"]
    return store


def new_matcher(state: dict[str, Any]) -> Any:
    """An independent matcher in memory."""
    from matchwood.engine.matcher import Matcher

    matcher = Matcher.__new__(Matcher)
    matcher._hold(store_of(state))
    return matcher
