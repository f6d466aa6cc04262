"""What segments cost a Spark worker: CPU of encoding and searching, by how many there are.

    python benchmarks/spark_segments.py [SUBSCRIPTIONS EVENTS]

The same subscriptions of BEGen, about 20 matches an event, are built by the functions of Spark's
tasks as one, two and three segments; the same events are matched with each, alternately, without
Spark.  Lists must be equal before a time is shown.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import matchwood as mw
from matchwood.engine.snapshots.versions import join_versions, load_version, save_version
from matchwood.spark.build_tasks import TASK, add_rows
from matchwood.spark.shapes import read_events
from matchwood.workload import find_workload, plain_tables

SEGMENTS = (1, 2, 3)
ROUNDS = 5
BATCH = 32_768


def main(n_subscriptions: int, n_events: int) -> None:
    workload = find_workload(
        "begen", n_subscriptions=n_subscriptions, min_predicates=5,
        match_probability=max(1e-5, 20 / n_subscriptions),
    )  # fmt: skip
    cuts = range(0, n_events, BATCH)
    batches = [
        plain_tables.arrays(workload, at, min(at + BATCH, n_events)).combine_chunks() for at in cuts
    ]
    events = [read_events(each.to_batches()[0], "arrays") for each in batches]
    with tempfile.TemporaryDirectory() as folder:
        matchers = {n: built(workload, n_subscriptions, n, Path(folder)) for n in SEGMENTS}
        times: dict[int, list[tuple[float, float]]] = {n: [] for n in SEGMENTS}
        for _ in range(ROUNDS):
            answers = []
            for n, matcher in matchers.items():
                spent, answer = matched(matcher, events)
                times[n].append(spent)
                answers.append(answer)
            assert all(each == answers[0] for each in answers), "answers differ"
        for n in SEGMENTS:
            encode, find = np.median(times[n], axis=0) / n_events * 1e6
            print(f"{n} segments  encode {encode:5.2f}  find {find:5.2f}  µs of CPU an event")


def built(workload: object, n_subscriptions: int, n: int, folder: Path) -> mw.Matcher:
    """A matcher of n segments, mapped as a worker maps it."""
    parts = []
    for task in range(n):
        first, last = n_subscriptions * task // n, n_subscriptions * (task + 1) // n
        matcher = mw.Matcher()
        add_rows(matcher, plain_tables.predicates(workload, first, last), None, (task + 1) * TASK)
        parts.append(folder / f"{n}-{task}")
        save_version(matcher, parts[-1])
    join_versions(parts, folder / f"{n}")
    return load_version(folder / f"{n}", verify=False)


def matched(matcher: mw.Matcher, batches: list[object]) -> tuple[tuple[float, float], int]:
    """CPU seconds of encoding and of searching, and a number that stands for all lists."""
    ids = matcher.arrow_ids().to_numpy(zero_copy_only=False)
    encode = find = 0.0
    answer = 0
    for events in batches:
        start = time.process_time()
        encoded = matcher.encode(events)
        middle = time.process_time()
        found = matcher.find(encoded)
        find += time.process_time() - middle
        encode += middle - start
        lists = (found.offsets.tobytes(), ids[found.slots].astype(np.int64).tobytes())
        answer = hash((answer, *lists))
    return (encode, find), answer


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("1000000", "100000")))
