"""Indexes of contexts give back the nodes of values that are gone."""

from __future__ import annotations

import pytest

from matchwood import Matcher

LIVE = 30


def context_index(m: Matcher) -> dict:
    return next(each for each in m.stats()["indexes"] if "nodes" in each)


@pytest.mark.parametrize("structure", ["interval_skip_list", "search_tree", "hash_table"])
@pytest.mark.parametrize("index", ["agile", "eager", "gbu", "partial"])
@pytest.mark.parametrize("matches_every", [pytest.param(1, marks=pytest.mark.slow), 100])
def test_nodes_of_values_that_are_gone_are_given_back(
    index: str, structure: str, matches_every: int
) -> None:
    settings = {"policy": "always"} if index == "agile" else {}
    m = Matcher(index, structure=structure, **settings)
    op = {"search_tree": "<=", "hash_table": "="}.get(structure)
    for i in range(LIVE):
        text = f"x {op} ctx.a" if op else "x BETWEEN ctx.a - 1 AND ctx.a + 1"
        m.add(i, f"{text} AND y >= 0", context=i)
    m.set_context_many({i: {"a": float(i)} for i in range(LIVE)})
    most = 0
    for n in range(1_000):
        m.set_context(n % LIVE, {"a": 1_000.0 + n / 8})
        if n % matches_every == 0:
            found = m.match({"x": 1_000.0 + n / 8, "y": 1})
            assert n % LIVE in found
        if n % 100 == 99:
            kept = context_index(m)
            most = max(most, kept["nodes"])
    assert most <= 64 + 8 * 2 * LIVE
