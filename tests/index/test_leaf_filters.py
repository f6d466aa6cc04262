"""Bloom filters in the leaves of PSTBloom: the same answers, and fewer candidates to verify."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from encode.world import World
from matchwood.errors import IndexBuildError
from matchwood.index.pst.bloom import PSTBloom
from matchwood.lang.nodes import And, Between, Comparison, Expr
from naive import matches
from searching import search, work_of

NAMES = "abcdef"


def some_world(n: int) -> World:
    rng, world = Random(7), World(dict.fromkeys(NAMES, "int"))
    exprs: list[Expr] = []
    for _ in range(n):
        one, two, three = rng.sample(NAMES, 3)
        low = rng.randrange(90)
        exprs.append(And((
            Comparison(one, "=", rng.randrange(30)), Between(two, low, low + 9),
            Comparison(three, ">=", rng.randrange(100)),
        )))  # fmt: skip
    world.store(exprs)
    return world


def answers(index: PSTBloom, world: World, raw: list[dict[str, Any]]) -> tuple[list[int], Any]:
    hits = search(index, world.events(raw))
    return np.sort(hits.slots).tolist(), work_of(hits)


@pytest.mark.slow
def test_leaves_sieve_what_cannot_match_and_nothing_else() -> None:
    world, rng = some_world(900), Random(8)
    slots = world.speaking("conjunctions")
    plain = PSTBloom.build(world.table, slots, signature_bits=0)
    leaves = PSTBloom.build(world.table, slots, signatures="leaves")
    tested = {"plain": 0, "leaves": 0}
    n_found = 0
    for _ in range(40):
        raw = [{name: rng.randrange(100 if name in "ace" else 30) for name in NAMES}]
        found, work = answers(plain, world, raw)
        same, less = answers(leaves, world, raw)
        assert found == same == [s for s in slots.tolist() if matches(world.exprs[s], raw[0])]
        assert work["candidates"] == less["candidates"]  # access predicates find the same
        tested["plain"] += work["predicates"]
        tested["leaves"] += less["predicates"]
        n_found += len(found)
    assert n_found
    assert tested["leaves"] < tested["plain"] / 2
    stats = leaves.stats()
    assert stats["signature_false_positives"] < 0.5 * plain.stats()["signature_false_positives"]
    assert stats["bytes"] > plain.stats()["bytes"]


@pytest.mark.slow
def test_an_expression_that_comes_later_is_known_to_its_leaves() -> None:
    world = some_world(400)
    slots = world.speaking("conjunctions")
    index = PSTBloom.build(world.table, slots[:300], signatures="leaves", leaf_bits=64)
    raw = [dict.fromkeys(NAMES, value) for value in range(0, 100, 5)]
    answers(index, world, raw)  # makes the filters
    for first in range(300, 400, 20):
        index.insert(slots[first : first + 20])
        held = slots[: first + 20].tolist()
        expected = sorted(s for e in raw for s in held if matches(world.exprs[s], e))
        assert answers(index, world, raw)[0] == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"signatures": "roots"}, "expected 'records' or 'leaves' for signatures, found 'roots'"),
        ({"leaf_bits": 65}, "expected a multiple of 64 for leaf_bits, found 65"),
    ],
)
def test_wrong_settings_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(IndexBuildError, match=message):
        PSTBloom.build(some_world(3).table, np.arange(3, dtype=np.int32), **config)
