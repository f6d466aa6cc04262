"""CSV and JSON: rows of text, and what their values mean.

Texts have no types of their own.  CSV cells, and dates and timestamps in JSON, are read as the type
that their attribute has.  What cannot be read so is left as it is, and the engine then says which
attribute of which event is wrong.

A byte that is no UTF-8, or a cell that is too long, spoils its row alone: files are read with such
bytes as lone surrogates (`surrogateescape`), and a row that has one is a problem.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from matchwood.engine.formats.compressed import open_text
from matchwood.errors import StorageError
from matchwood.lang.cells import CELL, CELLS, Cell

_BAD_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = 0xDC00


class Row(NamedTuple):
    """An object of a JSON file or a line of a CSV file, or what is wrong with it."""

    number: int
    line: int
    value: dict[str, Any]
    problem: str | None


def csv_names(path: Path) -> list[str]:
    """The header of a CSV file."""
    with open_text(path, newline="") as file:
        return next(csv.reader(file), [])


def csv_rows(path: Path) -> Iterator[Row]:
    with open_text(path, newline="") as file:
        yield from csv_line_rows(file, str(path))


def csv_line_rows(file: Iterable[str], source: str) -> Iterator[Row]:
    """The rows of lines of CSV, the first of which is the header; `source` names it in errors."""
    lines = _RecordLines(file)
    reader = csv.reader(lines)
    names = next(reader, [])
    if problem := bad_byte("".join(names)):
        raise StorageError(f"cannot read the header of {source!r}: {problem}")
    number = 0
    while True:
        lines.begin()
        try:
            cells = next(reader)
            problem = _cells_problem(cells, names)
        except StopIteration:
            return
        except csv.Error as error:
            lines.skip()
            cells, problem = [""], f"expected cells of CSV, found none: {error}"
        if not cells:
            continue
        value = {name: cell or None for name, cell in zip(names, cells, strict=False)}
        yield Row(number, lines.number, value, problem)
        number += 1


def _cells_problem(cells: list[str], names: list[str]) -> str | None:
    if len(cells) != len(names):
        return f"expected {len(names)} cells, as in the header, found {len(cells)}"
    return next(filter(None, map(bad_byte, cells)), None)


class _RecordLines:
    """The lines of a CSV file, and whether a record of several lines may have ended."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file = iter(file)
        self._n_quotes = 0
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._file)
        self.number += 1
        self._n_quotes += line.count('"')
        return line

    def begin(self) -> None:
        """A record begins."""
        self._n_quotes = 0

    def skip(self) -> None:
        """Pass over what is left of a record; a quote that is open is closed further down."""
        while self._n_quotes % 2 and next(self, None) is not None:
            pass


def bad_byte(text: str) -> str | None:
    """What is wrong with a text that was read with `surrogateescape`; None if nothing is."""
    found = None if text.isascii() else _BAD_BYTE.search(text)
    if found is None:
        return None
    return f"expected UTF-8, found the byte 0x{ord(found.group()) - _SURROGATE:02x}"


def json_rows(path: Path) -> Iterator[Row]:
    with open_text(path) as file:
        for number, (line, read) in enumerate(_json_values(file)):
            yield _json_row(number, line, read)


def json_line_rows(lines: Iterable[str], first: int, first_line: int) -> Iterator[Row]:
    """The objects of some lines; blank lines do not count.

    first, first_line  the number of the first row, from 0, and of the first line, from 1
    """
    number = first
    for line, text in enumerate(lines, first_line):
        if text.strip():
            yield _json_row(number, line, partial(_loaded, text))
            number += 1


def _json_row(number: int, line: int, read: Callable[[], Any]) -> Row:
    try:
        value = read()
    except (ValueError, RecursionError) as error:
        return Row(number, line, {}, f"expected a JSON object, found no JSON: {error}")
    if isinstance(value, dict):
        return Row(number, line, value, None)
    return Row(number, line, {}, f"expected a JSON object, found {type(value).__name__}")


def _json_values(file: IO[str]) -> Iterator[tuple[int, Callable[[], Any]]]:
    """The line of each value, and how to read it."""
    for line, text in enumerate(file, 1):
        if line == 1 and text.lstrip().startswith("["):
            whole = text + file.read()
            constants: list[str] = []
            try:
                values = json.loads(whole, parse_constant=constants.append)
            except (ValueError, RecursionError) as error:
                raise StorageError(
                    f"expected an array of objects, found no JSON: {error}"
                ) from None
            if constants:  # rare: read once more, so that each is found in its own row
                values = json.loads(whole, parse_constant=_NotJson)
            check = _checked if constants or bad_byte(whole) else _same
            yield from [(0, partial(check, value)) for value in values]
            return
        if text.strip():
            yield line, partial(_loaded, text)


def _same(value: Any) -> Any:
    return value


def _checked(value: Any) -> Any:
    """A value of a file that has bad bytes, or constants such as NaN; ValueError if it has one."""
    if problem := bad_byte(json.dumps(value, ensure_ascii=False, default=_refuse)):
        raise ValueError(problem)
    return value


class _NotJson:
    """NaN, Infinity or -Infinity, which Python's reader takes and no other."""

    def __init__(self, name: str) -> None:
        self.name = name


def _refuse(value: Any) -> Any:
    raise ValueError(f"{value.name} is no JSON: leave the value out, or write null")


def _loaded(text: str) -> Any:
    if problem := bad_byte(text):
        raise ValueError(problem)
    return read_json(text)


def read_json(text: str | bytes) -> Any:
    """A value of JSON; ValueError for everything else, NaN and Infinity included."""
    return json.loads(text, parse_constant=lambda name: _refuse(_NotJson(name)))


def json_event(types: Mapping[str, str]) -> Callable[[dict[str, Any]], Any]:
    if {"date", "timestamp"}.isdisjoint(types.values()):
        return lambda value: value
    return lambda value: with_moments(value, types)


def csv_event(types: Mapping[str, str]) -> Callable[[dict[str, Any]], Any]:
    readers = {name: CELLS.get(kind, str) for name, kind in types.items() if kind != CELL}

    def read(value: dict[str, Any]) -> dict[str, Any]:
        # a cell without a type is a text, and whatever predicates of several kinds make of it
        return {
            name: readers[name](cell) if name in readers else Cell(cell)
            for name, cell in value.items()
            if cell is not None
        }

    return read


def with_moments(event: Any, types: Mapping[str, str], prefix: str = "") -> Any:
    """An event from JSON, with texts read as dates and timestamps where attributes are such."""
    if not isinstance(event, Mapping):
        return event
    read: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, Mapping):
            read[name] = with_moments(value, types, f"{prefix}{name}.")
        elif isinstance(value, str) and types.get(prefix + name) in ("date", "timestamp"):
            read[name] = CELLS[types[prefix + name]](value)
        else:
            read[name] = value
    return read
