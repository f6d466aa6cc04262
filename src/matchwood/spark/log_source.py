"""The log of a workload as a stream: its reader, apart because it needs Spark 4.2 or later.

Limits on the rows of a micro-batch came to Python data sources with that version; everything else
of `source` runs on 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from matchwood.spark.source import Request, Rows, cut

if TYPE_CHECKING:
    import pyarrow as pa


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log of a workload, some records a micro-batch."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        return {"record": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._request.batch)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        left = max(0, self._request.n_rows - start["record"])  # a shorter log than before: nothing
        most = left if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", left)
        return {"record": start["record"] + min(left, most)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Nothing to remember: the log's length is known."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Rows]:
        return cut(start["record"], end["record"], 2)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return self._request.batches(partition)
