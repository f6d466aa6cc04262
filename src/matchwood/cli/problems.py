"""Refused subscriptions and bad events, as people and as machines read them."""

from __future__ import annotations

from typing import Any

from matchwood.engine.formats.files import SubscriptionRows, Unreadable
from matchwood.engine.input.loading import Refused
from matchwood.errors import PositionedError

Problem = dict[str, Any]


def problem(of: str, row: int, line: int | None, id_: Any, error: Exception) -> Problem:
    """What is wrong with one row; `row` counts from 0, lines and columns from 1."""
    found: Problem = {"of": of, "row": row}
    if line:
        found["file_line"] = line
    found |= {"id": id_, "error": type(error).__name__, "message": str(error)}
    if isinstance(error, PositionedError) and error.line:
        found |= {"message": error.message, "line": error.line, "column": error.column}
        found["excerpt"] = str(error).partition("\n")[2]
    return found


def unreadable(of: str, each: Unreadable, row: int) -> Problem:
    return {
        "of": of,
        "row": row,
        "file_line": each.line,
        "id": None,
        "error": "StorageError",
        "message": each.message,
    }


def subscription_problems(rows: SubscriptionRows, refused: list[Refused]) -> list[Problem]:
    """All problems of a file of subscriptions, in its order."""
    found = [unreadable("subscription", each, each.row) for each in rows.unreadable]
    for each in refused:
        row, line = rows.number(each.row), rows.line(each.row)
        found.append(problem("subscription", row, line, each.id, each.error))
    return sorted(found, key=lambda one: (one.get("file_line", 0), one["row"]))


def in_one_line(found: Problem) -> str:
    """`event 3, line 4: expected ...`, for standard error."""
    id_ = f" {found['id']!r}" if found["id"] is not None else f" {found['row']}"
    line = f", line {found['file_line']}" if found.get("file_line") else ""
    column = f", column {found['column']}" if "column" in found else ""
    of = "event" if found["of"] == "attribute" else found["of"]  # the message names the attribute
    return f"{of}{id_}{line}{column}: {found['message']}".replace("\n", " ")


def as_text(source: str, found: Problem) -> str:
    """`wishes.txt:3: column 17: expected ...`, the line and a caret under the column."""
    where = source
    if found.get("file_line"):
        where += f":{found['file_line']}"
    elif found["id"] is not None:
        where += f", id {found['id']!r}"
    position = ""
    if "column" in found:
        line = f"line {found['line']}, " if found["line"] > 1 else ""
        position = f" {line}column {found['column']}:"
    excerpt = f"\n{found['excerpt']}" if found.get("excerpt") else ""
    return f"{where}:{position} {found['message']}{excerpt}"
