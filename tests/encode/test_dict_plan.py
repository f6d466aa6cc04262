"""Dicts that compiled code reads become what the general way makes of them, whatever is in them."""

from __future__ import annotations

import math
import os
import random
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.encode.test_json_events import NAMES, SCALARS, TEXTS, TYPES
from tests.inside import attributes_of

import matchwood as mw
from matchwood.encode.dicts import plan as planning
from matchwood.encode.dicts.plan import DictPlan, dict_plan
from matchwood.encode.event_batch import EventBatch, batch_of
from matchwood.encode.events import _entries, encode_events
from matchwood.errors import EventError
from matchwood.kernel.objects import IS_USABLE

N_EVENTS = {"long": 300_000, "ci": 6_000}.get(os.environ.get("MATCHWOOD_PROFILE", ""), 1_500)

pytestmark = pytest.mark.skipif(not IS_USABLE, reason="objects lie otherwise in this Python")


class Small(IntEnum):
    ONE = 1


class Word(str):
    __slots__ = ()


@dataclass
class Record:
    c: int = 2
    name: str = "x"


ODD: list[Any] = [
    math.nan, math.inf, -math.inf, -0.0, 2**63, -(2**63), -(2**63) - 1, 2**63 - 1, 2**200, True,
    Decimal("0.1"), Decimal(7), Decimal("NaN"), np.int64(7), np.float64(0.5), np.nan, np.bool_(1),
    Small.ONE, Word("x"), b"x", "\ud83d", "x" * 9_000, date(2024, 1, 1), datetime(2024, 1, 1),
    (1, 2), [1, "a", None], [], {}, {"c": None}, OrderedDict(c=3, d=4), Record(), None, "héé" * 3,
    {1: 2}, {"": {"": 1}}, {"c": {"d": {"e": 1}}}, object(),
]  # fmt: skip
BY_HAND = ["lower(", "+ 1", "0.10000000000000000001"]
"""In texts for which every event goes the general way: computed attributes, exact decimals."""
KEYS: list[Any] = [*NAMES, "b.d.e", "d.e", "c", 1, None, Word("a"), "b.c.d", ("a",)]


def values(depth: int = 0) -> st.SearchStrategy[Any]:
    flat = st.sampled_from([*SCALARS, *ODD]) | st.integers() | st.floats() | st.text(max_size=6)
    return flat if depth == 3 else flat | st.dictionaries(st.sampled_from(KEYS), values(depth + 1))


events = st.dictionaries(st.sampled_from(KEYS), values(), max_size=8)


def matcher(rng: random.Random) -> mw.Matcher:
    schema = {"a": rng.choice(TYPES), "x.y": "float"} if rng.random() < 0.5 else None
    m = mw.Matcher(schema=schema)
    plain = [text for text in TEXTS if not any(each in text for each in BY_HAND)]
    m.add_many(enumerate(rng.sample(plain, rng.randrange(1, len(plain)))))
    return m


@cache
def numbered(seed: int) -> mw.Matcher:
    return matcher(random.Random(seed))


def plan_of(m: mw.Matcher) -> DictPlan:
    plan = dict_plan(attributes_of(m), 10**9)
    assert plan is not None
    return plan


def generally(m: mw.Matcher, event: Any) -> tuple[list[int] | str, Counter[str]]:
    """Entries, or the error; and what stayed unknown: by the general way."""
    attributes = attributes_of(m)
    attributes.unknown.clear()
    try:
        entries = _entries(attributes, event, [])
    except EventError as error:
        return str(error), Counter(attributes.unknown)
    # beside its kinds a dotted name supplies its own presence, only to be seen when it comes twice
    unasked = {each.id for each in attributes.by_name.values()
               if each.keys is None and not each.is_asked}  # fmt: skip
    entries = [(attr, key) for attr, key in entries if attr not in unasked]
    batch = batch_of([0, len(entries)], [attr for attr, _ in entries], [key for _, key in entries])
    return flat(batch), Counter(attributes.unknown)


def flat(batch: EventBatch) -> list[int]:
    return [*batch.attr.tolist(), *batch.lo.tolist(), *batch.hi.tolist()]


def check(m: mw.Matcher, event: dict[Any, Any]) -> bool:
    """Compare both ways; whether compiled code has read the event."""
    plan, attributes = plan_of(m), attributes_of(m)
    expected, unknown = generally(m, event)
    attributes.unknown.clear()
    found = plan.read(attributes, event)
    if found is None:
        return False
    attr, key = found
    assert [*attr.tolist(), *key.tolist(), *key.tolist()] == expected, event
    assert Counter(attributes.unknown) == unknown, event
    return True


def draw(rng: random.Random, depth: int = 0) -> Any:
    if depth and (depth > 3 or rng.random() < 0.7):
        return rng.choice(SCALARS if rng.random() < 0.8 else ODD)
    return {
        rng.choice(NAMES if rng.random() < 0.95 else KEYS): draw(rng, depth + 1)
        for _ in range(rng.randrange(7))
    }


def test_random_events_become_what_the_general_way_makes_of_them() -> None:
    rng = random.Random(5)
    n_read = 0
    for _ in range(max(1, N_EVENTS // 500)):
        m = matcher(rng)
        n_read += sum(check(m, draw(rng)) for _ in range(500))
    assert n_read > N_EVENTS // 5  # the usual case is read by compiled code


@pytest.mark.slow
@given(events, st.integers(0, 20))
def test_odd_values_and_names_are_left_or_become_the_same(event: Any, seed: int) -> None:
    check(numbered(seed), event)


@pytest.mark.parametrize("name", ["a", "b.c", "x.y", "other", "b"])
def test_every_odd_value_at_every_name(name: str) -> None:
    m = numbered(3)
    for value in [*ODD, *SCALARS]:
        check(m, {name: value})
        check(m, {"b": {name: value}, "a": 7})


def test_batches_give_what_events_one_by_one_give() -> None:
    rng = random.Random(8)
    m = matcher(rng)
    many = [draw(rng) for _ in range(400)] + [7, None, "x", Record(), OrderedDict(a=7)]
    left = set(np.flatnonzero(plan_of(m).read_many(attributes_of(m), many).is_left).tolist())
    found = encode_events(attributes_of(m), many)
    assert left >= found.errors.keys()
    assert m.match_many(many).to_pylist() == [
        m.match(event) if number not in found.errors else [] for number, event in enumerate(many)
    ]
    for number, event in enumerate(many):
        expected, _ = generally(m, event)
        part = slice(int(found.batch.start[number]), int(found.batch.start[number + 1]))
        mine = [found.batch.attr, found.batch.lo, found.batch.hi]
        if number not in left:
            assert [each for array in mine for each in array[part].tolist()] == expected


def test_a_name_is_found_however_its_dots_are_split() -> None:
    m = mw.Matcher()
    m.add("s", "p.q.r = 1")
    plan_of(m)
    for event in ({"p": {"q": {"r": 1}}}, {"p.q": {"r": 1}}, {"p": {"q.r": 1}}, {"p.q.r": 1}):
        assert check(m, event)
        assert m.match(event) == ["s"]
    for event in ({"p.q": {"r.": 1}}, {"p": {"q": 1}}, {"q": {"r": 1}}, {"p.": {"q.r": 1}}):
        assert check(m, event)
        assert m.match(event) == []


def test_a_name_that_comes_twice_is_refused() -> None:
    m = mw.Matcher()
    m.add("s", "p.q = 1")
    plan_of(m)
    with pytest.raises(EventError, match="once, found it twice"):
        m.match({"p": {"q": 1}, "p.q": 1})
    assert m.match({"p": {"q": 1}, "p.q": None}) == ["s"]


def test_a_number_without_constants_has_the_key_of_the_general_way() -> None:
    m = mw.Matcher(schema={"a": "number"})
    m.add("s", "a IS NULL")
    assert check(m, {"a": -1.25})
    assert check(m, {"a": 7})


def test_names_that_are_equal_but_not_the_same_object_are_found() -> None:
    m = mw.Matcher()
    m.add("s", "some_name = 'some value'")
    plan_of(m)
    name = "".join(["some", "_", "name"])
    assert m.match({name: "".join(["some", " value"])}) == ["s"]


def test_nesting_without_end_is_refused() -> None:
    m = mw.Matcher()
    m.add("s", "a = 1")
    plan_of(m)
    event: dict[str, Any] = {"a": 1}
    event["loop"] = event
    with pytest.raises(EventError, match="nested at most"):
        m.match(event)
    for depth in (46, 47, 48, 49, 50, 51, 52):
        deep: dict[str, Any] = {}
        for _ in range(depth):
            deep = {"x": deep}
        expected, _ = generally(m, deep)
        found = encode_events(attributes_of(m), [deep])
        assert bool(found.errors) == isinstance(expected, str)


def test_long_strings_and_wide_events_find_room() -> None:
    m = mw.Matcher()
    m.add_many((i, f"w{i} = '{'y' * 50}' OR w{i} IS NULL") for i in range(300))
    plan_of(m)
    wide = {f"w{i}": "y" * 50 for i in range(300)}
    assert check(m, wide)
    assert check(m, {"w1": "z" * 100_000})
    assert m.match_many([wide, {}] * 20).to_pylist() == [list(range(300))] * 40


def test_strings_of_an_absurd_size_go_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MOST_COPIED", 8_192)
    m = mw.Matcher()
    m.add("s", "a >= 'z'")
    plan_of(m)
    assert m.match({"a": "z" * 10_000}) == ["s"]
    assert m.match_many([{"a": "z" * 10_000}, {"a": "z"}, {}]).to_pylist() == [["s"], ["s"], []]


def test_a_plan_is_made_for_enough_events_and_dropped_by_a_change() -> None:
    m = mw.Matcher()
    m.add("s", "a = 1")
    m.match({"a": 1})
    assert attributes_of(m).dict_plan is None
    m.match_many([{"a": 1}] * 200)
    first = attributes_of(m).dict_plan
    assert first is not None
    m.add("t", "a = 2 AND b = 'new'")
    assert m.match({"a": 2, "b": "new"}) == ["t"]
    m.match_many([{"a": 1}] * 200)
    assert attributes_of(m).dict_plan is not first


def test_threads_read_dicts_at_the_same_time() -> None:
    m = mw.Matcher()
    m.add_many((i, f"a = {i} AND b = 'w{i}'") for i in range(100))
    plan_of(m)
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(300):
            k = (turn * 7 + number) % 100
            if m.match({"a": k, "b": f"w{k}"}) != [k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
