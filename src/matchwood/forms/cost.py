"""Sizes of normal forms, estimated before they are built."""

from __future__ import annotations

from matchwood.errors import ExpansionError
from matchwood.forms.xor import parity_chain
from matchwood.lang.nodes import And, Const, Expr, Not, Or, Xnor, Xor

MAX_XOR_LEAVES = 100_000
"""Most predicates that writing XOR as AND / OR may produce: 300 chained operands."""

MAX_DNF_TERMS = 10_000
"""Most conjunctions that one expression may expand to, unless the caller says otherwise."""


def nnf_leaves(expr: Expr) -> int:
    """How many predicates the negation normal form has, repeated ones counted each time.

    >>> from matchwood.lang import parse
    >>> nnf_leaves(parse("a XOR b")), nnf_leaves(parse("a XOR b XOR c XOR d"))
    (4, 16)
    """
    if isinstance(expr, (And, Or)):
        return sum([nnf_leaves(each) for each in expr.operands])
    if isinstance(expr, Not):
        return nnf_leaves(expr.operand)
    if isinstance(expr, (Xor, Xnor)):
        operands, _ = parity_chain(expr)
        return _parity_leaves([nnf_leaves(each) for each in operands])
    return 1


def _parity_leaves(sizes: list[int]) -> int:
    if len(sizes) == 1:
        return sizes[0]
    middle = len(sizes) // 2
    return 2 * (_parity_leaves(sizes[:middle]) + _parity_leaves(sizes[middle:]))


def check_xor_growth(expr: Expr) -> None:
    """Refuse an expression whose XORs would grow beyond the limit."""
    estimate = nnf_leaves(expr)
    if estimate > MAX_XOR_LEAVES:
        raise ExpansionError(
            f"expected at most {MAX_XOR_LEAVES:,} predicates after writing XOR / XNOR as AND / OR, "
            f"found {estimate:,}: use fewer XOR operands, or split the expression",
            estimate,
            MAX_XOR_LEAVES,
        )


def dnf_terms(expr: Expr) -> int:
    """How many conjunctions the disjunctive normal form of an NNF tree has, before merging.

    (a OR b) AND (c OR d)  has  2 * 2;   (a AND b) OR c  has  1 + 1
    """
    if isinstance(expr, Or):
        return sum([dnf_terms(each) for each in expr.operands])
    if isinstance(expr, And):
        terms = 1
        for each in expr.operands:
            terms *= dnf_terms(each)
        return terms
    return 0 if isinstance(expr, Const) and not expr.value else 1
