"""Which executors Spark gives shards to, call after call; sent as `match_sharded` sends events.

    python benchmarks/shard_affinity.py --shards 16 --calls 10

Prints how many shards each executor was given at least once, and how often a shard went to another
executor than in the call before.  Nothing is matched: what counts is where tasks run.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa

from matchwood.spark import local_session


def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The shards of a task and the folder of its executor, which every one has of its own."""
    shards = sorted({n for batch in batches for n in batch.column("shard").to_pylist()})
    where = [os.path.realpath(".")] * len(shards)
    yield pa.RecordBatch.from_pydict(
        {"shard": pa.array(shards, pa.int32()), "executor": pa.array(where, pa.string())}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--calls", type=int, default=10)
    asked = parser.parse_args()
    spark = local_session("affinity", 2, master=asked.master)
    try:
        from pyspark.sql import functions as f

        given: dict[str, set[int]] = defaultdict(set)
        last: dict[int, str] = {}
        moved = placed = 0
        for call in range(asked.calls):
            number = (f.rand(call) * asked.shards).cast("int")
            events = spark.range(0, 20_000, 1, 4).select(number.alias("shard"))
            tasks = events.repartitionById(asked.shards, "shard").mapInArrow(
                seen, "shard int, executor string"
            )
            for row in tasks.collect():
                given[row.executor].add(row.shard)
                placed += row.shard in last
                moved += last.get(row.shard, row.executor) != row.executor
                last[row.shard] = row.executor
        print("shards given to each executor:", sorted(len(each) for each in given.values()))
        print(f"moved since the call before: {moved} of {placed}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
