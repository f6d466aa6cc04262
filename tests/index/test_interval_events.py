"""Events that carry sets of values, held to every index of the registry."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import given

import matchwood as mw
from encode.world import (
    N_SHARED,
    World,
    found,
)
from matchwood.lang.nodes import And, Between, Comparison, Expr, In, IsNull, Or, predicates
from naive import can_hold, holds_interval, matches
from searching import search
from strategies import seeds

INT_NAMES = ("a", "b", "c")
INTS = range(-2, 6)


def interval_event(rng: Random) -> tuple[Expr, dict[str, tuple[int, ...]]]:
    """A conjunction of one predicate per attribute, and the values it allows."""
    while True:
        leaves = []
        for name in rng.sample(INT_NAMES, rng.randint(1, len(INT_NAMES))):
            low, high = sorted((rng.choice(INTS), rng.choice(INTS)))
            leaves += rng.choice(
                (
                    [Between(name, low, high)],
                    [In(name, (low, high, rng.choice(INTS)))],
                    [And((Between(name, INTS[0], INTS[-1]), Comparison(name, "<>", low)))],
                )
            )
        event = And(tuple(leaves))
        allowed = {}
        for leaf in leaves:
            name = next(iter(predicates(leaf))).name
            allowed[name] = tuple(v for v in INTS if matches(leaf, {name: v}))
        if all(allowed.values()):
            return event, allowed


class IntervalWorld:
    """Expressions over a few integers, and events that carry sets of them; shared, as above."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        pairs = [interval_event(rng) for _ in range(8)]
        self.world = World(dict.fromkeys(INT_NAMES, "int"))
        self.world.store([small_int_expression(rng) for _ in range(16)])
        self.encoded = self.world.events([event for event, _ in pairs])
        # predicates on one attribute are merged inside AND, not across the whole tree
        self.least, self.most = (
            [[rule(expr, allowed) for expr in self.world.exprs] for _, allowed in pairs]
            for rule in (can_hold, holds_interval)
        )


interval_world = cache(IntervalWorld)


@given(seed=seeds())
def test_interval_events_match_what_can_be_satisfied_together(index_class, seed):
    shared = interval_world(seed % N_SHARED)
    held = shared.world.speaking(index_class.language)
    index = index_class.build(shared.world.table, held)
    hits = found(search(index, shared.encoded))
    for slots, least, most in zip(hits, shared.least, shared.most, strict=True):
        for slot in held.tolist():
            assert least[slot] <= (slot in slots) <= most[slot]


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        ("a <> 7", (0, 1, 2, 3, 4, 5, 6)),
        ("a IN (1, 6)", (1, 6)),
        ("a NOT IN (0, 3, 7)", (1, 2, 4, 5, 6)),
        ("a NOT BETWEEN 2 AND 6", (0, 1, 7)),
        ("a = 0 OR a > 5", (0, 6, 7)),
    ],
)
def test_a_set_with_gaps_finds_nothing_in_its_gaps(index_class, event, allowed):
    m = _eight_values(index_class.name)
    assert sorted({id_ % 8 for id_ in m.match(mw.parse(event))}) == list(allowed)
    assert len(m.match(mw.parse(event))) == 500 * len(allowed)


@cache
def _eight_values(index: str) -> mw.Matcher:
    """Enough of each to fill a bucket of its own in every tree."""
    m = mw.Matcher(index, schema={"a": "int"})
    m.add_many([(i, f"a = {i % 8}") for i in range(4_000)])
    return m


def small_int_expression(rng: Random) -> Expr:
    def leaf() -> Expr:
        name, low, high = rng.choice(INT_NAMES), rng.choice(INTS), rng.choice(INTS)
        return rng.choice(
            (
                Comparison(name, rng.choice(("=", "<>", "<", "<=", ">", ">=")), low),
                Between(name, low, high, rng.random() < 0.5),
                In(name, (low, high), rng.random() < 0.5),
                IsNull(name, rng.random() < 0.5),
            )
        )

    terms = [And(tuple(leaf() for _ in range(rng.randint(2, 3)))) for _ in range(2)]
    return rng.choice((leaf(), terms[0], terms[0], Or(tuple(terms)), Or((leaf(), terms[1]))))
