"""References to the context among tokens: `ctx.name`, `ctx.name + 5`, `ctx.name - 0.5`.

Laws, with r and s references:

    r + 5 > x               ->  x < r + 5
    x BETWEEN r AND s       ->  x >= r AND x <= s         negated  ->  x < r OR x > s
    x IN (r, 1, 2)          ->  x = r OR x IN (1, 2)      negated  ->  x <> r AND x NOT IN (1, 2)
"""

from __future__ import annotations

from matchwood.lang.literals import LiteralError, as_offset, number
from matchwood.lang.names import CONTEXT, is_context
from matchwood.lang.nodes import FLIPPED_OP, And, Comparison, Const, Expr, Or, Relation
from matchwood.lang.source import Source
from matchwood.lang.tokens import OPERATORS, WORDS
from matchwood.lang.values import is_name, is_typed, literal

MOVE_OFFSET = "write the offset beside the constant, or compare with an attribute"
_DIGITS = "0123456789."


def is_reference(source: Source, i: int) -> bool:
    """Whether token i names a value of the context."""
    token = source.tokens[i]
    return token[0] in "c`" and is_name(token) and is_context(source.name(i))


def reference(source: Source, i: int) -> tuple[str, int | float, int]:
    """Name and offset of the reference at token i, and the token after it."""
    tokens = source.tokens
    name = source.name(i).removeprefix(CONTEXT)
    i += 1
    sign = tokens[i][0]
    if sign not in "+-":
        return name, 0, i
    digits = tokens[i][1:]
    if not digits:
        i += 1
        digits = tokens[i]
    if digits[0] not in _DIGITS or digits == ".":
        raise source.expected(i, "a number as the offset of a context's value")
    try:
        offset = as_offset(number("-" + digits if sign == "-" else digits))
    except LiteralError as error:
        raise source.error(i, str(error)) from None
    if tokens[i + 1][0] in "+-":
        raise source.expected(i + 1, "one offset", "add the offsets up first")
    return name, offset, i + 1


def relation(source: Source, i: int, name: str, op: str) -> tuple[Expr, int] | None:
    """`name op ..` where a name follows the operator at i + 1; None when that is no relation."""
    at = source.places[i]
    if is_typed(source, i + 2):
        return None
    other = source.name(i + 2)
    if is_context(other):
        context, offset, after = reference(source, i + 2)
        return Relation(name, op, context, offset, at), after
    if is_context(name):
        context = name.removeprefix(CONTEXT)
        return Relation(other, FLIPPED_OP[op], context, 0, source.places[i + 2]), i + 3
    return None


def reference_first(source: Source, i: int) -> tuple[Expr, int]:
    """A comparison that begins with the context: `ctx.y + 5 > x` is read as `x < ctx.y + 5`."""
    context, offset, j = reference(source, i)
    op = OPERATORS.get(source.tokens[j])
    if op is None:
        raise source.expected(j, "a comparison after the context's value", MOVE_OFFSET)
    if not is_name(source.tokens[j + 1]) or is_typed(source, j + 1):
        raise source.expected(j + 1, "an attribute", MOVE_OFFSET)
    name = source.name(j + 1)
    if is_context(name) and source.tokens[j + 2][0] in "+-":
        raise source.expected(j + 2, "one offset", "add the offsets up on one side")
    return Relation(name, FLIPPED_OP[op], context, offset, source.places[j + 1]), j + 2


def has_reference(source: Source, j: int) -> bool:
    """Whether one of the two bounds that start at token j is a reference."""
    if is_reference(source, j):
        return True
    tokens = source.tokens
    while j < len(tokens) - 1 and WORDS.get(tokens[j]) != "AND":
        j += 1
    return j < len(tokens) - 1 and is_reference(source, j + 1)


def between_references(
    source: Source, i: int, name: str, j: int, negated: bool
) -> tuple[Expr, int]:
    at = source.places[i]
    below, above = ("<", ">") if negated else (">=", "<=")
    low, j = _bound(source, name, below, j, at, "a lower bound after BETWEEN")
    if WORDS.get(source.tokens[j]) != "AND":
        raise source.expected(j, "AND and an upper bound", "write BETWEEN low AND high")
    high, j = _bound(source, name, above, j + 1, at, "an upper bound after AND")
    return joined((low, high), Or if negated else And, at), j


def _bound(source: Source, name: str, op: str, j: int, at: int, what: str) -> tuple[Expr, int]:
    if is_reference(source, j):
        context, offset, j = reference(source, j)
        return Relation(name, op, context, offset, at), j
    value, j = literal(source, j, what)
    return (Const(None, at) if value is None else Comparison(name, op, value, at)), j


def joined(parts: tuple[Expr, ...], kind: type[And] | type[Or], at: int) -> Expr:
    """Several predicates as one expression."""
    return parts[0] if len(parts) == 1 else kind(parts, at)
