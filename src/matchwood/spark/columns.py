"""The columns of a table of subscriptions: their types, and which rows are admitted.

    id, expr                              texts, one row a subscription
    id, attribute, operator, value(s)     predicates, the rows of an id a conjunction

and optionally, repeated on every row of an id:

    context     of the type of the contexts' names         goes into the index
    expires     timestamp or date; null: never             expired rows are dropped here
    priority    whole numbers; null: 0                     the engine's (`engine.input.fields`)
    attributes  struct, map<string, T> or JSON text        kept by the engine

Time.    A subscription does not match at or after its expiry.  A date is its midnight and a
         timestamp without a zone a moment in UTC; the session's time zone decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from matchwood.engine.input.fields import declared_types
from matchwood.errors import MatchwoodError, SubscriptionError
from matchwood.spark.errors import ERROR_TYPE, error_row
from matchwood.spark.fingerprints import HASH, MARKS, entries, hashed_parts, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

TEXTS = ("id", "expr")
PREDICATES = ("id", "attribute", "operator", "value", "values")
CONTEXT, EXPIRES, PRIORITY, ATTRIBUTES = "context", "expires", "priority", "attributes"
OPTIONAL = (CONTEXT, EXPIRES, PRIORITY, ATTRIBUTES)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_MOMENTS = {
    "timestamp": lambda now: f"TIMESTAMP '{now.isoformat(' ', 'microseconds')}'",
    "timestamp_ntz": lambda now: (
        f"TIMESTAMP_NTZ '{now.replace(tzinfo=None).isoformat(' ', 'microseconds')}'"
    ),
    "date": lambda now: f"DATE '{now.date().isoformat()}'",
}
"""A moment as a literal of each type: compared as it is, so no time zone is asked."""


class Admitted(NamedTuple):
    """Subscriptions that may be indexed, and error rows of those that may not."""

    table: DataFrame
    refused: pa.Table


def check_subscriptions(table: Any) -> None:
    """SubscriptionError for what is no DataFrame of Spark."""
    if not hasattr(table, "sparkSession"):
        raise SubscriptionError(
            "expected subscriptions as a DataFrame of Spark, found "
            f"{type(table).__name__}: make one with spark.createDataFrame"
        )


def admit(
    subscriptions: DataFrame, now: datetime | None = None, takes: Sequence[str] = OPTIONAL
) -> Admitted:
    """Those that are alive at `now` (by default this moment), with the columns that are used."""
    check_subscriptions(subscriptions)
    table = checked(subscriptions, takes)
    table, refused = _agreeing(table)
    return Admitted(_living(table, as_datetime(now)), error_table(refused))


def as_datetime(now: Any) -> datetime:
    """The moment that decides, in UTC."""
    if now is None:
        return datetime.now(UTC)
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise MatchwoodError(
            f"expected now to be a datetime with a time zone, found {now!r}: "
            "say datetime(..., tzinfo=timezone.utc)"
        )
    return now.astimezone(UTC)


def error_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_struct_array(pa.array(rows, ERROR_TYPE))


def both(refused: pa.Table, others: pa.Table) -> pa.Table:
    """Error rows in one piece: Spark passes over what follows an empty one."""
    return pa.concat_tables([refused, others]).combine_chunks()


# -- what columns may be -----------------------------------------------------------------------


def checked(subscriptions: DataFrame, takes: Sequence[str] = OPTIONAL) -> DataFrame:
    """The columns that are used, priorities as 64-bit numbers; SubscriptionError for others."""
    from pyspark.sql import functions as f

    columns = set(subscriptions.columns)
    reserved = sorted(columns & set(OPTIONAL) - set(takes))
    if reserved:
        raise SubscriptionError(
            f"expected no column {', '.join(reserved)}: a stream cannot take it; "
            "drop it if it may be ignored"
        )
    needed = PREDICATES if "attribute" in columns else TEXTS
    if "attribute" in columns:
        missing = {"id", "attribute", "operator"} - columns
        if missing or not {"value", "values"} & columns:
            raise SubscriptionError(
                "expected columns id, attribute, operator and value or values, found "
                f"{', '.join(subscriptions.columns)}"
            )
    elif not set(TEXTS) <= columns:
        raise SubscriptionError(
            "expected columns id and expr, or id, attribute, operator and value, found "
            f"{', '.join(subscriptions.columns)}"
        )
    table = subscriptions.select(*[name for name in (*needed, *OPTIONAL) if name in columns])
    _check_types(table)
    if PRIORITY in columns:
        table = table.withColumn(PRIORITY, f.coalesce(f.col(PRIORITY).cast("bigint"), f.lit(0)))
    return table


def _check_types(table: DataFrame) -> None:
    kinds = dict(table.dtypes)
    for name, known, what in (
        (PRIORITY, _WHOLE, "whole numbers"),
        (EXPIRES, tuple(_MOMENTS), "timestamps or dates"),
    ):
        if name in kinds and kinds[name] not in known:
            raise SubscriptionError(
                f"expected {what} in the column {name}, found {kinds[name]}: cast it, or drop it"
            )
    if ATTRIBUTES in kinds and not _is_attributes(table.schema[ATTRIBUTES].dataType):
        raise SubscriptionError(
            "expected the column attributes to be a struct, a map from strings (neither with maps "
            f"inside) or JSON text, found {kinds[ATTRIBUTES]}: convert it, or drop it"
        )


def _is_attributes(kind: DataType) -> bool:
    from pyspark.sql.types import MapType, StringType, StructType

    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and _is_plain(kind.valueType)
    return isinstance(kind, StringType) or (isinstance(kind, StructType) and _is_plain(kind))


def _is_plain(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return all(_is_plain(each.dataType) for each in kind)
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    return not isinstance(kind, (MapType, VariantType))


def id_type_of(table: DataFrame) -> str:
    kind = dict(table.dtypes)["id"]
    if kind in _WHOLE:
        return "long"
    if kind == "string":
        return "string"
    raise SubscriptionError(f"expected whole numbers or strings as ids, found {kind}")


def own_types(table: DataFrame) -> dict[str, str] | None:
    """The types that the subscriptions' own attributes declare; None where they have none."""
    from pyspark.sql.pandas.types import to_arrow_type

    kinds = {each.name: each.dataType for each in table.schema}
    return declared_types(to_arrow_type(kinds[ATTRIBUTES])) if ATTRIBUTES in kinds else None


def in_order(table: DataFrame) -> list[Column]:
    """What to sort rows by: the id, then all else, so that how they come decides nothing."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import MapType

    return [
        f.expr(entries(name) if isinstance(table.schema[name].dataType, MapType) else quoted(name))
        for name in order_names(table)
    ]


def order_names(table: DataFrame) -> list[str]:
    """The names of the columns that rows are sorted by."""
    return ["id", *[each for each in table.columns if each not in ("id", *MARKS)]]


# -- which rows are admitted ----------------------------------------------------------------------


def _agreeing(table: DataFrame) -> tuple[DataFrame, list[dict[str, Any]]]:
    """Without ids whose rows say different things; in texts every row stands for itself."""
    from pyspark.sql import functions as f

    repeated = [name for name in OPTIONAL if name in table.columns]
    if "attribute" not in table.columns or not repeated:
        return table, []
    said = table.where("id IS NOT NULL").selectExpr(
        "id", f"{HASH}({', '.join(hashed_parts(table, repeated))}) AS said"
    )
    differ = said.groupBy("id").agg(f.min("said").alias("a"), f.max("said").alias("b"))
    found = differ.where("a <> b").select("id").toArrow().combine_chunks()  # see `both`
    if not found.num_rows:
        return table, []
    error = SubscriptionError(
        f"expected the same {', '.join(repeated)} in every row of an id, found different ones"
    )
    ids = table.sparkSession.createDataFrame(found)
    refused = [error_row("subscription", id_, error) for id_ in found.column("id").to_pylist()]
    return table.join(ids, "id", "left_anti").select(*table.columns), refused


def _living(table: DataFrame, now: datetime) -> DataFrame:
    if EXPIRES not in table.columns:
        return table
    literal = _MOMENTS[dict(table.dtypes)[EXPIRES]](now)
    return table.where(f"{EXPIRES} IS NULL OR {EXPIRES} > {literal}").drop(EXPIRES)


class Readable(NamedTuple):
    """Subscriptions whose attributes can be read, error rows of the others, and id and MARKS of
    the others' rows, where the table has these columns and there are others.
    """

    table: DataFrame
    refused: pa.Table
    rows: pa.Table | None = None


def with_readable_attributes(table: DataFrame) -> Readable:
    """Without subscriptions whose attributes are a text that is no JSON object."""
    if dict(table.dtypes).get(ATTRIBUTES) != "string":
        return Readable(table, error_table([]))
    texts = table.select(ATTRIBUTES).where(f"{ATTRIBUTES} IS NOT NULL").distinct()
    found = texts.mapInArrow(no_objects, "attributes string, problem string")
    bad = found.toArrow().combine_chunks()  # see `both`
    if not bad.num_rows:
        return Readable(table, error_table([]))
    problems = table.sparkSession.createDataFrame(bad)
    marks = [name for name in MARKS if name in table.columns]
    rows = table.join(problems, ATTRIBUTES).select("id", "problem", *marks)
    found = rows.toArrow().combine_chunks()
    pairs = zip(found.column("id").to_pylist(), found.column("problem").to_pylist(), strict=True)
    refused = [
        error_row("subscription", id_, SubscriptionError(problem))
        for id_, problem in dict.fromkeys(pairs)
    ]
    others = table.join(problems, ATTRIBUTES, "left_anti").select(*table.columns)
    return Readable(others, error_table(refused), found.select(["id", *marks]))


def no_objects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Texts that are no JSON object, and what is wrong with them: `mapInArrow`'s function."""
    for batch in batches:
        found: list[tuple[str, str]] = []
        for text in batch.column(0).to_pylist():
            try:
                value = json.loads(text)
                if not isinstance(value, dict):
                    found.append((text, f"found {type(value).__name__}"))
            except (ValueError, RecursionError) as error:
                found.append((text, f"found no JSON: {error}"))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([text for text, _ in found], pa.string()),
                pa.array([f"attributes: expected a JSON object, {why}" for _, why in found],
                         pa.string()),
            ],
            names=["attributes", "problem"],
        )  # fmt: skip
