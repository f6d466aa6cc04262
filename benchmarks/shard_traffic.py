"""Shards without a cluster: where subscriptions live, where events go, and what travels.

    python benchmarks/shard_traffic.py --workload begen --subscriptions 200000 --shards 100

Assigns subscriptions to shards and events to the shards that they reach, with the functions that
`match_sharded` runs in tasks, and counts: rows a subscription, the largest shard, visits of an
event, bytes of an event on its way (compressed Arrow, as a shuffle sends them), and how many shards
one changed subscription touches.  Builds some shards to measure bytes on disk, the time to open one
and the time of a visit.  One matcher of all subscriptions tells the matches of the events: one
whose subscription lives in no shard that its event goes to is an error.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import matchwood as mw
from matchwood.encode.schema import Schema
from matchwood.spark.shards.home_keys import ANY, event_keys
from matchwood.spark.shards.plan import (
    BUCKETS,
    HOME,
    SAMPLE,
    SOURCE,
    joined,
    look_at,
    make_plan,
    weights_of,
    with_homes,
)
from matchwood.workload import find_workload, plain_tables
from matchwood.workload.bookshop import Bookshop

BUILT = 4
"""Shards that are built, to measure them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workload", choices=("begen", "bookshop"), default="begen")
    parser.add_argument("--subscriptions", type=int, default=200_000)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--shards", type=int, default=100)
    given = parser.parse_args()
    table, events, types = tables(given)
    sample = table.slice(0, min(table.num_rows, SAMPLE * (7 if given.workload == "begen" else 1)))
    sampled = look_at(sample, "auto", None, Schema(types))
    began = time.process_time()
    rows = with_homes(table, sampled).combine_chunks()
    told("homes, us a subscription", 1e6 * (time.process_time() - began) / given.subscriptions)
    homes = rows.column(HOME).to_numpy().view(np.uint64)
    buckets = (homes % np.uint64(BUCKETS)).astype(np.int64)
    weights = np.bincount(buckets, weights_of(rows), BUCKETS).astype(np.int64)
    plan = make_plan(weights, 0, given.shards)
    shards = plan.shards_of(homes, rows.column("id"))
    ids = rows.column("id").to_numpy()
    told("rows a subscription", placed(ids, shards) / given.subscriptions)
    load = np.bincount(shards, weights_of(rows), given.shards)
    told("largest shard, in mean shards", float(load.max() / load.mean()))
    visits = visits_of(events, sampled.all_types, homes, shards, given.shards)
    told("visits of an event", visits.sum() / len(visits))
    told(f"of {given.shards} shards, most", int(visits.sum(axis=1).max()))
    told("bytes of an event on its way", sent(events) / len(events))
    told("bytes of all copies of an event", sent(events) / len(events) * visits.sum() / len(visits))
    told("shards that a changed subscription touches", placed(ids, shards) / len(np.unique(ids)))
    check(table, ids, shards, visits, events, sampled.types)
    measure(rows, shards, visits, events, sampled.types)


def tables(given: argparse.Namespace) -> tuple[pa.Table, pa.Table, dict[str, str]]:
    """Subscriptions, wide events and declared types."""
    if given.workload == "begen":
        workload = find_workload("begen", match_probability=1e-5, min_predicates=6)
        return (
            plain_tables.predicates(workload, 0, given.subscriptions),
            plain_tables.wide(workload, 0, given.events).drop_columns(["event_id"]),
            dict(workload.schema()),
        )
    shop = Bookshop(3)
    texts = [shop.subscription() for _ in range(given.subscriptions)]
    events = pa.array([shop.event() for _ in range(given.events)])
    return (
        pa.table({"id": range(len(texts)), "expr": texts}),
        pa.Table.from_struct_array(events),
        {},
    )


def placed(ids: np.ndarray, shards: np.ndarray) -> int:
    """Pairs of subscription and shard."""
    return len(np.unique(ids.astype(np.int64) * (int(shards.max()) + 1) + shards))


def visits_of(
    events: pa.Table, types: dict[str, str], homes: np.ndarray, shards: np.ndarray, n_shards: int
) -> np.ndarray:
    """Which events (rows) go to which shards (columns)."""
    pairs = np.unique(np.stack([homes.view(np.int64), shards.astype(np.int64)]), axis=1)
    keys = pairs[0].view(np.uint64)
    order = np.argsort(keys)
    keys, of_key = keys[order], pairs[1][order]
    found = np.zeros((len(events), n_shards), bool)
    found[:, of_key[keys == ANY]] = True
    used = {*events.column_names, *types}
    for rows, wanted in event_keys(events, types, used):
        first, last = (np.searchsorted(keys, wanted, side=side) for side in ("left", "right"))
        sizes = last - first
        at = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        found[np.repeat(rows, sizes), of_key[at]] = True
    return found


def sent(events: pa.Table) -> int:
    """Bytes of events as compressed Arrow."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, events.schema, options=options) as writer:
        writer.write_table(events.combine_chunks())
    return int(sink.getvalue().size)


def check(
    table: pa.Table,
    ids: np.ndarray,
    shards: np.ndarray,
    visits: np.ndarray,
    events: pa.Table,
    types: dict[str, str],
) -> None:
    """Look for every match in the shards that its event goes to."""
    matcher = mw.Matcher(schema=types)
    matcher.add_many(table)
    of_id: dict[int, set[int]] = {}
    for id_, shard in zip(ids.tolist(), shards.tolist(), strict=True):
        of_id.setdefault(id_, set()).add(shard)
    n_matches = n_missed = 0
    for event, found in enumerate(matcher.match_many(events)):
        n_matches += len(found)
        n_missed += sum(not visits[event, list(of_id[int(id_)])].any() for id_ in found)
    told("matches of an event", n_matches / len(events))
    told("matches missed", n_missed)
    if n_missed or not n_matches:
        raise SystemExit("expected every match in a shard that its event goes to, and some matches")


def measure(
    rows: pa.Table, shards: np.ndarray, visits: np.ndarray, events: pa.Table, types: dict[str, str]
) -> None:
    """Build some shards: bytes on disk, the time to open one, and the time of a visit."""
    n_bytes = n_held = n_visits = 0
    seconds = opening = 0.0
    for shard in range(BUILT):
        part = rows.filter(pa.array(shards == shard)).drop_columns([HOME])
        texts = "attribute" not in part.column_names
        part = part.sort_by([("id", "ascending"), ("expr", "ascending")]) if texts else part
        part = (joined(part) if texts else part).drop_columns([SOURCE])
        matcher = mw.Matcher(schema=types)
        matcher.add_many(part)
        with tempfile.TemporaryDirectory() as folder:
            matcher.save(Path(folder, "snapshot"))
            files: Any = Path(folder).rglob("*.npy")
            n_bytes += sum(file.stat().st_size for file in files)
            began = time.process_time()
            mw.Matcher.load(Path(folder, "snapshot"), mmap=True, verify=False)
            opening += time.process_time() - began
        n_held += len(matcher)
        reached = events.filter(pa.array(visits[:, shard]))
        n_visits += len(reached)
        matcher.match_many(reached)
        began = time.process_time()
        matcher.match_many(reached)
        seconds += time.process_time() - began
    told("bytes on disk of a row", n_bytes / n_held)
    told("ms to open a shard", 1e3 * opening / BUILT)
    told("us a visit, encoding included", 1e6 * seconds / max(n_visits, 1))


def told(what: str, value: float) -> None:
    print(f"{what:<48} {value:>14,.2f}", flush=True)


if __name__ == "__main__":
    main()
