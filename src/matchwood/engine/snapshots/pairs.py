"""Two stores as one set of settings and arrays: subscriptions without contexts and with them.

    settings            those of the first store; "linked": those of the second
    arrays              of the first store; linked_...: of the second
    order, linked_order their numbers in the order of addition

If the first store is empty, or there is no second one, it is what `parts` writes of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.snapshots.manifest import SHAPE, expect
from matchwood.engine.snapshots.parts import collect, rebuild
from matchwood.errors import FormatError
from matchwood.kernel.arrays import prefixed, without_prefix

if TYPE_CHECKING:
    from matchwood.engine.snapshots.part_checks import Arrays
    from matchwood.engine.stores.store import Store

LINKED, ORDER = "linked", "order"
_PREFIX = f"{LINKED}_"


def collect_pair(store: Store, linked: Store | None) -> tuple[dict[str, Any], Arrays]:
    """Settings and arrays of stores whose slots have no gaps."""
    if linked is None:
        return collect(store)
    if not len(store.subscriptions):
        return collect(linked)
    settings, arrays = collect(store)
    others, more = collect(linked)
    arrays |= prefixed(more, _PREFIX)
    arrays |= {ORDER: _order(store), _PREFIX + ORDER: _order(linked)}
    return {**settings, LINKED: others}, arrays


def rebuild_pair(
    settings: dict[str, Any], arrays: Arrays, verify: bool, is_current: bool
) -> tuple[Store, Store | None]:
    """Stores from what `collect_pair` gave; as `rebuild`."""
    others = settings.get(LINKED)
    if others is None:
        return rebuild(settings, arrays, verify, is_current), None
    expect(others, SHAPE["settings"], "manifest.settings.linked")
    if "context" not in others or "context" in settings:
        raise FormatError("expected contexts in the second of two stores, found others")
    more = without_prefix(arrays, _PREFIX)
    mine = {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}
    orders = mine.pop(ORDER), more.pop(ORDER)
    stores = rebuild(settings, mine, verify, is_current), rebuild(others, more, verify, is_current)
    for store, order in zip(stores, orders, strict=True):
        n = store.subscriptions.n_slots
        if order.dtype != np.int64 or order.shape != (n,):
            raise FormatError(f"expected numbers of {n} subscriptions, found {order.shape}")
        if n and (order[0] < 0 or (np.diff(order) <= 0).any()):
            raise FormatError("expected ascending numbers of subscriptions, found others")
        store.subscriptions.take_order(order)
    if verify:
        if len(np.intersect1d(*orders)):
            raise FormatError("expected each number of a subscription once, found one twice")
        ids = stores[1].subscriptions.ids[: stores[1].subscriptions.n_slots].tolist()
        if stores[0].subscriptions.has_any(ids):
            raise FormatError("expected each id in one of two stores, found one in both")
    return stores


def _order(store: Store) -> np.ndarray:
    order: np.ndarray = store.subscriptions.order[: store.subscriptions.n_slots]
    return np.asarray(order, np.int64)
