"""Events of predicates beside the values of a context."""

from __future__ import annotations

import os
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from index.interval_worlds import NAMES, SCHEMA, IntervalWorld, interval_event, judged, leaf
from matchwood.engine.stores.routing import CONTEXT_INDEXES
from matchwood.lang.nodes import And, Comparison, Expr, Relation
from strategies import POOL

LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
CONTEXT_SCHEMA = {f"ctx.{name}": kind for name, kind in SCHEMA.items()} | {"ctx.j": "number"}


@pytest.mark.parametrize(
    ("op", "event", "context", "holds"),
    [
        ("<", f"x >= {2**53 + 1}", 2**53 + 2, True),
        ("<", f"x >= {2**53 + 1}", 2**53, False),
        ("<=", f"x >= {2**53 + 1}", 2**53, False),
        (">", f"x <= {2**53 + 1}", 2**53, True),
        (">", f"x <= {2**53 + 1}", 2**53 + 2, False),
        ("=", f"x BETWEEN {2**53 + 1} AND {2**53 + 2}", 2**53 + 2, True),
        ("=", f"x BETWEEN {2**53 + 1} AND {2**53 + 2}", 2**53, False),
        ("<", f"x BETWEEN {2**53 + 1} AND {2**53 + 2}", 2**53 + 2, True),
        ("<>", f"x BETWEEN {2**53 + 1} AND {2**53 + 2}", 2**53 + 2, True),
        ("=", "x IN (1, 6)", 3, False),
        ("=", "x IN (1, 6)", 6, True),
        ("<>", "x <> 6", 6, True),
    ],
)
@pytest.mark.parametrize("index", CONTEXT_INDEXES)
def test_an_event_of_predicates_compares_exactly_with_a_context(index, op, event, context, holds):
    m = mw.Matcher(index, schema={"x": "int", "ctx.y": "number"})
    m.add(1, f"x {op} ctx.y", context="c")
    m.set_context("c", {"y": context})
    assert (m.match(mw.parse(event)) == [1]) is holds


class ContextWorld:
    """Subscriptions that compare with contexts; `judged` is told the contexts' values."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.contexts = [_context(rng) for _ in range(40)]
        self.linked: list[tuple[Expr, int]] = []
        meanings = []
        for _ in range(600):
            which = rng.randrange(len(self.contexts))
            names = rng.sample(NAMES, rng.randint(1, 3))
            op = rng.choice(("=", "<>", "<", "<=", ">", ">="))
            others = tuple(leaf(rng, name) for name in names[1:])
            relation, value = Relation(names[0], op, names[0]), self.contexts[which][names[0]]
            meaning = Comparison(names[0], op, value)
            self.linked.append((And((relation, *others)) if others else relation, which))
            meanings.append(And((meaning, *others)) if others else meaning)
        drawn = [interval_event(rng, rng.choice(NAMES)) for _ in range(60)]
        self.judged: IntervalWorld = judged([expr for expr, _ in self.linked], meanings, drawn)


def _context(rng: Random) -> dict[str, Any]:
    pools = {**POOL, "int": [value for value in POOL["int"] if value > -(2**63)]}  # no context's
    values = {name: rng.choice(pools[kind]) for name, kind in SCHEMA.items()}
    return values | {name: float(values[name]) for name in ("j", "n")}


context_world = cache(ContextWorld)


@pytest.mark.slow
@pytest.mark.parametrize("index", CONTEXT_INDEXES)
@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_events_of_predicates_satisfy_what_values_satisfy_in_a_context(index, seed):
    this = context_world(seed)
    m = mw.Matcher(index, schema=SCHEMA | CONTEXT_SCHEMA)
    for id_, (expr, which) in enumerate(this.linked):
        m.add(id_, expr, context=f"c{which}")
    m.set_context_many([(f"c{which}", values) for which, values in enumerate(this.contexts)])
    world = this.judged
    for number, ids in enumerate(m.match_many(world.events)):
        found = np.zeros(len(this.linked), bool)
        found[ids] = True
        wrong = np.flatnonzero((found & ~world.most[number]) | (world.least[number] & ~found))
        assert [
            (str(world.events[number]), str(expr), this.contexts[which])
            for expr, which in (this.linked[slot] for slot in wrong[:3])
        ] == []
