"""The honest limit: the shortest compiled index for one workload, beside those of the package.

    python benchmarks/prototype.py [workload ...]

Each conjunction hangs on its rarest predicate and is copied, with all its predicates as intervals,
to every bucket of keys that this one meets; an event tests what is in its buckets.  It can be built
once, takes no changes, no sets (their hull is tested, so IN lists give false matches), no events of
intervals, and keys of one small range.  What a real index adds to its time is what those cost.
"""

from __future__ import annotations

import sys
import time

import numba
import numpy as np

from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

BUCKETS = 32


@numba.njit(cache=True)
def fill(start, size, code, attr, lo, hi, uses, slots, top, n_in, begin, entry, is_counting):
    """Count the words of every bucket, or write the entries; run twice."""
    for slot in slots:
        preds = code[start[slot] : start[slot] + size[slot]]
        best, least = preds[0], np.inf
        for pred in preds:
            a, b = max(lo[pred], 0), min(hi[pred], top)
            cost = uses[attr[pred]] * (b - a + 1.0)
            if cost < least:
                best, least = pred, cost
        first = max(lo[best], 0) * BUCKETS // (top + 1)
        last = min(hi[best], top) * BUCKETS // (top + 1)
        for bucket in range(attr[best] * BUCKETS + first, attr[best] * BUCKETS + last + 1):
            at = begin[bucket] + n_in[bucket]
            n_in[bucket] += 1 + len(preds)
            if not is_counting:
                entry[at] = len(preds) << 32 | slot
                for k, pred in enumerate(preds):
                    a, b = max(lo[pred], 0), min(hi[pred], top)
                    entry[at + 1 + k] = np.int64(attr[pred]) << 32 | a << 16 | b


@numba.njit(cache=True)
def match(ev_start, ev_attr, ev_key, top, begin, entry, board, offsets, out):
    n = 0
    for e in range(len(ev_start) - 1):
        for i in range(ev_start[e], ev_start[e + 1]):
            board[ev_attr[i]] = ev_key[i]
        for i in range(ev_start[e], ev_start[e + 1]):
            bucket = ev_attr[i] * BUCKETS + ev_key[i] * BUCKETS // (top + 1)
            at, end = begin[bucket], begin[bucket + 1]
            while at < end:
                size, holds = entry[at] >> 32, True
                for k in range(at + 1, at + 1 + size):
                    x, w = board[entry[k] >> 32], entry[k]
                    holds = holds and (w >> 16 & 0xFFFF) <= x and x <= (w & 0xFFFF)
                if holds:
                    out[n] = entry[at] & 0xFFFFFFFF
                    n += 1
                at += 1 + size
        for i in range(ev_start[e], ev_start[e + 1]):
            board[ev_attr[i]] = -1
        offsets[e + 1] = n
    return n


class Prototype:
    """Built once, asked in batches."""

    def __init__(self, table, slots) -> None:
        x, p = table.layout, table.predicates.layout
        held = p.attr[x.code[: int(x.size[slots].sum())]]
        n = table.n_attributes
        self.top = int(p.hi[(p.n_intervals > 0) & (p.hi < 2**16)].max(initial=1))
        uses = np.bincount(held, minlength=n)
        arrays = (x.start, x.size, x.code, p.attr, p.lo, p.hi, uses, slots, self.top)
        self.begin, words = np.zeros(n * BUCKETS + 1, np.int64), np.zeros(n * BUCKETS, np.int64)
        fill(*arrays, words, self.begin, np.empty(0, np.int64), True)
        np.cumsum(words, out=self.begin[1:])
        words[:] = 0
        self.entry = np.empty(int(self.begin[-1]), np.int64)
        fill(*arrays, words, self.begin, self.entry, False)
        self.board, self.out = np.full(n, -1, np.int64), np.empty(2**24, np.int32)

    def search(self, events, scratch):
        offsets = np.zeros(events.n_events + 1, np.int64)
        arguments = (events.start, events.attr, events.lo, self.top, self.begin, self.entry)
        return match(*arguments, self.board, offsets, self.out)


def compare(workload: str, passes: int = 7) -> None:
    generator = find_workload(workload, n_events=100)
    loaded = load_subscriptions(generator)
    events = load_events(generator, loaded.attributes)
    few = loaded.slots[:100]
    indexes, times, builds, scratch = {}, {}, {}, Scratch()
    for name in ("scan", "prototype", "pst_bloom", "pst_hash", "be_tree"):
        make = Prototype if name == "prototype" else find_index(name).build
        make(loaded.table, few).search(events, scratch)
        began = time.perf_counter()
        indexes[name] = make(loaded.table, loaded.slots)
        builds[name], times[name] = time.perf_counter() - began, []
    for number in range(passes):
        for name, index in indexes.items():
            if name != "scan" or number < 2:
                began = time.perf_counter()
                index.search(events, scratch)
                times[name].append((time.perf_counter() - began) / events.n_events)
    for name, each in times.items():
        print(
            f"{workload:<18}{name:<12}{np.median(each) * 1e6:>10,.1f} µs an event"
            f"{np.median(times['scan']) / np.median(each):>8.1f} x scan{builds[name]:>8.2f} s built"
        )


if __name__ == "__main__":
    for each in sys.argv[1:] or ["pstree:dims-100", "pstree:dims-30k"]:
        compare(each)
