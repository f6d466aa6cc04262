"""One matcher in a service of asyncio, and in a pool of processes.

A search is compiled code that takes microseconds and does not hold the interpreter's lock, but it
does block the thread that calls it.  So a coroutine hands it to a thread (`asyncio.to_thread`);
changes, which may wait for a disk, as well.

Processes do not share a matcher: it is saved once, and each process maps the files, so that all of
them use the same memory.  A matcher may be pickled, too, which copies it for every process.

    python examples/asyncio_and_processes.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matchwood as mw

Event = dict[str, Any]

OFFERS: list[Event] = [{"price": n % 50, "stock": n % 7} for n in range(1_000)]


async def serve(m: mw.Matcher) -> list[int]:
    """Answer requests while a subscription is added; how many of them found it."""

    async def answer(offer: Event) -> bool:
        return "late" in await asyncio.to_thread(m.match, offer)

    early = await asyncio.gather(*[answer(offer) for offer in OFFERS[:100]])
    await asyncio.to_thread(m.add, "late", "price < 10")
    late = await asyncio.gather(*[answer(offer) for offer in OFFERS[:100]])
    return [sum(early), sum(late)]


_matcher: mw.Matcher
"""The matcher of a process of the pool."""


def start(snapshot: str) -> None:
    """Map the snapshot; once in each process."""
    global _matcher
    _matcher = mw.Matcher.load(snapshot, mmap=True)


def search(offers: list[Event]) -> list[list[int | str]]:
    """The matches of some events; plain lists are what goes back to the parent."""
    return _matcher.match_many(offers).to_pylist()


def slices(offers: list[Event], size: int) -> Iterator[list[Event]]:
    for begin, end in pairwise([*range(0, len(offers), size), len(offers)]):
        yield offers[begin:end]


def main() -> None:
    m = mw.Matcher()
    m.add_many([(f"alert {n}", f"price < {n % 50} AND stock > {n % 5}") for n in range(500)])
    print("asyncio: 'late' was found by {} requests, then by {}".format(*asyncio.run(serve(m))))

    with tempfile.TemporaryDirectory() as folder:
        snapshot = str(Path(folder) / "alerts")
        m.save(snapshot)
        spawned = get_context("spawn")  # a forked child would work as well
        with ProcessPoolExecutor(2, spawned, initializer=start, initargs=(snapshot,)) as pool:
            found = [ids for part in pool.map(search, slices(OFFERS, 250)) for ids in part]
    same = "equal" if found == m.match_many(OFFERS).to_pylist() else "DIFFERENT"
    print(
        f"processes: {len(found):,} events, {sum(map(len, found)):,} matches, {same} to one process"
    )


if __name__ == "__main__":
    main()
