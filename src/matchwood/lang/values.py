"""Literals among tokens: which tokens make one value.

Most literals are plain strings and short integers: `quick` reads those without a further call, all
others go through `literal`.
"""

from __future__ import annotations

from decimal import Decimal
from math import isinf, isnan

from matchwood.errors import ParseError
from matchwood.lang.literals import NAN, LiteralError, decimal_of, number, string
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.nodes import Value
from matchwood.lang.source import Source
from matchwood.lang.tokens import WORDS

CONSTANTS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
NO_FUNCTION = "write a function that is on the list of docs/language.md"

_TYPED = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"))
_QUOTES = "'\""
_INF = float("inf")
_SPECIAL_FLOATS = {
    "nan": NAN,
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), _INF),
    **dict.fromkeys(("-inf", "-infinity"), -_INF),
}


def quick(token: str) -> str | int | None:
    """The value of a plain string or a short integer; None for every other token."""
    first = token[0]
    if first == "'":
        if token.count("'") == 2 and "\\" not in token:
            return token[1:-1]
    elif first <= "9" and len(token) < 19 and token.isdigit():
        return int(token)
    return None


def is_name(token: str) -> bool:
    """Whether the token is an attribute's name, with or without back-ticks."""
    return (
        (token[0].isalpha() or token[0] in "_`") and token not in WORDS and token[-1] not in _QUOTES
    )


def is_typed(source: Source, i: int) -> bool:
    """Whether the name at token i starts a literal: DATE '...', TIMESTAMP '...', double('NaN')."""
    following = source.tokens[i + 1]
    if following[0] in _QUOTES:
        return source.tokens[i].upper() in _TYPED
    return following == "(" and source.tokens[i].lower() == "double"


def literal(source: Source, i: int, what: str = "a literal") -> tuple[Value | None, int]:
    """Any literal at token i, parentheses and signs included, and the token after it."""
    tokens = source.tokens
    opened = 0
    while tokens[i] == "(":
        opened += 1
        i += 1
    try:
        value, i = _signed(source, i, what)
    except LiteralError as error:
        raise source.error(i, str(error)) from None
    for _ in range(opened):
        if tokens[i] != ")":
            raise source.expected(i, ") after the literal")
        i += 1
    return value, i


def _signed(source: Source, i: int, what: str) -> tuple[Value | None, int]:
    tokens = source.tokens
    start, minus = i, False
    while tokens[i] in ("-", "+"):
        minus ^= tokens[i] == "-"
        i += 1
    this = tokens[i]
    digits = this.lstrip("+-")
    if digits and digits[0] in "0123456789." and digits != ".":
        minus ^= this[0] == "-"
        return number("-" + digits if minus else digits), i + 1
    if i > start:
        raise source.expected(i, "a number after the sign")
    if this[0] in _QUOTES or (this[-1] in _QUOTES and this[0] in "rR"):
        return string(this), i + 1
    word = WORDS.get(this, "")
    if word in CONSTANTS:
        return CONSTANTS[word], i + 1
    if is_name(this) and is_typed(source, i):
        return _typed(source, i)
    raise _no_literal(source, i, what)


def _typed(source: Source, i: int) -> tuple[Value, int]:
    """DATE '...', TIMESTAMP '...', or double('NaN') for what no numeric literal can say."""
    tokens = source.tokens
    kind = tokens[i].upper()
    if kind == "DATE":
        return read_date(string(tokens[i + 1])), i + 2
    if kind != "DOUBLE":
        return read_timestamp(string(tokens[i + 1]), zoned=kind != "TIMESTAMP_NTZ"), i + 2
    if tokens[i + 2][0] in _QUOTES and tokens[i + 3] == ")":
        value = _SPECIAL_FLOATS.get(string(tokens[i + 2]).strip().lower())
        if value is not None:
            return value, i + 4
    allowed = "double('NaN'), double('Infinity') and double('-Infinity') are the only calls"
    raise source.expected(i, "a literal", allowed)


def _no_literal(source: Source, i: int, what: str) -> ParseError:
    hint = ""
    if is_name(source.tokens[i]):
        source.name(i)  # which has more to say about a reserved name
        hint = "strings need quotes"
        if source.tokens[i + 1] == "(":
            hint = NO_FUNCTION
    return source.expected(i, what, hint)


def same_kind(left: Value, right: Value) -> bool:
    """Whether two literals are of one type, so that comparing them makes sense."""
    kinds = {float if type(value) in (int, Decimal) else type(value) for value in (left, right)}
    return len(kinds) == 1


def compare(left: Value, op: str, right: Value) -> bool:
    """Two values of one kind, compared as Spark does: NaN is the largest and equals itself."""
    a, b = _rank(left, type(right) is Decimal), _rank(right, type(left) is Decimal)
    below, equal = a < b, a == b
    return {
        "=": equal,
        "<>": not equal,
        "<": below,
        "<=": below or equal,
        ">": not below and not equal,
        ">=": not below,
    }[op]


def _rank(value: Value, beside_decimal: bool) -> tuple[bool, Value]:
    if not isinstance(value, float):
        return False, value
    if isnan(value):
        return True, 0
    return False, decimal_of(value) if beside_decimal and not isinf(value) else value
