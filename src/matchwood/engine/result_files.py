"""Files of matches, written batch by batch beside their final place and moved there at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchwood.engine.files import format_of
from matchwood.engine.matches import id_type
from matchwood.errors import StorageError

Write = Callable[[pa.Table], object]


@contextmanager
def open_result(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Write]:
    """A function that appends tables; the file is there, whole, once the block has ended well."""
    final = Path(path)
    aside = final.with_name(f".{final.name}.partial")
    kind = check_result(final, schema)
    try:
        with ExitStack() as stack:
            stack.callback(aside.unlink, missing_ok=True)
            with _OPENERS[kind](aside, schema) as write:
                yield write
            aside.replace(final)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot write {str(final)!r}: {error}") from None


def check_result(path: Path, schema: pa.Schema) -> str:
    """The format of a result; StorageError when it cannot hold such a table."""
    kind = format_of(path)
    if kind == "text":
        raise StorageError(f"expected parquet, arrow, json or csv for matches, found {path.name!r}")
    if kind == "csv" and any(pa.types.is_large_list(each.type) for each in schema):
        raise StorageError("expected pairs for csv, found lists: write lists to parquet or json")
    if path.is_dir():
        raise StorageError(f"expected a file to write, found a folder at {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise StorageError(f"expected a folder to write to, found none at {str(path.parent)!r}")
    return kind


@contextmanager
def _parquet(path: Path, schema: pa.Schema) -> Iterator[Write]:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema) as writer:
        yield writer.write_table


@contextmanager
def _arrow(path: Path, schema: pa.Schema) -> Iterator[Write]:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        yield writer.write_table


@contextmanager
def _csv(path: Path, schema: pa.Schema) -> Iterator[Write]:
    import pyarrow.csv as pa_csv

    with pa_csv.CSVWriter(str(path), schema) as writer:
        yield writer.write_table


@contextmanager
def _json(path: Path, schema: pa.Schema) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(table: pa.Table) -> None:
            for row in _plain_rows(table):
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

        yield write


def _plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON shows them; ids of both kinds as what they are, not as a struct."""
    rows = table.to_pylist()
    mixed = id_type("mixed")
    for field in table.schema:
        if field.type == mixed:
            for row in rows:
                row[field.name] = _plain_id(row[field.name])
        elif pa.types.is_large_list(field.type) and field.type.value_type == mixed:
            for row in rows:
                row[field.name] = [_plain_id(each) for each in row[field.name]]
    return rows


def _plain_id(id_: dict[str, Any]) -> Any:
    return id_["str"] if id_["int"] is None else id_["int"]


_OPENERS: dict[str, Any] = {"parquet": _parquet, "arrow": _arrow, "csv": _csv, "json": _json}
