"""Names and types that were learned live as long as a subscription, or a context, has them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import naive
from matchwood import Matcher, SchemaError, parse
from matchwood.index.core.registry import REGISTRY

QUICK = ["auto", "scan", "be_tree", "a_tree", "agile"]
SLOW = sorted(REGISTRY.keys() - {"r_tree", *QUICK})
INDEXES = [*QUICK, *[pytest.param(index, marks=pytest.mark.slow) for index in SLOW]]

KINDS: dict[str, tuple[list[str], list[Any]]] = {
    "number": (["{} = 3", "{} > 1.5", "{} BETWEEN 2 AND 5", "{} IN (1, 4)"], [1, 2, 3, 4.5]),
    "string": (["{} = 'ada'", "{} < 'bob'", "{} LIKE '%d_%'", "{} <> 'cy'"], ["ada", "adam", "cy"]),
    "bool": (["{}", "NOT {}"], [True, False]),
}


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
def test_a_name_may_come_back_with_another_type(index: str) -> None:
    """Three names, each of any type; few subscriptions, so that they are forgotten all the time."""
    rng = Random(7)
    m = Matcher(index, **({"attributes": ["x0", "x1"]} if index == "vcr" else {}))
    held: dict[int, str] = {}
    kind_of: dict[str, str] = {}
    n_changed = 0
    for i in range(100):
        kinds = {f"x{k}": rng.choice(list(KINDS)) for k in range(3)}
        used = {name for text in held.values() for name in kinds if name in text}
        kinds |= {name: kind_of[name] for name in used}
        if index == "vcr":
            kinds |= {"x0": "number", "x1": "number"}  # settings name them: they stay
        n_changed += sum(kinds[name] != kind_of.get(name, kinds[name]) for name in kinds)
        names = rng.sample(list(kinds), rng.randint(1, 3))
        parts = [rng.choice(KINDS[kinds[name]][0]).format(name) for name in names]
        held[i] = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(parts)
        m.add(i, held[i])
        kind_of |= {name: kinds[name] for name in names}
        while len(held) > rng.randrange(4):
            gone = rng.choice(list(held))
            m.remove(gone)
            del held[gone]
        used = {name for text in held.values() for name in kinds if name in text}
        if index != "vcr":
            assert dict(m.schema) == {name: kind_of[name] for name in used}
        for _ in range(3):
            event = {
                name: rng.choice(KINDS[kind_of[name]][1]) for name in used if rng.random() < 0.8
            }
            expected = [id_ for id_, text in held.items() if naive.matches(parse(text), event)]
            assert m.match(event) == expected
    assert n_changed > 5


def test_a_type_goes_with_the_last_subscription_that_mentions_the_name():
    m = Matcher(schema={"kept": "int"})
    m.add(1, "x = 1 AND kept = 1")
    m.add(2, "x > 5")
    m.remove(1)
    assert dict(m.schema) == {"kept": "int", "x": "number"}
    m.remove(2)
    assert dict(m.schema) == {"kept": "int"}
    m.add(3, "x = 'text'")
    m.replace(3, "y IS NULL")
    assert dict(m.schema) == {"kept": "int"}
    assert m.match({"x": 5}) == m.match({"x": "text"}) == [3]
    with pytest.raises(SchemaError):
        m.add(4, "kept = 'text'")


@pytest.mark.parametrize(
    "text",
    ["x < 1 AND x > 2", "y = 1 OR TRUE OR x = 1", "y = 1 AND (x = 1 OR x <> 1 OR x IS NULL)"],
)
def test_a_mention_that_merging_leaves_out_counts(text: str, tmp_path: Path) -> None:
    m = Matcher()
    m.add(1, text)
    known = dict(m.schema)
    m.add(2, "z = 1")
    m.remove(2)
    assert dict(m.schema) == known
    m.compact()
    m.save(tmp_path / "s")
    m = Matcher.load(tmp_path / "s")
    assert dict(m.schema) == known
    m.add(4, "other = 1")
    m.remove(1)
    m.add(3, "x = 'text'")
    assert m.match({"x": "text"}) == [3]


def test_names_of_contexts_live_as_long_as_values_and_subscriptions_have_them():
    m = Matcher()
    m.set_context("c", {"a": 1, "b": "x"})
    m.add(1, "price < ctx.a AND ctx.d", context="c")
    assert m.schema.keys() == {"price", "ctx.a", "ctx.b", "ctx.d"}
    m.set_context("c", {"b": None})
    assert m.schema.keys() == {"price", "ctx.a", "ctx.d"}
    m.set_context("c", {"b": 5})
    m.remove_context("c")
    assert m.schema.keys() == {"price", "ctx.a", "ctx.d"}
    m.remove(1)
    assert not m.schema
    assert not m.context_ids()
    m.set_context("c", {"a": "text", "d": 5})
    assert m.context("c") == {"a": "text", "d": 5}


def test_a_snapshot_remembers_what_was_declared(tmp_path: Path) -> None:
    m = Matcher(schema={"kept": "int"})
    m.add(1, "x = 1 AND kept = 1")
    m.save(tmp_path / "s")
    m = Matcher.load(tmp_path / "s")
    m.remove(1)
    assert dict(m.schema) == {"kept": "int"}
    m.add(2, "y = 1 AND x = 'a'")
    m.save(tmp_path / "s")
    assert Matcher.load(tmp_path / "s").match({"x": "a", "y": 1}) == [2]
