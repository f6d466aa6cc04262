"""With the context as a struct column, SQL engines, the naive evaluator and the matcher agree."""

from __future__ import annotations

from random import Random

import pytest

from matchwood import Matcher
from matchwood.lang import And, Expr, Not, Or, Xor, attr, ctx, parse, to_text
from naive import evaluate

COLUMNS = {
    "price": "float",
    "size": "int",
    "city": "string",
    "on": "bool",
    "ctx.target": "float",
    "ctx.limit": "float",
    "ctx.rank": "int",
    "ctx.home": "string",
    "ctx.away": "bool",
}
POOL = {
    "float": [0.0, 1.5, 2.0, 5.25, -3.0, 10.0, 1e300],
    "int": [0, 1, 2, 5, -3, 10],
    "string": ["", "ada", "bob", "zoë", "adam"],
    "bool": [True, False],
}
PARTNERS = {"price": "target", "size": "rank", "city": "home", "on": "away"}


def leaf(rng: Random) -> Expr:
    name, partner = rng.choice(list(PARTNERS.items()))
    kind = COLUMNS[name]
    shape = rng.random()
    constant = rng.choice(POOL[kind])
    if shape < 0.2:
        return attr(name) == constant
    if shape < 0.4:
        return ctx(partner) != constant if rng.random() < 0.7 else ctx(partner).is_null()
    value = ctx(partner)
    if kind == "float" and shape < 0.6:
        return attr(name).between(value - rng.choice([1, 2.5]), ctx("limit") + 1)
    if kind == "float" and shape < 0.7:
        return ctx("target") <= ctx("limit") - 0.5
    if kind in ("float", "int") and shape < 0.8:
        value = value + rng.choice([1, -2, 3])
    if kind == "bool":
        return attr(name) == value
    return rng.choice(
        [
            attr(name) < value, attr(name) <= value, attr(name) > value,
            attr(name) >= value, attr(name) == value, attr(name) != value,
        ]
    )  # fmt: skip


def expression(rng: Random) -> Expr:
    parts = tuple(leaf(rng) for _ in range(rng.randint(1, 4)))
    if len(parts) == 1:
        return parts[0]
    shape = rng.random()
    if shape < 0.5:
        return And(parts)
    if shape < 0.7:
        return Or((Not(parts[0]), *parts[1:]))
    return Xor(parts[0], parts[1]) if shape < 0.85 else Not(And(parts))


def rows(rng: Random, n: int) -> list[dict[str, object]]:
    return [
        {name: rng.choice(POOL[kind]) for name, kind in COLUMNS.items() if rng.random() < 0.85}
        for _ in range(n)
    ]


def check(engine: object, seed: int) -> None:
    rng = Random(seed)
    exprs = [expression(rng) for _ in range(60)]
    table = rows(rng, 60)
    truths = engine.truths(COLUMNS, table, exprs)  # type: ignore[attr-defined]
    found = {True: 0, False: 0, None: 0}
    matcher = Matcher(schema=COLUMNS)
    for i, expr in enumerate(exprs):
        assert to_text(parse(to_text(expr))) == to_text(expr)
        matcher.add(i, to_text(expr), context="c")
    for at, row in enumerate(table):
        answers = [truth[at] for truth in truths]
        for expr, truth in zip(exprs, answers, strict=True):
            assert evaluate(expr, row) is truth, f"{expr} on {row}"
            found[truth] += 1
        values = {name[4:]: row.get(name) for name in COLUMNS if name.startswith("ctx.")}
        matcher.set_context("c", values)
        event = {name: value for name, value in row.items() if not name.startswith("ctx.")}
        expected = [i for i, truth in enumerate(answers) if truth is True]
        assert matcher.match(event) == expected, row
    assert min(found.values()) > 200


@pytest.mark.parametrize("seed", range(3))
def test_duckdb_agrees_about_contexts(duck, seed):
    check(duck, seed)


@pytest.mark.spark
def test_spark_agrees_about_contexts(spark_sql):
    check(spark_sql, 7)
