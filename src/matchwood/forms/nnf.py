"""Negation normal form: push every NOT into the predicates and write XOR and XNOR as AND / OR.

Laws, all exact in SQL's three-valued logic:

    NOT (a AND b)      ->  NOT a OR NOT b
    NOT (a OR b)       ->  NOT a AND NOT b
    NOT NOT a          ->  a
    NOT x < 3          ->  x >= 3              (unknown when x is absent, on both sides)
    NOT x IN (1, 2)    ->  x NOT IN (1, 2)
    NOT x IS NULL      ->  x IS NOT NULL
    x IN (1, NULL)     ->  x IN (1)            as far as TRUE goes: the rest is never TRUE
    x NOT IN (1, NULL) ->  NULL

The result holds AND, OR, constants and predicates only.  It is TRUE exactly when its source is;
where the source is FALSE it may be unknown and the other way round (the IN laws), which no longer
matters because nothing above it negates.  This is the A-Tree paper's zero suppression: only TRUE is
passed on.
"""

from __future__ import annotations

from datetime import date, datetime

from matchwood.forms.cost import check_xor_growth
from matchwood.forms.xor import parity_chain
from matchwood.lang.nodes import (
    NEGATED_OP,
    UNKNOWN,
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Relation,
    Xnor,
    Xor,
)


def nnf(expr: Expr) -> Expr:
    """The negation normal form of an expression; raises ExpansionError where XOR grows too much.

    >>> from matchwood.lang import parse
    >>> print(nnf(parse("NOT (a < 3 AND b = 'x')")))
    a >= 3 OR b <> 'x'
    >>> print(nnf(parse("a XOR b")))
    a AND b = FALSE OR a = FALSE AND b
    """
    if isinstance(expr, Predicate):
        return _positive(expr)
    if isinstance(expr, And) and all(isinstance(each, Predicate) for each in expr.operands):
        operands = tuple([_positive(each) for each in expr.operands])  # type: ignore[arg-type]
        return And(operands, expr.position)
    check_xor_growth(expr)
    return _push(expr, negated=False)


def _push(expr: Expr, negated: bool) -> Expr:
    if isinstance(expr, Predicate):
        return _positive(_negate(expr) if negated else expr)
    if isinstance(expr, Not):
        return _push(expr.operand, not negated)
    if isinstance(expr, (And, Or)):
        kind = type(expr) if not negated else (Or if isinstance(expr, And) else And)
        return kind(tuple([_push(each, negated) for each in expr.operands]), expr.position)
    if isinstance(expr, (Xor, Xnor)):
        operands, odd = parity_chain(expr)
        return _parity(operands, odd != negated)
    assert isinstance(expr, Const)
    return Const(not expr.value) if negated and expr.value is not None else expr


def _parity(operands: list[Expr], odd: bool) -> Expr:
    """`operands` hold an odd (or even) number of TRUEs; halved so that n operands cost n*n leaves.

    a XOR b   ->  (a AND NOT b) OR (NOT a AND b)
    a XNOR b  ->  (a AND b) OR (NOT a AND NOT b)
    """
    if len(operands) == 1:
        return _push(operands[0], negated=not odd)
    middle = len(operands) // 2
    left, right = operands[:middle], operands[middle:]
    return Or(
        (
            And((_parity(left, True), _parity(right, not odd))),
            And((_parity(left, False), _parity(right, odd))),
        )
    )


def _negate(leaf: Predicate) -> Predicate:
    if isinstance(leaf, Comparison):
        if isinstance(leaf.value, bool) and leaf.op == "=":
            return Comparison(leaf.name, "=", not leaf.value, leaf.position)
        return Comparison(leaf.name, NEGATED_OP[leaf.op], leaf.value, leaf.position)
    if isinstance(leaf, Between):
        return Between(leaf.name, leaf.low, leaf.high, not leaf.negated, leaf.position)
    if isinstance(leaf, In):
        return In(leaf.name, leaf.values, not leaf.negated, leaf.position)
    if isinstance(leaf, Like):
        return Like(leaf.name, leaf.pattern, not leaf.negated, leaf.position)
    if isinstance(leaf, Relation):
        return Relation(leaf.name, NEGATED_OP[leaf.op], leaf.context, leaf.offset, leaf.position)
    assert isinstance(leaf, IsNull)
    return IsNull(leaf.name, not leaf.negated, leaf.position, leaf.kind)


def _positive(leaf: Predicate) -> Expr:
    """Take NULL out of an IN list: from here on only TRUE counts."""
    if isinstance(leaf, In) and None in leaf.values:
        known = tuple([value for value in leaf.values if value is not None])
        if leaf.negated or not known:
            return UNKNOWN
        return In(leaf.name, known, False, leaf.position)
    if isinstance(leaf, Between) and type(leaf.low) is not type(leaf.high):
        kinds = {type(leaf.low), type(leaf.high)}
        if kinds == {date, datetime}:  # each bound says for itself what a string beside it means
            below, above = ("<", ">") if leaf.negated else (">=", "<=")
            sides = (
                Comparison(leaf.name, below, leaf.low, leaf.position),
                Comparison(leaf.name, above, leaf.high, leaf.position),
            )
            return (Or if leaf.negated else And)(sides, leaf.position)
    return leaf
