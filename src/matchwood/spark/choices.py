"""What a job asks of the engine beside the events: a limit, and filters over own attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.engine.answers.choices import Choice as EngineChoice
from matchwood.engine.matcher import Matcher
from matchwood.engine.stores.own_attributes import Filters
from matchwood.errors import EventError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FILTER = "filter"
"""The column of events that holds filters."""


@dataclass(frozen=True)
class Choice:
    """What a job asks for.

    limit     at most so many subscriptions an event
    declared  types of the subscriptions' own attributes, if events have filters over them
    """

    limit: int | None = None
    declared: dict[str, str] | None = None

    @property
    def others(self) -> tuple[str, ...]:
        """Columns of events that are no attributes."""
        return () if self.declared is None else (FILTER,)

    def filters_of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Filters | None]:
        """The events without their filters, and these."""
        if self.declared is None:
            return batch, None
        return batch.drop_columns([FILTER]), Filters(batch.column(FILTER), self.declared)

    def part(self, filters: Filters | None, first: int) -> EngineChoice:
        """What the engine is asked for the events from `first` on."""
        return EngineChoice(self.limit, filters=filters, first_event=first)


EVERYTHING = Choice()


def add_problems(errors: dict[int, Any], filters: Filters | None) -> None:
    """Events with a bad filter are bad events."""
    for row, error in ({} if filters is None else filters.problems()).items():
        errors.setdefault(row, error)


def is_tested(matcher: Matcher, name: str) -> bool:
    """Whether a subscription tests an attribute of events."""
    without, with_it = matcher.encode([{}]), matcher.encode([{name: "x"}])
    if with_it.errors:
        return True
    pairs = zip((without, *without.others), (with_it, *with_it.others), strict=True)
    return any(one.batch.attr.tolist() != two.batch.attr.tolist() for one, two in pairs)


def plan_choice(events: StructType, declared: dict[str, str] | None, limit: int | None) -> Choice:
    """What events ask for, given what the subscriptions' own attributes declare.

    The column `filter` is one only where subscriptions have attributes; else it is a column like
    any other: an attribute of wide events, and a stranger elsewhere.
    """
    from pyspark.sql.types import StringType

    if declared is None or FILTER not in events.names:
        return Choice(limit)
    found = events[FILTER].dataType
    if not isinstance(found, StringType):
        raise EventError(
            "expected texts in the events' column filter, which is about the subscriptions' "
            f"attributes, found {found.simpleString()}: rename it if it is an attribute"
        )
    return Choice(limit, declared)


def check_filter(choice: Choice, events: StructType, shape: str, tests_filter: bool) -> None:
    """Refuse what could be meant in two ways."""
    if shape == "wide" and choice.declared is not None and tests_filter:
        raise EventError(
            "expected the events' column filter to be one over the subscriptions' attributes, "
            "found subscriptions that test an attribute of this name: rename it, or drop the "
            "subscriptions' column attributes"
        )
    if shape != "wide" and choice.declared is None and FILTER in events.names:
        raise EventError(
            "expected subscriptions with the column attributes, which the events' column filter "
            "is about, found none: drop filter, or add attributes"
        )
