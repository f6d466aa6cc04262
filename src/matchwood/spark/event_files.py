"""Events in Parquet files, read by the Python workers themselves.

    file ──► pieces: row groups, or parts of them ──► a task each ──► Arrow ──► encode, match

Why.     From a DataFrame events come as rows: the JVM decodes columns, makes rows of them, makes
         Arrow of those and sends it through a socket.  A worker that opens the file has Arrow at
         once, names as dictionaries: on 1M events of 15 attributes as arrays that is 1 s of CPU
         instead of 4 (docs/spark.md).
Whole.   The files are what they are when `match` is called: same columns in each, no folders of
         partitions.  What this reader does not take is refused; Spark's own reader may take it.
Pieces.  A row group is read by one task.  Files with fewer row groups than cores are cut further;
         the tasks of a group then pass over the rows before theirs, which costs decoding alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.errors import EventError, FormatError
from matchwood.spark.executors import parallelism
from matchwood.spark.folders import local_folder
from matchwood.spark.shapes import ATTRIBUTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROWS = 32_768
"""Events that are read and encoded together."""

PIECES_PER_CORE = 4
"""Tasks are even enough with a few for each core."""

_LEGACY = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}
"""With these keys old dates are counted in another calendar, which Spark's own reader knows."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Piece:
    """Rows first .. last - 1 of a row group of a file."""

    file: str
    group: int
    first: int
    last: int


@dataclass(frozen=True)
class EventFiles:
    """Files that stand for a DataFrame of events, as far as matching asks for it."""

    sparkSession: SparkSession  # noqa: N815 - as a DataFrame has it
    schema: StructType
    pieces: list[Piece]
    read: tuple[str, ...] | None = None
    """Columns that are read; None: all."""

    def only(self, names: Sequence[str]) -> EventFiles:
        """The same files with some columns alone."""
        from pyspark.sql.types import StructType

        fields = [field for field in self.schema if field.name in names]
        if any("." in field.name for field in self.schema):
            return self  # the reader of files takes a dot for a field of a struct
        return replace(self, schema=StructType(fields), read=tuple(each.name for each in fields))

    @property
    def columns(self) -> list[str]:
        return self.schema.names

    def mapInArrow(  # noqa: N802 - as a DataFrame has it
        self, function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        n = len(self.pieces)
        numbers = self.sparkSession.range(0, n, 1, max(n, 1))
        return numbers.mapInArrow(partial(_over_pieces, function, self.pieces, self.read), schema)


def open_events(spark: SparkSession, path: str) -> EventFiles:
    """The events in a Parquet file, or in those of a folder."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    files = _files(path)
    opened = [(file, _open(file)) for file in files]
    first = opened[0][1].schema_arrow
    for file, each in opened:
        if _LEGACY & set(each.metadata.metadata or {}):
            raise FormatError(
                f"expected days of today's calendar, found those of the Julian one in "
                f"{file.name!r}: give the DataFrame that spark.read.parquet makes of it"
            )
        if not each.schema_arrow.equals(first):
            raise FormatError(
                f"expected the columns and types of {files[0].name!r} in every file, found others "
                f"in {file.name!r}: give the DataFrame that spark.read.parquet makes of them"
            )
    try:
        schema = from_arrow_schema(first)
    except PySparkException as error:
        raise FormatError(f"expected columns that Spark has a type for, found {error}") from error
    cores = parallelism(spark)
    groups = [
        (str(file), group, each.metadata.row_group(group).num_rows)
        for file, each in opened
        for group in range(each.metadata.num_row_groups)
    ]
    return EventFiles(spark, schema, cut_groups(groups, cores * PIECES_PER_CORE))


def cut_groups(groups: list[tuple[str, int, int]], least: int) -> list[Piece]:
    """Pieces of row groups (file, number, rows): about as many as asked for, none without rows."""
    groups = [each for each in groups if each[2]]
    cuts = -(-least // max(1, len(groups)))
    pieces = []
    for file, group, n in groups:
        step = max(-(-n // cuts), min(n, ROWS))
        pieces += [Piece(file, group, at, min(at + step, n)) for at in range(0, n, step)]
    return pieces


def read_piece(piece: Piece, columns: Sequence[str] | None = None) -> Batches:
    """The rows of a piece, some at a time; all columns unless some are named."""
    with _open(Path(piece.file)) as file:
        at = 0
        names = None if columns is None else list(columns)
        for batch in file.iter_batches(
            ROWS, row_groups=[piece.group], columns=names, use_threads=False
        ):
            first, last = max(piece.first - at, 0), min(piece.last - at, batch.num_rows)
            at += batch.num_rows
            if first < last:
                yield batch.slice(first, last - first)
            if at >= piece.last:
                return


def _over_pieces(
    function: Callable[[Batches], Batches],
    pieces: list[Piece],
    columns: Sequence[str] | None,
    numbers: Batches,
) -> Batches:
    """Run a function of batches of events on the pieces that a task is given."""
    mine = (pieces[each] for batch in numbers for each in batch.column(0).to_pylist())
    return function(batch for piece in mine for batch in read_piece(piece, columns))


def _files(path: str) -> list[Path]:
    plain = local_folder(path, "events")
    if plain.is_file():
        return [plain]
    inside = sorted(plain.iterdir()) if plain.is_dir() else []
    seen = [each for each in inside if each.name[0] not in "._"]
    folders = [each.name for each in seen if each.is_dir()]
    if folders:
        raise FormatError(
            f"expected files alone in {path!r}, found the folder {folders[0]!r}: give the "
            "DataFrame that spark.read.parquet makes of it"
        )
    if not seen:
        raise EventError(f"expected a Parquet file or a folder of them, found nothing at {path!r}")
    return seen


def _open(file: Path) -> pq.ParquetFile:
    """A file whose names of attributes stay dictionaries, and whose times are microseconds."""
    try:
        footer = pq.read_metadata(file)
        inside = [footer.schema.column(i).path for i in range(footer.num_columns)]
        # of arrays and maps the first column below is the names
        names = [path for path in inside if path.startswith(f"{ATTRIBUTES}.")][:1]
        return pq.ParquetFile(
            file, metadata=footer, read_dictionary=names, memory_map=True,
            coerce_int96_timestamp_unit="us",
        )  # fmt: skip
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{str(file)!r}: expected a Parquet file, found {error}") from error
