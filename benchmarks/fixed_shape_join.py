"""Rules of one fixed shape, all equalities: `match`, and an equality join with the rule table.

    python benchmarks/fixed_shape_join.py [RULES EVENTS]

Each rule is `country = ? AND product = ? AND channel = ?`, one rule a combination.  The join gives
pairs; as `match` does it, with a row for each event and its ordered list, it needs the rules beside
all events and a grouping.  Seconds by the clock, and of CPU of all processes; the least of some
rounds that take turns, after one that warms up.  Lists must be equal before a time is shown.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.bench.spark_build import cpu_of_tree
from matchwood.spark import local_session, match

COUNTRIES, PRODUCTS, CHANNELS = 100, 20_000, 5
ROUNDS = 3


def main(n_rules: int, n_events: int) -> None:
    spark = local_session("fixed shape", 2, **{"spark.driver.memory": "3g"})
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables(n_rules, n_events).items():
            pq.write_table(table, Path(folder) / name, row_group_size=len(table) // 4 + 1)
        events, shape = (spark.read.parquet(f"{folder}/{name}") for name in ("events", "shape"))
        rules = shape.selectExpr(
            "id",
            "concat('country = ', country, ' AND product = ', product, ' AND channel = ', channel)"
            " AS expr",
        )
        ways: dict[str, Callable[[], Any]] = {
            "match, index there": lambda: match(events, rules).matches,
            "join, pairs": lambda: events.join(shape, ["country", "product", "channel"]),
            "join, a list for each event": lambda: grouped(events, shape),
        }
        began = time.perf_counter()
        match(events, rules)
        print(f"building the index {time.perf_counter() - began:.1f} s", flush=True)
        lists = [
            as_lists(ways[way]()) for way in ("match, index there", "join, a list for each event")
        ]
        assert lists[0] == lists[1], "answers differ"
        took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(1 + ROUNDS):
            for way, made in ways.items():
                cpu, began = cpu_of_tree(), time.perf_counter()
                made().write.mode("overwrite").parquet(f"{folder}/out")
                took[way].append((time.perf_counter() - began, cpu_of_tree() - cpu))
        for way, each in took.items():
            seconds, cpu = np.min(each[1:], axis=0)
            print(f"{way:<30} {seconds:6.2f} s, {cpu:6.2f} s of CPU", flush=True)
    spark.stop()


def grouped(events: Any, shape: Any) -> Any:
    """The lists of all events, those without a match among them."""
    from pyspark.sql import functions as f

    pairs = events.join(shape, ["country", "product", "channel"], "left")
    ids = f.array_sort(f.collect_list("id")).alias("subscription_ids")
    return pairs.groupBy("event_id").agg(ids)


def as_lists(found: Any) -> dict[int, list[int]]:
    table = found.select("event_id", "subscription_ids").toArrow()
    return dict(
        zip(table["event_id"].to_pylist(), table["subscription_ids"].to_pylist(), strict=True)
    )


def tables(n_rules: int, n_events: int) -> dict[str, pa.Table]:
    """Rules and events; a rule stands for one combination."""
    rng = np.random.default_rng(7)
    n = COUNTRIES * PRODUCTS * CHANNELS
    return {
        "shape": pa.table(
            {"id": np.arange(n_rules), **columns(rng.choice(n, n_rules, replace=False))}
        ),
        "events": pa.table(
            {"event_id": np.arange(n_events), **columns(rng.integers(0, n, n_events))}
        ),
    }


def columns(number: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "country": number % COUNTRIES,
        "product": number // COUNTRIES % PRODUCTS,
        "channel": number // (COUNTRIES * PRODUCTS),
    }


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:]) if len(sys.argv) > 2 else (1_000_000, 1_000_000)))
