"""BE-Tree's adaptation experiment (its paper's Figure 13): uniform, then Zipf, then uniform again.

    python benchmarks/adaptation.py [subscriptions]

Old subscriptions are deleted and as many new ones inserted, one at a time, a quarter a stage, until
the other workload has taken over; then all the way back.  At every stage the answers are compared
with scan's, and the fastest of five passes over each workload's events is printed, beside that of
a tree built anew from the same subscriptions.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from matchwood.encode.resolve import resolve
from matchwood.engine.loading import load_batches
from matchwood.index.be_tree.index import BETree
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.workload import find_workload, load_events, load_subscriptions

STAGES = 4
PASSES = 5
SCRATCH = Scratch()


def load_more(loaded, workload, first_slot):
    """Add another workload's subscriptions to a table; returns their slots."""
    at = first_slot
    for chunk in load_batches(workload.subscriptions(0, workload.n_subscriptions), None):
        leaves = resolve(chunk.batch, loaded.attributes, loaded.table)
        slots = np.arange(at, at + len(chunk.batch), dtype=np.int32)
        starts = np.asarray(chunk.batch.expr_start, np.int64)
        loaded.table.encode(leaves, starts, np.asarray(chunk.batch.code, np.int32), slots)
        at += len(chunk.batch)
    return np.arange(first_slot, at, dtype=np.int32)


def microseconds(index, events):
    times = []
    for _ in range(PASSES):
        began = time.perf_counter()
        index.search(events, SCRATCH)
        index.absorb(SCRATCH)
        times.append(time.perf_counter() - began)
    return min(times) / events.n_events * 1e6


def check(index, table, slots, events):
    found = index.search(events, SCRATCH)
    wanted = Scan.build(table, slots).search(events, SCRATCH)
    for e in range(events.n_events):
        mine = np.sort(found.slots[found.offsets[e] : found.offsets[e + 1]])
        theirs = np.sort(wanted.slots[wanted.offsets[e] : wanted.offsets[e + 1]])
        assert np.array_equal(mine, theirs), f"wrong answer for event {e}"


def swap(index, out, into):
    """Exchange subscriptions one at a time; returns microseconds per change."""
    began = time.perf_counter()
    for old, new in zip(out, into, strict=True):
        index.delete(np.array([old], np.int32))
        index.insert(np.array([new], np.int32))
    return (time.perf_counter() - began) / (2 * len(out)) * 1e6


def main(n):
    changes = {"n_subscriptions": n, "n_events": 100}
    uniform = find_workload("begen:small", **changes)
    zipf = find_workload("begen:small", **changes, distribution="zipf")
    loaded = load_subscriptions(uniform)
    slots = {"uniform": loaded.slots, "zipf": load_more(loaded, zipf, n)}
    events = {
        "uniform": load_events(uniform, loaded.attributes),
        "zipf": load_events(zipf, loaded.attributes),
    }
    table = loaded.table
    index = BETree.build(table, np.empty(0, np.int32))
    for slot in slots["uniform"]:
        index.insert(np.array([slot], np.int32))
    held = slots["uniform"]
    print(f"{'':>26}{'uniform events':>20}{'zipf events':>16}{'change':>10}")
    print(f"{'stage':>14}{'share zipf':>12}{'µs   anew':>20}{'µs   anew':>16}{'µs':>10}")

    def report(stage, share, change):
        shown = []
        anew = BETree.build(table, held)
        for name in ("uniform", "zipf"):
            check(index, table, held, events[name])
            shown += [microseconds(index, events[name]), microseconds(anew, events[name])]
        print(
            f"{stage:>14}{share:>12.0%}{shown[0]:>13.0f}{shown[1]:>7.0f}"
            f"{shown[2]:>9.0f}{shown[3]:>7.0f}{change:>10.1f}",
            flush=True,
        )
        return shown[0]

    first = last = report("start", 0.0, 0.0)
    rng = np.random.default_rng(1)
    for source, target in (("uniform", "zipf"), ("zipf", "uniform")):
        out, into = rng.permutation(slots[source]), rng.permutation(slots[target])
        for stage in range(STAGES):
            part = slice(stage * n // STAGES, (stage + 1) * n // STAGES)
            change = swap(index, out[part], into[part])
            held = np.sort(np.concatenate([out[part.stop :], into[: part.stop]])).astype(np.int32)
            done = (stage + 1) / STAGES
            last = report(f"to {target}", done if target == "zipf" else 1 - done, change)
    print(f"match time at the end: {last / first:.2f} of the start")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
