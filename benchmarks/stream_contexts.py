"""What updates of contexts cost a micro-batch of a stream: CPU times of one task, without Spark.

    python benchmarks/stream_contexts.py [EVENTS UPDATES PLAIN BOUND]

A second of the stream of suite `spark`: 20,000 events, 2,000 updates; PLAIN subscriptions
without a context, BOUND with one.  The same events are matched with no updates between them, which
asks the index that follows contexts; among updates events are put in order (`event_ranges`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from random import Random

import numpy as np

import matchwood as mw
from matchwood.spark.streams.contexts import Timeline, Update, set_contexts


def main(n_events: int, n_updates: int, n_plain: int, n_bound: int) -> None:
    random = Random(1)
    matcher = mw.Matcher()
    n_contexts = max(1, n_bound // 5)
    matcher.add_many(
        (i, f"price BETWEEN {(at := random.randrange(10_000))} AND {at + 5} AND size = {i % 50}")
        for i in range(n_plain)
    )
    matcher.add_many(
        (n_plain + i, f"price BETWEEN ctx.target - 5 AND ctx.target + 5 AND size < {i % 50}",
         i % n_contexts)
        for i in range(n_bound)
    )  # fmt: skip
    matcher.set_context_many((c, {"target": random.randrange(10_000)}) for c in range(n_contexts))
    events = [
        {"price": random.randrange(10_000), "size": random.randrange(50)} for _ in range(n_events)
    ]
    offsets = np.sort(np.array(random.sample(range(n_events + n_updates), n_events)))
    rest = sorted(set(range(n_events + n_updates)) - set(offsets.tolist()))
    records = [
        {"id": random.randrange(n_contexts), "attributes": [("target", str(each % 10_000))]}
        for each in random.sample(range(10**6), len(rest))
    ]
    matcher.match_many(events[:10])
    seconds("driver: read, check and carry out", lambda: set_contexts(matcher, records, "map"))
    encoded = matcher.encode(events)
    timeline = Timeline(matcher)
    updates = [
        Update(offset, each["id"], {"target": float(each["attributes"][0][1])})
        for offset, each in zip(rest, records, strict=True)
    ]
    for each in updates:
        timeline.append(each)
    seconds("worker: on", timeline.end)
    seconds("worker: back", lambda: timeline.go(0))
    changes = timeline.changes(offsets)
    plain, among = [], []
    for _ in range(4):  # the first ones compile, and find the index as updates have left it
        plain.append(seconds("worker: match without updates", lambda: matcher.find(encoded)))
        timeline.go(0)
        among.append(
            seconds(
                f"worker: match with {len(changes):,} changes",
                lambda: matcher.find(encoded, changes),
            )
        )
    print(f"{min(among) / min(plain):.2f} times the time")


def seconds(what: str, do: Callable[[], object]) -> float:
    start = time.process_time()
    do()
    took = time.process_time() - start
    print(f"{took:8.3f} s  {what}")
    return took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("20000", "2000", "100000", "10000")))
