"""The data source `matchwood`: every workload as a Spark table, made where it is needed.

    spark.read.format("matchwood").options(workload="begen:small", table="events").load()

Idea.    A row of a workload follows from its number, so a partition is a range of numbers and the
         driver sends nothing else.  However the rows are cut, they are the same.
Options  workload       name or name:preset, as in `find_workload`
         table          subscriptions (the default), events or log
         subscriptions, events    how many rows; the workload's own number unless given
         form           of subscriptions: predicates (the default) or texts
         layout         of events: arrays (the default) or wide
         partitions     how many; by default one per 100,000 rows, and at least two
         records, every, batch    of the log: how many records there are, how often one is a
                        change, how many a micro-batch takes
         any parameter of the workload, as JSON: match_probability, seed, ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    InputPartition,
)

from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from matchwood.spark.log_source import LogReader
    from matchwood.workload import Workload

TABLES = ("subscriptions", "events", "log")
FORMS, LAYOUTS = ("predicates", "texts"), ("arrays", "wide")
ROWS_PER_PARTITION = 100_000
ROWS_PER_BATCH = 10_000
_OWN = {"workload", "table", "subscriptions", "events", "form", "layout", "partitions",
        "records", "every", "batch", "path"}  # fmt: skip


def register_source(spark: SparkSession) -> None:
    """Make the format `matchwood` known to a session; registering again changes nothing."""
    spark.dataSource.register(WorkloadSource)


def read_workload(
    spark: SparkSession, workload: str, table: str = "subscriptions", **options: Any
) -> DataFrame:
    """A table of a workload as a DataFrame; options are those of the data source."""
    register_source(spark)
    reader = spark.read.format("matchwood").option("workload", workload).option("table", table)
    for name, value in options.items():
        reader = reader.option(name, value if isinstance(value, str) else json.dumps(value))
    return reader.load()


@dataclass(frozen=True)
class Request:
    """What the options ask for, checked."""

    workload: Workload
    table: str
    kind: str
    n_rows: int
    n_partitions: int
    every: int
    batch: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Request:
        from matchwood.workload import find_workload

        if "workload" not in options:
            raise MatchwoodError("expected the option workload, as name or name:preset, found none")
        table = _among("table", options.get("table", "subscriptions"), TABLES)
        changes = {name: _value(value) for name, value in options.items() if name not in _OWN}
        for count in ("subscriptions", "events"):
            if count in options:
                changes[f"n_{count}"] = _number(options, count, 0)
        workload = find_workload(options["workload"], **changes)
        rows = {
            "subscriptions": workload.n_subscriptions,
            "events": workload.n_events,
            "log": _number(options, "records", 2 * workload.n_events),
        }[table]
        form = _among("form", options.get("form", "predicates"), FORMS)
        layout = _among("layout", options.get("layout", "arrays"), LAYOUTS)
        kind = {"subscriptions": form, "events": layout, "log": "log"}[table]
        parts = _number(options, "partitions", max(2, -(-rows // ROWS_PER_PARTITION)), least=1)
        every = _number(options, "every", 100, least=2)
        return cls(workload, table, kind, rows, parts, every, _number(options, "batch", 10_000))

    def rows(self, first: int, last: int) -> pa.Table:
        """Rows first .. last - 1 of the table."""
        from matchwood.workload import plain_tables

        if self.kind == "log":
            return plain_tables.log(self.workload, first, last, self.every)
        table: pa.Table = getattr(plain_tables, self.kind)(self.workload, first, last)
        return table

    def batches(self, part: Rows) -> Iterator[pa.RecordBatch]:
        for first in range(part.first, part.last, ROWS_PER_BATCH):
            table = self.rows(first, min(first + ROWS_PER_BATCH, part.last))
            yield from table.combine_chunks().to_batches()


class Rows(InputPartition):
    """A partition: rows first .. last - 1."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last


class WorkloadSource(DataSource):
    """See the module's docstring."""

    @classmethod
    def name(cls) -> str:
        return "matchwood"

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        request = Request.read(self.options)
        return from_arrow_schema(request.rows(0, 1).schema, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> WorkloadReader:
        return WorkloadReader(Request.read(self.options))

    def streamReader(self, schema: StructType) -> LogReader:  # noqa: N802 - Spark's name
        request = Request.read(self.options)
        if request.table != "log":
            raise MatchwoodError(
                f"expected the table log as a stream, found {request.table}: read it as a batch"
            )
        from matchwood.spark.log_source import LogReader

        return LogReader(request)


class WorkloadReader(DataSourceReader):
    """Reads ranges of rows."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def partitions(self) -> Sequence[Rows]:
        return cut(0, self._request.n_rows, self._request.n_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return self._request.batches(partition)


def cut(first: int, last: int, parts: int) -> list[Rows]:
    """Even ranges; none is empty."""
    n = last - first
    bounds = [first + n * i // parts for i in range(parts + 1)]
    return [Rows(a, b) for a, b in pairwise(bounds) if a < b] or [Rows(0, 0)]


def _among(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise MatchwoodError(f"option {name}: expected one of {', '.join(known)}, found {value!r}")
    return value


def _number(options: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not text.replace("_", "").isdecimal() or int(text) < least:
        raise MatchwoodError(f"option {name}: expected a number from {least}, found {text!r}")
    return int(text)


def _value(text: str) -> Any:
    """A parameter: JSON where it is, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
