"""A fuzz of events of predicates, on sets that are large enough to cut every structure.

    MATCHWOOD_PROFILE=long pytest -s tests/index/test_interval_fuzz.py

compares more than a million pairs of a subscription and an event on every index; without it a small
part runs.  Everything goes through the matcher; what must be found is decided by concrete values,
see `tests/witnesses.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from index.interval_worlds import SCHEMA, IntervalWorld, interval_world
from matchwood.index.core.registry import REGISTRY

LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
N_SUBSCRIPTIONS, N_EVENTS = (4_000, 80) if LONG else (2_000, 24)
PAIRS = 2_500_000 if LONG else 1
"""Pairs compared on every index, at least: enough sets for each attribute to be heavy in one."""

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in sorted(REGISTRY)},
    "auto": ("auto", {}),
    "be_tree, small leaves": ("be_tree", {"max_cap": 4}),
    "vcr, overlapped": ("vcr", {"decomposition": "overlapped", "lists": "hash"}),
}

IS_CUT: dict[str, Callable[[dict[str, Any]], bool]] = {
    "be_tree": lambda stats: stats["c_nodes"] > 50 and stats["p_nodes"] > 5,
    "vcr": lambda stats: stats["activated_vcrs"] > 50 and stats["rest"] > 500,
    "r_tree": lambda stats: stats["rest"] > 500,
    "pst_bloom": lambda stats: stats["spaces"] > 50,
    "pst_hash": lambda stats: stats["spaces"] > 50,
    "a_tree": lambda stats: stats["nodes"] > stats["leaves"] > 500,
    "terms": lambda stats: stats["groups"] > 500 and stats["leaves"] > 500,
    "gryphon": lambda stats: stats["nodes"] > 100,
    "k_index": lambda stats: stats["lists"] > 500,
    "propagation": lambda stats: stats["clusters"] > 100,
    "op_index": lambda stats: stats["blocks"] > 50,
    **dict.fromkeys(
        ("counting", "interval_id", "dewey_id", "bop", "bdd"), lambda stats: stats["segments"] > 50
    ),
}
"""Whether a structure has been divided; a rest is a BE-Tree, whose leaves hold 100."""


@cache
def world(seed: int) -> IntervalWorld:
    return interval_world(seed, N_SUBSCRIPTIONS, N_EVENTS)


def wrong_pairs(
    m: mw.Matcher, world: IntervalWorld, live: Sequence[int]
) -> tuple[int, list[tuple[str, str, str]]]:
    """How many pairs were compared, and some of those where the matcher is wrong."""
    wrong = []
    held = np.zeros(len(world.subscriptions), bool)
    held[live] = True
    for number, ids in enumerate(m.match_many(world.events)):
        found = np.zeros(len(held), bool)
        found[ids] = True
        for what, slots in (
            ("found in vain", np.flatnonzero(found & ~(held & world.most[number]))),
            ("missed", np.flatnonzero(held & world.least[number] & ~found)),
        ):
            for slot in slots[:3].tolist():
                wrong.append((what, str(world.events[number]), str(world.subscriptions[slot])))
    return len(live) * len(world.events), wrong


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_index_finds_what_concrete_values_satisfy(setting):
    index, config = SETTINGS[setting]
    n_pairs, seed = 0, 0
    while n_pairs < PAIRS:
        this = world(seed)
        subscriptions = list(enumerate(this.subscriptions))
        n_first = len(subscriptions) * 2 // 3
        m = mw.Matcher(index, schema=SCHEMA, **config)
        m.add_many(subscriptions[:n_first])
        n, wrong = wrong_pairs(m, this, range(n_first))
        m.add_many(subscriptions[n_first:])
        stats = m.stats()["indexes"][0]
        assert IS_CUT.get(stats["index"], lambda _: True)(stats), stats
        m.remove_many(range(0, len(subscriptions), 5))
        live = [id_ for id_, _ in subscriptions if id_ % 5]
        n_after, wrong_after = wrong_pairs(m, this, live)
        assert wrong + wrong_after == []
        n_pairs, seed = n_pairs + n + n_after, seed + 1
    print(f"{setting}: {n_pairs:,} pairs agree, {seed} sets")


@pytest.mark.slow
def test_events_that_no_value_satisfies_are_refused():
    m = mw.Matcher(schema=SCHEMA)
    m.add_many(list(enumerate(world(0).subscriptions)))
    n = 0
    for seed in range(40 if LONG else 2):
        events = (
            world(seed).contradictions if seed < 4 else interval_world(seed, 1, 400).contradictions
        )
        found = m.match_many(events)
        assert set(found.errors) == set(range(len(events)))
        assert all("contradiction" in str(error) for error in found.errors.values())
        n += len(events)
    assert n > 10


@pytest.mark.slow
def test_the_fuzz_draws_what_it_is_meant_to_find():
    """Every index must be asked about all types, matches and misses, and sets with gaps."""
    this = interval_world(0, 300, 300)
    share = this.least.mean()
    assert 0.02 < share < 0.5
    assert (this.most & ~this.least).mean() < 0.01
    texts = " ".join(map(str, this.events))
    for word in (" <> ", " NOT IN ", " NOT BETWEEN ", " OR ", "IS NULL", "IS NOT NULL", "LIKE"):
        assert word in texts
    assert {name for name in SCHEMA if f"{name} " in texts} == set(SCHEMA)
