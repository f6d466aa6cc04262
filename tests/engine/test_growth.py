"""Under steady change a matcher stays as large as what it holds; nothing but counters is looked at.

Every law goes around many times with few things alive, and compares with the counters early on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from inside import attributes_of, context_cells
from matchwood import Matcher
from matchwood.encode.keys import DictionaryKeys

COUNTERS = ("attributes", "constants", "context_strings", "contexts", "predicates", "subscriptions")
LIVE = 20
"""Subscriptions or contexts that are alive at any time."""

WIDE = 1_000_000
"""Added to all numbers, so that texts are equally long: longer ones would take more, rightly."""

LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"

Step = Callable[[Matcher, int], None]


def new_constants(m: Matcher, i: int) -> None:
    m.add(i, f"price = {i}.5 AND name = 'word {i}' OR price BETWEEN {-i} AND {-i + 3}")
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)


def new_constants_of_lists(m: Matcher, i: int) -> None:
    m.add(i, f"name IN ({', '.join(repr(f'{i} {j}') for j in range(40))})")
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)


def new_constants_that_merging_leaves_out(m: Matcher, i: int) -> None:
    m.add(i, f"price < {i} AND price > {i + 1}")
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)


def new_constants_of_replacements(m: Matcher, i: int) -> None:
    m.replace(i % LIVE, f"price = {i}.5 AND name = 'word {i}'")


def new_names(m: Matcher, i: int) -> None:
    merged = f"w{i} > 1 AND w{i} < 0"
    m.add(i, f"n{i} = {i} AND t{i} = 'a' AND u{i} IS NULL AND (v{i} LIKE '%x_' OR {merged})")
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)


def new_names_of_contexts(m: Matcher, i: int) -> None:
    m.add(i, f"x < ctx.a{i} + 1 AND ctx.b{i} LIKE '%x_' AND ctx.c{i} IS NULL", context=f"c{i}")
    m.set_context(f"c{i}", {f"a{i}": i, f"b{i}": f"s{i}"})
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)
        m.remove_context(f"c{i - LIVE}")


def new_strings(m: Matcher, i: int) -> None:
    if i == WIDE:
        for k in range(LIVE):
            m.add(k, "city = ctx.home AND ctx.mood <> 'sad'", context=k)
    m.set_context(i % LIVE, {"home": f"street {i}", "mood": f"{i} of 10"})


def new_contexts(m: Matcher, i: int) -> None:
    m.set_context(i, {"home": f"street {i}", "budget": i})
    if i >= WIDE + LIVE:
        m.remove_context(i - LIVE)


def new_contexts_of_subscriptions(m: Matcher, i: int) -> None:
    m.add(i, "price < ctx.budget", context=i)
    if i >= WIDE + LIVE:
        m.remove(i - LIVE)


def contexts_emptied_by_none(m: Matcher, i: int) -> None:
    m.set_context(i, {"home": f"street {i}", f"n{i % 100}": i})
    if i >= WIDE + LIVE:
        m.set_context(i - LIVE, {"home": None, f"n{(i - LIVE) % 100}": None})


STEPS: list[Step] = [
    new_constants, new_constants_of_lists, new_constants_that_merging_leaves_out,
    new_constants_of_replacements, new_names, new_names_of_contexts, new_strings, new_contexts,
    new_contexts_of_subscriptions, contexts_emptied_by_none,
]  # fmt: skip


def sizes(m: Matcher) -> dict[str, int]:
    """Counters, bytes, and the lengths of what Python holds."""
    stats = m.stats()
    attributes = attributes_of(m)
    found = {name: stats.get(name, 0) for name in COUNTERS}
    found |= {f"bytes of {name}": n for name, n in stats["bytes"].items()}
    found["attribute ids"] = len(attributes)
    keys = {id(each.keys): each.keys for each in attributes.all}
    keys[0] = attributes.context_strings
    dictionaries = [each.dictionary for each in keys.values() if isinstance(each, DictionaryKeys)]
    found["constants in dictionaries"] = sum(map(len, dictionaries))
    found["cells"] = context_cells(m)
    return found


def go_around(m: Matcher, step: Step, n: int, early: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sizes: the largest in the first steps, and the largest in all those after them."""
    every = 53 if n < 10_000 else 499
    first: dict[str, int] = {}
    later: dict[str, int] = {}
    for i in range(n):
        step(m, WIDE + i)
        if i % 97 == 0:
            m.match({"price": 1, "x": 1, "city": "street 1000001"})
        if i % every == 0 or i == n - 1:
            most = first if i < early else later
            for name, size in sizes(m).items():
                most[name] = max(size, most.get(name, 0))
    return first, later


DEAR = (new_names_of_contexts, new_contexts_of_subscriptions)
"""Steps that take milliseconds: filters of contexts are chosen anew."""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steady_change_never_grows(step: Step) -> None:
    n, early = (200_000, 10_000) if LONG else (1_000, 400) if step in DEAR else (2_500, 1_000)
    first, later = go_around(Matcher(), step, n, early)
    for name, size in later.items():
        assert size <= 1.5 * first.get(name, 0) + 64, (name, first, later)


ALIKE = ("k_index", "gryphon", "propagation", "op_index", "no_index", "eager", "partial")
"""Indexes on the frame of `counting`, or on the filters of `agile`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "index",
    ["scan", "be_tree", "pst_bloom", "pst_hash", "a_tree", "counting", "vcr", "agile", "gbu",
     *[pytest.param(index, marks=pytest.mark.long) for index in ALIKE]],
)  # fmt: skip
@pytest.mark.parametrize("step", [new_constants, new_names], ids=lambda step: step.__name__)
def test_steady_change_does_not_grow_an_index(index: str, step: Step) -> None:
    settings = {"attributes": ["price", "other"]} if index == "vcr" else {}
    first, later = go_around(Matcher(index, **settings), step, 1_100, 500)
    for name, size in later.items():
        assert size <= 1.5 * first.get(name, 0) + 64, (name, first, later)
