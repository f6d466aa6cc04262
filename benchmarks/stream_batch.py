"""CPU of the driver and of two workers for micro-batches of a stream, without Spark.

    python benchmarks/stream_batch.py [SUBSCRIPTIONS BATCHES]

A micro-batch has the records of one second of suite `spark`, part `stream`: 20,000 events, 200
changes of subscriptions, 2,020 updates of contexts.  Each worker has half of the events, and a
replica that goes on from batch to batch.  The first two batches are left out: they load kernels.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood import Matcher
from matchwood.bench.spark_stream import MATCHES, PER_CONTEXT, TOP, bound, log_part
from matchwood.spark.storage import open_storage
from matchwood.spark.streams import worker
from matchwood.spark.streams.changes import Decider
from matchwood.spark.streams.match_stream import BLOCK
from matchwood.spark.streams.replicas import Kept
from matchwood.spark.streams.state import Replica, StateFolder
from matchwood.workload import find_workload, plain_tables

SECOND, WORKERS, WARM = 20_200, 2, 2

taken: dict[str, list[float]] = defaultdict(list)


def seconds(what: str, do: Callable[[], Any]) -> Any:
    start = time.thread_time()
    found = do()
    taken[what].append(time.thread_time() - start)
    return found


def first_state(workload: Any, n: int) -> Replica:
    plain = plain_tables.texts(workload, 0, n - n // 10)
    nobody = pa.nulls(len(plain), pa.int64())
    rows = pa.concat_tables(
        [plain.append_column("context", nobody), bound(workload, len(plain), n)]
    )
    matcher = Matcher()
    matcher.add_many(rows.select(["id", "expr", "context"]))
    contexts = np.arange(max(1, n // 10 // PER_CONTEXT))
    matcher.set_context_many(pa.table({"context": contexts, "target": contexts * 7 % TOP}))
    return Replica(matcher, np.arange(n), pa.array(np.arange(n)), 0)


def main(n: int, n_batches: int, folder: Path) -> None:
    workload = find_workload(
        "begen", n_subscriptions=n, min_predicates=5, match_probability=max(1e-5, MATCHES / n)
    )
    storage = open_storage(str(folder), "state")
    state = StateFolder(storage)
    state.write_snapshot(0, first_state(workload, n).frozen())
    driver = Replica.load(state, 0, verify=True)
    replicas = [Kept(storage, "") for _ in range(WORKERS)]
    n_matches = 0
    for batch in range(n_batches):
        log = log_part(workload, batch * SECOND, (batch + 1) * SECOND, n // 10)
        is_event = pc.equal(log["kind"], "event")
        before, last = driver.last_offset, pc.max(log["offset"]).as_py()
        decider = Decider(driver, driver.live(), "arrays", "bigint", True)
        rest = log.filter(pc.invert(is_event))
        changes = seconds("driver, decide", lambda d=decider, r=rest, o=last: d.decide(r, o))
        state.write_changes(batch, changes)
        driver.enter(batch, changes, is_added=True)
        events = log.filter(is_event)
        of = events["offset"].to_numpy() // BLOCK % WORKERS
        for number in range(WORKERS):
            worker.replicas[storage.path] = replicas[number]
            job = worker.StreamJob(storage, "", batch, "arrays", before, True, "bigint")
            mine = events.filter(pa.array(of == number)).combine_chunks().to_batches()
            found = seconds("a worker", lambda j=job, m=mine: [*worker.match_events(j, iter(m))])
            n_matches += sum(len(rows["subscription_ids"].flatten()) for rows in found)
        seconds("driver, leave", driver.leave)
    for what, each in taken.items():
        rest_of = each[WARM * (WORKERS if what == "a worker" else 1) :]
        print(f"{np.median(rest_of):8.3f} s  {what}, median; {max(rest_of):.3f} s at most")
    found = seconds("freeze", driver.frozen)
    seconds("snapshot", lambda: state.write_snapshot(n_batches, found))
    seconds("load", lambda: Replica.load(state, n_batches, verify=False))
    print(f"{taken['freeze'][0]:8.3f} s  driver, begin a snapshot")
    print(f"{taken['snapshot'][0]:8.3f} s  driver, write it beside the next batches")
    print(f"{taken['load'][0]:8.3f} s  driver or worker, open it")
    print(f"{n_matches:,} matches of versions")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="matchwood-stream-") as work:
        main(*map(int, sys.argv[1:] or ("100000", "12")), Path(work))
