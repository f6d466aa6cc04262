"""match: events and subscriptions as DataFrames, matches as a DataFrame.

subscriptions ──► parse (executors) ──► index, once (driver) ──► snapshot
                                                                   │ mapped by every worker
events ─────────────────────────────► encode, match (executors) ◄──┘
                                         │
                                         └──► event_id, subscription_ids   or   errors
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from matchwood.encode.schema import Schema
from matchwood.engine.answers.choices import check_limit
from matchwood.errors import EventError, MatchwoodError
from matchwood.spark.choices import FILTER, check_filter, plan_choice
from matchwood.spark.column_types import types_of_events
from matchwood.spark.columns import ATTRIBUTES, check_subscriptions
from matchwood.spark.computed_columns import NO_COLUMNS, with_computed
from matchwood.spark.errors import ERROR_FIELDS, ERROR_STRUCT, IS_MATCHED
from matchwood.spark.event_files import EventFiles, open_events
from matchwood.spark.executors import parallelism
from matchwood.spark.fingerprints import quoted
from matchwood.spark.index import locate
from matchwood.spark.indexes import Built, build_index, open_index, used_columns
from matchwood.spark.session import active_session
from matchwood.spark.shapes import check_once, find_shape, plain_names
from matchwood.spark.unknown_names import names_of_events
from matchwood.spark.worker import MatchJob, match_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

_OUT = ("event_id", "subscription_ids", "subscription_id", "error")
"""Columns of results."""
_MONTHS = re.compile(r"\binterval (year|month)\b")
"""In the name of a type whose values Python's Arrow has no arrays for."""


@dataclass(frozen=True)
class Matched:
    """The result of `match`, made when it is asked for.

    matches  event_id, subscription_ids: a row per event, its list in the order of ids, or with a
             limit by priority; or event_id, subscription_id: a row per match
    errors   of, id, error, message, line, column, excerpt: what was left out, and why; and computed
             attributes that failed for an event, whose other matches are there
    rows     event_id, subscription_ids, error: both in one pass, for writing or counting them
    index    where the index is, how many subscriptions it holds, whether it was built now

    `errors` reads and encodes the events again, without matching them; after `persist` it does not.
    """

    matches: DataFrame
    rows: DataFrame
    index: Built
    bad: Callable[[], DataFrame] = field(repr=False)
    """Plans the error rows of events."""
    pairs: bool = False

    @cached_property
    def errors(self) -> DataFrame:
        """What was left out, and why; planned when it is first asked for."""
        return _with_refused(self.bad().select("error.*"), self.index)

    def persist(self) -> Matched:
        """The same result from one pass over the events, kept by Spark; call `unpersist` at the
        end.
        """
        rows = self.rows.persist()
        return replace(
            self, rows=rows, matches=_matches(rows, self.pairs),
            bad=lambda: rows.where("error IS NOT NULL"),
        )  # fmt: skip

    def unpersist(self) -> None:
        """Forget what `persist` kept."""
        self.rows.unpersist()


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
    keep: Sequence[str] = (),
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
                   the time of the call
    keep           columns of events that matches have, too, after event_id
    pairs          a row per match instead of a list per event
    index, config, schema    as for Matcher
    snapshots      a folder that keeps indexes between sessions; within one they are always kept
    ship           send the snapshot to the executors; by default on every master but `local`, where
                   they can read it anyway.  Off: the folder is on a file system that all share
    profile        a folder for the times of every task (see `worker.read_times`)
    """
    source = _source(events, subscriptions)
    limit = check_limit(limit)
    columns = with_id(source, event_id)
    spark = source.sparkSession
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
        names = names_of_events(columns, find_shape(columns, shape, columns.names))
        built = build_index(
            subscriptions, index, config, schema, snapshots, contexts, now, column_types=types,
            names=names,
        )  # fmt: skip
    choice = plan_choice(columns, built.attributes, limit)
    found = find_shape(columns, shape, (event_id, *choice.others))
    check_filter(choice, columns, found, built.tests_filter)
    check_kept(keep, source.schema)
    check_once(source.columns)
    computed = NO_COLUMNS
    if found == "wide":  # no other column has to leave the JVM, or can keep a job from running
        others = (event_id, *choice.others, *keep)
        source = _spread(_select(source, used_columns(built, columns, others)))
        if not isinstance(source, EventFiles) and not isinstance(subscriptions, str):
            source, computed = with_computed(source, built.matcher, others)
    else:
        source = _spread(source)
    job = MatchJob(
        locate(spark, built, ship), found, event_id, built.id_type, False, profile,
        tuple(source.columns), choice, tuple(keep), computed,
    )  # fmt: skip
    rows = _run(source, job)
    bad = partial(_run, source, replace(job, encode_only=True, profile=None, keep=()))
    return Matched(_matches(rows, pairs), rows, built, bad, pairs)


def _matches(rows: DataFrame, pairs: bool) -> DataFrame:
    good = rows.where(IS_MATCHED).drop("error")
    if not pairs:
        return good
    others = [quoted(name) for name in good.columns if name != "subscription_ids"]
    return good.selectExpr(*others, "explode(subscription_ids) AS subscription_id")


def _with_refused(bad: DataFrame, built: Built) -> DataFrame:
    if not built.refused.num_rows:
        return bad
    return bad.sparkSession.createDataFrame(built.refused, ERROR_FIELDS).union(bad)


def _select(events: DataFrame | EventFiles, names: Sequence[str]) -> DataFrame | EventFiles:
    if isinstance(events, EventFiles):
        return events.only(names)
    return events.selectExpr(*[_carried(each) for each in events.schema if each.name in names])


def _carried(field: StructField) -> str:
    """A column in SQL, as it can be sent to Python: of an interval of months, its presence."""
    name = quoted(field.name)
    if _MONTHS.match(field.dataType.simpleString()):
        return f"CASE WHEN {name} IS NOT NULL THEN 0 END AS {name}"
    return name


def _spread(events: DataFrame | EventFiles) -> DataFrame | EventFiles:
    """Events of fewer files than tasks can run at once, over all of them: a file is often one task.

    They travel once more, which costs a few microseconds each, less than matching does.
    """
    if isinstance(events, EventFiles) or events.isStreaming:
        return events
    n_files = len(events.inputFiles())
    n = parallelism(events.sparkSession)
    return events.repartition(n) if 0 < n_files < n else events


def check_kept(keep: Sequence[str], events: StructType) -> None:
    """Refuse columns that cannot be kept."""
    if isinstance(keep, str):
        raise EventError(f"expected a list of columns to keep, found the text {keep!r}")
    columns = events.names
    missing = [name for name in keep if name not in columns]
    if missing:
        raise EventError(
            f"expected columns of the events to keep, found {missing[0]!r}, which is none of "
            f"{', '.join(columns[:20])}"
        )
    for name in keep:
        if _MONTHS.search(kind := events[name].dataType.simpleString()):
            raise EventError(
                f"expected columns to keep that Python's Arrow has arrays for, found {name!r}, "
                f"{kind}: cast it to a number or a string before"
            )
    reserved = [name for name in keep if name.lower() in _OUT]
    if reserved or len({name.lower() for name in keep}) < len(keep):
        raise EventError(
            f"expected columns to keep once, and other names than {', '.join(_OUT)}, found "
            f"{', '.join(keep)}: rename them before"
        )


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
    if not isinstance(subscriptions, str):
        check_subscriptions(subscriptions)
    if not isinstance(events, str):
        return events
    spark = active_session() if isinstance(subscriptions, str) else subscriptions.sparkSession
    if spark is None:
        raise MatchwoodError("expected a Spark session, found none: make one with local_session()")
    return open_events(spark, events)


def with_id(events: DataFrame | EventFiles, event_id: str) -> Any:
    """The schema of events; EventError for what is no DataFrame, or has no such column."""
    if not hasattr(events, "sparkSession"):
        raise EventError(
            "expected events as a DataFrame of Spark, or the path of Parquet files, found "
            f"{type(events).__name__}: make one with spark.createDataFrame"
        )
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
    if not job.keep:
        return rows.mapInArrow(partial(match_batches, job), out)
    kept = [f"kept_{n} {events.schema[name].dataType.simpleString()}"
            for n, name in enumerate(job.keep)]  # fmt: skip
    found = rows.mapInArrow(partial(match_batches, job), ", ".join([out, *kept]))
    ordered = found.select("event_id", *[f"kept_{n}" for n in range(len(kept))],
                           "subscription_ids", "error")  # fmt: skip
    return ordered.toDF("event_id", *job.keep, "subscription_ids", "error")
