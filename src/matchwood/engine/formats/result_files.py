"""Files of matches, written batch by batch beside their final place and moved there at the end.

Parquet and Arrow files take tables.  JSON lines and CSV take ids as they are, and go to standard
output as well, where every batch is flushed.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from matchwood.engine.formats.compressed import is_compressed, open_text_to_write
from matchwood.engine.formats.files import format_of
from matchwood.engine.matches import Matches
from matchwood.errors import StorageError

Write = Callable[[pa.Table], object]
WriteTexts = Callable[[list[Any], Matches, np.ndarray], object]
"""Called with an id per event, what was found, and which events are good."""

PayloadOf = Callable[[Any], Any]
"""The payload of a subscription by its id."""

TEXTS = ("json", "csv")

PAIRS, LISTS, COUNT, EXISTS = "pairs", "lists", "count", "exists"
"""What a row is: a match; an event with all its matches, with their number, with whether there are
any.  The last two are the names of the column, too.
"""
PER_EVENT = (COUNT, EXISTS)


@contextmanager
def open_result(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Write]:
    """A function that appends tables; the file is there, whole, once the block has ended well."""
    final = Path(path)
    opener = {"parquet": _parquet, "arrow": _arrow}[check_result(final)]
    with _aside(final) as aside, opener(aside, schema) as write:
        yield write


@contextmanager
def open_text_result(
    path: Path | None, shape: str = PAIRS, payload_of: PayloadOf | None = None
) -> Iterator[WriteTexts]:
    """A function that appends matches as text; None is standard output, as JSON lines.

    payload_of  adds the payload to every pair
    """
    if path is None:
        yield _json_writer(sys.stdout, shape, True, payload_of)
        return
    kind = check_result(path, shape)
    compression = path.suffix.lower() if is_compressed(path) else ""
    with _aside(path) as aside, open_text_to_write(aside, compression) as file:
        if kind == "csv":
            yield _csv_writer(file, shape, payload_of)
        else:
            yield _json_writer(file, shape, False, payload_of)


def check_result(path: Path, shape: str = PAIRS) -> str:
    """The format of a result; StorageError when it cannot hold such matches."""
    kind = format_of(path)
    if kind == "text":
        raise StorageError(f"expected parquet, arrow, json or csv for matches, found {path.name!r}")
    if kind == "csv" and shape == LISTS:
        raise StorageError("expected pairs for csv, found lists: write lists to parquet or json")
    if path.is_dir():
        raise StorageError(f"expected a file to write, found a folder at {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise StorageError(f"expected a folder to write to, found none at {str(path.parent)!r}")
    return kind


@contextmanager
def _aside(final: Path) -> Iterator[Path]:
    """Another name to write under; it becomes the final one if the block ends well."""
    aside = final.with_name(f".{final.name}.partial")
    try:
        with ExitStack() as stack:
            stack.callback(aside.unlink, missing_ok=True)
            yield aside
            aside.replace(final)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot write {str(final)!r}: {error}") from None


@contextmanager
def _parquet(path: Path, schema: pa.Schema) -> Iterator[Write]:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema) as writer:
        yield writer.write_table


@contextmanager
def _arrow(path: Path, schema: pa.Schema) -> Iterator[Write]:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        yield writer.write_table


def json_text(value: Any) -> str | None:
    """A payload as JSON; None where there is none."""
    return None if value is None else json.dumps(value, ensure_ascii=False)


def values_per_event(found: Matches, shape: str) -> np.ndarray:
    """For each event how many subscriptions match, or whether any does."""
    counts = np.diff(found.offsets)
    return counts > 0 if shape == EXISTS else counts


def _csv_writer(file: IO[str], shape: str, payload_of: PayloadOf | None) -> WriteTexts:
    writer = csv.writer(file, lineterminator="\n")
    if shape in PER_EVENT:
        writer.writerow(["event", shape])

        def write_values(events: list[Any], found: Matches, keep: np.ndarray) -> None:
            values = values_per_event(found, shape).tolist()
            rows = [(events[n], json.dumps(values[n])) for n in np.flatnonzero(keep).tolist()]
            writer.writerows(rows)

        return write_values
    writer.writerow(["event", "subscription", *([] if payload_of is None else ["payload"])])

    def row(event: Any, id_: Any) -> tuple[Any, ...]:
        more = () if payload_of is None else (json_text(payload_of(id_)),)
        return (event, id_, *more)

    def write(events: list[Any], found: Matches, keep: np.ndarray) -> None:
        for number in np.flatnonzero(keep).tolist():
            writer.writerows([row(events[number], id_) for id_ in found[number]])

    return write


def _json_writer(
    file: IO[str], shape: str, is_flushed: bool, payload_of: PayloadOf | None
) -> WriteTexts:
    """Writes lines of JSON.  An id and its payload become text once."""
    texts: dict[Any, str] = {}

    def as_text(id_: Any) -> str:
        # 1 and True are one key; an id is never a bool
        found = texts.get(id_)
        if found is None:
            found = json.dumps(id_, ensure_ascii=False)
            if payload_of is not None:
                found += f', "payload": {json.dumps(payload_of(id_), ensure_ascii=False)}'
            texts[id_] = found
        return found

    def write(events: list[Any], found: Matches, keep: np.ndarray) -> None:
        lines = []
        values = values_per_event(found, shape).tolist() if shape in PER_EVENT else []
        for number in np.flatnonzero(keep).tolist():
            head = f'{{"event": {json.dumps(events[number], ensure_ascii=False)}, '
            if values:
                lines.append(f'{head}"{shape}": {json.dumps(values[number])}}}\n')
                continue
            ids = [as_text(id_) for id_ in found[number]]
            if shape == LISTS:
                lines.append(f'{head}"subscriptions": [{", ".join(ids)}]}}\n')
            else:
                lines += [f'{head}"subscription": {id_}}}\n' for id_ in ids]
        file.write("".join(lines))
        if is_flushed:
            file.flush()

    return write
