"""Value changes: what most updates of contexts are, without the savepoint that others need.

An update of a context that is there, by names that are known, writes values and nothing else.
Where no value was absent and each stays in its safe range (`context.table`), no index has to
follow: one step writes all of them, so there is nothing to bring back.  Else the indexes follow
inside a change that can bring back the values alone.  Every other update is for
`Store.set_contexts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matchwood.engine.stores.finding import absorb_found
from matchwood.engine.stores.savepoint import Change, ValuesSavepoint

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.stores.store import Store
    from matchwood.engine.stores.subscriptions import Id


def change_values(store: Store, reader: Reader, id_: Id, values: Mapping[str, Any]) -> bool:
    """Write values of a context, for the owner of a store that is whole.

    False, and no value has changed, where that is not all there is to do.  EventError for a value
    that cannot be set.

    reader  what searches the store: the indexes learn from it what came before the change
    """
    contexts = store.contexts
    if contexts is None or store.is_between_events:
        return False
    if reader.n_events:
        absorb_found(store, reader)
    known = contexts.known(id_, values)
    if known is None:
        return False
    row, changes = known
    if not contexts.write_safe(row, changes):
        with Change(store, ValuesSavepoint):
            store.is_whole = False
            contexts.write_known(row, changes)
    return True
