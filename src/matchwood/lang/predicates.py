"""One predicate: from the token it starts at to the node, and the token after it.

name op literal          literal op name          literal op literal
name op reference        reference op name        reference: ctx.name [+ number | - number]
name [NOT] BETWEEN literal AND literal            name [NOT] IN (literal, ...)
name [NOT] LIKE 'pattern' [ESCAPE 'c']            name IS [NOT] NULL
name                     TRUE  FALSE  NULL
"""

from __future__ import annotations

from matchwood.lang.literals import LiteralError
from matchwood.lang.names import INSTANTS, is_context
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
    Relation,
    Value,
)
from matchwood.lang.patterns import canonical
from matchwood.lang.references import (
    MOVE_OFFSET,
    between_references,
    has_reference,
    is_reference,
    joined,
    reference,
    reference_first,
    relation,
)
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, OPERATORS, WORDS, spellings
from matchwood.lang.values import (
    CONSTANTS,
    NO_FUNCTION,
    compare,
    is_name,
    is_typed,
    literal,
    quick,
    same_kind,
)

_AFTER_BARE = frozenset((END, ")", *spellings("AND", "OR", "XOR", "XNOR")))
_VERB_LIST = "a comparison (= <> < <= > >= IN BETWEEN LIKE IS), AND, OR or the end of the text"


def predicate(source: Source, i: int) -> tuple[Expr, int]:
    """The predicate or constant that starts at token i."""
    tokens = source.tokens
    name = tokens[i]
    if not name.isidentifier():
        if not is_name(name):
            return _literal_first(source, i)
        name = source.name(i)
        if is_context(name) and tokens[i + 1][0] in "+-":
            return reference_first(source, i)
    elif name in WORDS:
        return _literal_first(source, i)
    elif name.lower() in INSTANTS:
        source.name(i)  # which refuses it
    following = tokens[i + 1]
    op = OPERATORS.get(following)
    if op is not None:
        value: Value | None = quick(tokens[i + 2])
        if value is not None:
            return Comparison(name, op, value, source.places[i]), i + 3
        if is_name(tokens[i + 2]):
            related = relation(source, i, name, op)
            if related is not None:
                return related
        value, after = literal(source, i + 2)
        if value is None:
            return Const(None, source.places[i]), after
        return Comparison(name, op, value, source.places[i]), after
    word = WORDS.get(following, "")
    if word == "NOT":
        word = WORDS.get(tokens[i + 2], "")
        if word not in _NEGATABLE:
            hint = "write IS NOT NULL" if word == "NULL" else ""
            raise source.expected(i + 2, "IN, BETWEEN or LIKE after NOT", hint)
        return _VERBS[word](source, i, name, i + 3, True)
    if word in _VERBS:
        return _VERBS[word](source, i, name, i + 2, False)
    if following in _AFTER_BARE:
        return Comparison(name, "=", True, source.places[i]), i + 1
    if is_typed(source, i):
        return _literal_first(source, i)
    if following == "(":
        raise source.expected(i, "an attribute", NO_FUNCTION)
    raise source.expected(i + 1, _VERB_LIST)


def _in(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    tokens = source.tokens
    if tokens[j] != "(":
        raise source.expected(j, "( after IN", "write the values as IN (1, 2, 3)")
    if tokens[j + 1] == ")":
        hint = "an empty list holds nothing, write FALSE"
        raise source.expected(j + 1, "a literal in IN (...)", hint)
    values: list[Value | None] = []
    related: list[Expr] = []
    while True:
        value: Value | None = quick(tokens[j + 1])
        if value is not None:
            j += 2
        elif is_reference(source, j + 1):
            context, offset, j = reference(source, j + 1)
            op = "<>" if negated else "="
            related.append(Relation(name, op, context, offset, source.places[i]))
            if tokens[j] != ",":
                break
            continue
        else:
            value, j = literal(source, j + 1)
        values.append(value)
        if tokens[j] != ",":
            break
    if tokens[j] != ")":
        raise source.expected(j, ", or ) in IN (...)")
    if related:
        rest = (In(name, tuple(values), negated, source.places[i]),) if values else ()
        return joined((*related, *rest), And if negated else Or, source.places[i]), j + 1
    return In(name, tuple(values), negated, source.places[i]), j + 1


def _between(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    tokens = source.tokens
    low: Value | None = quick(tokens[j])
    if (low is None or quick(tokens[j + 2]) is None) and has_reference(source, j):
        return between_references(source, i, name, j, negated)
    if low is not None:
        j += 1
    else:
        low, j = literal(source, j, "a lower bound after BETWEEN")
    if WORDS.get(tokens[j]) != "AND":
        raise source.expected(j, "AND and an upper bound", "write BETWEEN low AND high")
    high: Value | None = quick(tokens[j + 1])
    if high is not None:
        j += 2
    else:
        high, j = literal(source, j + 1, "an upper bound after AND")
    at = source.places[i]
    if low is None or high is None:
        return _half_known(name, low, high, negated, at), j
    return Between(name, low, high, negated, at), j


def _half_known(name: str, low: Value | None, high: Value | None, negated: bool, at: int) -> Expr:
    """Law: x BETWEEN a AND NULL  ->  x >= a AND NULL;  negated  ->  x < a OR NULL."""
    below, above = ("<", ">") if negated else (">=", "<=")
    sides = (
        Const(None, at) if low is None else Comparison(name, below, low, at),
        Const(None, at) if high is None else Comparison(name, above, high, at),
    )
    return Or(sides, at) if negated else And(sides, at)


def _like(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    start = j
    pattern, j = literal(source, j, "a pattern in quotes after LIKE")
    escape: Value | None = "\\"
    if WORDS.get(source.tokens[j]) == "ESCAPE":
        escape, j = literal(source, j + 1, "one character in quotes after ESCAPE")
    if not isinstance(escape, str):
        raise source.expected(j - 1, "one character in quotes after ESCAPE")
    if pattern is None:
        return Const(None, source.places[i]), j
    if not isinstance(pattern, str):
        raise source.expected(start, "a pattern in quotes after LIKE")
    try:
        return Like(name, canonical(pattern, escape), negated, source.places[i]), j
    except LiteralError as error:
        raise source.error(start, str(error)) from None


def _is(source: Source, i: int, name: str, j: int, negated: bool) -> tuple[Expr, int]:
    word = WORDS.get(source.tokens[j], "")
    if word == "NOT":
        negated = True
        j += 1
        word = WORDS.get(source.tokens[j], "")
    if word != "NULL":
        hint = "IS is followed by [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"
        if word in ("IN", "LIKE", "BETWEEN"):
            hint = f"write {'NOT ' if negated else ''}{word} without IS"
        raise source.expected(j, "NULL after IS NOT" if negated else "NULL or NOT NULL", hint)
    return IsNull(name, negated, source.places[i]), j + 1


_VERBS = {"IN": _in, "BETWEEN": _between, "LIKE": _like, "IS": _is}
_NEGATABLE = frozenset(("IN", "BETWEEN", "LIKE"))


def _literal_first(source: Source, i: int) -> tuple[Expr, int]:
    """Law: 3 < price  ->  price > 3;  1 = 1  ->  TRUE;  NULL = anything  ->  NULL."""
    tokens = source.tokens
    word = WORDS.get(tokens[i], "")
    if word and word not in CONSTANTS:
        hint = f"{word} is a reserved word, as a name it needs back-ticks"
        raise source.expected(i, "a predicate", hint)
    left, j = literal(source, i, "a predicate")
    op = OPERATORS.get(tokens[j])
    if op is None:
        if tokens[j] in _AFTER_BARE and (left is None or isinstance(left, bool)):
            return Const(left, source.places[i]), j
        hint = "start with the name of the attribute"
        raise source.expected(j, "a comparison after the literal", hint)
    if is_name(tokens[j + 1]) and not is_typed(source, j + 1):
        name, position = source.name(j + 1), source.places[j + 1]
        if is_context(name) and tokens[j + 2][0] in "+-":
            raise source.expected(j + 2, "a value of the context alone", MOVE_OFFSET)
        if left is None:
            return Const(None, position), j + 2
        return Comparison(name, FLIPPED_OP[op], left, position), j + 2
    right, after = literal(source, j + 1, "an attribute or a literal")
    if left is None or right is None:
        return Const(None, source.places[i]), after
    if not same_kind(left, right):
        raise source.expected(j + 1, "a literal of the same type as the one before it")
    return Const(compare(left, op, right), source.places[i]), after
