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

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits
from matchwood.index.core.registry import find_index
from matchwood.kernel.arrays import slices
from matchwood.kernel.verify_kernels import CANDIDATES, PREDICATES
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

WORKLOADS = "begen,begen:zipf,pstree,pstree:dims-30k"
N_EVENTS, ROUNDS, COUNTED = 100, 7, 5


class Counting:
    """NumPy counting: subscriptions of the predicates that hold, counted by `bincount`."""

    def __init__(self, table, slots) -> None:
        x, p = table.layout, table.predicates.layout
        self.p, self.need = p, x.size[slots].astype(np.int64)
        code = x.code[slices(x.start[slots], x.size[slots])]
        order = np.argsort(code, kind="stable")
        self.posting = np.repeat(np.arange(len(slots), dtype=np.int32), x.size[slots])[order]
        self.start = np.searchsorted(code[order], np.arange(len(p.attr) + 1))
        self.slots = slots
        used = np.flatnonzero(p.attr >= 0)
        sizes = p.n_intervals[used]
        one = sizes == 1
        pred = np.concatenate([used[one], np.repeat(used[~one], sizes[~one])])
        at = slices(p.interval_start[used[~one]], sizes[~one])
        lo = np.concatenate([p.lo[used[one]], p.interval_lo[at]])
        hi = np.concatenate([p.hi[used[one]], p.interval_hi[at]])
        by_attr = np.argsort(p.attr[pred], kind="stable")
        self.pred, self.lo, self.hi = pred[by_attr], lo[by_attr], hi[by_attr]
        self.first = np.searchsorted(p.attr[self.pred], np.arange(table.n_attributes + 1))

    def match(self, attrs, keys) -> np.ndarray:
        held = []
        for attr, key in zip(attrs.tolist(), keys.tolist(), strict=True):
            part = slice(self.first[attr], self.first[attr + 1])
            held.append(self.pred[part][(self.lo[part] <= key) & (key <= self.hi[part])])
        held = np.concatenate(held)
        found = self.posting[slices(self.start[held], self.start[held + 1] - self.start[held])]
        return self.slots[np.bincount(found, minlength=len(self.need)) == self.need]


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
        find_index(name).build(table, slots[:500]).match_batch(events)  # load kernels
        began = time.thread_time()
        index = find_index(name).build(table, slots)
        built = time.thread_time() - began
        hits = index.match_batch(events)
        found = answers(hits)
        assert all(map(np.array_equal, found[:COUNTED], expected)), f"{name}: not as counting"
        assert before is None or all(map(np.array_equal, found, before)), f"{name}: not as pst"
        before = found
        single = least(lambda index=index: [index.match_batch(event) for event in alone])
        batch = least(lambda index=index: index.match_batch(events))
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
