"""Contexts that change between the events of a batch, on and back, and values on disk."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from definition import by_definition
from matchwood.spark.streams.contexts import (
    Timeline,
    Update,
    read_values,
    values_of,
    values_text,
)

TEXTS = (
    "price < ctx.budget",
    "price > ctx.budget + 3 OR genre = ctx.taste",
    "NOT ctx.away AND price >= 4",
    "ctx.taste LIKE 'a%' AND price < 9",
    "ctx.budget IS NULL",
    "price > 6",
)
WHO = ("ann", "bob", None)


def values(random: Random) -> dict[str, object]:
    drawn = {
        "budget": random.choice((None, random.randrange(12), random.random() * 10)),
        "taste": random.choice((None, "a", "abc", "b", "zz")),
        "away": random.choice((None, True, False)),
    }
    return {name: drawn[name] for name in random.sample(list(drawn), random.randint(1, 3))}


def matcher(random: Random, index: str) -> mw.Matcher:
    made = mw.Matcher(index=index)
    made.add("types", "budget = 1 AND ctx.budget = 1 AND ctx.taste = '' AND ctx.away", context="x")
    for i in range(random.randrange(9)):
        text = random.choice(TEXTS)
        who = random.choice(WHO[:2] if "ctx" in text else WHO)
        made.add(f"s{i}", text, context=who)
    return made


@pytest.mark.slow
@given(st.integers(0, 2**32), st.sampled_from(("auto", "agile", "eager")))
def test_a_batch_with_moments_is_one_event_after_the_other(seed: int, index: str) -> None:
    random = Random(seed)
    found, expected = matcher(Random(seed), index), matcher(Random(seed), index)
    ids = found.arrow_ids().to_pylist()
    for _ in range(2):
        n = random.randrange(1, 20)
        kinds = [random.random() < 0.4 for _ in range(n)]
        updates = [Update(o, random.choice(WHO[:2]), values(random)) for o in range(n) if kinds[o]]
        events = [{"price": random.randrange(12), "genre": random.choice("ab")} for _ in kinds]
        offsets = np.array([o for o in range(n) if not kinds[o]], np.int64)
        by_offset = {each.offset: each for each in updates}
        lists = {}
        for o in range(n):
            if o in by_offset:
                expected.set_context(by_offset[o].context, by_offset[o].values)
            else:
                lists[o] = expected.match(events[o])
                assert lists[o] == by_definition(expected, events[o])
        timeline = Timeline(found)
        for each in updates:
            timeline.append(each)
        timeline.end()  # new strings come before events are encoded, as in `carry_out`
        middle = random.randint(0, len(offsets))
        for part in (offsets[middle:], offsets[:middle]):  # the later ones first: values go back
            encoded = found.encode([events[o] for o in part])
            hits = found.find(encoded, timeline.changes(part))
            for i, o in enumerate(part):
                slots = hits.slots[hits.offsets[i] : hits.offsets[i + 1]]
                assert [ids[slot] for slot in slots] == lists[o]
        timeline.end()
        for who in WHO[:2]:
            assert found.context(who) == expected.context(who)


def test_values_on_disk_are_what_they_were() -> None:
    told = {
        "a": 1, "b": 2**60, "c": 0.1, "d": "ü", "e": None, "f": True, "g.h": float("inf"),
        "i": date(2026, 1, 2), "j": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "k": Decimal("1.10"), "l": datetime(2026, 1, 2),
    }  # fmt: skip
    again = values_of(values_text(told))
    assert again == told
    assert [type(value) for value in again.values()] == [type(value) for value in told.values()]


def test_records_of_every_shape_give_values() -> None:
    types = {"ctx.n": "number", "ctx.d": "date", "ctx.s": "string"}
    told = {"n": 3, "d": date(2026, 1, 2), "s": "7", "gone": None}
    texts = {"n": "3", "d": "2026-01-02", "s": "7", "gone": None}
    assert read_values(list(texts.items()), None, "map", types) == told
    assert read_values(list(texts), list(texts.values()), "arrays", types) == told
    assert read_values('{"n": 3, "d": "2026-01-02", "s": "7", "gone": null}', None, "json", types)
    assert read_values({"n": 3, "a": {"b": 1, "c": None}}, None, "struct", types) == {
        "n": 3,
        "a.b": 1,
    }
    for attributes, more, shape, message in [
        (None, None, "map", "found null"),
        ([("x", "3")], None, "map", "declare its type"),
        ([("n", "3"), ("n", "4")], None, "map", "found it twice"),
        ([(None, "3")], None, "map", "expected a name"),
        (["n"], [], "arrays", "as many attributes"),
        ("{", None, "json", "found no JSON"),
        ("[1]", None, "json", "found list"),
        ('{"a": {"b": 1}, "a.b": 2}', None, "json", "found it twice"),
    ]:
        with pytest.raises(mw.EventError, match=message):
            read_values(attributes, more, shape, types)
