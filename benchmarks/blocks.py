"""Blocks against PSTBloom and NumPy counting, on four workloads of conjunctions.

    python benchmarks/blocks.py [subscriptions] [workload,...]

    begen             7 predicates of 400 attributes, 15 attributes an event, 1 % match
    begen:zipf        the same, attributes by Zipf's law
    pstree            5 predicates of 100 attributes, 30 attributes an event, 0.1 % match
    pstree:dims-30k   the same with 30,000 attributes

100 distinct events each.  All three must give the same answers.  Times are those of the thread
(other processes on the machine do not count, their use of memory does), the least of several
rounds, in µs an event: counting, and each index alone (one event a call) and in a batch.  "touched"
is what a search has to read of the blocks: words of headers, columns, rows, signatures, items and
entries, and the GB/s at which a batch reads them.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from matchwood.bench.searching import searched
from matchwood.bench.speed.index_cases import Counting
from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import CANDIDATES, PREDICATES
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

WORKLOADS = "begen,begen:zipf,pstree,pstree:dims-30k"
N_EVENTS, ROUNDS, COUNTED = 100, 7, 5


def one_event(events: EventBatch, e: int) -> EventBatch:
    part = slice(events.start[e], events.start[e + 1])
    keys = events.lo[part]
    return EventBatch(np.array([0, len(keys)]), events.attr[part], keys, keys)


def answers(hits: Hits) -> list[np.ndarray]:
    return [np.sort(part) for part in np.split(hits.slots, hits.offsets[1:-1])]


def least(call) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return min(times) / N_EVENTS * 1e6


def touched(index, hits: Hits) -> float:
    """Bytes that an event reads: signatures or rows, items of all candidates, cells tested."""
    stats, n = index.stats(), hits.counters / N_EVENTS
    in_rows = stats["in_rows"] / max(1, stats["records"])
    return float(n[CANDIDATES] * (4 + 8 * in_rows) + 8 * n[PREDICATES] + 64 * n[1])


def measure(workload: str, n: int) -> None:
    generator = find_workload(workload, n_subscriptions=n, n_events=N_EVENTS)
    loaded = load_subscriptions(generator)
    events, table, slots = load_events(generator, loaded.attributes), loaded.table, loaded.slots
    alone = [one_event(events, e) for e in range(N_EVENTS)]
    counting = Counting(table, slots)
    began = time.thread_time()
    expected = [counting.match(event.attr, event.lo) for event in alone[:COUNTED]]
    seconds = (time.thread_time() - began) / COUNTED
    print(f"{workload} {n:,}: counting {seconds * 1e6:,.0f} µs", flush=True)
    before = None
    for name in ("pst_bloom", "blocks"):
        searched(find_index(name).build(table, slots[:500]), events, Scratch())  # load kernels
        began = time.thread_time()
        index = find_index(name).build(table, slots)
        built = time.thread_time() - began
        scratch = Scratch()
        hits = searched(index, events, scratch)
        found = answers(hits)
        assert all(map(np.array_equal, found[:COUNTED], expected)), f"{name}: not as counting"
        assert before is None or all(map(np.array_equal, found, before)), f"{name}: not as pst"
        before = found
        single = least(lambda i=index, x=scratch: [searched(i, event, x) for event in alone])
        batch = least(lambda i=index, x=scratch: searched(i, events, x))
        print(
            f"  {name:<10}alone {single:7.1f} ({seconds * 1e6 / single:5.1f} x counting)  batch "
            f"{batch:7.1f} ({seconds * 1e6 / batch:5.1f} x)  {len(hits.slots) / N_EVENTS:,.0f} "
            f"matches  built {built:.2f} s  {index.stats()['bytes'] / n:.0f} bytes",
            end="",
        )
        if name == "blocks":
            size = touched(index, hits)
            print(f"  touched {size / 1000:.0f} KB, {size / batch / 1000:.1f} GB/s", end="")
        print(flush=True)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    for each in given.get(1, WORKLOADS).split(","):
        measure(each, int(given.get(0, 1_000_000)))
