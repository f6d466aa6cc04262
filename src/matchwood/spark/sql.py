"""Matching in SQL: a table function over a snapshot, and a scalar for spot checks.

    register_sql(spark)
    SELECT * FROM matchwood_match(TABLE(events), '/snapshots/current')
    SELECT matchwood_holds('price < 20', struct(price)) FROM offers

Workers read the snapshot by its path, so it lies where all of them can.  A bad event has a row
with its error and no list; one of which a computed attribute failed has
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError, StorageError
from matchwood.spark.column_types import types_of_arrow
from matchwood.spark.index import lists_and_messages, located, match_structs
from matchwood.spark.shapes import read_events, shape_of_arrow
from matchwood.spark.worker import OUT, Times, match_parts, opened, refuse_nameless

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENT_ID = "event_id"


def register_sql(
    spark: SparkSession, event_id: str = "bigint", subscription_id: str = "bigint"
) -> None:
    """Register `matchwood_match` and `matchwood_holds`; the types are those of the ids."""
    from pyspark.sql.functions import arrow_udtf
    from pyspark.sql.pandas.functions import arrow_udf

    columns = f"event_id {event_id}, subscription_ids array<{subscription_id}>, error string"
    table_function: Any = arrow_udtf(MatchFunction, returnType=columns)
    spark.udtf.register("matchwood_match", table_function)
    make: Any = arrow_udf
    spark.udf.register("matchwood_holds", make(holds, "boolean"))


def match_udf(snapshot: str, subscription_id: str = "bigint") -> Any:
    """A column function: the subscriptions of a snapshot that hold for a struct.

    For places that take columns and nothing else, such as declarative pipelines.  The struct has
    the attributes as fields, or the fields `attributes` and `values`; a bad event gives null.
    """
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import ArrayType, LongType, StringType

    def found(event: pa.Array) -> pa.Array:
        lists, _ = match_structs(located(snapshot), event, subscription_id)
        return lists

    found.__annotations__ = {"event": pa.Array, "return": pa.Array}
    # as an object: pipelines may not ask Spark what a text means while they are defined
    kind = LongType() if subscription_id == "bigint" else StringType()
    make: Any = arrow_udf
    return make(found, ArrayType(kind))


class MatchFunction:
    """The table function: rows (event_id, subscription_ids, error), one per event."""

    def eval(self, batch: pa.RecordBatch, path: pa.Array) -> Iterator[pa.Table]:
        if EVENT_ID not in batch.schema.names:
            raise EventError(
                f"expected the column {EVENT_ID}, found {', '.join(batch.schema.names)}"
            )
        position = path[0].as_py()
        if position is None:
            raise StorageError("expected the path of a snapshot, found NULL")
        matcher, ids = opened(located(position))
        shape = shape_of_arrow(batch.schema)
        events = matcher.encode(read_events(batch, shape))
        event_ids = batch.column(EVENT_ID)
        refuse_nameless(events.errors, event_ids)
        for found in match_parts(matcher, ids, event_ids, events, Times()):
            lists, messages = lists_and_messages(found.column(1), found.column(2))
            yield pa.table([found.column(0), lists, messages], names=OUT)


def holds(expr: pa.Array, event: pa.Array) -> pa.Array:
    """Whether each expression holds for the struct beside it."""
    texts = expr.to_pylist()
    if not pa.types.is_struct(event.type):  # NULL alone has no fields: everything is absent
        event = pa.nulls(len(event), pa.struct([("", pa.null())]))
    names, types = [field.name for field in event.type], types_of_arrow(event.type)
    rows = pa.Table.from_arrays(event.flatten(), names=names)
    found = np.zeros(len(texts), bool)
    places: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if text is not None:
            places.setdefault(text, []).append(row)
    for text, at in places.items():
        matcher = Matcher(column_types=types)
        matcher.add(0, text)
        matches = matcher.match_many(rows.take(pa.array(at)))
        if matches.errors:
            raise next(iter(matches.errors.values()))
        found[at] = np.diff(matches.offsets) > 0
    return pa.array(found)


# Spark asks for the types of an Arrow function's arguments as objects, not as texts.
holds.__annotations__ = {"expr": pa.Array, "event": pa.Array, "return": pa.Array}
MatchFunction.eval.__annotations__ = {
    "batch": pa.RecordBatch,
    "path": pa.Array,
    "return": Iterator[pa.Table],
}
