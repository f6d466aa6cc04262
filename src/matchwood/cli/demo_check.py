"""SQLite as a second opinion: the same texts, the same rows, another program.

A text of the bookshop is SQL that SQLite reads too, once timestamps are plain text (whose
order is that of time) and a dotted name is quoted.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

_MOMENT = re.compile(r"\b(?:TIMESTAMP|DATE) (?=')")
_DOTTED = re.compile(r"\b([a-z]\w*\.\w+)\b(?=(?:[^']*'[^']*')*[^']*$)")


def matches_in_sqlite(texts: Sequence[str], events: Sequence[Mapping[str, Any]]) -> list[set[int]]:
    """For every text, the numbers of the events that SQLite finds it true for."""
    rows = [_flat(event) for event in events]
    names = sorted({name for row in rows for name in row})
    database = sqlite3.connect(":memory:")
    try:
        database.execute("PRAGMA case_sensitive_like = ON")
        columns = ", ".join([f'"{name}"' for name in names])
        database.execute(f"CREATE TABLE event (number INTEGER, {columns})")
        marks = ", ".join("?" * (len(names) + 1))
        values = [(n, *[row.get(name) for name in names]) for n, row in enumerate(rows)]
        database.executemany(f"INSERT INTO event VALUES ({marks})", values)  # noqa: S608 - marks
        return [_numbers(database, text) for text in texts]
    finally:
        database.close()


def _numbers(database: sqlite3.Connection, text: str) -> set[int]:
    condition = _DOTTED.sub(r'"\1"', _MOMENT.sub("", text))
    found = database.execute(f"SELECT number FROM event WHERE {condition}")  # noqa: S608 - our text
    return {number for (number,) in found}


def _flat(event: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, Mapping):
            values |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, datetime):
            values[prefix + name] = f"{value:%Y-%m-%d %H:%M:%S}"
        else:
            values[prefix + name] = str(value) if isinstance(value, date) else value
    return values
