"""Fields that subscriptions test, and that a struct of events does not have.

They would be NULL, and `price < 20` would hold for no event, without any sign of the mistake.

    tested when the column was made      the query fails and names them
    tested by a later version alone      events keep their lists and have an error: a subscription
                                         that comes later fails no stream
    allowed with `absent`                NULL

Only where the fields of the struct, or of `attributes` in it, are the attributes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import pyarrow as pa

from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError
from matchwood.lang.names import is_context
from matchwood.spark.unknown_names import UsedNames, names_of_events

_tested: WeakKeyDictionary[Matcher, frozenset[str]] = WeakKeyDictionary()


def tested_names(matcher: Matcher) -> frozenset[str]:
    """The attributes of events that subscriptions test, those inside of computed ones, too."""
    if matcher not in _tested:
        names = UsedNames()
        matcher.encode(names)
        _tested[matcher] = frozenset(each for each in names.found if not is_context(each))
    return _tested[matcher]


@dataclass(frozen=True)
class Fields:
    """What the struct of a column of matches has to have."""

    needed: frozenset[str]
    """Tested when the column was made."""
    absent: frozenset[str]
    """Allowed to be absent."""

    def problem(self, matcher: Matcher, events: pa.Schema, shape: str) -> str | None:
        """What is wrong with all events of a later version; EventError if the call is wrong."""
        from pyspark.sql.pandas.types import from_arrow_schema

        there = names_of_events(from_arrow_schema(events), shape)
        if there is None:
            return None
        missing = tested_names(matcher) - there - self.absent
        wrong = sorted(missing & self.needed)
        if wrong:
            raise EventError(f"{_missing(wrong, there)}, or allow it: match(..., absent={wrong})")
        return f"{_missing(sorted(missing), there)} and start again" if missing else None


def fields_of(
    matcher: Matcher, declared: Collection[str], absent: Collection[str] | bool
) -> Fields | None:
    """What is asked of a struct; None if any field may be absent.

    declared  names that have types, and may be absent
    absent    names that may be absent, too, or whether all may be
    """
    if isinstance(absent, str):
        raise EventError(
            f"expected a list of names that may be absent, or True, found the text {absent!r}"
        )
    if isinstance(absent, bool):
        return None if absent else Fields(tested_names(matcher), frozenset(declared))
    return Fields(tested_names(matcher), frozenset(declared) | frozenset(absent))


def _missing(names: list[str], there: Collection[str]) -> str:
    return (
        "expected a field for every attribute that subscriptions test, found no "
        f"{', '.join(map(repr, names[:10]))} in the struct of "
        f"{', '.join(sorted(there)[:20]) or 'no fields'}: add what is missing"
    )
