"""The demo's work on Spark: generate, match, and ask Spark SQL itself about a sample."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matchwood.cli.demo_job import Clock, Demo, by_author_of, drawn_subscriptions
from matchwood.cli.spark_session import job_progress, spark_session
from matchwood.engine.matcher import Matcher
from matchwood.spark.session import SHORT_JOB
from matchwood.workload import plain_tables
from matchwood.workload.bookshop import offer_events
from matchwood.workload.bookshop_offers import offers
from matchwood.workload.bookshop_rows import BookshopRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_SUBSCRIPTIONS, SAMPLE_EVENTS = 200, 1000
"""Sizes of the sample; every subscription of it is compared on every event of it."""

ROWS_PER_FILE = 50_000
COLUMNS = 50
"""Expressions in one query: Spark compiles them together, and hundreds exhaust it."""


def run(n_subscriptions: int, n_events: int, seed: int, master: str | None) -> Demo:
    demo = Demo(seed)
    folder = Path(tempfile.mkdtemp(prefix="matchwood-demo-"))
    clock = Clock(demo.seconds, compiling_apart=False)
    workload = BookshopRows(n_subscriptions=n_subscriptions, n_events=n_events, seed=seed)
    try:
        with ThreadPoolExecutor(1) as writer:  # Spark starts in a process of its own meanwhile
            written = writer.submit(_write, workload, folder, clock)
            with clock("start"):
                is_here = master is None or master.startswith("local")
                options = SHORT_JOB if is_here else {}
                opened = spark_session(master, folder / "spark.log", **options)
                spark = opened.__enter__()
        try:
            written.result()
            _run(spark, demo, clock, folder, (n_subscriptions, n_events))
        finally:
            opened.__exit__(None, None, None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return demo


def _write(workload: BookshopRows, folder: Path, clock: Clock) -> None:
    """Subscriptions and events as folders of Parquet files, at least four so that tasks share."""
    with clock("generate"):
        for name, make, n in (
            ("subscriptions", plain_tables.texts, workload.n_subscriptions),
            ("events", plain_tables.wide, workload.n_events),
        ):
            (folder / name).mkdir()
            step = min(ROWS_PER_FILE, -(-n // 4))
            for first in range(0, n, step):
                rows = make(workload, first, min(first + step, n))
                pq.write_table(rows, folder / name / f"{first:09}.parquet")


def _run(
    spark: SparkSession, demo: Demo, clock: Clock, folder: Path, sizes: tuple[int, int]
) -> None:
    from pyspark.sql import functions as f

    from matchwood.spark import Index
    from matchwood.spark.fingerprints import column_of

    wishes = spark.read.parquet(str(folder / "subscriptions"))
    books = spark.read.parquet(str(folder / "events"))
    with clock("add"), job_progress(spark, "indexing"):
        index = Index.build(wishes, books, snapshots=str(folder / "indexes"))
    event = f.struct(*[column_of(name) for name in books.columns if name != "event_id"])
    with clock("match"), job_progress(spark, "matching"):
        found = books.withColumn("found", index.match(event)).select("event_id", "found.*")
        found.write.parquet(str(folder / "matches"))
    with clock("check"), job_progress(spark, "checking"):
        matches = spark.read.parquet(str(folder / "matches"))
        demo.check = _check(spark, wishes, matches, demo.seed, sizes)
    index.save(str(folder / "index"))
    _count(demo, pq.read_table(folder / "matches"), Matcher.load(folder / "index"), sizes)


def _check(
    spark: SparkSession, wishes: DataFrame, matches: DataFrame, seed: int, sizes: tuple[int, int]
) -> dict[str, Any]:
    """Compare a sample with Spark SQL: every chosen subscription on every chosen event."""
    random = Random(seed)
    rows = sorted(random.sample(range(sizes[1]), min(SAMPLE_EVENTS, sizes[1])))
    ours = {
        row.event_id: set(row.subscription_ids)
        for row in matches.where(_among("event_id", rows)).collect()
    }
    matched = set().union(*ours.values())
    chosen = drawn_subscriptions(random, matched, sizes[0], SAMPLE_SUBSCRIPTIONS)
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
    table = offers(seed, np.array(rows))
    inner = [name for name in table.column_names if name.startswith("seller.")]
    seller = pa.StructArray.from_arrays(
        [table.column(name).combine_chunks() for name in inner],
        [name.removeprefix("seller.") for name in inner],
    )
    flat = table.drop_columns(inner).append_column("seller", seller)
    return flat.append_column("event_id", pa.array(rows, pa.int64()))


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


def _count(demo: Demo, matches: pa.Table, matcher: Matcher, sizes: tuple[int, int]) -> None:
    demo.note_stats(matcher)
    demo.events = sizes[1]
    lists = matches.column("subscription_ids")
    demo.per_event = pc.list_value_length(lists).to_numpy().astype(np.int64)
    demo.matches = int(demo.per_event.sum())
    often = np.bincount(pc.list_flatten(lists).to_numpy(), minlength=sizes[0])
    demo.note_busiest(often, "", lambda n: str(matcher.expression(n)))
    _explain(demo, matches, matcher)


def _explain(demo: Demo, matches: pa.Table, matcher: Matcher) -> None:
    """One match, and one wish for the same author that the offer does not meet."""
    matched = np.flatnonzero(demo.per_event)
    if not len(matched):
        return
    numbers = matches.column("event_id").to_numpy()
    row = int(matched[np.argmin(numbers[matched])])
    (event,) = offer_events(offers(demo.seed, numbers[[row]]))
    held = matches.column("subscription_ids")[row].as_py()
    demo.hit = matcher.explain(held[0], event)
    same_author = by_author_of(event)
    for n in range(demo.subscriptions):
        if n not in held and same_author in str(matcher.expression(n)):
            demo.miss = matcher.explain(n, event)
            return
