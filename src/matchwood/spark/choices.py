"""Which of the subscriptions that hold for an event it gets: those it asks for, and the best.

found ──► filter (`filters`) ──► the `limit` of the highest priority (`own.best`) ──► given
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.engine.matches import Found
from matchwood.errors import EventError, MatchwoodError
from matchwood.spark.filters import FILTER, Filters, OwnKind
from matchwood.spark.own import Own, best, read_own

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Choice:
    """What a job asks for.

    limit  at most so many subscriptions an event
    kind   of the subscriptions' own attributes, if events have filters over them
    """

    limit: int | None = None
    kind: OwnKind | None = None

    @property
    def others(self) -> tuple[str, ...]:
        """Columns of events that are no attributes."""
        return () if self.kind is None else (FILTER,)

    def own_of(self, folder: Path) -> Own:
        return read_own(folder) if self.limit is not None or self.kind is not None else Own()

    def filters_of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Filters | None]:
        """The events without their filters, and these."""
        if self.kind is None:
            return batch, None
        return batch.drop_columns([FILTER]), Filters(batch.column(FILTER), self.kind)

    def choose(self, own: Own, filters: Filters | None, found: Found, first: int) -> Found:
        """Of what was found for the events from `first` on, what they get."""
        if filters is not None:
            assert own.attributes is not None
            found = filters.keep(found, first, own.attributes)
        return found if self.limit is None else best(found, own.priority, self.limit)


EVERYTHING = Choice()


def add_problems(errors: dict[int, Any], filters: Filters | None) -> None:
    """Events with a bad filter are bad events."""
    for row, error in ({} if filters is None else filters.problems()).items():
        errors.setdefault(row, error)


def check_limit(limit: Any) -> None:
    if limit is not None and (type(limit) is not int or limit < 1):
        raise MatchwoodError(
            f"expected limit to be a whole number from 1, found {limit!r}: "
            "leave it out to get all matches"
        )


def plan_choice(events: StructType, attributes: pa.DataType | None, limit: int | None) -> Choice:
    """What events ask for, given the type of the subscriptions' own attributes.

    The column `filter` is one only where subscriptions have attributes; else it is a column like
    any other: an attribute of wide events, and a stranger elsewhere.
    """
    from pyspark.sql.types import StringType

    if attributes is None or FILTER not in events.names:
        return Choice(limit)
    found = events[FILTER].dataType
    if not isinstance(found, StringType):
        raise EventError(
            "expected texts in the events' column filter, which is about the subscriptions' "
            f"attributes, found {found.simpleString()}: rename it if it is an attribute"
        )
    return Choice(limit, OwnKind.of(attributes))


def check_filter(choice: Choice, events: StructType, shape: str, tests_filter: bool) -> None:
    """Refuse what could be meant in two ways."""
    if shape == "wide" and choice.kind is not None and tests_filter:
        raise EventError(
            "expected the events' column filter to be one over the subscriptions' attributes, "
            "found subscriptions that test an attribute of this name: rename it, or drop the "
            "subscriptions' column attributes"
        )
    if shape != "wide" and choice.kind is None and FILTER in events.names:
        raise EventError(
            "expected subscriptions with the column attributes, which the events' column filter "
            "is about, found none: drop filter, or add attributes"
        )
