"""Texts that stand for values of any type: cells of CSV, values of maps and arrays of strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp

_INTEGER = re.compile(r"[+-]?[0-9]+")


CELL = "cell"
"""Stands for the type of a text that may mean a value of any type."""


class Cell(str):
    """A text whose attribute has no one type: a predicate of each kind reads it as its kind,
    a computed attribute as the place tells that reads it (`functions.cell_reading`).
    """

    __slots__ = ()


def read_cell(kind: str, text: str) -> Any:
    """A text as the type of its attribute, or as a kind; as it is where it cannot be read so.

    >>> read_cell("number", "7"), read_cell("bool", "TRUE"), read_cell("number", "a")
    (7, True, 'a')
    """
    return CELLS.get(kind, str)(text)


def _number(text: str) -> Any:
    body = text.strip()
    if _INTEGER.fullmatch(body):
        return int(body) if len(body) < 20 else Decimal(body)
    try:
        return text if "_" in body else float(body)
    except ValueError:
        return text


def _time_reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def reader(text: str) -> Any:
        try:
            return read(text)
        except LiteralError:
            return text

    return reader


CELLS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: {"true": True, "false": False}.get(text.strip().lower(), text),
    "number": _number,
    "int": _number,
    "float": _number,
    "timestamp": _time_reader(read_timestamp),
    "date": _time_reader(read_date),
}
