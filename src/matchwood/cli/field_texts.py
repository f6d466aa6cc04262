"""Fields of subscriptions in JSON and CSV files, which hold them as texts or numbers.

| field      | in a file                                                             |
|------------|-----------------------------------------------------------------------|
| priority   | a whole number, or its text                                           |
| expires    | a date or a timestamp (UTC unless it has a zone), or seconds since 1970 |
| attributes | an object, or its JSON text                                           |
| payload    | any JSON value; in CSV a text                                         |
| context    | the id of a context                                                   |
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from matchwood.cli.problems import Problem, problem
from matchwood.engine.formats.files import SubscriptionRows
from matchwood.engine.input.fields import moment_of, read_moment
from matchwood.errors import SubscriptionError
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_timestamp


def typed_rows(rows: SubscriptionRows) -> tuple[SubscriptionRows, list[Problem]]:
    """Rows of JSON or CSV as mappings whose fields have their types.

    Rows with a field that cannot be read are left out and returned as problems.  Tables, and rows
    without fields, stay as they are.
    """
    if isinstance(rows.rows, pa.Table) or not any(rows.more or ()):
        return rows, []
    kept, read, problems = [], [], []
    for row, ((id_, text), fields) in enumerate(zip(rows.rows, rows.more or (), strict=True)):
        try:
            typed = {name: _READ[name](value) for name, value in fields.items()}
        except (SubscriptionError, LiteralError) as error:
            wrong = SubscriptionError(str(error))
            problems.append(problem("subscription", rows.number(row), rows.line(row), id_, wrong))
            continue
        kept.append(row)
        read.append({"id": id_, "expr": text, **typed})
    return (
        replace(
            rows,
            rows=read,
            lines=None if rows.lines is None else [rows.lines[row] for row in kept],
            numbers=[rows.number(row) for row in kept],
            more=None,
        ),
        problems,
    )


def _priority(value: Any) -> int:
    try:
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (ValueError, TypeError, OverflowError):
        raise SubscriptionError(f"priority: expected a whole number, found {value!r}") from None


def _expires(value: Any) -> datetime:
    if isinstance(value, str):
        return read_timestamp(value)
    try:
        found = moment_of(read_moment(value, "expires"))
    except SubscriptionError:
        found = None
    if found is None:
        raise SubscriptionError(
            f"expires: expected a date, a timestamp or seconds since 1970, found {value!r}"
        )
    return found.astimezone(UTC)


def _unchanged(value: Any) -> Any:
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "context": _unchanged,
    "priority": _priority,
    "expires": _expires,
    "attributes": lambda value: value if isinstance(value, str) else json.dumps(value),
    "payload": _unchanged,
}
