"""Merging against a model: sets of small ints, written out."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from encode.world import World
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.lang import parse
from matchwood.lang.nodes import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Between,
    Comparison,
    Expr,
    In,
    IsNull,
    Not,
    Or,
)
from naive import matches
from strategies import seeds

DOMAIN = range(-3, 9)
MIN, MAX = -(2**63), 2**63 - 1
TYPES = {"x": "int", "y": "int"}


def leaf(rng: Random, names: str) -> Expr:
    name, low, high = rng.choice(names), rng.choice(DOMAIN), rng.choice(DOMAIN)
    return rng.choice(
        (
            Comparison(name, rng.choice(("=", "<>", "<", "<=", ">", ">=")), low),
            Comparison(name, rng.choice(("=", "<>", "<", "<=", ">", ">=")), low + 0.5),
            Between(name, low, high, rng.random() < 0.5),
            In(name, tuple(rng.choices(DOMAIN, k=rng.randint(1, 5))), rng.random() < 0.5),
            In(name, (low, None), rng.random() < 0.5),
            IsNull(name, negated=True),
            IsNull(name),
        )
    )


def nested(rng: Random, names: str, depth: int) -> Expr:
    if depth == 0:
        return rng.choice((TRUE, FALSE, UNKNOWN)) if rng.random() < 0.05 else leaf(rng, names)
    if rng.random() < 0.2:
        return Not(nested(rng, names, depth - 1))
    operands = [nested(rng, names, rng.randint(0, depth - 1)) for _ in range(rng.randint(2, 4))]
    return rng.choice((And, Or))(tuple(operands))


def stored(expr: Expr) -> tuple[World, int]:
    world = World(TYPES)
    world.store([expr])
    return world, int(world.table.layout.kind[0])


def evaluated(world: World, slot: int, event: dict) -> bool:
    """What the integers say: the code of a slot, read by its definition."""
    batch = world.events([event])
    keys = dict(zip(batch.attr.tolist(), batch.lo.tolist(), strict=True))
    kind = world.table.layout.kind[slot]
    if kind in (ALWAYS, NEVER):
        return bool(kind == ALWAYS)
    truths = []
    for token in reversed(world.table.code_of(slot).tolist()):
        if token >= 0:
            key = keys.get(int(world.table.predicates.layout.attr[token]))
            sets = world.table.predicates.intervals(token)
            truths.append(key is not None and any(lo <= key <= hi for lo, hi in sets))
        else:
            operands = [truths.pop() for _ in range((-token - 1) // 2)]
            truths.append(all(operands) if token % 2 else any(operands))
    return all(truths) if kind == CONJUNCTION else truths[0]


@given(seed=seeds())
def test_one_attribute_becomes_at_most_one_predicate_and_an_absence(seed):
    """Any tree over one attribute: its present values are one set."""
    rng = Random(seed)
    expr = nested(rng, "x", 3)
    world, _ = stored(expr)
    for value in (None, *DOMAIN):
        event = {} if value is None else {"x": value}
        assert evaluated(world, 0, event) is matches(expr, event)
    if not any(isinstance(part, IsNull) and not part.negated for part in parts(expr)):
        assert len(world.table.code_of(0)) <= 1


def parts(expr: Expr) -> list[Expr]:
    if isinstance(expr, (And, Or)):
        return [expr, *(each for operand in expr.operands for each in parts(operand))]
    if isinstance(expr, Not):
        inner = parts(expr.operand)
        return [expr, *inner, IsNull("x")] if any(isinstance(e, IsNull) for e in inner) else inner
    return [expr]


@settings(max_examples=2 * settings.default.max_examples)
@given(seed=seeds())
def test_two_attributes_mean_what_their_source_means(seed):
    rng = Random(seed)
    expr = nested(rng, "xy", 4)
    world, _ = stored(expr)
    for x in (None, *DOMAIN):
        for y in (None, -3, 0, 2, 5, 8):
            event = {name: value for name, value in (("x", x), ("y", y)) if value is not None}
            assert evaluated(world, 0, event) is matches(expr, event)


@given(seed=seeds())
def test_equal_sets_are_one_predicate(seed):
    rng = Random(seed)
    world = World(TYPES)
    world.store([nested(rng, "x", 2) for _ in range(30)])
    sets = [
        world.table.predicates.intervals(pred)
        for pred in {int(t) for slot in range(30) for t in world.table.code_of(slot) if t >= 0}
        if world.attributes.all[world.table.predicates.layout.attr[pred]].name == "x"
    ]
    allowed = [frozenset(v for v in DOMAIN if any(a <= v <= b for a, b in s)) for s in sets]
    ends = [(s[0][0] == MIN, s[-1][1] == MAX) for s in sets]
    assert len(set(zip(allowed, ends, strict=True))) == len(sets)


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("x > 3 AND x < 9", ((4, 8),)),
        ("x = 1 OR x = 2 OR x > 7", ((1, 2), (8, MAX))),
        ("x > 3 OR x <= 3", ((MIN, MAX),)),
        ("x IS NOT NULL", ((MIN, MAX),)),
        ("x <> 5", ((MIN, 4), (6, MAX))),
        ("x NOT IN (1, 2, 4)", ((MIN, 0), (3, 3), (5, MAX))),
        ("x > 1.5", ((2, MAX),)),
        ("x BETWEEN 0.5 AND 2.5", ((1, 2),)),
        ("x <> 1.5", ((MIN, MAX),)),
        ("NOT (x BETWEEN 2 AND 4 OR x = 6)", ((MIN, 1), (5, 5), (7, MAX))),
        ("x < 1e19", ((MIN, MAX),)),
        (f"x >= {MIN}", ((MIN, MAX),)),
        (f"x > {MIN} AND x < {MAX}", ((MIN + 1, MAX - 1),)),
    ],
)
def test_the_set_of_a_text(text, intervals):
    world, kind = stored(parse(text))
    assert kind == CONJUNCTION
    [pred] = world.table.code_of(0).tolist()
    assert world.table.predicates.intervals(pred) == intervals


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x > 9 AND x < 3", NEVER),
        ("x > 9 AND y = 1 AND x < 3", NEVER),
        ("x = 1.5", NEVER),
        ("x > 1e19", NEVER),
        ("x BETWEEN 3 AND 2", NEVER),
        ("NULL", NEVER),
        ("x = 1 AND NULL", NEVER),
        ("TRUE OR x = 1", ALWAYS),
        ("x > 3 OR x <= 3", CONJUNCTION),
        ("x = 1 AND (y = 2 AND (x = 1 AND y <> 3))", CONJUNCTION),
        ("x = 1 OR y = 2", TREE),
        ("(x = 1 OR x = 2) AND y = 3", CONJUNCTION),
        ("(x = 1 AND y = 1) OR (FALSE AND y = 9)", CONJUNCTION),
        ("x = 1 OR x IS NULL", TREE),
    ],
)
def test_the_kind_of_a_text(text, kind):
    assert stored(parse(text))[1] == kind


def test_thousands_of_operands_and_values():
    world = World(TYPES)
    many = tuple(Comparison("x", "=", 3 * i) for i in range(20_000))
    world.store([Or(many), Not(Or(many)), In("x", tuple(range(0, 60_000, 3)))])
    codes = [world.table.code_of(slot).tolist() for slot in range(3)]
    assert codes[0] == codes[2]
    assert len(world.table.predicates.intervals(codes[0][0])) == 20_000
    outside = world.table.predicates.intervals(codes[1][0])
    assert len(outside) == 20_001
    assert outside[1] == (1, 2)


def test_a_deep_alternation_of_and_and_or():
    expr: Expr = Comparison("x", ">", 0)
    for i in range(190):
        other = Comparison("y", "=" if i % 2 else "<>", i)
        expr = (Or if i % 2 else And)((expr, other))
    world, kind = stored(expr)
    assert kind == TREE
    for y in (0, 1, 4, 7, 188, 189, 500):
        for x in (0, 1):
            assert evaluated(world, 0, {"x": x, "y": y}) is matches(expr, {"x": x, "y": y})


def test_code_of_a_batch_does_not_depend_on_its_company():
    rng = Random(3)
    exprs = [nested(rng, "xy", 3) for _ in range(300)]
    together, apart = World(TYPES), World(TYPES)
    together.store(exprs)
    for expr in exprs:
        apart.store([expr])
    for slot in range(len(exprs)):
        assert decoded(together, slot) == decoded(apart, slot)


def decoded(world: World, slot: int) -> list:
    p = world.table.predicates
    return [
        (int(p.layout.attr[token]), p.intervals(token)) if token >= 0 else token
        for token in world.table.code_of(slot).tolist()
    ]


def test_keys_are_int64_throughout():
    world, _ = stored(parse("x IN (1, 3, 5) AND y > 2"))
    layout = world.table.predicates.layout
    assert {layout.lo.dtype, layout.hi.dtype, layout.interval_lo.dtype} == {np.dtype(np.int64)}
