"""The demo's work on Spark: generate, match, and ask Spark SQL itself about a sample."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.cli.demo_job import Demo
from matchwood.cli.spark_session import job_progress, spark_session
from matchwood.engine.matcher import Matcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_SUBSCRIPTIONS, SAMPLE_EVENTS = 200, 1000
"""What Spark SQL is asked about: every one of these on every one of those."""

COLUMNS = 50
"""Expressions in one query: Spark compiles them together, and hundreds exhaust it."""


def run(n_subscriptions: int, n_events: int, seed: int, master: str | None) -> Demo:
    demo = Demo(seed)
    folder = Path(tempfile.mkdtemp(prefix="matchwood-demo-"))
    clock = _Clock(demo.seconds)
    try:
        with clock("start"):
            opened = spark_session(master, folder / "spark.log")
            spark = opened.__enter__()
        try:
            _run(spark, demo, clock, folder, (n_subscriptions, n_events))
        finally:
            opened.__exit__(None, None, None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return demo


def _run(
    spark: SparkSession, demo: Demo, clock: _Clock, folder: Path, sizes: tuple[int, int]
) -> None:
    from matchwood.spark import match, read_workload

    options = {"subscriptions": sizes[0], "events": sizes[1], "seed": demo.seed}
    with clock("generate"):
        for table in ("subscriptions", "events"):
            rows = read_workload(spark, "bookshop", table, partitions=4, **options)
            with job_progress(spark, f"writing {table}"):
                rows.write.parquet(str(folder / table))
    wishes = spark.read.parquet(str(folder / "subscriptions"))
    offers = spark.read.parquet(str(folder / "events"))
    with clock("add"), job_progress(spark, "indexing"):
        found = match(offers, wishes, snapshots=str(folder / "indexes"))
    with clock("match"), job_progress(spark, "matching"):
        found.matches.write.parquet(str(folder / "matches"))
    matches = spark.read.parquet(str(folder / "matches"))
    with clock("check"), job_progress(spark, "checking"):
        demo.check = _check(spark, wishes, matches, demo.seed, sizes)
    _count(demo, matches, Matcher.load(found.index.folder), sizes)


class _Clock:
    """Seconds by name; compiling happens in the first steps and is part of them."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds[name] = time.perf_counter() - start


def _check(
    spark: SparkSession, wishes: DataFrame, matches: DataFrame, seed: int, sizes: tuple[int, int]
) -> dict[str, Any]:
    """Compare a sample with Spark SQL; half of the subscriptions matched one of the events."""
    random = Random(seed)
    rows = sorted(random.sample(range(sizes[1]), min(SAMPLE_EVENTS, sizes[1])))
    ours = {
        row.event_id: set(row.subscription_ids)
        for row in matches.where(_among("event_id", rows)).collect()
    }
    found = sorted(set().union(*ours.values()))
    chosen = set(random.sample(found, min(SAMPLE_SUBSCRIPTIONS // 2, len(found))))
    others = [n for n in range(sizes[0]) if n not in chosen]
    chosen |= set(random.sample(others, min(SAMPLE_SUBSCRIPTIONS - len(chosen), len(others))))
    texts = {row.id: row.expr for row in wishes.where(_among("id", sorted(chosen))).collect()}
    theirs = in_spark_sql(spark, texts, _as_structs(rows, seed))
    differences = sum(len((ours[row] & chosen) ^ theirs[row]) for row in rows)
    return {
        "against": "Spark SQL",
        "pairs": len(rows) * len(chosen),
        "matches": sum(map(len, theirs.values())),
        "differences": differences,
    }


def _among(name: str, values: list[int]) -> str:
    return f"{name} IN ({', '.join(map(str, values))})"


def _as_structs(rows: list[int], seed: int) -> pa.Table:
    """Events as columns of their own types, nested where they are, as an engine keeps them."""
    from matchwood.workload.bookshop import Bookshop

    shop = Bookshop(0)
    events = [shop.at(f"{seed}/offer/{row}").event() for row in rows]
    table = pa.Table.from_struct_array(pa.array(events))
    for name, kind in (("signed", pa.bool_()), ("damaged", pa.bool_()), ("rating", pa.float64()),
                       ("discount", pa.int64())):  # fmt: skip
        if name not in table.column_names:  # a small sample may have none
            table = table.append_column(name, pa.nulls(len(rows), kind))
    return table.append_column("event_id", pa.array(rows, pa.int64()))


def in_spark_sql(
    spark: SparkSession, texts: dict[int, str], events: pa.Table
) -> dict[int, set[int]]:
    """For every event, the texts that Spark SQL finds true."""
    frame = spark.createDataFrame(events).cache()
    found: dict[int, set[int]] = {row: set() for row in events.column("event_id").to_pylist()}
    numbers = list(texts)
    try:
        for at in range(0, len(numbers), COLUMNS):
            part = numbers[at : at + COLUMNS]
            asked = [f"({texts[n]}) AS s{n}" for n in part]
            answers = frame.selectExpr("event_id", *asked).toArrow()
            rows = answers.column("event_id").to_pylist()
            for n in part:
                holds = answers.column(f"s{n}").fill_null(False).to_numpy()
                for row in np.flatnonzero(holds).tolist():
                    found[rows[row]].add(n)
    finally:
        frame.unpersist()
    return found


def _count(demo: Demo, matches: DataFrame, matcher: Matcher, sizes: tuple[int, int]) -> None:
    stats = matcher.stats()
    demo.subscriptions, demo.events = len(matcher), sizes[1]
    demo.conjunctions, demo.predicates = stats["conjunctions"], stats["predicates"]
    demo.bytes_per_subscription = stats["bytes_per_subscription"]
    counts = matches.selectExpr("event_id", "size(subscription_ids) AS n").toArrow()
    demo.per_event = counts.column("n").to_numpy().astype(np.int64)
    demo.matches = int(demo.per_event.sum())
    often = matches.selectExpr("explode(subscription_ids) AS id").groupBy("id").count()
    for row in often.orderBy("count", "id", ascending=[False, True]).limit(3).collect():
        demo.busiest.append((str(row["id"]), row["count"], str(matcher.expression(row["id"]))))
    _explain(demo, matches, matcher)


def _explain(demo: Demo, matches: DataFrame, matcher: Matcher) -> None:
    """One match, and one wish for the same author that the offer does not meet."""
    from matchwood.workload.bookshop import Bookshop

    first = matches.where("size(subscription_ids) > 0").orderBy("event_id").first()
    if first is None:
        return
    event = Bookshop(0).at(f"{demo.seed}/offer/{first.event_id}").event()
    held = set(first.subscription_ids)
    demo.hit = matcher.explain(first.subscription_ids[0], event)
    author = event["author"].replace("'", "''")
    for n in range(demo.subscriptions):
        if n not in held and f"author = '{author}'" in str(matcher.expression(n)):
            demo.miss = matcher.explain(n, event)
            return
