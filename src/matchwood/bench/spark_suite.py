"""The suite `spark`: the pipeline on local[2] against what Spark users do today, in one run.

    joins    events x subscriptions: `match`, index build included; a broadcast nested-loop join on
             ranges; a predicate table joined and counted.  The joins run on fewer rows (theirs is
             the product of both), and their time is scaled by the number of pairs; all answers on
             the shared rows must be equal before a time is kept
    build    texts to an index on executors, and the memory that the driver takes (`spark_build`)
    single   the same files through one process and through Spark, both warmed up on a quarter of
             the events; where the time of Python workers goes
    stream   records per second and the slowest micro-batches (`spark_stream`); and how long a
             micro-batch takes that has the records of one second

Times are of this machine in this run: read ratios.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.bench.goals import AnswersDiffer
from matchwood.bench.kept import KeptRun, check_parts, check_preset
from matchwood.bench.suite import Listed
from matchwood.bench.surroundings import circumstances
from matchwood.spark.worker import LAPS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "spark"


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    subscriptions: int
    events: int
    joined: int
    """Subscriptions, and events, of the nested-loop join."""
    counted: int
    """Subscriptions, and events, of the predicate table."""
    texts: int
    """Subscriptions of the index that is built of texts."""
    single_subscriptions: int
    single_events: int
    stream_subscriptions: int
    stream_records: int
    stream_batch: int
    stream_second: int
    """Events and changes of subscriptions in one second."""
    stream_seconds: int
    """Micro-batches of one second each."""


PRESETS = {
    "smoke": Sizes(2_000, 2_000, 1_000, 1_000, 5_000, 5_000, 5_000, 2_000, 6_000, 2_000, 1_010, 2),
    "small": Sizes(
        100_000, 100_000, 5_000, 1_000, 1_000_000, 1_000_000, 1_000_000, 100_000, 800_000,
        100_000, 20_200, 60,
    ),
}  # fmt: skip
LISTED = Listed(NAME, "the Spark pipeline against joins and one process", tuple(PRESETS))
PARTS: tuple[str, ...] = ("joins", "build", "single", "stream")

RANGES = {"n_attributes": 100, "min_predicates": 7, "max_predicates": 7, "event_size": 50}
"""Of `joins`: seven of a hundred attributes, nearly all of them ranges."""

Found = dict[str, Any]


class SparkReport(KeptRun):
    """A finished run."""

    def table(self) -> str:
        lines = [f"suite {NAME}, preset {self.data['preset']}, local[2]"]
        for part, found in self.data["parts"].items():
            lines += ["", _part_table(part, found)]
        return "\n".join([*lines, f"\n{self.path}"])


def _part_table(part: str, found: Found) -> str:
    return "\n".join(
        [part, *(f"  {name:<44} {_shown(value):>14}" for name, value in found.items())]
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def run_spark_suite(
    preset: str,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    only: tuple[str, ...] = (),
    show: Callable[[str], None] | None = None,
) -> SparkReport:
    """Run the parts, or some of them; `show` is called with the table of each part when it ends."""
    check_preset("suite spark", preset, PRESETS)
    check_parts("suite spark", "parts", only, PARTS)
    from matchwood.spark.session import LONG_JOB, active_session, local_session

    sizes, started = PRESETS[preset], datetime.now(UTC)
    folder = Path(tempfile.mkdtemp(prefix="matchwood-bench-"))
    spark = active_session()
    starts_session = spark is None
    options: dict[str, Any] = {**LONG_JOB, "spark.driver.memory": "3g"}
    spark = spark or local_session("matchwood-bench", 2, **options)
    parts: dict[str, Found] = {}
    chosen = [name for name in PARTS if not only or name in only]
    try:
        for done, name in enumerate(chosen):
            if progress is not None:
                progress(done, len(chosen))
            parts[name] = _PARTS[name](spark, sizes, folder / name)
            if show is not None:
                show(_part_table(name, parts[name]))
            shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        if starts_session:
            spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    report = SparkReport(
        {
            "format": 1, "suite": NAME, "preset": preset, "sizes": asdict(sizes), "parts": parts,
            **circumstances(started),
        }
    )  # fmt: skip
    report.write(out)
    return report


# -- joins -------------------------------------------------------------------------------------


def _joins(spark: SparkSession, sizes: Sizes, folder: Path) -> Found:
    from matchwood.spark import match

    events = _stored(spark, folder, "uniform", "events", events=sizes.events, **RANGES)
    wishes = _stored(
        spark, folder, "uniform", "subscriptions", subscriptions=sizes.subscriptions, **RANGES
    )
    seconds: dict[str, float] = {}
    _warm_up(spark, events, wishes, folder)
    start = time.perf_counter()
    match(events, wishes, snapshots=str(folder / "indexes")).matches.write.parquet(
        str(folder / "m")
    )
    seconds["ours"] = time.perf_counter() - start
    matches = spark.read.parquet(str(folder / "m"))
    for name, join, n in (
        ("loop", _nested_loop, sizes.joined),
        ("count", _counted, sizes.counted),
    ):
        some_events, some_wishes = events.where(f"event_id < {n}"), wishes.where(f"id < {n}")
        start = time.perf_counter()
        join(some_events, some_wishes).write.parquet(str(folder / name))
        seconds[name] = time.perf_counter() - start
        theirs = _pairs(spark.read.parquet(str(folder / name)))
        ours = _pairs(
            matches.where(f"event_id < {n}")
            .selectExpr("event_id", "explode(subscription_ids) AS id")
            .where(f"id < {n}")
        )
        if ours != theirs or not ours:
            raise AnswersDiffer(f"suite spark, {name}: answers differ, so there are no times")
    pairs = sizes.subscriptions * sizes.events
    loop = seconds["loop"] * pairs / sizes.joined**2
    count = seconds["count"] * pairs / sizes.counted**2
    return {
        "subscriptions x events": f"{sizes.subscriptions:,} x {sizes.events:,}",
        "match, index build included, s": seconds["ours"],
        f"nested-loop join, {sizes.joined:,} x {sizes.joined:,}, s": seconds["loop"],
        "nested-loop join scaled by pairs, s": loop,
        f"predicate table and count, {sizes.counted:,} x {sizes.counted:,}, s": seconds["count"],
        "predicate table and count scaled by pairs, s": count,
        "times faster than the nested-loop join": loop / seconds["ours"],
        "times faster than the predicate table": count / seconds["ours"],
    }


def _stored(
    spark: SparkSession, folder: Path, workload: str, table: str, **options: Any
) -> DataFrame:
    from matchwood.spark import read_workload

    path = str(folder / table)
    read_workload(spark, workload, table, partitions=4, **options).write.parquet(path)
    return spark.read.parquet(path)


def _warm_up(spark: SparkSession, events: DataFrame, wishes: DataFrame, folder: Path) -> None:
    """Compile and load everything once, on a few rows and another index."""
    from matchwood.spark import match

    match(events.limit(100), wishes.where("id < 2000")).matches.write.parquet(str(folder / "warm"))


def _as_ranges(wishes: DataFrame) -> DataFrame:
    return wishes.selectExpr(
        "id", "attribute", "values[0] AS low", "values[size(values) - 1] AS high"
    )


def _nested_loop(events: DataFrame, wishes: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    boxes = (
        _as_ranges(wishes)
        .groupBy("id")
        .agg(f.collect_list(f.struct("attribute", "low", "high")).alias("ranges"))
    )
    rows = events.select("event_id", f.map_from_arrays("attributes", "values").alias("given"))
    holds = f.expr(
        "forall(ranges, r -> coalesce(given[r.attribute] BETWEEN r.low AND r.high, false))"
    )
    return rows.join(f.broadcast(boxes), holds).select("event_id", "id")


def _counted(events: DataFrame, wishes: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    given = events.select(
        "event_id", f.explode(f.arrays_zip("attributes", "values")).alias("e")
    ).selectExpr("event_id", "e.attributes AS attribute", "e.values AS value")
    ranges = _as_ranges(wishes)
    sizes = ranges.groupBy("id").agg(f.count("*").alias("n"))
    met = given.join(ranges, "attribute").where("value BETWEEN low AND high")
    met = met.groupBy("event_id", "id").agg(f.count("*").alias("met"))
    return met.join(sizes, "id").where("met = n").select("event_id", "id")


def _pairs(frame: DataFrame) -> set[tuple[int, int]]:
    table = frame.toArrow()
    return set(zip(table["event_id"].to_pylist(), table["id"].to_pylist(), strict=True))


# -- build -------------------------------------------------------------------------------------


def _build(spark: SparkSession, sizes: Sizes, folder: Path) -> Found:
    from matchwood.bench.spark_build import run_build

    return run_build(spark, folder, sizes.texts)


# -- one process, and where time goes ----------------------------------------------------------


def _single(spark: SparkSession, sizes: Sizes, folder: Path) -> Found:
    from matchwood.spark import match
    from matchwood.spark.event_files import Piece, read_piece
    from matchwood.spark.worker import Location, MatchJob, match_batches, read_times

    events, index = _selective(spark, folder, sizes.single_subscriptions, sizes.single_events)
    files = sorted((folder / "events").glob("*.parquet"))
    job = MatchJob(Location(str(index)), "arrays", "event_id", "long")

    def alone(some: list[Path], target: Path) -> None:
        writer = None
        pieces = (read_piece(Piece(str(file), 0, 0, sizes.single_events)) for file in some)
        for found in match_batches(job, (batch for piece in pieces for batch in piece)):
            table = pa.Table.from_batches([found]).select(["event_id", "subscription_ids"])
            writer = writer or pq.ParquetWriter(target, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    alone(files[:1], folder / "warm.parquet")
    match(str(files[0]), str(index)).matches.write.parquet(str(folder / "warm"))
    start = time.perf_counter()
    alone(files, folder / "alone.parquet")
    one = time.perf_counter() - start
    start = time.perf_counter()
    profiled = match(str(folder / "events"), str(index), profile=str(folder / "times"))
    profiled.matches.write.parquet(str(folder / "spark"))
    two = time.perf_counter() - start
    start = time.perf_counter()
    match(events, str(index)).matches.write.parquet(str(folder / "frame"))
    frame = time.perf_counter() - start
    expected = pq.read_table(folder / "alone.parquet")
    found = pq.read_table(folder / "spark", partitioning=None)
    by_frame = pq.read_table(folder / "frame", partitioning=None)
    if not _digest(expected) == _digest(found) == _digest(by_frame):
        raise AnswersDiffer("suite spark, single: answers differ, so there are no times")
    n = sizes.single_events
    return {
        "subscriptions x events": f"{sizes.single_subscriptions:,} x {n:,}",
        "matches": int(
            pa.compute.sum(pa.compute.list_value_length(found["subscription_ids"])).as_py()
        ),
        "one process, s": one,
        "Spark, 2 cores, s": two,
        "Spark, 2 cores, from a DataFrame, s": frame,
        "events per second, one process": n / one,
        "events per second, Spark": n / two,
        "times faster on 2 cores": one / two,
        "times faster on 2 cores, from a DataFrame": one / frame,
        **_split(read_times(folder / "times")),
    }


def _digest(table: pa.Table) -> tuple[int, int]:
    """The same for the same rows in any order."""
    table = table.combine_chunks()
    ids = table["subscription_ids"].combine_chunks()
    flat = ids.flatten().to_numpy().astype(np.uint64)
    sizes = pa.compute.list_value_length(ids).to_numpy(zero_copy_only=False)
    event = np.repeat(table["event_id"].to_numpy().astype(np.uint64), sizes)
    with np.errstate(over="ignore"):
        mixed = (event * np.uint64(0x9E3779B97F4A7C15) + flat) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        return len(table), int(mixed.sum())


def _selective(
    spark: SparkSession, folder: Path, n_subscriptions: int, n_events: int
) -> tuple[DataFrame, Path]:
    """BEGen with few matches per event, and the index of its subscriptions."""
    from matchwood.spark.indexes import build_index

    options = {"match_probability": max(1e-5, 20 / n_subscriptions), "min_predicates": 5}
    events = _stored(spark, folder, "begen", "events", events=n_events, **options)
    wishes = _stored(
        spark, folder, "begen", "subscriptions", subscriptions=n_subscriptions, **options
    )
    return events, build_index(wishes, snapshots=str(folder / "indexes")).folder


def _split(times: dict[str, float]) -> Found:
    """Where the time of workers went, as shares."""
    total = sum(times.values())
    laps = {f"workers: {what}, %": 100 * times.get(lap, 0.0) / total for lap, what in LAPS.items()}
    return {"workers, s": total, **laps}


# -- streaming ---------------------------------------------------------------------------------


def _stream(spark: SparkSession, sizes: Sizes, folder: Path) -> Found:
    from matchwood.bench.spark_stream import run_stream

    n, second = sizes.stream_subscriptions, sizes.stream_second
    found = run_stream(spark, folder / "all", n, sizes.stream_records, sizes.stream_batch)
    paced = run_stream(spark, folder / "paced", n, second * sizes.stream_seconds, second)
    return {**found, **{f"a second at a time: {name}": value for name, value in paced.items()}}


_PARTS: dict[str, Callable[[Any, Sizes, Path], Found]] = {
    "joins": _joins,
    "build": _build,
    "single": _single,
    "stream": _stream,
}
