"""Subscriptions with contexts are a part of their own: others never wait, all change together."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from random import Random
from typing import Any

import pytest

import matchwood as mw
from engine.invariants import check
from faults import fault_at
from inside import lock_of_contexts, view_of
from matchwood.engine.segments import background, tiers
from matchwood.engine.segments.context_part import ContextPart
from matchwood.engine.segments.view import Part
from naive import in_context, matches

WAIT = 60.0
IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
EVENTS: list[dict[str, Any]] = [{"x": x, "s": "abc"[x % 3]} for x in range(6)] + [{}, {"s": "b"}]
PLAIN = ("x = {i}", "x > {i} AND s = 'b'", "s = 'a' OR x < {i}", "TRUE", "x IS NULL")
LINKED = ("x < ctx.c", "x = ctx.c OR s = ctx.w", "ctx.w = 'b' AND x >= {i}", "ctx.c IS NULL")
Model = dict[int | str, tuple[str, str | None]]
Contexts = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(tiers, "HEAD_MOST", 3)
    monkeypatch.setattr(tiers, "RECENT_MOST", 2)
    monkeypatch.setattr(tiers, "FACTOR", 2)


def drawn(rng: Random) -> tuple[str, str | None]:
    """A text, and a context or none; what needs no context may have one."""
    if rng.random() < 0.5:
        return rng.choice(LINKED).format(i=rng.randrange(6)), rng.choice("kl")
    return rng.choice(PLAIN).format(i=rng.randrange(6)), "k" if rng.random() < 0.2 else None


def expected(model: Model, contexts: Contexts, event: dict[str, Any]) -> list[int | str]:
    return [
        id_
        for id_, (text, context) in model.items()
        if matches(mw.parse(text), in_context(event, contexts.get(context or "", {})))
    ]


def agree(m: mw.Matcher, model: Model, contexts: Contexts) -> None:
    answers = [expected(model, contexts, event) for event in EVENTS]
    assert [m.match(event) for event in EVENTS] == answers
    assert list(m.match_many(EVENTS, threads=2)) == answers
    assert [m.match_count(event) for event in EVENTS] == list(map(len, answers))
    assert {id_: (each.text, each.context) for id_, each in m.items()} == model
    assert m.ids() == list(model)
    assert len(m) == len(model)
    assert all(id_ in m for id_ in model)
    assert {id_: m.context(id_) for id_ in "kl" if m.context(id_)} == contexts
    assert m.verify(EVENTS)
    encoded = m.encode(EVENTS)
    found, ids = m.find(encoded), m.arrow_ids(encoded).to_pylist()
    names = [each if not isinstance(each, dict) else each["int"] if each["str"] is None
             else each["str"] for each in ids]  # fmt: skip
    assert [names[slot] for slot in found.slots] == [id_ for each in answers for id_ in each]
    check(m)


def step(m: mw.Matcher, model: Model, contexts: Contexts, rng: Random, n: int) -> mw.Matcher:
    kind = rng.randrange(9)
    some = rng.sample(list(model), min(len(model), rng.randrange(1, 4)))
    if kind == 0:
        rows = {n * 10 + i: drawn(rng) for i in range(rng.randrange(1, 9))}
        assert not m.add_many([(id_, *each) for id_, each in rows.items()]).errors
        model |= rows
    elif kind == 1:
        text, context = model[f"s{n}"] = drawn(rng)
        m.add(f"s{n}", text, context=context)
    elif kind == 2:
        assert m.remove_many([*some, "unknown"]).count == len(some)
        for id_ in some:
            del model[id_]
    elif kind == 3:
        for id_ in some:
            text, context = drawn(rng)
            before = model[id_][1]
            model[id_] = text, before if context is None else context
            m.replace(id_, text, context=context)
    elif kind == 4:
        with m.batch() as b:
            for id_ in some:
                b.remove(id_)
                del model[id_]
                text, context = model[id_] = drawn(rng)
                b.add(id_, text, context=context)
            b.set_context("l", {"c": n % 6})
        contexts.setdefault("l", {})["c"] = n % 6
    elif kind in (5, 6):
        values = {"c": rng.choice((None, 2, 4.5)), "w": rng.choice((None, "a", f"w{n}", "b"))}
        m.set_context("k", values)
        both = {**contexts.pop("k", {}), **values}
        kept = {name: value for name, value in both.items() if value is not None}
        contexts |= {"k": kept} if kept else {}
    elif kind == 7:
        m.compact() if rng.random() < 0.5 else m.remove_context("l")
        if m.context("l") == {}:
            contexts.pop("l", None)
    elif rng.random() < 0.8:
        m = pickle.loads(pickle.dumps(m)) if rng.random() < 0.5 else copy.copy(m)
    return m


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_random_changes_of_both_parts_agree_with_a_dict(seed, tmp_path):
    rng, m, model, contexts = Random(seed), mw.Matcher(), Model(), Contexts()
    for n in range(50):
        m = step(m, model, contexts, rng, n)
        if n % 5 == 4:
            agree(m, model, contexts)
    m.save(tmp_path / "snapshot")
    agree(mw.Matcher.load(tmp_path / "snapshot"), model, contexts)
    assert any(isinstance(part, ContextPart) for part in view_of(m).parts)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_folder_has_both_parts(seed, tmp_path):
    rng, model, contexts = Random(seed + 50), Model(), Contexts()
    for round_ in range(4):
        with mw.Matcher.open(tmp_path, sync=False) as m:
            agree(m, model, contexts)
            for n in range(12):
                with_folder = step(m, model, contexts, rng, round_ * 12 + n)
                assert with_folder is m or with_folder.ids() == m.ids()
            if round_ % 2:
                m.checkpoint()
                step(m, model, contexts, rng, round_ * 12 + 11_000)
            agree(m, model, contexts)


def test_a_search_waits_for_no_context_if_no_subscription_has_one():
    m, n = mw.Matcher(), 8
    for i in range(n):
        m.add(i, f"x = {i}")
    m.set_context("k", {"c": 3})
    m.add("gone", "x < ctx.c", context="k")
    m.remove("gone")
    answers = held_meanwhile(m, lambda: [m.match({"x": 3}), m.match_count({"x": 3}), len(m)])
    assert answers == [[3], 1, n]


def test_changes_of_other_subscriptions_wait_for_no_context():
    m = mw.Matcher()
    m.add("linked", "x < ctx.c", context="k")

    def change() -> int:
        for i in range(12):
            m.add(i, "x = 1")
        m.replace(3, "x = 2")
        m.remove(4)
        m.add_many([(100 + i, "x = 1") for i in range(9)])
        return len(m)

    assert held_meanwhile(m, change) == 21
    assert m.match({"x": 2}) == [3]
    check(m)


def held_meanwhile(m: mw.Matcher, ask: Any) -> Any:
    """What is answered while another thread holds the lock of contexts."""
    is_held, is_done, found = threading.Event(), threading.Event(), []

    def hold() -> None:
        with lock_of_contexts(m):
            is_held.set()
            is_done.wait(WAIT)

    holder = threading.Thread(target=hold)
    asking = threading.Thread(target=lambda: found.append(ask()))
    holder.start()
    assert is_held.wait(WAIT)
    asking.start()
    asking.join(WAIT)
    is_waiting = asking.is_alive()
    is_done.set()
    holder.join(WAIT)
    asking.join(WAIT)
    assert not is_waiting
    return found[0]


def test_segments_are_searched_without_the_lock_of_contexts(monkeypatch):
    m = mw.Matcher()
    m.add_many([(i, "x = 1") for i in range(7)])
    m.add("linked", "x = ctx.c", context="k")
    m.set_context("k", {"c": 1})
    lock, seen, find = lock_of_contexts(m), [], Part.find

    def watched(part: Part, *given: Any) -> Any:
        seen.append((isinstance(part, ContextPart), lock._is_owned()))
        return find(part, *given)

    monkeypatch.setattr(Part, "find", watched)
    assert m.match({"x": 1}) == [*range(7), "linked"]
    assert m.match_many([{"x": 1}])[0] == [*range(7), "linked"]
    assert seen
    assert set(seen) == {(False, False)}


@pytest.mark.slow
def test_no_search_sees_half_of_a_batch_of_both_parts(monkeypatch):
    monkeypatch.setattr(background, "IS_ON", True)
    m, n_rounds, n_values = mw.Matcher(), 80, 5
    m.add_many([(i, "x = 99") for i in range(5)])
    m.add("plain", "x = 0")
    m.add("linked", "x = ctx.c", context="k")
    m.add("moves", "x = 0")
    m.set_context("k", {"c": 0})
    wrong: list[Any] = []
    is_over = threading.Event()
    events = [{"x": i} for i in range(n_values)]

    def read() -> None:
        while not is_over.is_set() and not wrong:
            found = list(m.match_many(events))
            if sorted(map(len, found)) != [0] * (n_values - 1) + [3]:
                wrong.append(found)
            one = m.match(events[0])
            if one and sorted(one) != ["linked", "moves", "plain"]:
                wrong.append(one)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for n in range(1, n_rounds):
        value = n % n_values
        with m.batch() as b:
            b.remove("moves")
            b.replace("plain", f"x = {value}")
            b.set_context("k", {"c": value})
            b.add("moves", "x = ctx.c" if n % 2 else f"x = {value}", context="k" if n % 2 else None)
    is_over.set()
    for each in readers:
        each.join(WAIT)
    assert not wrong
    check(m)


def test_a_subscription_that_gets_a_context_keeps_its_place_and_fields():
    m = mw.Matcher()
    for i in range(9):
        m.add(i, "x = 1", priority=i, payload={"n": i}, attributes={"age": i})
    added = m[4].added
    m.set_context("k", {"c": 1})
    for id_ in (4, 8, 0):  # in a segment, recent, in a segment
        m.replace(id_, "x = ctx.c", context="k", payload="new")
    assert m.match({"x": 1}) == list(range(9))
    assert (m[4].priority, m[4].payload, m[4].attributes) == (4, "new", {"age": 4})
    assert (m[4].added, m[4].context) == (added, "k")
    assert m.match({"x": 1}, limit=3) == [8, 7, 6]
    assert m.match({"x": 1}, where="age >= 7") == [7, 8]
    with pytest.raises(mw.SchemaError):
        m.replace(5, "x = ctx.c")
    assert m.match({"x": 1}) == list(range(9))
    check(m)


def test_a_batch_of_both_parts_that_is_refused_changes_neither():
    m = mw.Matcher()
    m.add("a", "x = 1")
    m.add("b", "x = ctx.c", context="k")
    m.set_context("k", {"c": 1})
    before = list(m.items())
    batch = m.batch()
    batch.__enter__()
    batch.set_context("k", {"c": 2})
    batch.replace("a", "x = 2", context="k")
    batch.add_many([("c", "x = 3", "k"), ("c", "x = 4", None)])
    with pytest.raises(mw.SubscriptionError, match="twice in one batch"):
        batch.__exit__(None, None, None)
    assert list(m.items()) == before
    assert m.match({"x": 1}) == ["a", "b"]
    assert m.context("k") == {"c": 1}
    check(m)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_exception_at_any_step_of_a_batch_leaves_both_parts_or_changes_both(error):
    step, happened = 0, True
    while happened:
        m = mw.Matcher()
        m.add_many([(i, "x = 9") for i in range(4)])
        m.add("plain", "x = 0")
        m.add("linked", "x = ctx.c", context="k")
        m.set_context("k", {"c": 0})
        try:
            with fault_at(step, error) as fault, m.batch() as b:
                b.replace("plain", "x = 1")
                b.set_context("k", {"c": 1})
                b.replace(2, "x = ctx.c", context="k")
        except error:
            pass
        happened = fault.happened
        found = [m.match({"x": x}) for x in (0, 1, 9)]
        before = [["plain", "linked"], [], [0, 1, 2, 3]]
        after = [[], [2, "plain", "linked"], [0, 1, 3]]
        assert found in (before, after), (fault.where, found)
        assert happened or found == after
        check(m)
        m.add("more", "x = ctx.c", context="k")
        assert m.match({"x": m.context("k")["c"]})[-1] == "more"
        step += 1 if IS_LONG else 97


@pytest.mark.slow
def test_an_interrupted_search_leaves_both_parts_as_they_were():
    step, happened = 0, True
    while happened:
        m = mw.Matcher()
        m.add("plain", "x = 0")
        m.add("linked", "x = ctx.c", context="k")
        m.set_context("k", {"c": 0})
        try:
            with fault_at(step, KeyboardInterrupt) as fault:
                m.match({"x": 0})
        except KeyboardInterrupt:
            pass
        happened = fault.happened
        assert m.match({"x": 0}) == ["plain", "linked"], fault.where
        m.set_context("k", {"c": 1})
        assert m.match({"x": 1}) == ["linked"]
        check(m)
        step += 1 if IS_LONG else 83


def test_rows_with_contexts_and_without_are_added_together():
    rows = [(i, "x = ctx.c" if i % 3 else "x = 1", "k" if i % 3 else None) for i in range(20)]
    rows += [(3, "x = 1", "k"), (4, "x = 1", None), ("p", "x >", "k"), ("q", "x >", None),
             ("r", "x = ctx.c", None), ("t", "x = 1", 1.5)]  # fmt: skip
    for index in ("auto", "scan"):
        m = mw.Matcher(index)
        report = m.add_many(rows)
        m.set_context("k", {"c": 1})
        assert report.count == 20
        assert [each.row for each in report.errors] == list(range(20, 26))
        assert m.match({"x": 1}) == list(range(20))
        check(m)


def test_the_numbers_of_both_parts_follow_the_order_of_addition():
    m = mw.Matcher()
    for i in range(9):
        m.add(f"s{i}", "x = ctx.c" if i % 2 else "x = 1", context="k" if i % 2 else None)
    m.set_context("k", {"c": 1})
    assert m.renumber().to_pylist() == [f"s{i}" for i in range(9)]
    assert m.match({"x": 1}) == list(range(9))
    assert sorted(m.arrow_ids().to_pylist()) == list(range(9))
    check(m)


def test_errors_of_rows_without_contexts_tell_their_position_among_rows_with_them():
    rows = [(1, "x = ctx.c", "k"), (2, "ok = 1 AND ctx.c = x", None), (3, "x = 1", None)]
    error = mw.Matcher().add_many(rows).errors[0].error
    with pytest.raises(mw.SchemaError) as alone:
        mw.Matcher().add(*rows[1][:2])
    assert isinstance(error, mw.SchemaError)
    assert type(error.position) is int
    assert error.position == alone.value.position
