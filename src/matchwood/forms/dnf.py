"""Disjunctive normal form: an OR of conjunctions, refused before it explodes.

    (a OR b) AND c        ->  (a AND c) OR (b AND c)

The estimate is exact up to merging of equal terms, so the check costs one walk and no memory.
"""

from __future__ import annotations

from itertools import product

from matchwood.errors import ExpansionError
from matchwood.forms.cost import MAX_DNF_TERMS, dnf_terms
from matchwood.forms.nnf import nnf
from matchwood.forms.simplify import simplify
from matchwood.lang.nodes import FALSE, And, Expr, Or


def dnf(expr: Expr, limit: int = MAX_DNF_TERMS) -> Expr:
    """The disjunctive normal form of any expression.

    >>> from matchwood.lang import parse
    >>> print(dnf(parse("(a OR b) AND NOT (c > 1 AND d)")))
    a AND c <= 1 OR a AND d = FALSE OR b AND c <= 1 OR b AND d = FALSE
    """
    normal = simplify(nnf(expr))
    estimate = dnf_terms(normal)
    if estimate > limit:
        raise ExpansionError(
            f"expected at most {limit:,} conjunctions in disjunctive normal form, found "
            f"{estimate:,}: raise the limit (limit={estimate}), or keep the expression as a tree",
            estimate,
            limit,
        )
    terms = tuple([simplify(And(term)) if len(term) > 1 else term[0] for term in _terms(normal)])
    return simplify(Or(terms)) if terms else FALSE


def _terms(expr: Expr) -> list[tuple[Expr, ...]]:
    """The conjunctions, each as the tuple of its leaves."""
    if isinstance(expr, Or):
        return [term for each in expr.operands for term in _terms(each)]
    if isinstance(expr, And):
        choices = product(*[_terms(each) for each in expr.operands])
        return [tuple([leaf for part in choice for leaf in part]) for choice in choices]
    return [(expr,)]
