"""Files of subscriptions, events and matches; the ending of a name tells the format.

    .parquet .pq         Parquet
    .arrow .feather .ipc Arrow IPC, file or stream
    .csv                 with a header; an empty cell is an absent value
    .json .jsonl .ndjson one object per line; `.json` may also be one array of objects
    .txt                 one expression per line, whose number is its id (subscriptions only)
    .gz .zst             after one of the last three lines: compressed

A folder stands for the files in it, as Spark writes them.  Events come in batches, so a file may be
larger than memory (one JSON array is read whole).
"""

from __future__ import annotations

import codecs
import csv
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from matchwood.encode.arrow.values import python_values
from matchwood.engine.formats.compressed import COMPRESSIONS, bare_name, is_compressed, open_text
from matchwood.engine.formats.text_files import (
    Row,
    csv_event,
    csv_line_rows,
    csv_rows,
    json_event,
    json_line_rows,
    json_rows,
)
from matchwood.errors import StorageError

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".csv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".txt": "text",
}  # fmt: skip
BATCH = 8192
"""Events read at once."""
STREAM = 1 << 20
"""Bytes read at once from standard input, if there are so many."""

HEADER = 2000
"""Characters of the first line that are looked at, to tell CSV from expressions."""

EVENT_ID = "event_id"
OPTIONAL = ("context", "priority", "expires", "attributes", "payload")
"""What a subscription may have besides id and expr."""
PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""A whole number of 64 bits, written in the one way that prints as itself."""


class Unreadable(NamedTuple):
    """A row of a file that is no subscription or event at all."""

    row: int
    line: int
    message: str


@dataclass
class SubscriptionRows:
    """The subscriptions of a file, in the form `Matcher.add_many` takes them."""

    rows: Any
    lines: list[int] | None = None  # the line of each row, where the file has lines
    unreadable: list[Unreadable] = field(default_factory=list)
    more: list[dict[str, Any]] | None = None  # what rows that are pairs have of OPTIONAL
    numbers: list[int] | None = None  # the number of each row, where some are left out

    def number(self, row: int) -> int:
        """The number of a row in the file, from 0."""
        return row if self.numbers is None else self.numbers[row]

    def line(self, row: int) -> int | None:
        """The line of a row in the file, from 1, where it has lines."""
        return None if self.lines is None else self.lines[row]


class EventRows(NamedTuple):
    """Some events: what `Matcher.match_many` takes, their ids, and rows that are no events."""

    events: Any
    ids: list[Any] | None
    unreadable: list[Unreadable]


# -- reading -----------------------------------------------------------------------------------


def format_of(path: Path) -> str:
    """The format of a file by its name; StorageError for other names."""
    kind = FORMATS.get(bare_name(path).suffix.lower())
    if kind is None or (is_compressed(path) and kind in ("parquet", "arrow")):
        raise StorageError(
            f"expected a name that ends in one of {' '.join(FORMATS)}, and after a text format "
            f"perhaps in {' or '.join(COMPRESSIONS)}, found {path.name!r}"
        )
    return kind


def read_subscriptions(path: str | os.PathLike[str]) -> SubscriptionRows:
    """All subscriptions of a file or folder."""
    parts = [_read_subscriptions(part) for part in file_parts(Path(path))]
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part.rows, pa.Table) for part in parts):
        with _readable(Path(path)):
            tables = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
        return SubscriptionRows(tables)
    pairs = [pair for part in parts for pair in _pairs(part.rows)]
    unreadable = [each for part in parts for each in part.unreadable]
    more = [each for part in parts for each in part.more or [{} for _ in _pairs(part.rows)]]
    return SubscriptionRows(pairs, None, unreadable, more)


def read_lines(lines: Iterable[str]) -> SubscriptionRows:
    """One expression per line; its id is the line's number, from 1.  Blank lines do not count.

    A byte that is no UTF-8 may stand as a lone surrogate: its expression is then refused.
    """
    pairs = [(n, line.rstrip("\r\n")) for n, line in enumerate(lines, 1) if line.strip()]
    return SubscriptionRows(pairs, [n for n, _ in pairs])


def read_events(path: str | os.PathLike[str], types: Mapping[str, str]) -> Iterator[EventRows]:
    """The events of a file or folder, some at a time; `types` are those of the attributes."""
    for part in file_parts(Path(path)):
        kind = format_of(part)
        if kind == "text":
            raise StorageError(f"expected a table or JSON lines as events, found {part.name!r}")
        with _readable(part):
            if kind in ("parquet", "arrow"):
                for table in _arrow_batches(part, kind):
                    ids = python_values(table.column(EVENT_ID)) if _has_ids(table) else None
                    yield EventRows(table, ids, [])
            else:
                read = csv_event(types) if kind == "csv" else json_event(types)
                rows = csv_rows(part) if kind == "csv" else json_rows(part)
                yield from _row_batches(rows, read)


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """How many rows there are, where that is known without reading them."""
    parts = file_parts(Path(path))
    if any(format_of(part) != "parquet" for part in parts):
        return None
    import pyarrow.parquet as pq

    with _readable(Path(path)):
        return sum([int(pq.read_metadata(part).num_rows) for part in parts])


def file_parts(path: Path) -> list[Path]:
    if not path.exists():
        raise StorageError(f"expected a file or folder, found nothing at {str(path)!r}")
    if not path.is_dir():
        return [path]
    parts = [each for each in sorted(path.iterdir()) if each.is_file() and each.name[0] not in "._"]
    if not parts:
        raise StorageError(f"expected files in the folder {str(path)!r}, found none")
    return parts


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException, csv.Error, UnicodeError) as error:
        raise StorageError(f"cannot read {str(path)!r}: {error}") from None


def _read_subscriptions(path: Path) -> SubscriptionRows:
    kind = format_of(path)
    with _readable(path):
        if kind == "parquet":
            import pyarrow.parquet as pq

            return SubscriptionRows(pq.read_table(path))
        if kind == "arrow":
            return SubscriptionRows(pa.Table.from_batches(_ipc_batches(path)))
        if kind == "text":
            with open_text(path) as file:
                return read_lines(file)
        return _from_rows(csv_rows(path) if kind == "csv" else json_rows(path), kind == "csv")


def _from_rows(rows: Iterable[Row], is_csv: bool) -> SubscriptionRows:
    """Rows with id and expr; StorageError when no row has them: it is a file of something else."""
    pairs, lines, unreadable, more, numbers = [], [], [], [], []
    names = None
    for row in rows:
        if row.problem is None and not {"id", "expr"} <= row.value.keys():
            names = ", ".join(row.value) or "nothing"
            if is_csv:
                raise StorageError(f"expected the columns id and expr, found {names}")
            row = row._replace(problem=f"expected an object with id and expr, found {names}")
        if row.problem is not None:
            unreadable.append(Unreadable(row.number, row.line, row.problem))
            continue
        pairs.append((row.value["id"], row.value["expr"]))
        lines.append(row.line)
        numbers.append(row.number)
        found = {name: row.value.get(name) for name in OPTIONAL}
        more.append({name: value for name, value in found.items() if value is not None})
    if names is not None and not pairs:
        raise StorageError(f"expected objects with id and expr, found {names}")
    if is_csv and all(PLAIN_INTEGER.fullmatch(id_ or "") for id_, _ in pairs):
        pairs = [(int(id_), text) for id_, text in pairs]
    return SubscriptionRows(pairs, lines, unreadable, more, numbers)


def read_contexts(path: str | os.PathLike[str]) -> tuple[list[Any], Any]:
    """The ids of contexts in a file, and their values as `Matcher.set_context_many` takes them.

    Parquet, Arrow or JSON: `context` and one column or key per value.
    """
    kinds = {format_of(part) for part in file_parts(Path(path))}
    if kinds <= {"parquet", "arrow"}:
        with _readable(Path(path)):
            tables = [each.events for each in read_events(path, {})]
            table = pa.concat_tables(tables, promote_options="permissive")
        if "context" not in table.column_names:
            found = ", ".join(table.column_names)
            raise StorageError(f"expected the column context in {str(path)!r}, found {found}")
        return python_values(table.column("context")), table
    if kinds != {"json"}:
        raise StorageError(f"expected contexts as Parquet or JSON lines, found {str(path)!r}")
    pairs = []
    for part in file_parts(Path(path)):
        with _readable(part):
            for row in json_rows(part):
                if row.problem is not None or "context" not in row.value:
                    found = row.problem or f"expected the key context, found {', '.join(row.value)}"
                    raise StorageError(f"cannot read {str(part)!r}, line {row.line}: {found}")
                values = dict(row.value)
                pairs.append((values.pop("context"), values))
    return [id_ for id_, _ in pairs], pairs


def read_stream(file: Any, types: Mapping[str, str]) -> Iterator[EventRows]:
    """Events as JSON lines, as they arrive: each time all whole lines that are there."""
    rest, number, line, chunk = b"", 0, 1, b"\n"
    while chunk:
        chunk = file.read1(STREAM)
        whole = (rest + chunk).split(b"\n")
        rest = whole.pop() if chunk else b""
        if line == 1 and whole:
            whole[0] = whole[0].removeprefix(codecs.BOM_UTF8)
        texts = [each.decode("utf-8", "surrogateescape") for each in whole]
        rows = list(json_line_rows(texts, number, line))
        yield from _row_batches(iter(rows), json_event(types))
        number, line = number + len(rows), line + len(whole)


def read_stream_subscriptions(file: Any) -> SubscriptionRows:
    """Subscriptions as JSON lines, CSV with the columns id and expr, or one expression a line."""
    text = file.read().decode("utf-8-sig", "surrogateescape")
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "").strip()
    if first.startswith("{"):
        return _from_rows(json_line_rows(lines, 0, 1), is_csv=False)
    header = next(csv.reader([first[:HEADER]]), [])
    if {"id", "expr"} <= set(header):  # no expression begins so
        return _from_rows(csv_line_rows(StringIO(text, newline=""), "standard input"), is_csv=True)
    return read_lines(lines)


def _pairs(rows: Any) -> list[tuple[Any, Any]]:
    if isinstance(rows, pa.Table):
        return list(zip(python_values(rows["id"]), python_values(rows["expr"]), strict=True))
    return list(rows)


def _has_ids(table: pa.Table) -> bool:
    return EVENT_ID in table.column_names


def _arrow_batches(path: Path, kind: str) -> Iterator[pa.Table]:
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                yield pa.Table.from_batches([batch])
        return
    for batch in _ipc_batches(path):
        for at in range(0, batch.num_rows, BATCH):
            yield pa.Table.from_batches([batch.slice(at, BATCH)])


def _ipc_batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            yield from pa.ipc.open_stream(source)
        else:
            yield from (file.get_batch(n) for n in range(file.num_record_batches))


def _row_batches(rows: Iterator[Row], read: Callable[[dict[str, Any]], Any]) -> Iterator[EventRows]:
    while batch := list(islice(rows, BATCH)):
        # None is no event: the engine counts it as wrong, and the reason is in `unreadable`.
        events = [None if row.problem else read(row.value) for row in batch]
        ids = [row.value.get(EVENT_ID) for row in batch]
        unreadable = [
            Unreadable(n, row.line, row.problem) for n, row in enumerate(batch) if row.problem
        ]
        yield EventRows(events, ids, unreadable)
