"""One predicate: from the token it starts at to the node, and the token after it.

    name op literal          literal op name          literal op literal
    name [NOT] BETWEEN literal AND literal            name [NOT] IN (literal, ...)
    name [NOT] LIKE 'pattern' [ESCAPE 'c']            name IS [NOT] NULL
    name                     TRUE  FALSE  NULL

Most literals are plain strings and short integers: `_quick` reads those without a further call, all
others go through `_literal`.
"""

from __future__ import annotations

from math import isnan
from typing import NoReturn

from matchwood.lang.literals import LiteralError, number, string
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.nodes import (
    FLIPPED_OP,
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Or,
    Value,
)
from matchwood.lang.patterns import canonical
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, OPERATORS, WORDS, spellings

_CONSTANTS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_TYPED = spellings("DATE", "TIMESTAMP") | spellings("TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_AFTER_BARE = frozenset((END, ")", *spellings("AND", "OR", "XOR", "XNOR")))
_LITERAL = "a literal"
_NO_ATTRIBUTE = "two attributes cannot be compared, and strings need quotes"
_NO_FUNCTION = "functions are not part of the language, compare the attribute itself"
_SPECIAL_FLOATS = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-infinity": float("-inf"),
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
}


def predicate(source: Source, i: int) -> tuple[Expr, int]:
    """The predicate or constant that starts at token i."""
    tokens = source.tokens
    name = tokens[i]
    if not name.isidentifier():
        if not (name[0].isalpha() or name[0] in "_`") or name[-1] in "'\"":
            return _literal_first(source, i)
        name = source.name(i)
    elif name in WORDS:
        return _literal_first(source, i)
    op = OPERATORS.get(tokens[i + 1])
    if op is not None:
        value = _quick(tokens[i + 2])
        if value is not None:
            return Comparison(name, op, value, source.places[i]), i + 3
        value, after = _literal(source, i + 2)
        if value is None:
            return Const(None, source.places[i]), after
        return Comparison(name, op, value, source.places[i]), after
    word = WORDS.get(tokens[i + 1])
    if word == "NOT":
        word = WORDS.get(tokens[i + 2])
        if word == "IN" or word == "BETWEEN" or word == "LIKE":
            return _VERBS[word](source, i, name, i + 3, True)
        source.expected(i + 2, "IN, BETWEEN or LIKE after NOT", _not_null(word))
    verb = _VERBS.get(word) if word is not None else None
    if verb is not None:
        return verb(source, i, name, i + 2, False)
    if tokens[i + 1] in _AFTER_BARE:
        return Comparison(name, "=", True, source.places[i]), i + 1
    return _unusual(source, i)


def _not_null(word: str | None) -> str:
    return "write IS NOT NULL" if word == "NULL" else ""


def _in(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    tokens = source.tokens
    if tokens[j] != "(":
        source.expected(j, "( after IN", "write the values as IN (1, 2, 3)")
    if tokens[j + 1] == ")":
        source.expected(
            j + 1, "a literal in IN (...)", "an empty list matches nothing, write FALSE"
        )
    values: list[Value | None] = []
    while True:
        value: Value | None = _quick(tokens[j + 1])
        if value is not None:
            j += 2
        else:
            value, j = _literal(source, j + 1)
        values.append(value)
        token = tokens[j]
        if token != ",":
            break
    if token != ")":
        source.expected(j, ", or ) in IN (...)")
    return In(name, tuple(values), negated, source.places[i]), j + 1


def _between(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    tokens = source.tokens
    low: Value | None = _quick(tokens[j])
    if low is not None:
        j += 1
    else:
        low, j = _literal(source, j, "a lower bound after BETWEEN")
    if WORDS.get(tokens[j]) != "AND":
        source.expected(j, "AND and an upper bound", "write BETWEEN low AND high")
    high: Value | None = _quick(tokens[j + 1])
    if high is not None:
        j += 2
    else:
        high, j = _literal(source, j + 1, "an upper bound after AND")
    at = source.places[i]
    if low is None or high is None:
        return _half_open(name, low, high, negated, at), j
    return Between(name, low, high, negated, at), j


def _half_open(name: str, low: Value | None, high: Value | None, negated: bool, at: int) -> Expr:
    """x BETWEEN a AND NULL  ->  x >= a AND NULL;  negated  ->  x < a OR NULL."""
    below, above = ("<", ">") if negated else (">=", "<=")
    sides = (
        Const(None, at) if low is None else Comparison(name, below, low, at),
        Const(None, at) if high is None else Comparison(name, above, high, at),
    )
    return Or(sides, at) if negated else And(sides, at)


def _like(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    start = j
    pattern, j = _literal(source, j, "a pattern in quotes after LIKE")
    escape: Value | None = "\\"
    if WORDS.get(source.tokens[j]) == "ESCAPE":
        escape, j = _literal(source, j + 1, "one character in quotes after ESCAPE")
        if not isinstance(escape, str):
            source.expected(j - 1, "one character in quotes after ESCAPE")
    if pattern is None:
        return Const(None, source.places[i]), j
    if not isinstance(pattern, str):
        source.expected(start, "a pattern in quotes after LIKE")
    try:
        pattern = canonical(pattern, escape)
    except LiteralError as error:
        source.fail(start, str(error))
    return Like(name, pattern, negated, source.places[i]), j


def _is(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    word = WORDS.get(source.tokens[j])
    if word == "NOT":
        negated = True
        j += 1
        word = WORDS.get(source.tokens[j])
    if word != "NULL":
        hint = "write x = TRUE and x = FALSE" if word in _CONSTANTS else "IS tests for NULL alone"
        source.expected(
            j, "NULL or NOT NULL after IS" if not negated else "NULL after IS NOT", hint
        )
    return IsNull(name, negated, source.places[i]), j + 1


_VERBS = {"IN": _in, "BETWEEN": _between, "LIKE": _like, "IS": _is}


def _quick(token: str) -> str | int | None:
    """The value of a plain string or a short integer; None for every other token."""
    first = token[0]
    if first == "'":
        if token.count("'") == 2 and "\\" not in token:
            return token[1:-1]
    elif first <= "9" and len(token) < 19 and token.isdigit():
        return int(token)
    return None


def _literal(source: Source, i: int, what: str = _LITERAL) -> tuple[Value | None, int]:
    """Any literal at token i, parentheses and signs included; None is NULL."""
    tokens = source.tokens
    opened = 0
    while tokens[i] == "(":
        opened += 1
        i += 1
    value, i = _signed(source, i, what)
    for _ in range(opened):
        if tokens[i] != ")":
            source.expected(i, ") after the literal")
        i += 1
    return value, i


def _signed(source: Source, i: int, what: str) -> tuple[Value | None, int]:
    tokens = source.tokens
    sign = ""
    start = i
    while (token := tokens[i]) == "-" or token == "+":
        if token == "-":
            sign = "" if sign else "-"
        i += 1
    try:
        if token[0] in "0123456789.+-" and len(token) > 1 or token in "0123456789":
            if token[0] == "-":
                sign = "" if sign else "-"
            return number(sign + token.lstrip("+-")), i + 1
        if i > start:
            source.expected(i, "a number after the sign")
        if token[0] in "'\"" or (token[-1] in "'\"" and token[0] in "rR"):
            return string(token), i + 1
        word = WORDS.get(token)
        if word in _CONSTANTS:
            return _CONSTANTS[word], i + 1
        if token in _TYPED and tokens[i + 1][-1] in "'\"":
            return _moment(_TYPED[token], string(tokens[i + 1])), i + 2
        if token.lower() == "double" and tokens[i + 1] == "(":
            return _special_float(source, i)
    except LiteralError as error:
        source.fail(i, str(error))
    _no_literal(source, i, what)


def _moment(kind: str, text: str) -> Value:
    if kind == "DATE":
        return read_date(text)
    return read_timestamp(text, zoned=kind != "TIMESTAMP_NTZ")


def _special_float(source: Source, i: int) -> tuple[Value, int]:
    """double('NaN'), double('Infinity'), double('-Infinity'): what no numeric literal can say."""
    tokens = source.tokens
    if tokens[i + 2][-1] in "'\"" and tokens[i + 3] == ")":
        value = _SPECIAL_FLOATS.get(string(tokens[i + 2]).strip().lower())
        if value is not None:
            return value, i + 4
    source.expected(
        i, _LITERAL, "double('NaN'), double('Infinity') and double('-Infinity') are the only calls"
    )


def _no_literal(source: Source, i: int, what: str) -> NoReturn:
    token = source.tokens[i]
    hint = ""
    if token not in WORDS and (token[0].isalpha() or token[0] in "_`"):
        source.name(i)
        hint = _NO_FUNCTION if source.tokens[i + 1] == "(" else _NO_ATTRIBUTE
    source.expected(i, what, hint)


def _unusual(source: Source, i: int) -> tuple[Expr, int]:
    """A name that is followed by neither operator nor connective: a typed literal, or an error."""
    token, following = source.tokens[i], source.tokens[i + 1]
    if following[0] in "'\"" and token in _TYPED:
        return _literal_first(source, i)
    if following == "(":
        if token.lower() == "double":
            return _literal_first(source, i)
        source.expected(i, "an attribute", _NO_FUNCTION)
    source.expected(
        i + 1, "a comparison (= <> < <= > >= IN BETWEEN LIKE IS), AND, OR or the end of the text"
    )


def _literal_first(source: Source, i: int) -> tuple[Expr, int]:
    """3 < price  ->  price > 3;  1 = 1  ->  TRUE;  TRUE, FALSE and NULL alone."""
    tokens = source.tokens
    token = tokens[i]
    if token == ")" or token == END or (token in WORDS and WORDS[token] not in _CONSTANTS):
        source.expected(i, "a predicate", _needs_ticks(source, i))
    left, j = _literal(source, i, "a predicate")
    op = OPERATORS.get(tokens[j])
    if op is None:
        if left is None or left is True or left is False:
            if tokens[j] in _AFTER_BARE:
                return Const(left, source.places[i]), j
        source.expected(j, "a comparison after the literal", "start with the name of the attribute")
    name = tokens[j + 1]
    if (name[0].isalpha() or name[0] in "_`") and name not in WORDS and name[-1] not in "'\"":
        if not (tokens[j + 2][0] in "'\"(" and (name in _TYPED or name.lower() == "double")):
            place = source.places[j + 1]
            name = source.name(j + 1)
            if left is None:
                return Const(None, place), j + 2
            return Comparison(name, FLIPPED_OP[op], left, place), j + 2
    right, after = _literal(source, j + 1, "an attribute or a literal")
    if left is None or right is None:
        return Const(None, source.places[i]), after
    if _kind(left) is not _kind(right):
        source.expected(j + 1, f"a literal of the same type ({_kind(left).__name__})")
    return Const(compare(left, op, right), source.places[i]), after


def _needs_ticks(source: Source, i: int) -> str:
    token = source.tokens[i]
    if token in WORDS:
        return f"{WORDS[token]} is a reserved word, as a name it needs back-ticks"
    return ""


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)


def compare(left: Value, op: str, right: Value) -> bool:
    """Two values of one kind, compared as Spark does: NaN is the largest and equals itself."""
    a, b = (
        (isnan(value), 0.0 if isnan(value) else value)
        if isinstance(value, float)
        else (False, value)
        for value in (left, right)
    )
    return {
        "=": a == b,
        "<>": a != b,
        "<": a < b,  # type: ignore[operator]
        "<=": a <= b,  # type: ignore[operator]
        ">": a > b,  # type: ignore[operator]
        ">=": a >= b,  # type: ignore[operator]
    }[op]
