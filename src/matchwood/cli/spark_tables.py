"""Files of subscriptions and contexts as DataFrames.

Parquet is read by Spark as it is; fields in JSON and CSV are read by `field_texts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.cli.field_texts import typed_rows
from matchwood.cli.problems import Problem, unreadable
from matchwood.cli.screen import refuse
from matchwood.cli.subscriptions import is_snapshot
from matchwood.engine.formats.compressed import bare_name
from matchwood.engine.formats.files import FORMATS, read_subscriptions
from matchwood.errors import StorageError
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
    local_path = local(path)
    return path if local_path is None else address(local_path)


def spark_format(path: str) -> str:
    """By the ending of the name, or of the files in a folder."""
    suffix = bare_name(Path(path)).suffix.lower()
    local_path = local(path)
    if not suffix and local_path is not None and local_path.is_dir():
        names = [each for each in local_path.iterdir() if each.name[0] not in "._"]
        endings = {bare_name(each).suffix.lower() for each in names}
        suffix = endings.pop() if len(endings) == 1 else ""
    if suffix not in FORMATS:
        refuse(f"expected a name that ends in one of {' '.join(FORMATS)}, found {path!r}")
    return FORMATS[suffix]


def open_subscriptions(spark: SparkSession, path: str) -> tuple[Any, list[Problem]]:
    """A DataFrame or a snapshot's path, and rows that were no subscriptions."""
    local_path = local(path)
    if local_path is not None and is_snapshot(local_path):
        return str(local_path), []
    if spark_format(path) == "parquet":
        return spark.read.parquet(for_spark(path)), []
    if local_path is None:
        refuse(f"expected Parquet at an address like {path!r}: copy the file here")
    rows, problems = typed_rows(read_subscriptions(local_path))
    problems += [unreadable("subscription", each, each.row) for each in rows.unreadable]
    table = rows.rows
    if not isinstance(table, pa.Table):
        table = _as_table([_named(each) for each in table])
    return spark.createDataFrame(table.combine_chunks()), problems


def _named(row: Any) -> dict[str, Any]:
    return row if isinstance(row, dict) else {"id": row[0], "expr": row[1]}


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
    source = for_spark(path)
    return spark.read.parquet(source) if kind == "parquet" else spark.read.json(source)


def _as_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows with id, expr and fields as columns; a payload is of no use to Spark's matches."""
    columns = {"id": _ids([each["id"] for each in rows]),
               "expr": pa.array([each["expr"] for each in rows], pa.string())}  # fmt: skip
    for name in _KINDS:
        cells = [each.get(name) for each in rows]
        if any(cell is not None for cell in cells):
            columns[name] = _ids(cells) if name == "context" else pa.array(cells, _KINDS[name])
    return pa.table(columns)


def _ids(ids: list[Any]) -> pa.Array:
    """Whole numbers when all are, else texts."""
    if all(type(id_) is int for id_ in ids if id_ is not None):
        return pa.array(ids, pa.int64())
    return pa.array([None if id_ is None else str(id_) for id_ in ids], pa.string())


_KINDS = {"context": None, "priority": pa.int64(), "expires": pa.timestamp("us", "UTC"),
          "attributes": pa.string()}  # fmt: skip
