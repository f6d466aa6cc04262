"""CSV and JSON: rows of text, and what their values mean.

Texts have no types of their own.  CSV cells, and dates and timestamps in JSON, are read as the type
that their attribute has.  What cannot be read so is left as it is, and the engine then says which
attribute of which event is wrong.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from matchwood.errors import StorageError
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp

_INTEGER = re.compile(r"[+-]?[0-9]+")


class Row(NamedTuple):
    """An object of a JSON file or a line of a CSV file, or what is wrong with it."""

    number: int
    line: int
    value: dict[str, Any]
    problem: str | None


def csv_names(path: Path) -> list[str]:
    """The header of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def csv_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        names = next(reader, [])
        number = 0
        for cells in reader:
            if not cells:
                continue
            problem = None
            if len(cells) != len(names):
                problem = f"expected {len(names)} cells, as in the header, found {len(cells)}"
            value = {name: cell or None for name, cell in zip(names, cells, strict=False)}
            yield Row(number, reader.line_num, value, problem)
            number += 1


def json_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        for number, (line, read) in enumerate(_json_values(file)):
            try:
                value = read()
            except (ValueError, RecursionError) as error:
                yield Row(number, line, {}, f"expected a JSON object, found no JSON: {error}")
                continue
            if isinstance(value, dict):
                yield Row(number, line, value, None)
            else:
                found = type(value).__name__
                yield Row(number, line, {}, f"expected a JSON object, found {found}")


def _json_values(file: IO[str]) -> Iterator[tuple[int, Callable[[], Any]]]:
    """The line of each value, and how to read it."""
    for line, text in enumerate(file, 1):
        if line == 1 and text.lstrip().startswith("["):
            try:
                values = json.loads(text + file.read())
            except ValueError as error:
                raise StorageError(
                    f"expected an array of objects, found no JSON: {error}"
                ) from None
            yield from [(0, partial(_same, value)) for value in values]
            return
        if text.strip():
            yield line, partial(json.loads, text)


def _same(value: Any) -> Any:
    return value


def json_event(types: Mapping[str, str]) -> Callable[[dict[str, Any]], Any]:
    if {"date", "timestamp"}.isdisjoint(types.values()):
        return lambda value: value
    return lambda value: with_moments(value, types)


def csv_event(types: Mapping[str, str]) -> Callable[[dict[str, Any]], Any]:
    readers = {name: _CELLS.get(kind, str) for name, kind in types.items()}

    def read(value: dict[str, Any]) -> dict[str, Any]:
        return {
            name: readers[name](cell)
            for name, cell in value.items()
            if cell is not None and name in readers
        }

    return read


def read_cell(kind: str, text: str) -> Any:
    """A text as the type of its attribute; as it is where it cannot be read so."""
    return _CELLS.get(kind, str)(text)


def with_moments(event: Any, types: Mapping[str, str], prefix: str = "") -> Any:
    """An event from JSON, with texts read as dates and timestamps where attributes are such."""
    if not isinstance(event, Mapping):
        return event
    read: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, Mapping):
            read[name] = with_moments(value, types, f"{prefix}{name}.")
        elif isinstance(value, str) and types.get(prefix + name) in ("date", "timestamp"):
            read[name] = _CELLS[types[prefix + name]](value)
        else:
            read[name] = value
    return read


def _number(text: str) -> Any:
    body = text.strip()
    if _INTEGER.fullmatch(body):
        return int(body) if len(body) < 20 else Decimal(body)
    try:
        return text if "_" in body else float(body)
    except ValueError:
        return text


def _moment(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def reader(text: str) -> Any:
        try:
            return read(text)
        except LiteralError:
            return text

    return reader


_CELLS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: {"true": True, "false": False}.get(text.strip().lower(), text),
    "number": _number,
    "int": _number,
    "float": _number,
    "timestamp": _moment(read_timestamp),
    "date": _moment(read_date),
}
