"""The Spark job behind `matchwood match`: files to DataFrames, matches to a folder of files."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchwood.cli.local_search import NO_ATTRIBUTES
from matchwood.cli.screen import complain, refuse
from matchwood.cli.spark_session import job_progress, spark_session
from matchwood.cli.spark_tables import (
    for_spark,
    has_attributes,
    local,
    open_contexts,
    open_subscriptions,
    spark_format,
)
from matchwood.engine.formats.compressed import is_compressed
from matchwood.engine.formats.files import EVENT_ID, file_parts
from matchwood.engine.formats.result_files import COUNT, EXISTS, LISTS, PAIRS
from matchwood.errors import FormatError, StorageError
from matchwood.spark.choices import FILTER
from matchwood.spark.executors import reads_driver_files
from matchwood.spark.folders import address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from matchwood.spark.event_files import EventFiles

Report = dict[str, Any]
OUT_FORMATS = ("parquet", "json", "csv")
COLUMN = {
    PAIRS: "explode(subscription_ids) AS subscription",
    LISTS: "subscription_ids AS subscriptions",
    COUNT: "CAST(size(subscription_ids) AS BIGINT) AS `count`",
    EXISTS: "size(subscription_ids) > 0 AS `exists`",
}
"""What stands beside the event."""


def run(
    subscriptions: str, events: str, out: str, shape: str, master: str | None,
    asked: dict[str, Any], contexts: str | None = None, times: str | None = None,
    where: str | None = None,
) -> Report:  # fmt: skip
    """Match files on Spark, after `check`; returns what the closing lines show.

    asked  options that go to `match` as they are
    where  a filter over the subscriptions' own attributes, for all events
    """
    with spark_session(master) as spark:
        values = None if contexts is None else open_contexts(spark, contexts)
        asked = {**asked, "contexts": values}
        return _run(spark, subscriptions, events, out, shape, asked, times, where)


def check(subscriptions: str, events: str, out: str, shape: str, contexts: str | None) -> None:
    """End the command if files are not there or cannot be written, before Spark is started."""
    kind = spark_format(out)
    is_packed = is_compressed(Path(out))
    if kind not in OUT_FORMATS or is_packed or (kind == "csv" and shape == LISTS):
        refuse(f"expected --out to end in .parquet, .json or .csv (no lists), found {out!r}")
    for source in filter(None, (subscriptions, events, contexts)):
        path = local(source)
        if path is not None and not path.exists():
            refuse(f"expected a file or folder, found nothing at {source!r}")
        if source == out or _is_inside(path, local(out)):
            refuse(f"expected another file to write to, found an input: {source!r}")


def _run(
    spark: SparkSession, subscriptions: str, events: str, out: str, shape: str,
    asked: dict[str, Any], times: str | None, where: str | None,
) -> Report:  # fmt: skip
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from matchwood.spark import match
    from matchwood.spark.errors import IS_MATCHED
    from matchwood.spark.worker import read_times

    run_times = None if times is None else str(Path(times).absolute() / uuid.uuid4().hex)
    start = time.perf_counter()
    table, problems = open_subscriptions(spark, subscriptions)
    filtered = has_attributes(table)
    rows = _events(spark, events, filtered)
    if where is not None:
        rows = _filtered(spark, rows, events, where, filtered)
    with job_progress(spark, "subscriptions"):
        found = match(rows, table, profile=run_times, **asked)
    indexed = time.perf_counter()
    seen = Observation()
    counted = found.rows.observe(
        seen,
        f.count("*").alias("events"),
        f.sum(f.size("subscription_ids").cast("long")).alias("matches"),
        f.count("error").alias("problems"),
        f.count_if(f.expr(f"NOT {IS_MATCHED}")).alias("bad"),
    )
    matches = counted.where(IS_MATCHED).selectExpr("event_id AS event", COLUMN[shape])
    with job_progress(spark, "events"):
        _write(matches, out)
    matched = time.perf_counter()
    counts = seen.get
    n_refused = found.index.refused.num_rows + len(problems)
    if n_refused or counts["problems"]:
        problems += [row.asDict() for row in found.errors.toLocalIterator()]
    errors = _write_problems(out, problems)
    n_events = counts["events"] or 0
    return {
        "subscriptions": {
            "used": found.index.count, "refused": n_refused, "reused": found.index.reused,
            **_rate(found.index.count, indexed - start),
        },
        "events": {
            "used": n_events - counts["bad"], "bad": counts["bad"],
            **_rate(n_events, matched - indexed),
        },
        "matches": counts["matches"] or 0,
        "out": out,
        "problems": len(problems),
        "errors": errors,
        "workers": None if run_times is None else read_times(run_times),
        "compile_seconds": 0.0,
    }  # fmt: skip


def _rate(n: int, seconds: float) -> Report:
    return {"seconds": round(seconds, 3), "per_second": round(n / max(seconds, 1e-9), 1)}


def _events(spark: SparkSession, path: str, has_filters: bool) -> DataFrame | EventFiles:
    from pyspark.sql import functions as f

    from matchwood.spark.text_events import csv_events, is_lines, json_events

    kind = spark_format(path)
    if kind == "parquet":
        files = _parquet(spark, path)
        if EVENT_ID not in files.columns:
            refuse(_without_ids(path))
        return files
    local_path = local(path)
    parts = [] if local_path is None else file_parts(local_path)
    if kind == "csv":
        found = csv_events(spark, parts, EVENT_ID) if parts else _spark_csv(spark, path)
    elif kind == "json" and parts and any(is_compressed(p) or not is_lines(p) for p in parts):
        found = json_events(spark, parts, EVENT_ID)
    elif kind == "json":
        lines = spark.read.text(for_spark(path)).where("trim(value) <> ''")
        ids = f.get_json_object("value", f"$.{EVENT_ID}").alias(EVENT_ID)
        found = lines.select(ids, f.col("value").alias("attributes"))
    else:
        refuse(
            f"expected Parquet, JSON lines or CSV as events on Spark, found {path!r}: add --local"
        )
    if found.where(f.col(EVENT_ID).isNotNull()).isEmpty() and not found.isEmpty():
        refuse(_without_ids(path))
    if has_filters:  # in texts the filter stands among the attributes
        inside = "get_json_object(attributes, '$.filter')"
        if kind == "csv":
            inside = "get(values, CAST(array_position(attributes, 'filter') AS INT) - 1)"
        found = found.withColumn("filter", f.expr(inside))
    return _whole_ids(found)


def _filtered(
    spark: SparkSession, rows: DataFrame | EventFiles, path: str, where: str, has_attributes: bool
) -> DataFrame:
    """Add a filter to all events, by AND to the filter that an event has already."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    from matchwood.engine.stores.own_attributes import types_in

    if not has_attributes:
        refuse(NO_ATTRIBUTES)
    types_in(where, {})  # a bad filter is refused before anything is matched
    if not isinstance(rows, DataFrame):
        rows = spark.read.parquet(for_spark(path))
    every = f.lit(where)
    if FILTER not in rows.columns:
        return rows.withColumn(FILTER, every)
    both = f.concat(f.lit("("), f.col(FILTER), f.lit(f") AND ({where})"))
    return rows.withColumn(FILTER, f.coalesce(both, every))


def _spark_csv(spark: SparkSession, path: str) -> DataFrame:
    """CSV that Spark reads, for files that workers cannot open (else `text_events`)."""
    from pyspark.sql import functions as f

    reader = spark.read.option("header", True).option("escape", '"').option("multiLine", True)
    cells = reader.csv(path)
    if EVENT_ID not in cells.columns:
        refuse(_without_ids(path))
    names = f.array(*[f.lit(name) for name in cells.columns])
    values = f.array(*[f.col(f"`{name}`") for name in cells.columns])
    return cells.select(EVENT_ID, names.alias("attributes"), values.alias("values"))


def _parquet(spark: SparkSession, path: str) -> DataFrame | EventFiles:
    """Files that workers open themselves, on a local master; else what Spark reads."""
    from matchwood.spark.event_files import open_events

    if reads_driver_files(spark):
        try:
            return open_events(spark, path)
        except (FormatError, StorageError):
            pass
    return spark.read.parquet(for_spark(path))


def _without_ids(path: str) -> str:
    return (
        f"expected {EVENT_ID} in the events {path!r}: on Spark rows have no numbers of their own; "
        "add it, or match in this process with --local"
    )


def _whole_ids(events: DataFrame) -> DataFrame:
    """Event ids as whole numbers if all that are there are such; else unchanged, as texts."""
    from pyspark.sql import functions as f

    number = f.expr(f"try_cast({EVENT_ID} AS BIGINT)")
    is_other = number.isNull() | (number.cast("string") != f.col(EVENT_ID))
    if not events.where(f.col(EVENT_ID).isNotNull() & is_other).isEmpty():
        return events
    return events.withColumn(EVENT_ID, number)


def _write(matches: DataFrame, out: str) -> None:
    """Write to a temporary folder and rename it; directly where the target is not local."""
    writer = matches.write.mode("overwrite").format(spark_format(out))
    if spark_format(out) == "csv":
        writer = writer.option("header", True)
    target = local(out)
    if target is None:
        writer.save(out)
        return
    aside = target.with_name(f".{target.name}.writing")
    try:
        writer.save(address(aside))
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _is_inside(source: Path | None, out: Path | None) -> bool:
    """Whether writing would remove an input."""
    return source is not None and out is not None and out in (source, *source.parents)


def _write_problems(out: str, problems: list[Any]) -> str | None:
    """Write OUT.errors.jsonl and return its name; without problems remove an earlier one."""
    target = local(f"{out}.errors.jsonl")
    if target is None:
        if problems:
            complain(f"{len(problems):,} problems are not written down: {out!r} is no local file")
        return None
    target.unlink(missing_ok=True)
    if not problems:
        return None
    with target.open("w", encoding="utf-8") as file:
        for each in problems:
            fields = {name: value for name, value in each.items() if value is not None}
            file.write(json.dumps(fields, ensure_ascii=False, default=str) + "\n")
    return f"{out}.errors.jsonl"
