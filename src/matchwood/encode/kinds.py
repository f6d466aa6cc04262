"""Open attributes: one internal attribute for each kind of value that predicates ask for.

An attribute that no schema and no column declares is open, as in JSON: `x > 5` looks at numbers and
`x = 'a'` at strings.  Each kind has keys of its own, so it is an attribute of its own, under a name
that no event can use:

    x               its presence: IS NULL, IS NOT NULL; and relations with the context
    x NUL number    its values that are numbers             x > 5
    x NUL string    its values that are strings             x LIKE 'a%'
    x NUL bool      its values that are booleans            x = TRUE
    x NUL date      its dates and timestamps, and strings that read as one   x > DATE '...'
    x NUL timestamp the same, and strings that read as a timestamp      x > TIMESTAMP '...'
    x NUL day       its dates, and strings that read as one   x > ctx.y, where that is a date

Dates and timestamps have the same keys, microseconds.  They differ in what a string means, as
Spark's casts do: beside a DATE '2024-02-29T12:00' is that day, beside a TIMESTAMP it is noon.

`x NUL exact` (see `exact`) belongs to the numbers: of an open attribute it is
`x NUL number NUL exact`.
A name that begins with NUL is that of a computed attribute: its text follows.
"""

from __future__ import annotations

from matchwood.encode.exact import EXACT

MARK = "\0"
KINDS = {
    "number": "number",
    "string": "string",
    "bool": "bool",
    "date": "timestamp",
    "timestamp": "timestamp",
    "day": "date",
}
"""The kinds, and the type of their keys."""


MOMENTS = ("date", "timestamp", "day")
"""Kinds that strings may be of."""


def of_kind(name: str, kind: str) -> str:
    r"""The name of the internal attribute that holds values of one kind.

    >>> of_kind("x", "number")
    'x\x00number'
    """
    return f"{name}{MARK}{kind}"


def split(name: str) -> tuple[str, str | None]:
    """The name that users know and the kind, None for an attribute that is declared or a presence.

    >>> split(of_kind("x", "number")), split("x")
    (('x', 'number'), ('x', None))
    """
    base, mark, kind = name.removesuffix(EXACT).rpartition(MARK)
    return (base, kind) if mark and kind in KINDS and base else (name.removesuffix(EXACT), None)


def is_internal(name: str) -> bool:
    """Whether no event may use a name."""
    return MARK in name


def is_computed(name: str) -> bool:
    """Whether a name is that of a computed attribute."""
    return name.startswith(MARK)


def shown(name: str) -> str:
    """The name as messages show it: that of the attribute, or the text of a computed one."""
    return split(name)[0].removeprefix(MARK)
