"""Names of attributes: which are allowed, and how they are written.

A dotted name is its parts joined by dots, whether a part stood in back-ticks or not: the text
may say user.age or put back-ticks around the whole; it is the attribute nested events flatten to.
"""

from __future__ import annotations

import re

from matchwood.lang.tokens import WORDS

RESERVED_NAMESPACE = "ctx."
"""Context references are to come; until then no attribute may look like one."""

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")

_NOT_BARE = {"select", "from", "values", "current_path"}
"""Names for us, but Spark reads `(select IS NULL)` as a query and `current_path` as a function."""


def problem(name: str) -> str | None:
    """Why no attribute may have this name; None if it may."""
    if name.startswith(RESERVED_NAMESPACE):
        return (
            f"names that start with {RESERVED_NAMESPACE} are reserved for context references, "
            "which are not yet part of the language; back-ticks do not help, rename the attribute"
        )
    if not name:
        return "a name needs at least one character"
    if "\0" in name:
        return "a name cannot contain a NUL character"
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        return "a name cannot contain a lone surrogate"
    return None


def written(name: str) -> str:
    """The name as text: bare where Spark reads it bare, else in back-ticks."""
    parts = name.split(".")
    return ticked(name) if "" in parts else ".".join(map(_part, parts))


def _part(part: str) -> str:
    is_bare = _PLAIN.fullmatch(part) and part not in WORDS and part.lower() not in _NOT_BARE
    return part if is_bare else ticked(part)


def ticked(name: str) -> str:
    """The name in back-ticks."""
    return "`" + name.replace("`", "``") + "`"
