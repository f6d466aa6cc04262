"""Names of attributes: which are allowed, and how they are written.

A dotted name is its parts joined by dots, whether a part stood in back-ticks or not: the text
may say user.age or put back-ticks around the whole; it is the attribute nested events flatten to.
"""

from __future__ import annotations

import re

from matchwood.lang.tokens import WORDS

CONTEXT = "ctx."
"""What a reference to a value of the subscription's context begins with."""

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")

INSTANTS = frozenset(("current_date", "current_time", "current_timestamp"))
"""Functions that Spark calls without parentheses, in lower case: names in back-ticks alone."""

_NOT_BARE = {"select", "from", "values", "current_path", *INSTANTS}
"""Names for us, but Spark reads `(select IS NULL)` as a query and `current_path` as a function."""


def problem(name: str) -> str | None:
    """Why no attribute may have this name; None if it may."""
    if not name or name == CONTEXT:
        return "a name needs at least one character"
    if "\0" in name:
        return "a name cannot contain a NUL character"
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        return "a name cannot contain a lone surrogate"
    return None


def is_context(name: str) -> bool:
    """Whether a name refers to the context, not to the event."""
    return name.startswith(CONTEXT)


def written(name: str) -> str:
    """The name as text: bare where Spark reads it bare, else in back-ticks; or a computed text."""
    if name.startswith("\0"):
        return name[1:]
    parts = name.split(".")
    return ticked(name) if "" in parts else ".".join(map(_part, parts))


def _part(part: str) -> str:
    is_bare = _PLAIN.fullmatch(part) and part not in WORDS and part.lower() not in _NOT_BARE
    return part if is_bare else ticked(part)


def ticked(name: str) -> str:
    """The name in back-ticks."""
    return "`" + name.replace("`", "``") + "`"
