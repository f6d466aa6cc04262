"""A service that matches while its subscriptions change, is killed, and has all of them again.

A child process opens a folder of saved searches.  Two threads match offers; meanwhile a third one
changes searches, some thousand a second, in batches that are logged before they are acknowledged.
Then the process kills itself (SIGKILL: no handler, no goodbye).  The parent opens the folder again
and proves that every acknowledged change is there and that the indexes find what a scan finds.

    python examples/live_service.py --subscriptions 1000000 --seconds 60
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import matchwood as mw

GENRES = [f"genre {n}" for n in range(200)]
BATCH = 100
"""Changes that are acknowledged together: at 5,000 a second every 20 ms."""

Searches = dict[int, str]


def text_of(number: int) -> str:
    """The saved search with a number; the same number gives the same text."""
    rng = random.Random(number)
    price = rng.randrange(1, 200)
    return (
        f"genre = '{rng.choice(GENRES)}' AND price BETWEEN {price} AND {price + 20} "
        f"AND year >= {rng.randrange(1900, 2020)}"
    )


def offer(rng: random.Random) -> dict[str, Any]:
    return {
        "genre": rng.choice(GENRES),
        "price": rng.randrange(1, 220),
        "year": rng.randrange(1900, 2026),
    }


def change(searches: Any, n: int, number: int) -> None:
    """The changes of a batch: old searches go, new ones come, some get another text."""
    for i in range(number * BATCH, (number + 1) * BATCH, 2):
        searches.remove(i // 2)
        searches.add(n + i // 2, text_of(n + i // 2))


def make_prompt() -> None:
    """Settings of a process that answers while it changes, for its owner to choose.

    A thread that runs Python code gives the interpreter up after 5 ms, unless told otherwise: so
    long a search, or a change, may wait each time it comes back from compiled code.  A collection
    of garbage looks at all objects there are, those of imported modules too, which takes some
    50 ms: frozen ones are left out.
    """
    sys.setswitchinterval(0.0001)
    gc.collect()
    gc.freeze()


def serve(folder: str, n: int, seconds: float, rate: int, tell: Connection) -> None:
    """The service, until it kills itself.  Tells what was acknowledged, and what searches took."""
    searches = mw.Matcher.open(folder, sync=False)
    rng = random.Random(4)
    for _ in range(200):  # everything is imported, loaded and bound
        searches.match(offer(rng))
    make_prompt()
    took: tuple[list[float], list[float]] = ([], [])
    is_busy, is_over = threading.Event(), threading.Event()

    def match(seed: int) -> None:
        rng = random.Random(seed)
        while not is_over.is_set():
            event = offer(rng)
            began = time.perf_counter()
            searches.match(event)
            took[is_busy.is_set()].append(time.perf_counter() - began)

    threads = [threading.Thread(target=match, args=(seed,), daemon=True) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)  # how long a search takes while nothing changes
    is_busy.set()
    number, began = 0, time.monotonic()
    while True:  # the end comes in the middle of something
        with searches.batch() as batch:
            change(batch, n, number)
        number += 1
        tell.send(number)
        time.sleep(max(0.0, began + number * BATCH / rate - time.monotonic()))
        if not is_over.is_set() and not all(thread.is_alive() for thread in threads):
            sys.exit("a search has failed")
        if not is_over.is_set() and time.monotonic() > began + seconds:
            is_over.set()
            tell.send((took, time.monotonic() - began))
            kill = (os.getpid(), signal.SIGKILL)
            threading.Timer(random.uniform(0.01, 0.2), os.kill, kill).start()


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


def report(took: tuple[list[float], list[float]], changes: int, seconds: float) -> None:
    print(
        f"changes: {changes:,} acknowledged, {BATCH} at a time, {changes / seconds:,.0f} a second, "
        "while 2 threads search without a pause"
    )
    for name, times in zip(("while nothing changes", "while changing"), took, strict=True):
        print(
            f"searches {name}: {len(times):,}, p50 {percentile(times, 0.5):.2f} ms, "
            f"p99 {percentile(times, 0.99):.2f} ms, longest {max(times) * 1000:.1f} ms"
        )


def expected(n: int, n_batches: int) -> Searches:
    """What there is after so many batches."""
    gone = n_batches * BATCH // 2
    return {number: text_of(number) for number in range(gone, n + gone)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=5_000, help="changes a second")
    options = parser.parse_args()
    n = options.subscriptions
    with tempfile.TemporaryDirectory() as home:
        folder = str(Path(home, "searches"))
        began = time.monotonic()
        with mw.Matcher.open(folder, sync=False) as searches:
            searches.add_many((number, text_of(number)) for number in range(n))
        print(f"{n:,} saved searches, loaded in {time.monotonic() - began:.1f} s")
        here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
        arguments = (folder, n, options.seconds, options.rate, there)
        child = multiprocessing.get_context("spawn").Process(target=serve, args=arguments)
        child.start()
        there.close()
        n_batches = 0
        try:
            while True:
                told = here.recv()
                if isinstance(told, int):
                    n_batches = told
                else:
                    report(told[0], n_batches * BATCH, told[1])
        except EOFError:
            child.join()
        print(f"the service is gone (exit code {child.exitcode})")

        began = time.monotonic()
        searches = mw.Matcher.open(folder)
        print(f"opened again in {time.monotonic() - began:.2f} s: {len(searches):,} saved searches")
        rng = random.Random(3)
        proof = searches.verify([offer(rng) for _ in range(200)])
        held = {id_: found.text for id_, found in searches.items()}
        searches.close()
        print(f"indexes against a scan, {proof.events} offers: {'equal' if proof else proof}")
        # a batch that was logged and not yet acknowledged is there whole, or not at all
        states = [expected(n, n_batches), expected(n, n_batches + 1)]
        is_whole = held in states
        print(f"what was acknowledged: {'all of it, and nothing else' if is_whole else 'LOST'}")
        return int(not (is_whole and proof and child.exitcode == -signal.SIGKILL))


if __name__ == "__main__":
    sys.exit(main())
