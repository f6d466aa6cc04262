"""Some events of a DataFrame, in the driver, as the library takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.engine.input.fields import read_count
from matchwood.spark.fingerprints import quoted
from matchwood.spark.indexes import Built, used_columns
from matchwood.spark.shapes import ATTRIBUTES, VALUES, check_once, find_shape, read_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sampled_events(events: DataFrame, built: Built, shape: str, sample: int, seed: int) -> Any:
    """At most `sample` events, drawn with a seed; what they have beside attributes is left out.

    Which are drawn also depends on the partitions of the DataFrame.
    """
    from pyspark.sql.functions import rand

    sample = read_count(sample, "sample", "by default it is 1000")
    check_once(events.columns)
    columns = events.columns
    others = [name for name in columns if name not in (ATTRIBUTES, VALUES)]
    found = find_shape(events.schema, shape, others)
    if found == "wide":
        wanted = used_columns(built, events.schema, ()) or columns[:1]
    else:
        wanted = [name for name in columns if name not in others]
    drawn = events.orderBy(rand(seed)).limit(sample).selectExpr(*map(quoted, wanted))
    table = drawn.toArrow().combine_chunks()
    arrays = [column.combine_chunks() for column in table.columns]
    batch = pa.RecordBatch.from_arrays(arrays, schema=table.schema)
    return read_events(batch, found)
