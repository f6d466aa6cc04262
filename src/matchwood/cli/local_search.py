"""Matching a batch of events in this process as the options of `matchwood match` ask for it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.cli.screen import refuse
from matchwood.engine.answers.choices import Choice
from matchwood.engine.formats.files import EVENT_ID
from matchwood.engine.input.loading import python_ids
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Matches
from matchwood.engine.stores.own_attributes import Filters, FilterSet
from matchwood.errors import EventError
from matchwood.spark.choices import FILTER, add_problems, is_tested

NO_ATTRIBUTES = (
    "expected subscriptions with attributes, which --where is about, found none: "
    "add the column attributes, or leave --where out"
)


class Search:
    """Finds the matches of batches.

    limit  at most so many subscriptions an event, those of the highest priority
    where  a filter over the subscriptions' own attributes, for all events

    Where subscriptions have own attributes, an event's `filter` is an expression over them, too.
    """

    def __init__(self, matcher: Matcher, limit: int | None, where: str | None) -> None:
        self._matcher = matcher
        self._limit = limit
        self._where = where
        self._declared = matcher.own_types()
        if where is not None and self._declared is None:
            refuse(NO_ATTRIBUTES)
        # compiled here, so that a bad filter is refused before anything is read
        self._filter = None if where is None else FilterSet.of(where, self._declared or {})
        self._tests_filter = self._declared is not None and is_tested(matcher, FILTER)

    def __call__(self, events: Any) -> Matches:
        """The matches of events as `Matcher.match_many` takes them."""
        texts, others = self._split(events)
        if texts is None:
            return self._matcher.match_many(shaped(events), limit=self._limit, where=self._where)
        if self._tests_filter:
            raise EventError(
                "expected the events' filter to be one over the subscriptions' attributes, found "
                "subscriptions that test an attribute of this name: rename it, or drop the "
                "subscriptions' attributes"
            )
        filters = Filters(texts, self._declared or {})
        encoded = self._matcher.encode(shaped(others))
        add_problems(encoded.errors, filters)
        found = self._matcher.find(encoded, (), Choice(self._limit, self._filter, filters))
        ids = self._matcher.arrow_ids(encoded)
        kind = {pa.int64(): "int", pa.string(): "str"}.get(ids.type, "mixed")
        chosen = np.array(python_ids(ids.take(pa.array(found.slots))), object)
        array = chosen.astype(np.int64) if kind == "int" else chosen
        return Matches(found.offsets, array, found.errors, found.counters, kind, found.warnings)

    def _split(self, events: Any) -> tuple[pa.Array | None, Any]:
        """Filters of events, None if there are none, and the events without them."""
        if self._declared is None:
            return None, events
        if isinstance(events, pa.Table):
            if FILTER not in events.column_names:
                return None, events
            texts = events.column(FILTER)
            if texts.type not in (pa.string(), pa.large_string(), pa.null()):
                raise EventError(
                    "expected texts in the events' column filter, which is about the "
                    f"subscriptions' attributes, found {texts.type}: rename it"
                )
            return texts.cast(pa.string()).combine_chunks(), events.drop_columns([FILTER])
        found = [each.get(FILTER) if isinstance(each, dict) else None for each in events]
        if all(each is None for each in found):
            return None, events
        # a value that is no text is no expression either: its event is bad
        texts = [
            each if each is None or isinstance(each, str) else json.dumps(each) for each in found
        ]
        others = [
            {name: value for name, value in each.items() if name != FILTER}
            if isinstance(each, dict)
            else each
            for each in events
        ]
        return pa.array(texts, pa.string()), others


def shape_of(events: Any) -> str | None:
    """The shape (`spark.shapes`) of a table whose column `attributes` holds events; else None."""
    if not isinstance(events, pa.Table) or "attributes" not in events.column_names:
        return None
    others = set(events.column_names) - {EVENT_ID, "attributes"}
    first = events.schema.field("attributes").type
    if others == {"values"} and pa.types.is_list(first):
        return "arrays"
    if others:
        return None
    if pa.types.is_map(first):
        return "map"
    if pa.types.is_struct(first):
        return "struct"
    return "json" if pa.types.is_string(first) else "wide"


def shaped(events: Any) -> Any:
    """Events of a table whose column `attributes` holds them, in any shape that Spark takes."""
    shape = shape_of(events)
    if shape is None:
        return events
    batches = events.combine_chunks().to_batches()
    if not batches:
        return events
    from matchwood.spark.shapes import read_events

    return read_events(batches[0], shape)
