"""Events in CSV files and JSON arrays, read by workers as the library reads them: a file, a task.

Spark's own reader of CSV passes over cells that a row has too many, ends a row at a line break
inside quotes and reads a doubled quote in its own way.  Here a file means the same with and without
Spark.  JSON lines need none of this: every line stands for itself.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.engine.formats.text_files import Row, csv_names, csv_rows, json_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 10_000
_TEXTS = pa.list_(pa.string())


def csv_events(spark: SparkSession, files: list[Path], event_id: str) -> DataFrame:
    """Events as arrays; a row of more or fewer cells than the header is a bad event."""
    columns = "event_id string, attributes array<string>, values array<string>"
    return _over(spark, files).mapInArrow(partial(_csv_batches, event_id), columns)


def json_events(spark: SparkSession, files: list[Path], event_id: str) -> DataFrame:
    """The objects of JSON files, as texts."""
    columns = "event_id string, attributes string"
    return _over(spark, files).mapInArrow(partial(_json_batches, event_id), columns)


def is_lines(file: Path) -> bool:
    """Whether a JSON file is plain lines: no array, and no byte order mark."""
    with file.open("rb") as opened:
        first = opened.readline()
    return not first.startswith(codecs.BOM_UTF8) and not first.lstrip().startswith(b"[")


def _over(spark: SparkSession, files: list[Path]) -> DataFrame:
    rows = spark.createDataFrame([(str(file),) for file in files], "file string")
    return rows.repartition(max(1, len(files)))


def _csv_batches(event_id: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for file in _files(batches):
        names = csv_names(file)
        for rows in _some(csv_rows(file)):
            events = [(_text(row.value.get(event_id)), names, _cells(row, names)) for row in rows]
            ids, attributes, values = zip(*events, strict=True)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(ids, pa.string()),
                    pa.array(attributes, _TEXTS),
                    pa.array(values, _TEXTS),
                ],
                names=["event_id", "attributes", "values"],
            )


def _cells(row: Row, names: list[str]) -> list[str | None]:
    """The values of a row; one too few where it is bad, so that it is refused."""
    if row.problem is not None:
        return [None] * (len(names) - 1)
    return [row.value.get(name) for name in names]


def _json_batches(event_id: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for file in _files(batches):
        for rows in _some(json_rows(file)):
            texts = [json.dumps(row.value) if row.problem is None else row.problem for row in rows]
            ids = [_text(row.value.get(event_id)) for row in rows]
            yield pa.RecordBatch.from_arrays(
                [pa.array(ids, pa.string()), pa.array(texts)], names=["event_id", "attributes"]
            )


def _text(value: Any) -> str | None:
    """An id as a text; None, so that its event is refused, where it is none that can be written."""
    if isinstance(value, str):
        is_written = value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)
        return value if is_written else None
    return None if value is None else json.dumps(value)


def _files(batches: Iterator[pa.RecordBatch]) -> Iterator[Path]:
    for batch in batches:
        yield from map(Path, batch.column("file").to_pylist())


def _some(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while part := list(islice(rows, ROWS)):
        yield part
