"""Constant folding and flattening of a negation normal form.

    a AND TRUE    ->  a          a OR FALSE  ->  a
    a AND FALSE   ->  FALSE      a OR TRUE   ->  TRUE
    a AND NULL    ->  FALSE      a OR NULL   ->  a       (only TRUE counts in this form)
    a AND (b AND c)  ->  a AND b AND c
    a AND a       ->  a

`a OR NOT a` is *not* TRUE: it is unknown while the attribute is absent.
"""

from __future__ import annotations

from collections.abc import Callable

from matchwood.lang.nodes import FALSE, TRUE, And, Const, Expr, Or, Predicate


def simplify(expr: Expr) -> Expr:
    """Fold constants and flatten; leaves are left as they are.

    >>> from matchwood.lang import parse
    >>> print(simplify(parse("a AND (TRUE AND (b OR FALSE))")))
    a AND b
    >>> print(simplify(parse("a AND NULL")))
    FALSE
    """
    if isinstance(expr, Const):
        return TRUE if expr.value else FALSE
    if not isinstance(expr, (And, Or)):
        return expr
    kind = type(expr)
    stops, neutral = (FALSE, TRUE) if kind is And else (TRUE, FALSE)
    kept: dict[tuple[str, Expr], Expr] = {}
    for each in expr.operands:
        operand = simplify(each)
        if operand == stops:
            return stops
        if operand == neutral:
            continue
        parts = operand.operands if isinstance(operand, kind) else (operand,)
        # The repr tells 1 from TRUE and 1.0, which Python calls equal.
        kept.update({(repr(part), part): part for part in parts})
    operands = tuple(kept.values())
    if not operands:
        return neutral
    return operands[0] if len(operands) == 1 else kind(operands, expr.position)


def undecided(expr: Expr, instead: Callable[[Predicate], tuple[Expr, ...]]) -> Expr:
    """The expression with other leaves where constants beside them decide, whatever they are.

    >>> from matchwood.lang import parse
    >>> print(undecided(parse("a AND b > 1 AND FALSE OR c"), lambda leaf: (parse("d"),)))
    d AND d AND FALSE OR c
    """
    if not isinstance(expr, (And, Or)) or not _has_constant(expr):
        return expr
    if _truth(expr) is None:
        operands = tuple([undecided(each, instead) for each in expr.operands])
        return type(expr)(operands, expr.position)
    return _replaced(expr, instead)


def _has_constant(expr: Expr) -> bool:
    if isinstance(expr, (And, Or)):
        return any(map(_has_constant, expr.operands))
    return isinstance(expr, Const)


def _truth(expr: Expr) -> bool | None:
    """What constants alone make of an expression; None where leaves decide."""
    if isinstance(expr, Const):
        return bool(expr.value)
    if not isinstance(expr, (And, Or)):
        return None
    found = [_truth(each) for each in expr.operands]
    stops = isinstance(expr, Or)
    return stops if stops in found else None if None in found else not stops


def _replaced(expr: And | Or, instead: Callable[[Predicate], tuple[Expr, ...]]) -> Expr:
    operands: list[Expr] = []
    for each in expr.operands:
        if isinstance(each, (And, Or)):
            operands.append(_replaced(each, instead))
        else:
            operands += instead(each) if isinstance(each, Predicate) else (each,)
    if len(operands) > 1:
        return type(expr)(tuple(operands), expr.position)
    return operands[0] if operands else FALSE
