"""Which index should hold many conjunctions?  BE-Tree against PSTBloom, over workloads and sizes.

    python benchmarks/conjunctive_index.py [workload,...] [subscriptions,...]

For every workload and size, each index: microseconds to match an event in a batch of 200 and alone,
to insert and to delete a subscription alone; seconds to build; bytes for a subscription.
See docs/decisions/0017.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np

from matchwood.bench.answers import first_events
from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

NAMES = ("be_tree", "pst_bloom")
WORKLOADS = "begen,pstree,pstree:zipf-1,pstree:dims-30k,ads,querylog"
SIZES = "2000,20000,100000"
CHANGED = 300


def micros(call, arguments) -> float:
    began = time.perf_counter()
    for each in arguments:
        call(each)
    return (time.perf_counter() - began) / len(arguments) * 1e6


def measure(workload: str, n: int) -> None:
    generator = find_workload(workload, n_subscriptions=n, n_events=200)
    loaded = load_subscriptions(generator)
    events = load_events(generator, loaded.attributes)
    table = loaded.table
    slots = loaded.slots[table.layout.kind[loaded.slots] == CONJUNCTION]
    one = first_events(events, 1)
    changed = np.unique(slots[np.linspace(0, len(slots) - 1, CHANGED).astype(int)])
    alone = [np.array([slot], np.int32) for slot in changed]
    scratch = Scratch()
    indexes, rows, times = {}, {}, {name: [] for name in NAMES}
    for name in NAMES:
        warm = find_index(name).build(table, slots[:200])
        warm.search(events, scratch)
        warm.delete(slots[:100])
        warm.insert(slots[:100])
        began = time.perf_counter()
        indexes[name] = find_index(name).build(table, slots)
        rows[name] = [time.perf_counter() - began, indexes[name].stats()["bytes"] / len(slots)]
    for _ in range(5):
        for name, index in indexes.items():
            times[name].append(
                micros(partial(index.search, scratch=scratch), [events]) / events.n_events
            )
    for name, index in indexes.items():
        rows[name] = [
            np.median(times[name]),
            micros(partial(index.search, scratch=scratch), [one] * 100),
            micros(index.delete, alone),
            micros(index.insert, alone),
            *rows[name],
        ]
    columns = zip(*rows.values(), strict=True)
    print(f"{workload:<16}{len(slots):>10,}  ", end="")
    for (first, second), form in zip(columns, ("8.1f",) * 4 + ("6.2f", "5.0f"), strict=True):
        print(f"{first:{form}} {second:{form}}", end="  ")
    print(flush=True)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    print("be_tree, pst_bloom: match, match alone, delete, insert (µs), build (s), bytes")
    for each in given.get(0, WORKLOADS).split(","):
        for size in given.get(1, SIZES).split(","):
            measure(each, int(size))
