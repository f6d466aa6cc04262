"""Events as dicts, for questions about single events: from an option, a file or standard input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from matchwood.cli.local_search import shape_of
from matchwood.cli.match_job import read_batches
from matchwood.cli.screen import progress, refuse
from matchwood.encode.arrow.values import plain_values
from matchwood.engine.formats.files import EventRows
from matchwood.engine.formats.text_files import csv_event, read_json, with_moments
from matchwood.engine.matcher import Matcher


def read_event(text: str) -> dict[str, Any]:
    """The event of `--event`; the command ends if it is no JSON object."""
    try:
        event = read_json(text)
    except (ValueError, RecursionError) as error:
        refuse(f"expected a JSON object as --event, found no JSON: {error}")
    if not isinstance(event, dict):
        refuse(f"expected a JSON object as --event, found {type(event).__name__}")
    return event


def typed_event(matcher: Matcher, event: dict[str, Any]) -> dict[str, Any]:
    """An event from JSON, with texts as dates and timestamps where they are compared with such."""
    found: dict[str, Any] = with_moments(event, matcher.text_types())
    return found


def numbered_events(matcher: Matcher, source: str) -> Iterator[tuple[Any, Any]]:
    """The `event_id` of each event, else its number from 0, and its values.

    The values of what is no event are None.
    """
    types, first = matcher.text_types(), 0
    with progress("events") as advance:
        for batch in read_batches(source, types):
            values = _dicts(batch, types)
            ids = batch.ids or [None] * len(values)
            for row, (id_, each) in enumerate(zip(ids, values, strict=True)):
                yield (first + row if id_ is None else id_), each
            first += len(values)
            advance(first, None)


def _dicts(batch: EventRows, types: dict[str, str]) -> list[Any]:
    """The events of a batch; those of a table in any shape that `match` takes."""
    events = batch.events
    if not isinstance(events, pa.Table):
        return list(events)
    columns = {name: plain_values(events.column(name)) for name in events.column_names}
    shape = shape_of(events)
    if shape in ("struct", "map"):
        found = columns["attributes"]
    elif shape == "arrays":
        pairs = zip(columns["attributes"], columns["values"], strict=True)
        found = [dict(zip(*each, strict=True)) if None not in each else None for each in pairs]
    elif shape == "json":
        return [_from_json(text, types) for text in columns["attributes"]]
    else:
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    as_typed = csv_event(types)
    has_texts = shape != "struct" and any(
        isinstance(value, str) for each in found if each for value in each.values()
    )
    return [as_typed(each) if has_texts and each else each for each in found]


def _from_json(text: Any, types: dict[str, str]) -> Any:
    try:
        return with_moments(read_json(text), types)
    except (TypeError, ValueError, RecursionError):
        return None
