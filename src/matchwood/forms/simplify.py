"""Constant folding and flattening of a negation normal form.

    a AND TRUE    ->  a          a OR FALSE  ->  a
    a AND FALSE   ->  FALSE      a OR TRUE   ->  TRUE
    a AND NULL    ->  FALSE      a OR NULL   ->  a       (only TRUE counts in this form)
    a AND (b AND c)  ->  a AND b AND c
    a AND a       ->  a

`a OR NOT a` is *not* TRUE: it is unknown while the attribute is absent.
"""

from __future__ import annotations

from matchwood.lang.nodes import FALSE, TRUE, And, Const, Expr, Or


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
