"""Trees over three-valued letters: every truth an expression can have, by trying all of them.

A letter `a` stands for a predicate whose truth is chosen: TRUE for the event {"a": 1}, FALSE for
{"a": 0}, unknown for {}.  Any predicate on an attribute of its own behaves like this.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from matchwood.lang.nodes import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Xnor,
    Xor,
    children,
    predicates,
)
from naive import matches

LETTERS = "abcd"


def letter(rng: Random) -> Expr:
    """A predicate that 1 satisfies, 0 does not and absence leaves unknown; IS NULL; or NULLs."""
    name = rng.choice(LETTERS)
    return rng.choice(
        (
            Comparison(name, "=", 1),
            Comparison(name, ">", 0),
            Comparison(name, "<>", 0),
            Between(name, 1, 2),
            Between(name, -1, 0, negated=True),
            In(name, (1, 2)),
            In(name, (0,), negated=True),
            In(name, (1, None)),
            In(name, (0, None), negated=True),
            In(name, (None,)),
            IsNull(name),
            IsNull(name, negated=True),
        )
    )


def tree(rng: Random, n: int) -> Expr:
    if n == 1:
        return rng.choice((letter, letter, letter, constant))(rng)
    if rng.random() < 0.25:
        return Not(tree(rng, n))
    left = rng.randint(1, n - 1)
    a, b = tree(rng, left), tree(rng, n - left)
    kind = rng.choice(("and", "or", "xor", "xnor", "and3", "or3"))
    if kind in ("xor", "xnor"):
        return (Xor if kind == "xor" else Xnor)(a, b)
    operands = (a, b) if len(kind) < 4 else (a, b, letter(rng))
    return (And if kind.startswith("and") else Or)(operands)


def constant(rng: Random) -> Expr:
    return rng.choice((TRUE, FALSE, UNKNOWN))


def worlds(expr: Expr) -> Iterator[dict[str, int]]:
    """Every event that can tell: each attribute 0, 1 or absent."""
    names = sorted({each.name for each in predicates(expr)})
    for values in product((0, 1, None), repeat=len(names)):
        yield {n: v for n, v in zip(names, values, strict=True) if v is not None}


def is_true_where(form: Expr, source: Expr) -> None:
    """A normal form is TRUE exactly where its source is."""
    for event in worlds(source):
        assert matches(form, event) is matches(source, event), f"{source}  ->  {form} on {event}"


def nodes(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from nodes(child)


def leaves(expr: Expr) -> int:
    return sum(isinstance(node, (Predicate, Const)) for node in nodes(expr))
