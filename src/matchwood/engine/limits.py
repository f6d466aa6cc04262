"""All limits in one place: how much there may be of what, and the error that says so.

The numbers are those of the modules that enforce them; docs/limits.md shows this list.  What is not
listed (attributes, predicates, subscriptions, values in an IN list, attributes of an event) is
limited by memory alone.
"""

from __future__ import annotations

from typing import NamedTuple

from matchwood.encode.events import MAX_NESTING
from matchwood.engine.answers.choices import FILTERS_KEPT
from matchwood.engine.answers.relations import MOST_TERMS
from matchwood.engine.input.fields import MAX_OWN
from matchwood.engine.stores.own_attributes import TOGETHER
from matchwood.errors import EventError, ExpansionError, ParseError, SubscriptionError
from matchwood.forms.cost import MAX_DNF_TERMS, MAX_XOR_LEAVES
from matchwood.lang.functions.regex import MAX_GROUPS
from matchwood.lang.literals import MAX_NUMBER
from matchwood.lang.nodes import MAX_DEPTH
from matchwood.lang.reading import MAX_NESTING as MAX_COMPUTED
from matchwood.lang.tokens import MAX_TEXT


class Limit(NamedTuple):
    """How much there may be of something."""

    what: str
    most: int
    error: type[Exception] | None
    """Raised beyond the limit; None: the answer is "unknown", or something is forgotten."""
    then: str


LIMITS = (
    Limit("characters of a text", MAX_TEXT, ParseError, "split the expression"),
    Limit("levels of nesting of an expression", MAX_DEPTH, ParseError, "split the expression"),
    Limit(
        "levels of nesting of a computed attribute", MAX_COMPUTED, ParseError, "compute it before"
    ),
    Limit("levels of groups of a regular expression", MAX_GROUPS, ParseError, "write it simpler"),
    Limit("characters of a number", MAX_NUMBER, ParseError, "write it shorter"),
    Limit("predicates after writing XOR as AND / OR", MAX_XOR_LEAVES, ExpansionError, "split it"),
    Limit("conjunctions of a DNF", MAX_DNF_TERMS, ExpansionError, "raise `limit=`, or keep it"),
    Limit("levels of nesting of an event", MAX_NESTING, EventError, "flatten the event"),
    Limit("levels of nesting of a context's values", MAX_NESTING, EventError, "flatten them"),
    Limit("levels of nesting of own attributes", MAX_OWN, SubscriptionError, "flatten them"),
    Limit("bits of an id that is an int", 64, SubscriptionError, "use a string"),
    Limit("bits of a priority", 64, SubscriptionError, "use a smaller number"),
    Limit("terms that `overlaps` and `subsumes` compare", MOST_TERMS, None, "the answer is None"),
    Limit("compiled filters kept by a matcher", FILTERS_KEPT, None, "the oldest is compiled again"),
    Limit("filters of a batch that share a matcher", TOGETHER, None, "the next share another"),
)


def as_table() -> str:
    """The limits as the table of docs/limits.md."""
    lines = ["| what | at most | beyond it | then |", "|---|---|---|---|"]
    for each in LIMITS:
        error = "no error" if each.error is None else f"`{each.error.__name__}`"
        lines.append(f"| {each.what} | {each.most:,} | {error} | {each.then} |")
    return "\n".join(lines) + "\n"
