"""A subscription set that no worker may hold: generated, sharded under a cap, matched, checked.

    python benchmarks/shards.py --subscriptions 20_000_000 --max-bytes 1073741824

Prints what each step took, whether the cap was kept, and the most that all processes held together.
Answers are compared with one Matcher of the first subscriptions (--checked), for every event.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import matchwood as mw
from matchwood.spark import local_session, match_sharded, read_workload
from matchwood.spark.gather import gather
from matchwood.spark.shapes import read_events
from matchwood.spark.worker import read_peak, read_times

BEGEN = {"match_probability": 1e-5, "min_predicates": 6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=200_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--max-bytes", type=int, default=1 << 28)
    parser.add_argument("--checked", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="kept, and used again, if given")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="matchwood-shards-"))
    spark = local_session("shards", 2)
    try:
        with watched() as most:
            run(spark, folder, given)
        told("all processes together, GB at most", most() / 1e9)
    finally:
        spark.stop()
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def run(spark: Any, folder: Path, given: argparse.Namespace) -> None:
    counts = {"subscriptions": given.subscriptions, "events": given.events}
    paths = {table: folder / f"{table}-{n}" for table, n in counts.items()}
    for table, path in paths.items():
        if not path.exists():
            with timed(f"{counts[table]:,} {table} to Parquet, s"):
                rows = read_workload(spark, "begen", table, **counts, **BEGEN)
                rows.write.mode("overwrite").parquet(f"{path}.writing")
                Path(f"{path}.writing").rename(path)
    wishes = spark.read.parquet(str(paths["subscriptions"]))
    events = spark.read.parquet(str(paths["events"]))
    profile = folder / "times"
    shutil.rmtree(profile, ignore_errors=True)
    with timed("shards, s"):
        found = match_sharded(
            events, wishes, str(folder / "shards"), max_bytes=given.max_bytes,
            name=f"begen-{given.subscriptions}-{given.max_bytes}", profile=str(profile),
        )  # fmt: skip
    counted = [shard.count for shard in found.shards]
    told("built now", not found.reused)
    told("shards", len(counted))
    told("subscriptions in them", sum(counted))
    told("subscriptions in the largest", max(counted))
    told("bytes on disk per subscription", sum(s.bytes for s in found.shards) / sum(counted))
    told("max_bytes, MB", given.max_bytes / 1e6)
    told("the most that building a shard took, MB", max(s.peak for s in found.shards) / 1e6)
    told("visits per event", found.routed.count() / given.events)
    out = folder / "matches"
    with timed(f"matching {given.events:,} events, s"):
        found.matches.write.mode("overwrite").parquet(str(out))
    times = read_times(profile)
    told("share of match in the workers that match, %", 100 * times["match"] / sum(times.values()))
    told("the most that a worker had that matched, MB", read_peak(profile) / 1e6)
    with timed(f"check with a Matcher of {given.checked:,}, s"):
        n = check(spark, wishes.where(f"id < {given.checked}"), paths["events"], out, given.checked)
    told("matches compared, all equal", n)


def check(spark: Any, wishes: Any, events: Path, out: Path, checked: int) -> int:
    import pyarrow.parquet as pq

    matcher = mw.Matcher()
    matcher.add_many(gather(wishes))
    rows = pq.read_table(events).combine_chunks().to_batches()[0]
    alone = matcher.match_many(read_events(rows, "arrays"))
    ids = np.asarray(alone.ids, np.int64)
    event = np.repeat(rows.column("event_id").to_numpy(), np.diff(alone.offsets))
    expected = set(zip(event.tolist(), ids.tolist(), strict=True))
    table = (
        spark.read.parquet(str(out))
        .selectExpr("event_id", "explode(subscription_ids) AS id")
        .where(f"id < {checked}")
        .toArrow()
    )
    found = list(zip(table["event_id"].to_pylist(), table["id"].to_pylist(), strict=True))
    if len(set(found)) != len(found) or set(found) != expected or not expected:
        raise SystemExit(f"answers differ: expected {len(expected):,} pairs, found {len(found):,}")
    return len(found)


def told(what: str, value: float | int | bool) -> None:
    shown = str(value) if isinstance(value, bool) else f"{value:,}"
    shown = f"{value:,.1f}" if isinstance(value, float) else shown
    print(f"{what:<56} {shown:>16}", flush=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    told(what, time.perf_counter() - start)


@contextmanager
def watched() -> Iterator[Callable[[], int]]:
    """The most memory that this process and all below it held, looked at twice a second."""
    most, stop = 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not stop.wait(0.5):
            most = max(most, _held())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: most
    finally:
        stop.set()
        thread.join()


def _held() -> int:
    """Resident bytes of the process tree; pages that several map are counted for each."""
    pages: dict[int, tuple[int, int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        pages[int(each.parent.name)] = (int(fields[1]), int(fields[21]))
    mine = {os.getpid()}
    grew = True
    while grew:
        below = {pid for pid, (parent, _) in pages.items() if parent in mine}
        grew = not below <= mine
        mine |= below
    return sum(pages[pid][1] for pid in mine if pid in pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
