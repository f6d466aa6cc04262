"""Large batches of sparse events in `blocks`: one by one, and block by block.

    python benchmarks/large_batches.py [SUBSCRIPTIONS EVENTS]

BEGen as in the suite `spark`: 15 of 400 attributes an event, about 20 matches.  Both ways search
the same blocks in turns; CPU time of the thread in µs an event, the least of some rounds.  Hits
must be equal before a time is shown.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from matchwood.index.blocks.index import BlockIndex
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

ROUNDS = 7
WAYS = {"one by one": 2**30, "block by block": 0}
"""From how many words of blocks on a batch is searched block by block."""


def in_order(hits: Hits) -> np.ndarray:
    event = np.repeat(np.arange(len(hits.offsets) - 1), np.diff(hits.offsets))
    return hits.slots[np.lexsort((hits.slots, event))]


def main(n: int = 1_000_000, n_events: int = 32_768) -> None:
    workload = find_workload(
        "begen", n_subscriptions=n, n_events=n_events, min_predicates=5,
        match_probability=max(1e-5, 20 / n),
    )  # fmt: skip
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    layout = BlockIndex.build(loaded.table, loaded.slots).layout()
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    indexes = {way: BlockIndex.restore(loaded.table, layout, grouped=words)
               for way, words in WAYS.items()}  # fmt: skip
    scratches = {way: Scratch() for way in WAYS}
    found = [indexes[way].search(events, scratches[way]) for way in WAYS]
    assert np.array_equal(found[0].offsets, found[1].offsets), "answers differ"
    assert np.array_equal(*map(in_order, found)), "answers differ"
    assert found[0].counters.tolist() == found[1].counters.tolist(), "other work"
    for _ in range(ROUNDS):
        for way in WAYS:
            began = time.thread_time()
            indexes[way].search(events, scratches[way])
            took[way].append((time.thread_time() - began) / n_events * 1e6)
    counts = ", ".join(f"{each / n_events:,.1f}" for each in found[0].counters[1:].tolist())
    print(f"{n:,} x {n_events:,}; blocks, members, predicates, matches an event: {counts}")
    print("   ", ", ".join(f"{way} {min(each):.2f} µs" for way, each in took.items()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
