"""Every error Matchwood raises, in one tree.

    MatchwoodError
    ├── ParseError        the text is not an expression        (line, column, caret)
    ├── SchemaError       an attribute is used with two types  (position in the text)
    ├── EventError        an event carries a value of the wrong type
    ├── ExpansionError    a normal form would grow beyond its limit
    ├── IndexBuildError   an index cannot take this expression or this setting
    ├── FormatError       a snapshot is damaged, or newer than this version
    ├── StorageError      a file cannot be read or written
    └── SubscriptionError an id is unknown, taken, or of the wrong type

A message says what was expected, what was found and what to do.
"""

from __future__ import annotations

REACH = 60
"""Characters that an excerpt shows on each side of a position."""


class MatchwoodError(Exception):
    """The root: catch this one to catch everything Matchwood raises on purpose."""


class PositionedError(MatchwoodError):
    """An error that points into a text; shows the line and a caret under the place."""

    def __init__(self, message: str, text: str | None = None, position: int = -1) -> None:
        self.message = message
        self.text = text
        self.position = position
        self.line, self.column = (0, 0) if text is None or position < 0 else locate(text, position)
        super().__init__(message)

    def at(self, text: str) -> PositionedError:
        """The same error, now knowing the text that its position points into."""
        return type(self)(self.message, text, self.position)

    def __str__(self) -> str:
        if self.text is None or self.position < 0:
            return self.message
        shown, caret = _excerpt(self.text, self.position)
        return f"line {self.line}, column {self.column}: {self.message}\n  {shown}\n  {caret}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.text, self.position)


class ParseError(PositionedError):
    """The text is not an expression of the language, or is beyond its limits."""


class SchemaError(PositionedError):
    """An attribute is used with a type that is not its own."""


class EventError(MatchwoodError):
    """An event's value does not fit its attribute's type."""


class ExpansionError(MatchwoodError):
    """A normal form would grow beyond the limit; carries the estimate and the limit."""

    def __init__(self, message: str, estimate: int = 0, limit: int = 0) -> None:
        self.estimate = estimate
        self.limit = limit
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.estimate, self.limit)


class IndexBuildError(MatchwoodError):
    """An index does not exist, or cannot take this expression or this setting."""


class FormatError(MatchwoodError):
    """A snapshot is damaged, incomplete, or written by a newer version."""


class StorageError(MatchwoodError):
    """A file or directory cannot be read or written."""


class SubscriptionError(MatchwoodError, ValueError):
    """A subscription's id is unknown, already taken, or neither int nor str."""


def locate(text: str, position: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character position."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _excerpt(text: str, position: int) -> tuple[str, str]:
    """The line around a position, cut to a readable width, and a caret line below it."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    left, right = max(start, position - REACH), min(end, position + REACH)
    head = "..." if left > start else ""
    tail = "..." if right < end else ""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[left:right])
    return head + shown + tail, " " * (len(head) + position - left) + "^"
