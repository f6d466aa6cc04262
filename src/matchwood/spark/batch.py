"""match: events and subscriptions as DataFrames, matches as a DataFrame.

subscriptions ──► parse (executors) ──► index, once (driver) ──► snapshot
                                                                   │ mapped by every worker
events ─────────────────────────────► encode, match (executors) ◄──┘
                                         │
                                         └──► event_id, subscription_ids   or   errors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from matchwood.encode.schema import Schema
from matchwood.engine.choices import check_limit
from matchwood.errors import EventError, MatchwoodError
from matchwood.spark.choices import FILTER, check_filter, plan_choice
from matchwood.spark.column_types import types_of_events
from matchwood.spark.columns import ATTRIBUTES
from matchwood.spark.errors import ERROR_FIELDS, ERROR_STRUCT
from matchwood.spark.event_files import EventFiles, open_events
from matchwood.spark.executors import reads_driver_files
from matchwood.spark.executors import ship as ship_to
from matchwood.spark.indexes import Index, build_index, open_index
from matchwood.spark.session import active_session
from matchwood.spark.shapes import find_shape, plain_names
from matchwood.spark.worker import Location, MatchJob, match_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Matched:
    """The result of `match`, made when it is asked for.

    matches  event_id, subscription_ids: a row per event, its list in the order of ids, or with a
             limit by priority; or event_id, subscription_id: a row per match
    errors   of, id, error, message, line, column, excerpt: what was left out, and why
    rows     event_id, subscription_ids, error: both in one pass, for those who write and count
    index    where the index is, how many subscriptions it holds, whether it was built now
    """

    matches: DataFrame
    errors: DataFrame
    rows: DataFrame
    index: Index


def match(
    events: DataFrame | EventFiles | str,
    subscriptions: DataFrame | str,
    *,
    event_id: str = "event_id",
    shape: str = "auto",
    pairs: bool = False,
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    contexts: Any = None,
    limit: int | None = None,
    now: datetime | None = None,
    snapshots: str | None = None,
    ship: bool | None = None,
    profile: str | None = None,
) -> Matched:
    """Which subscriptions hold for each event.

    events         a row per event with the column `event_id`; see `shapes` for the rest.  Or the
                   path of a Parquet file or a folder of them, which workers read themselves: faster
                   (`event_files`), where all workers can open the path.  Where subscriptions have
                   attributes, the column `filter` is an expression over them
    subscriptions  columns id and expr; or a table of predicates: id, attribute, operator and value
                   or values; both perhaps with context, priority, expires and attributes (see
                   `columns`); or the path of a snapshot that Matcher.save wrote
    contexts       the values of contexts: column context and one per value, as a DataFrame or an
                   Arrow table; each context once, null is absent
    limit          at most so many subscriptions an event: those of the highest priority, highest
                   first, ties in the order of ids
    now            a moment, with its time zone: what has expired then does not match; by default
                   the moment of the call
    pairs          a row per match instead of a list per event
    index, config, schema    as for Matcher
    snapshots      a folder that keeps indexes between sessions; within one they are always kept
    ship           send the snapshot to the executors; by default on every master but `local`, where
                   they can read it anyway.  Off: the folder is on a file system that all share
    profile        a folder for the times of every task (see `worker.read_times`)
    """
    source = _source(events, subscriptions)
    spark = source.sparkSession
    check_limit(limit)
    columns = with_id(source, event_id)
    if isinstance(subscriptions, str):
        if contexts is not None:
            raise EventError(
                "expected contexts beside a table of subscriptions, found a snapshot, which has "
                "values of its own: set them before it is saved"
            )
        if now is not None:
            raise EventError(
                "expected now beside a table of subscriptions, found a snapshot, which does not "
                "know when they expire: leave now out, or give the table"
            )
        built = open_index(subscriptions)
    else:
        types = column_types(columns, shape, event_id, subscriptions)
        built = build_index(
            subscriptions, index, config, schema, snapshots, contexts, now, column_types=types
        )
    choice = plan_choice(columns, built.attributes, limit)
    found = find_shape(columns, shape, (event_id, *choice.others))
    check_filter(choice, columns, found, built.tests_filter)
    job = MatchJob(
        _locate(spark, built, ship), found, event_id, built.id_type, False, profile,
        tuple(source.columns), choice,
    )  # fmt: skip
    rows = _run(source, job)
    matches = rows.where("error IS NULL").select("event_id", "subscription_ids")
    if pairs:
        matches = matches.selectExpr("event_id", "explode(subscription_ids) AS subscription_id")
    bad = _run(source, replace(job, encode_only=True, profile=None)).select("error.*")
    refused = spark.createDataFrame(built.refused, ERROR_FIELDS) if built.refused.num_rows else None
    errors = bad if refused is None else refused.union(bad)
    return Matched(matches, errors, rows, built)


def column_types(
    events: StructType, shape: str, event_id: str, subscriptions: DataFrame
) -> dict[str, str]:
    """Types of attributes by the columns of events.

    The column `filter` is no attribute where subscriptions have attributes (`choices`).
    """
    others = (FILTER,) if ATTRIBUTES in subscriptions.columns else ()
    return types_of_events(events, find_shape(events, shape, (event_id, *others)), others)


def _source(
    events: DataFrame | EventFiles | str, subscriptions: DataFrame | str
) -> DataFrame | EventFiles:
    """What events come from, and with it the session."""
    if not isinstance(events, str):
        return events
    spark = active_session() if isinstance(subscriptions, str) else subscriptions.sparkSession
    if spark is None:
        raise MatchwoodError("expected a Spark session, found none: make one with local_session()")
    return open_events(spark, events)


def with_id(events: DataFrame | EventFiles, event_id: str) -> Any:
    if event_id not in events.columns:
        raise EventError(
            f"expected the column {event_id!r}, which names each event, found "
            f"{', '.join(events.columns[:20])}: name another column with event_id=, or add one "
            "with monotonically_increasing_id()"
        )
    return events.schema


def _run(events: DataFrame | EventFiles, job: MatchJob) -> DataFrame:
    id_type = events.schema[job.event_id].dataType.simpleString()
    out = f"event_id {id_type}, subscription_ids array<{job.id_type}>, error {ERROR_STRUCT}"
    rows = events if isinstance(events, EventFiles) else plain_names(events)
    return rows.mapInArrow(partial(match_batches, job), out)


def _locate(spark: SparkSession, index: Index, wanted: bool | None) -> Location:
    is_shipped = not reads_driver_files(spark) if wanted is None else wanted
    return Location(str(index.folder), ship_to(spark, index.folder) if is_shipped else None)
