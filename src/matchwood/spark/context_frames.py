"""Values of contexts as a table: column `context` and one column per value, null being absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.engine.input.context_tables import COLUMN
from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError
from matchwood.spark.fingerprints import HASHES, Digest, digest_of, with_hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALUES = "matchwood_values"
_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def context_frame(subscriptions: DataFrame, contexts: Any) -> DataFrame:
    """A table of values as a DataFrame, whose contexts are named as the subscriptions name them."""
    frame: Any = contexts
    if hasattr(contexts, "__arrow_c_stream__") and not hasattr(contexts, "sparkSession"):
        from matchwood.encode.arrow.tables import as_table

        table = as_table(contexts)
        if table is None:
            raise EventError("expected columns of one type each, found mixed objects")
        # in one piece: Spark passes over what follows empty ones
        frame = subscriptions.sparkSession.createDataFrame(table.combine_chunks())
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


def beside_subscriptions(subscriptions: DataFrame, contexts: DataFrame) -> DataFrame:
    """Every subscription with the values of its context, in a column VALUES.

    So a task that gets some subscriptions gets the values they need, and no others.
    """
    from pyspark.sql import functions as f

    counts = contexts.groupBy(COLUMN).count()
    wrong = counts.where(f"count > 1 OR {COLUMN} IS NULL").first()
    if wrong is not None:
        raise EventError(f"expected every context once, found {wrong[COLUMN]!r} {wrong[1]} times")
    names = [name for name in contexts.columns if name != COLUMN]
    values = contexts.select(
        COLUMN, f.struct(*[f.col(f"`{name}`") for name in names]).alias(VALUES)
    )
    return subscriptions.join(values, COLUMN, "left")


def set_values_beside(matcher: Matcher, subscriptions: pa.Table) -> None:
    """Give a matcher the values that stand beside its subscriptions, each context's once."""
    rows = subscriptions.select([COLUMN, VALUES]).combine_chunks()
    rows = rows.filter(pc.and_(rows.column(COLUMN).is_valid(), rows.column(VALUES).is_valid()))
    if not rows.num_rows:
        return
    ids = pc.dictionary_encode(rows.column(COLUMN).combine_chunks())
    first = np.unique(ids.indices.to_numpy(zero_copy_only=False), return_index=True)[1]
    rows = rows.take(pa.array(first))
    values = pa.Table.from_struct_array(rows.column(VALUES).combine_chunks())
    matcher.set_context_many(values.append_column(COLUMN, rows.column(COLUMN)))


def read_values(contexts: DataFrame) -> tuple[pa.Table, Digest]:
    """The values, and the digest of what was read."""
    table = with_hashes(contexts).toArrow().combine_chunks()
    return table.drop_columns(list(HASHES)), digest_of(table)


def set_values(matcher: Matcher, table: pa.Table) -> None:
    """Give a matcher the values; a context that comes twice would make order decide."""
    counts = pc.value_counts(table.column(COLUMN).combine_chunks())
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise EventError(f"expected every context once, found {twice[0].as_py()!r} again")
    matcher.set_context_many(table)
