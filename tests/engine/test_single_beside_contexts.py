"""Events beside contexts: plain parts go the compiled way, or in threads, with the same answers."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.test_single import General, event, mixed, warmed
from faults import fault_at
from matchwood import EventError, Matcher
from matchwood.engine.segments import asked, parallel
from naive import in_context, matches


def linked(rng: random.Random) -> str:
    a, b = rng.sample("abcdef", 2)
    kinds = (f"{a} < ctx.c AND {b} > 3", f"s = ctx.w OR {a} = 2", "ctx.c > 5", f"{a} IS NULL")
    return rng.choice(kinds)


def world(seed: int, n: int = 300) -> tuple[Matcher, dict[Any, tuple[Any, str | None]]]:
    """A matcher of both kinds of subscriptions, added in turn, and a dict of what it holds."""
    rng, m = random.Random(seed), Matcher()
    held: dict[Any, tuple[Any, str | None]] = {}
    for i in range(0, n, 50):
        m.add_many([(i + j, mixed(rng)) for j in range(50)])
        for j in range(5):
            m.add(f"l{i}-{j}", linked(rng), context=rng.choice("kl"))
    for id_ in "kl":
        m.set_context(id_, {"c": rng.randrange(12), "w": f"w{rng.randrange(30)}"})
    for id_, each in m.items():
        held[id_] = m.expression(id_), each.context
    return m, held


def expected(m: Matcher, held: dict[Any, Any], each: dict[str, Any]) -> list[Any]:
    values = {id_: m.context(id_) for id_ in m.context_ids()}
    return [
        id_
        for id_, (expr, context) in held.items()
        if matches(expr, in_context(each, values.get(context, {})))
    ]


@pytest.fixture
def encoded_parts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The attributes of parts for which an event was encoded in the general way."""
    found: list[Any] = []
    encode = asked.encode_event
    monkeypatch.setattr(
        asked, "encode_event", lambda attributes, event: (found.append(attributes),
                                                          encode(attributes, event))[1]
    )  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_dict_beside_contexts_has_the_answer_of_the_definition(
    seed: int, encoded_parts: list[Any]
) -> None:
    rng = random.Random(seed)
    m, held = world(seed)
    events = [event(rng) for _ in range(12)]
    warmed(m, events)
    for i in range(6):
        warmed(m, events)
        encoded_parts.clear()
        found = [m.match(each) for each in events]
        counts = [(m.match_count(each), m.exists(each)) for each in events]
        assert not encoded_parts
        answers = [expected(m, held, each) for each in events]
        assert found == answers
        assert counts == [(len(each), bool(each)) for each in answers]
        assert [m.match(General(each)) for each in events] == answers
        documents = [json.dumps(each) for each in events]
        assert [m.match_json(each) for each in documents] == answers
        gone = rng.choice(list(held))
        with m.batch() as batch:  # recent additions are made ready by the change
            batch.set_context("k", {"c": rng.randrange(12)})
            batch.remove(gone)
            batch.add(f"a{i}", mixed(rng))
        del held[gone]
        held[f"a{i}"] = m.expression(f"a{i}"), None


def test_only_subscriptions_with_contexts() -> None:
    m = Matcher()
    m.add("s", "a < ctx.c", context="k")
    m.set_context("k", {"c": 4})
    events = [{"a": i % 8} for i in range(40)]
    warmed(m, events)
    for each in events:
        holds = each["a"] < 4
        assert (m.match(each), m.match_count(each), m.exists(each)) == (
            ["s"] * holds, int(holds), holds
        )  # fmt: skip
    assert list(m.match_many(events * 4, threads=2)) == [m.match(each) for each in events * 4]


def test_what_expires_beside_contexts_is_left_out_when_it_is_due() -> None:
    m = Matcher()
    m.add("ctx", "a < ctx.c", context="k", expires=2e9)
    m.add("late", "a < 5", expires=4e9)
    m.add("due", "a < 5", expires=1e9)
    m.set_context("k", {"c": 4})
    warmed(m, [{"a": 1}])
    assert m.match({"a": 1}) == m.match(General(a=1)) == ["ctx", "late"]
    assert m.match({"a": 1}, now=3e9) == ["late"]


def test_a_wrong_event_beside_contexts_is_said() -> None:
    m = Matcher(schema={"a": "int"})
    m.add("plain", "b = 1")
    m.add("linked", "a < ctx.c", context="k")
    m.set_context("k", {"c": 4})
    warmed(m, [{"a": 1, "b": 1}])
    with pytest.raises(EventError, match="int"):
        m.match({"a": "x", "b": 1})
    with pytest.raises(EventError):
        m.match_json('{"a": "x", "b": 1}')
    with pytest.raises(EventError):
        m.match_json("no document")
    assert m.match({"a": 1, "b": 1}) == ["plain", "linked"]


@pytest.mark.slow
def test_an_exception_in_the_compiled_way_leaves_the_answers_as_they_were() -> None:
    m, held = world(7, 50)
    rng = random.Random(7)
    events = [event(rng) for _ in range(3)]
    warmed(m, events)
    answers = [expected(m, held, each) for each in events]
    step, happened = 0, True
    while happened:
        try:
            with fault_at(step, KeyboardInterrupt) as fault:
                m.match(events[0])
        except KeyboardInterrupt:
            pass
        happened = fault.happened
        assert [m.match(each) for each in events] == answers, fault.where
        step += 41


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_beside_contexts_give_the_answers_of_one(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "LEAST", 3)
    m, _ = world(5)
    m.add("high", "a >= 0", priority=5)
    m.add("higher", "a < ctx.c", context="k", priority=9)
    rng = random.Random(5)
    events: list[Any] = [event(rng) for _ in range(90)]
    events[17] = 5
    for asks in ({}, {"limit": 2}, {"first": True}):
        one = m.match_many(events, **asks)
        several = m.match_many(events, threads=threads, **asks)
        assert list(several) == list(one)
        assert several.errors.keys() == one.errors.keys() == {17}
        assert several.counters["events"] == one.counters["events"]
        assert several.counters["matches"] == one.counters["matches"]
