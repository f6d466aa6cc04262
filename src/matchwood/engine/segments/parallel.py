"""Searches of one batch in several threads.

Events are encoded once; slices of them are searched side by side, each with a scratch of its own.
Kernels release the interpreter's lock, so the slices run at the same time; what is left to Python
(encoding dicts, putting results together) does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.encode.events import EncodedEvents
from matchwood.engine.access import Reader
from matchwood.engine.answers.choices import Choice
from matchwood.engine.input.fields import read_count
from matchwood.engine.matches import Later, Matches
from matchwood.engine.segments.pieces import Piece
from matchwood.engine.segments.view import View
from matchwood.engine.stores.context_changes import part_of
from matchwood.kernel.deferred import defer, is_deferred

LEAST = 32
"""Events of a slice; fewer are not worth a thread."""
SLICES = 4
"""Slices for each thread, so that one with many matches does not keep the others waiting."""


def check_threads(threads: Any) -> int:
    """The number of threads to search with."""
    advice = "leave it out to search in the calling thread"
    return 1 if threads is None else read_count(threads, "threads", advice)


def match_in_threads(
    view: View,
    events: Sequence[EncodedEvents | Piece],
    reader: Reader,
    choice: Choice,
    threads: int,
    free: list[Reader],
) -> Matches:
    """As `View.match`, in slices.  What was found in the context part before is sliced, too.

    free  readers of earlier calls, whose scratch is used again
    """
    first = events[0]
    n = 0 if isinstance(first, Piece) else first.batch.n_events  # all was searched before
    n_slices = min(threads * SLICES, n // LEAST)
    if threads == 1 or n_slices < 2:
        return view.match(events, reader, choice)
    bounds = [n * i // n_slices for i in range(n_slices + 1)]

    def search(first: int, last: int) -> tuple[Matches, np.ndarray]:
        try:
            mine = free.pop()
        except IndexError:
            mine = Reader()
        found = view.match([_slice(each, first, last) for each in events], mine, choice)
        work = mine.work.copy()
        mine.work[:] = 0
        free.append(mine)
        return found, work

    with ThreadPoolExecutor(threads, initializer=defer, initargs=(is_deferred(),)) as pool:
        done = list(pool.map(search, bounds[:-1], bounds[1:]))
    reader.work += sum([work for _, work in done])
    reader.n_events += n
    return _as_one([found for found, _ in done], bounds, view.id_kind)


def _slice(events: EncodedEvents | Piece, first: int, last: int) -> EncodedEvents | Piece:
    if isinstance(events, Piece):
        return events.of_events(first, last)
    return EncodedEvents(
        part_of(events.batch, first, last),
        {e - first: error for e, error in events.errors.items() if first <= e < last},
        {e - first: each for e, each in events.warnings.items() if first <= e < last},
    )


def _ids_of(parts: list[Matches]) -> np.ndarray | Later:
    """The ids of all parts; where no part has looked up its ids yet, they are looked up later."""
    found = [each.ids_or_later for each in parts]
    later = [each for each in found if isinstance(each, Later)]
    if len(later) == len(parts) and all(each.by_slot is later[0].by_slot for each in later):
        return Later(later[0].by_slot, *[slots for each in later for slots in each.slots])
    return np.concatenate([each.ids for each in parts])


def _as_one(parts: list[Matches], bounds: list[int], kind: str) -> Matches:
    starts = np.cumsum([0, *[each.offsets[-1] for each in parts]])
    offsets = [each.offsets[1:] + at for each, at in zip(parts, starts[:-1], strict=True)]
    placed = list(zip(parts, pairwise(bounds), strict=True))
    return Matches(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        _ids_of(parts),
        {e + at: error for each, (at, _) in placed for e, error in each.errors.items()},
        {name: sum([each.counters[name] for each in parts]) for name in parts[0].counters},
        kind,
        {e + at: found for each, (at, _) in placed for e, found in each.warnings.items()},
    )
