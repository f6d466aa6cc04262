"""Texts of the usual form straight to leaf rows: predicates joined by AND, no tree in between.

    price BETWEEN 20 AND 40 AND genre IN ('classics', 'crime') AND format <> 'paperback'

One compiled pattern cuts a text into its predicates, in C: a name, a verb and what follows it.  If
the pieces make up the whole text, each becomes a row; what verbs and constants mean is kept from
one text to the next.  A text that is anything else, or wrong, is left to the parser: whatever is
written here is what the parser and `LeafBatch.add` would have written.  Many texts are read by
compiled code (`texts/bulk`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from matchwood.encode.leaves import OPERATORS as ROW_OPERATORS
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.merge_kernels import and_token
from matchwood.errors import MatchwoodError
from matchwood.lang.names import is_context
from matchwood.lang.nodes import Comparison
from matchwood.lang.parser import parse
from matchwood.lang.tokens import END, MAX_TEXT, OPERATORS

MOST_KEPT = 50_000
"""Names, and constants of each verb, that are kept; when there are more they are forgotten."""
LONGEST_KEPT = 60
"""Characters of constants that are kept."""

_B = r"[ \t\n\r\f\v]"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*(?![A-Za-z0-9_.])"
_LITERAL = r"(?:'[^'\\]*+'(?!')|[-+]?[0-9]++(?:\.[0-9]++)?(?![0-9A-Za-z_.]))"
_WORD = rf"(?<={_B})(?:(?:NOT{_B}++)?(?:BETWEEN|IN|LIKE)|IS)\b"
_REST = (
    rf"{_LITERAL}(?:{_B}++AND{_B}++{_LITERAL})?|"
    rf"\({_B}*+{_LITERAL}(?:{_B}*+,{_B}*+{_LITERAL})*{_B}*+\)|(?:NOT{_B}++)?NULL\b"
)
_PIECE = re.compile(
    rf"(({_NAME}){_B}*+(==|<>|!=|<=|>=|[=<>]|{_WORD}){_B}*+({_REST})"
    rf"(?:{_B}++AND{_B}++(?=[A-Za-z_])|{_B}*+\Z))",
    re.ASCII | re.IGNORECASE,
)
_VALUE = re.compile(_LITERAL)
_BETWEEN = re.compile(rf"({_LITERAL}){_B}++AND{_B}++({_LITERAL})", re.ASCII | re.IGNORECASE)

Row = tuple[int, tuple[Any, ...]]
"""An operator of `leaves`, and the constants."""


class _Left(Exception):
    """A text that is not of the usual form."""


class _Verb(dict[str, Row]):
    """The rows of one verb by what follows it, worked out at their first use."""

    def __init__(self, read: Callable[[str], Row]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, rest: str) -> Row:
        row = self._read(rest)
        if len(rest) <= LONGEST_KEPT:
            if len(self) >= MOST_KEPT:
                self.clear()
            self[rest] = row
        return row


def write_text(batch: LeafBatch, text: str) -> bool:
    """Write the rows of a text; False, with nothing written, where it is left to the parser."""
    if not text.isascii() or len(text) > MAX_TEXT or END in text:  # END: the parser refuses it
        return False
    pieces = _PIECE.findall(text)
    known, verbs = _names, _verbs
    used: list[str] = []
    ops: list[int] = []
    places: list[int] = []
    starts: list[int] = []
    values: list[Any] = []
    at, n_values = 0, len(batch.values)
    try:
        for whole, name, verb, rest in pieces:
            if name not in known:
                _learn(name)
            op, constants = verbs[verb][rest]
            used.append(name)
            ops.append(op)
            places.append(at)
            values += constants
            starts.append(n_values + len(values))
            at += len(whole)
    except (_Left, MatchwoodError):
        return False
    if at != len(text) or not used:
        return False
    row, last, names = len(batch.attr), len(batch.attr) + len(used), batch.names
    if len(used) > 1:
        batch.code.append(and_token(len(used)))
    batch.code.extend(range(row, last))
    batch.attr.fromlist([names.setdefault(name, len(names)) for name in used])
    batch.op.extend(ops)
    batch.position.fromlist(places)
    batch.values += values
    batch.start.fromlist(starts)
    batch.expr_start.append(len(batch.code))
    batch.row_start.append(last)
    return True


# -- what names, verbs and constants are --------------------------------------------------------

_names: set[str] = set()


def _learn(name: str) -> None:
    """Keep a name that the parser takes for itself; any other is the parser's."""
    read = parse(f"{name} = 1")
    if not isinstance(read, Comparison) or read.name != name or is_context(name):
        raise _Left
    if len(_names) >= MOST_KEPT:
        _names.clear()
    _names.add(name)


class _Verbs(dict[str, _Verb]):
    """Verbs by their spelling."""

    def __missing__(self, spelling: str) -> _Verb:
        word = " ".join(spelling.upper().split())
        verb = self[spelling] = _verb(word)
        return verb


@lru_cache
def _verb(word: str) -> _Verb:
    if word in OPERATORS:
        op = ROW_OPERATORS[OPERATORS[word]]
        return _Verb(lambda rest: (op, (_value(rest),)))
    return _Verb(lambda rest: _row(f"{word} {rest}", word, rest))


def _value(rest: str) -> Any:
    """The constant that follows an operator."""
    if rest.isdigit() and len(rest) < 19:
        return int(rest)
    if rest[0] == "'" and rest.count("'") == 2:
        return rest[1:-1]
    if not _VALUE.fullmatch(rest):
        raise _Left
    return _row(f"= {rest}", "=", rest)[1][0]


def _row(predicate: str, word: str, rest: str) -> Row:
    """The row of a predicate, as the parser and `LeafBatch` make it."""
    if word.endswith("BETWEEN") and not _BETWEEN.fullmatch(rest):
        raise _Left
    batch = LeafBatch()
    batch.add(parse(f"x {predicate}"))
    if len(batch.attr) != 1 or len(batch.code) != 1 or list(batch.names) != ["x"]:
        raise _Left
    return batch.op[0], tuple(batch.values)


_verbs = _Verbs()
