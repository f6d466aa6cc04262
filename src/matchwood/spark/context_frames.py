"""Values of contexts as a table: column `context` and one column per value, null being absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from matchwood.engine.context_tables import COLUMN
from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def context_frame(subscriptions: DataFrame, contexts: Any) -> DataFrame:
    """A table of values as a DataFrame, whose contexts are named as the subscriptions name them."""
    frame: Any = contexts
    if hasattr(contexts, "__arrow_c_stream__") and not hasattr(contexts, "sparkSession"):
        from matchwood.encode.arrow_events import as_table

        table = as_table(contexts)
        if table is None:
            raise EventError("expected columns of one type each, found mixed objects")
        frame = subscriptions.sparkSession.createDataFrame(table)
    kinds = dict(getattr(frame, "dtypes", ()))
    if COLUMN not in kinds or not hasattr(frame, "sparkSession"):
        raise EventError(
            f"expected contexts as a DataFrame or a table with a column {COLUMN!r}, found "
            f"{', '.join(kinds) or type(contexts).__name__}"
        )
    theirs = dict(subscriptions.dtypes).get(COLUMN)
    if theirs is not None and _kind(theirs) != _kind(kinds[COLUMN]):
        raise EventError(
            f"expected contexts to be named by {theirs}, as in the subscriptions, found "
            f"{kinds[COLUMN]}: cast one of the columns"
        )
    return frame


def _kind(spark_type: str) -> str:
    return "bigint" if spark_type in _NUMBERS else spark_type


def set_values(matcher: Matcher, contexts: DataFrame) -> None:
    """Give a matcher the values; a context that comes twice would make order decide."""
    table = contexts.toArrow()
    counts = pc.value_counts(table.column(COLUMN).combine_chunks())
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise EventError(f"expected every context once, found {twice[0].as_py()!r} again")
    matcher.set_context_many(table)
