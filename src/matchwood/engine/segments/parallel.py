"""Searches of one batch in several threads, slice by slice.

The calling thread is one of them.  Slices of a table or of JSON documents are encoded by all
threads and then searched by all; kernels release the interpreter's lock, so that all of it runs at
the same time.  A list of dicts is encoded by the calling thread alone, slice after slice, since
events may run any code; the others search what is encoded meanwhile.

    free    number of a slice ──► encode ──► queue ──► search    in each thread, first all of one
    list    number of a slice ──► encode ──► queue           in the calling thread, which then joins
                                               └──► search   all others

All slices are searched in one view, at one moment, by one choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.event_batch import EncodedEvents, Slices
from matchwood.engine.access import Reader
from matchwood.engine.answers.choices import Choice
from matchwood.engine.input.fields import read_count
from matchwood.engine.matches import Later, Matches
from matchwood.engine.segments.pieces import Piece
from matchwood.engine.segments.view import View
from matchwood.kernel.deferred import defer, is_deferred

LEAST = 32
"""Events of a slice, and for each column that costs some time in each: fewer are not worth it."""
SLICES = 2
"""Slices for each thread, so that one with many matches does not keep the others waiting; each
costs some 0.3 ms (docs/decisions/0028-slices-are-encoded-where-they-are-searched.md)."""

Sources = Sequence[Slices | Piece]
"""Events for each part of a view that is searched, or what was found in it before."""


def check_threads(threads: Any) -> int:
    """The number of threads to search with."""
    advice = "leave it out to search in the calling thread"
    return 1 if threads is None else read_count(threads, "threads", advice)


def match_in_threads(
    view: View,
    sources: Sources,
    reader: Reader,
    choice: Choice,
    threads: int,
    free: list[Reader],
) -> Matches:
    """As `View.match`, in slices.  What was found in the context part before is sliced, too.

    free  readers of earlier calls, whose scratch is used again
    """
    given = [each for each in sources if not isinstance(each, Piece)]
    n = given[0].n_events if given else 0  # else all was searched before
    slow = max([each.n_slow for each in given], default=0)
    n_slices = min(threads * SLICES, n // (LEAST * (1 + slow)))
    if n_slices < 2:
        events = [
            each if isinstance(each, Piece) else each.part(part.store.attributes, 0, each.n_events)
            for part, each in zip(view.searched, sources, strict=True)
        ]
        return view.match(events, reader, choice)
    bounds = [n * i // n_slices for i in range(n_slices + 1)]
    n_helpers = min(threads, n_slices) - 1
    work = _Work(view, sources, bounds, view.at_one_moment(choice), free)
    helpers: list[Future[None]] = []
    with ThreadPoolExecutor(n_helpers, initializer=defer, initargs=(is_deferred(),)) as pool:
        try:
            helpers.extend(pool.submit(work.help) for _ in range(n_helpers))
            work.lead(reader)
            wait(helpers)
        except BaseException:
            work.stop()
            raise
        finally:
            _wait_for(helpers)
    work.finish(reader)
    return _as_one([work.found[i] for i in range(n_slices)], bounds, view.id_kind)


def _wait_for(helpers: list[Future[None]]) -> None:
    """Wait until all threads are done, whatever is raised meanwhile: changes wait for the calling
    thread, and would not for a search that another one goes on with.
    """
    try:
        wait(helpers)
    except BaseException:
        _wait_for(helpers)
        raise


class _Work:
    """The slices of one call; what is under way is over when all threads are."""

    def __init__(
        self, view: View, sources: Sources, bounds: list[int], choice: Choice, free: list[Reader]
    ) -> None:
        self._view, self._sources, self._choice = view, sources, choice
        self._bounds, self._free = bounds, free
        self._is_free = all(isinstance(each, Piece) or each.is_free for each in sources)
        self._numbers = iter(range(len(bounds) - 1))  # each is taken once, whoever asks
        self._ready: SimpleQueue[tuple[int, list[EncodedEvents | Piece]] | None] = SimpleQueue()
        self._apart: dict[int, list[tuple[Attributes, Attributes]]] = {}
        self._helpers: list[Reader] = []
        self._is_over = False
        self.found: dict[int, Matches] = {}
        self._failed: dict[int, BaseException] = {}

    def lead(self, reader: Reader) -> None:
        """Work in the calling thread."""
        if not self._is_free:
            for number in self._numbers:
                if self._is_over:
                    break
                self._ready.put((number, self._encoded(number)))
            self._ready.put(None)
        self._search(reader)

    def help(self) -> None:
        """Work in another thread."""
        try:
            reader = self._free.pop()
        except IndexError:
            reader = Reader()
        self._helpers.append(reader)
        self._search(reader)

    def stop(self) -> None:
        """Let all threads end after the slice that they are at."""
        self._is_over = True
        self._ready.put(None)

    def finish(self, reader: Reader) -> None:
        """Count what all threads have counted; raise what was raised first, in order of events."""
        for number in sorted(self._apart):
            for attributes, mine in self._apart[number]:
                attributes.add_counts(mine)
        for each in self._helpers:
            reader.work += each.work
            reader.n_events += each.n_events
            each.work[:] = 0
            each.n_events = 0
        if self._failed:
            # an interruption first, whatever else went wrong
            raise min(
                self._failed.items(), key=lambda each: (isinstance(each[1], Exception), each[0])
            )[1]
        self._free += self._helpers

    def _search(self, reader: Reader) -> None:
        number = 0
        try:
            if self._is_free:  # all first: encoding one between two searches takes their caches
                for number in self._numbers:
                    if self._is_over:
                        return
                    self._ready.put((number, self._encoded(number)))
            for number, events in self._slices():
                self.found[number] = self._view.match(events, reader, self._choice)
        except BaseException as error:  # noqa: BLE001 - raised by `finish`
            self._failed[number] = error
            self._is_over = True

    def _slices(self) -> Iterator[tuple[int, list[EncodedEvents | Piece]]]:
        """Slices that are encoded; a free thread leaves those to others that they still encode."""
        while not self._is_over:
            try:
                ready = self._ready.get(block=not self._is_free)
            except Empty:
                return
            if ready is None:
                break
            yield ready
        self._ready.put(None)  # for the next thread

    def _encoded(self, number: int) -> list[EncodedEvents | Piece]:
        first, last = self._bounds[number : number + 2]
        events: list[EncodedEvents | Piece] = []
        for part, each in zip(self._view.searched, self._sources, strict=True):
            if isinstance(each, Piece):
                events.append(each.of_events(first, last))
                continue
            attributes = mine = part.store.attributes
            if self._is_free:
                mine = attributes.apart()
                self._apart.setdefault(number, []).append((attributes, mine))
            events.append(each.part(mine, first, last))
        return events


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
