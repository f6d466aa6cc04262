"""Files of subscriptions and contexts as DataFrames.

Parquet is read by Spark as it is.  In JSON and CSV texts stand for moments and for JSON: `expires`
is a date or a timestamp (UTC unless it has a zone), `attributes` an object or its text.  A row that
cannot be read so is described, and stops nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.cli.explain import is_snapshot
from matchwood.cli.problems import Problem, problem, unreadable
from matchwood.cli.screen import refuse
from matchwood.engine.compressed import bare_name
from matchwood.engine.files import FORMATS, SubscriptionRows, read_subscriptions
from matchwood.errors import StorageError, SubscriptionError
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_timestamp
from matchwood.spark.folders import address, local_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def local(path: str) -> Path | None:
    """A path of this machine; None for other addresses."""
    try:
        return local_folder(path, "a file").resolve()
    except StorageError:
        return None


def for_spark(path: str) -> str:
    """A path as Spark's readers take it; one without a scheme is of this machine."""
    place = local(path)
    return path if place is None else address(place)


def spark_format(path: str) -> str:
    """By the ending of the name, or of the files in a folder."""
    suffix = bare_name(Path(path)).suffix.lower()
    place = local(path)
    if not suffix and place is not None and place.is_dir():
        names = [each for each in place.iterdir() if each.name[0] not in "._"]
        endings = {bare_name(each).suffix.lower() for each in names}
        suffix = endings.pop() if len(endings) == 1 else ""
    if suffix not in FORMATS:
        refuse(f"expected a name that ends in one of {' '.join(FORMATS)}, found {path!r}")
    return FORMATS[suffix]


def open_subscriptions(spark: SparkSession, path: str) -> tuple[Any, list[Problem]]:
    """A DataFrame or a snapshot's path, and rows that were no subscriptions."""
    place = local(path)
    if place is not None and is_snapshot(place):
        return str(place), []
    if spark_format(path) == "parquet":
        return spark.read.parquet(for_spark(path)), []
    if place is None:
        refuse(f"expected Parquet at an address like {path!r}: copy the file here")
    rows = read_subscriptions(place)
    problems = [unreadable("subscription", each, each.row) for each in rows.unreadable]
    table = rows.rows
    if not isinstance(table, pa.Table):
        table = _as_table(rows, problems)
    return spark.createDataFrame(table.combine_chunks()), problems


def has_attributes(subscriptions: Any) -> bool:
    """Whether subscriptions, a DataFrame or a snapshot's path, have attributes of their own."""
    if not isinstance(subscriptions, str):
        return "attributes" in subscriptions.columns
    from matchwood.engine.matcher import Matcher

    return Matcher.load(subscriptions, verify=False).own_types() is not None


def open_contexts(spark: SparkSession, path: str) -> DataFrame:
    kind = spark_format(path)
    if kind not in ("parquet", "json"):
        refuse(f"expected contexts as Parquet or JSON lines, found {path!r}")
    place = for_spark(path)
    return spark.read.parquet(place) if kind == "parquet" else spark.read.json(place)


def _as_table(rows: SubscriptionRows, problems: list[Problem]) -> pa.Table:
    """Pairs and what is beside them as columns; rows that cannot be read join the problems."""
    optional, kept, more = rows.optional(), [], []
    beside: list[dict[str, Any]] = rows.more or [{} for _ in rows.rows]
    for row, ((id_, text), values) in enumerate(zip(rows.rows, beside, strict=True)):
        try:
            more.append({name: _READ[name](value) for name, value in values.items()})
            kept.append((id_, text))
        except (SubscriptionError, LiteralError) as error:
            line = rows.lines[row] if rows.lines is not None else None
            problems.append(problem("subscription", row, line, id_, SubscriptionError(str(error))))
    columns = {"id": _ids([id_ for id_, _ in kept]),
               "expr": pa.array([text for _, text in kept], pa.string())}  # fmt: skip
    for name in optional:
        cells = [each.get(name) for each in more]
        columns[name] = _ids(cells) if name == "context" else pa.array(cells, _KINDS[name])
    return pa.table(columns)


def _ids(ids: list[Any]) -> pa.Array:
    """Whole numbers when all are, else texts."""
    if all(type(id_) is int for id_ in ids if id_ is not None):
        return pa.array(ids, pa.int64())
    return pa.array([None if id_ is None else str(id_) for id_ in ids], pa.string())


def _priority(value: Any) -> int:
    try:
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (ValueError, TypeError, OverflowError):
        raise SubscriptionError(f"priority: expected a whole number, found {value!r}") from None


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        raise SubscriptionError(f"expires: expected a date or a timestamp, found {value!r}")
    return read_timestamp(value)


_READ: dict[str, Callable[[Any], Any]] = {
    "context": lambda value: value,
    "priority": _priority,
    "expires": _moment,
    "attributes": lambda value: value if isinstance(value, str) else json.dumps(value),
}
_KINDS = {"priority": pa.int64(), "expires": pa.timestamp("us", "UTC"), "attributes": pa.string()}
