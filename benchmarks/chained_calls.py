"""A search of several segments in one compiled call, against one call for each kernel.

    python benchmarks/chained_calls.py [segments]

Alone by CPU time, and by the clock beside a thread that runs Python code all the time: there each
call may wait for the interpreter's lock.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import matchwood as mw
from matchwood.engine.segments import background
from matchwood.kernel import chains

SIZE, SEARCHES, ROUNDS = 5_000, 300, 5


def text(rng: random.Random) -> str:
    return f"a = {rng.randrange(500)} AND b BETWEEN {rng.randrange(50)} AND {rng.randrange(50, 99)}"


def matcher(n_segments: int) -> mw.Matcher:
    """A matcher of segments, bound as `chains.is_usable` says now."""
    rng = random.Random(1)
    m = mw.Matcher()
    for k in range(n_segments):
        m.add_many([(k * SIZE + i, text(rng)) for i in range(SIZE)])
    for event in events():
        m.match(event)
    return m


def events() -> list[dict[str, Any]]:
    rng = random.Random(2)
    return [{"a": rng.randrange(500), "b": rng.randrange(99)} for _ in range(SEARCHES)]


def times(m: mw.Matcher, clock: Callable[[], float]) -> list[float]:
    """Microseconds of each search."""
    found = []
    for event in events():
        began = clock()
        m.match(event)
        found.append((clock() - began) * 1e6)
    return sorted(found)


def main() -> None:
    n_segments = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    background.IS_ON = False
    usable = chains.is_usable
    chained = matcher(n_segments)
    chains.is_usable = lambda: False  # type: ignore[assignment]
    one_by_one = matcher(n_segments)
    chains.is_usable = usable
    both = {"one call": chained, "call by call": one_by_one}
    assert [chained.match(e) for e in events()] == [one_by_one.match(e) for e in events()]
    print(f"{n_segments} segments of {SIZE:,}, microseconds a search")
    for name, m in both.items():
        best = min(sum(times(m, time.thread_time)) / SEARCHES for _ in range(ROUNDS))
        print(f"  {name:<14}{best:8.1f} of CPU, alone")
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=run)
    thread.start()
    for name, m in both.items():
        found = min((times(m, time.perf_counter) for _ in range(2)), key=sum)
        middle, late = found[SEARCHES // 2], found[SEARCHES * 99 // 100]
        print(f"  {name:<14}p50 {middle:8.0f}, p99 {late:8.0f} by the clock, beside Python code")
    is_over.set()
    thread.join()


if __name__ == "__main__":
    main()
