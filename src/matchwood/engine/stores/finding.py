"""Finding: the slots of one store that hold for encoded events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from matchwood.encode.events import EncodedEvents
from matchwood.engine.answers.choices import ALL, Choice, chosen, living
from matchwood.engine.matches import Found, kept
from matchwood.engine.segments.ranking import best_hits, is_ranked
from matchwood.engine.segments.repeats import Repeats, repeats_of
from matchwood.engine.stores.arranging import arranged
from matchwood.engine.stores.context_changes import Compared, ContextChange
from matchwood.index.core.protocol import Hits
from matchwood.kernel.marks import are_marked
from matchwood.kernel.verify_kernels import COUNTERS

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.stores.store import Store


def find(
    store: Store,
    events: EncodedEvents,
    reader: Reader,
    changes: Sequence[ContextChange] = (),
    choice: Choice = ALL,
    gone: np.ndarray | None = None,
) -> Found:
    """The slots that hold for events, in the order of addition, without what has expired.

    Reads the store, and writes to the reader.

    gone  marks of slots that are left out, see `view.Part`

    With contexts it needs the store for itself: these may change between events, and their
    index because of them.  EventError, and none of them is made, if one would have given other
    integers to events.
    """
    if store.contexts is None and not changes:
        repeats = repeats_of(events.batch) if store.routing.is_static else None
        batch = events.batch if repeats is None else repeats.batch
        if choice is not ALL and is_ranked(store, choice):
            hits = best_hits(store, batch, reader.scratch, choice, gone)
        else:
            hits = store.routing.search(batch, reader.scratch)
        return _arranged(store, events, reader, hits, choice, gone, repeats)
    store.is_whole = store.pending is None
    store.is_between_events = bool(changes)
    store.settle()
    compared = Compared(store.attributes) if changes else None
    hits = store.routing.search(events.batch, reader.scratch, changes)
    store.is_between_events = False
    if compared is not None:
        compared.check()
    found = _arranged(store, events, reader, hits, choice, gone)
    store.absorb([reader])
    return found


def _arranged(
    store: Store,
    events: EncodedEvents,
    reader: Reader,
    found: list[Hits],
    choice: Choice,
    gone: np.ndarray | None,
    repeats: Repeats | None = None,
) -> Found:
    """Hits of several indexes as one, in order, with what every event satisfies."""
    n = events.batch.n_events
    if not found:
        none = np.zeros((n if repeats is None else repeats.batch.n_events) + 1, np.int64)
        found = [Hits(none, np.empty(0, np.int32), store.work * 0)]
    subscriptions = store.subscriptions
    offsets, slots, work = arranged(
        found, store.routing.always, events.errors, subscriptions, reader.scratch, repeats
    )
    work[0] = n
    work[-1] = len(slots)
    reader.work += work
    reader.n_events += n
    counters = dict(zip(COUNTERS, work.tolist(), strict=True))
    result = Found(offsets, slots, events.errors, counters, events.warnings)
    if gone is not None and len(slots):
        result = kept(result, ~are_marked(gone, slots))
    columns = subscriptions.columns
    if len(columns.expires):
        result = living(columns, result, choice.now)
    return result if choice is ALL else chosen(columns, result, choice)
