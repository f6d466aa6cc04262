"""A forged snapshot is an error, or a matcher with other answers: never a crash, never a hang.

`forging.py` changes every array of a saved matcher in some thirty ways, each with sizes and
checksums that fit, and loads, matches, adds, removes and replaces in a child process.
"""

import os
import random

import pytest

import matchwood as mw
from engine.forging import Forger
from matchwood.index.core.registry import REGISTRY

WITH_CONTEXT = ("auto", "agile", "no_index", "eager", "partial", "gbu")
"""`auto` saves two stores: subscriptions with contexts are in the second."""
N = 260


def expression(draw, i):
    a, b = draw.randrange(40), draw.randrange(40)
    low, high = min(a, b), max(a, b)
    forms = [
        f"x = {a} AND y BETWEEN {low} AND {high}",
        f"x BETWEEN {low} AND {high} AND y < {b}",
        f"s = 'k{a}' AND x > {b}",
        f"x IN ({a}, {b}, {a + b}) AND s >= 'k{b}'",
        f"y <> {a} AND z = {b % 3} AND x < {high + 1}",
        f"z = {a % 5}",
        f"x = {a} OR (y = {b} AND s = 'k{a % 7}')",
        f"(x < {a} OR z = {b % 4}) AND (y > {b} OR s LIKE '%{a % 10}')",
        f"NOT (x = {a} AND y = {b}) AND z IS NOT NULL",
    ]
    return forms[i % len(forms)]


def drawn(index):
    """A matcher of an index, events for it and more subscriptions."""
    draw = random.Random(7)
    m = mw.Matcher(index=index, **({"max_cap": 5} if index == "be_tree" else {}))
    texts = [(i, expression(draw, i)) for i in range(N)]
    m.add_many(texts)
    if index in WITH_CONTEXT:
        for i in range(40):
            m.add(f"c{i}", f"x < ctx.limit + {i} AND y = {i % 5}", context=f"user-{i % 7}")
        for i in range(7):
            m.set_context(f"user-{i}", {"limit": 5 * i, "name": f"k{i}"})
    events = [
        {"x": draw.randrange(45), "y": draw.randrange(45), "z": draw.randrange(5), "s": f"k{i}"}
        for i in range(40)
    ]
    more = [(f"more {i}", expression(draw, i)) for i in range(60)]
    return m, events, more


SHARE = 1.0 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 0.02
"""The part of all forgeries that is tried."""


def forged(index, tmp_path, share):
    matcher, events, more = drawn(index)
    forger = Forger(matcher, tmp_path, events, more)
    problems = []
    for seed, file in enumerate(forger.files):
        problems += forger.outcomes(file, seed, share)
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", *sorted(REGISTRY)])
def test_forged_arrays_never_crash_or_hang(tmp_path, index):
    assert forged(index, tmp_path, SHARE) == []
