"""New values of known contexts, and events between them, take short ways: with the same answers,
whatever else happens, and wherever they are interrupted.
"""

from __future__ import annotations

import json
import os
import random
import threading
from typing import Any

import pytest

from definition import by_definition
from engine.invariants import check
from engine.test_single import General
from faults import fault_at
from inside import view_of
from matchwood import EventError, Matcher, MatchwoodError
from matchwood.context.cif_indexes import MemberIndexes
from matchwood.engine.segments import asked
from matchwood.engine.stores import savepoint
from matchwood.kernel.store import IS_CHECKED

INDEXES = ("auto", "agile", "eager", "partial", "gbu", "no_index", "a_tree", "scan")
IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
TEXTS = (
    "a BETWEEN ctx.x - 3 AND ctx.x + 3", "a < ctx.x AND b > ctx.y", "s = ctx.w AND a >= ctx.y",
    "ctx.x > 5 OR b < 2", "ctx.y IS NULL AND a < ctx.x", "ctx.w LIKE '%o_d%' AND a > 1",
    "a > ctx.z + 1.5 OR ctx.on", "b = ctx.y",
)  # fmt: skip
CONTEXTS = ("k", "l", 7)


def world(index: str, n: int = 40) -> Matcher:
    """A matcher of subscriptions with contexts and without."""
    m = Matcher(index)
    for i in range(n):
        if i % 5:
            m.add(i, TEXTS[i % len(TEXTS)], context=CONTEXTS[i % 3], expires=4e9)
        else:
            m.add(i, f"a = {i % 9} OR b < {i % 4}")
    for each in CONTEXTS:
        m.set_context(each, {"x": 4, "y": 1.5, "w": "word 1"})
    return m


def event(rng: random.Random) -> dict[str, Any]:
    drawn = {
        "a": rng.choice([rng.randrange(-3, 14), rng.random() * 9, 2**53 + 1]),
        "b": rng.choice([0, 1.5, 3, 9]),
        "s": f"word {rng.randrange(4)}",
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.9}


def values(rng: random.Random) -> dict[str, Any]:
    drawn = {
        "x": rng.choice([rng.randrange(-4, 15), rng.random() * 10, None]),
        "y": rng.choice([0, 1.5, 9]),
        "w": f"word {rng.randrange(4)}",
        "z": rng.choice([1, 2.5, None]),
        "on": rng.random() < 0.3,
    }
    return {name: drawn[name] for name in rng.sample(list(drawn), rng.choice([1, 1, 1, 2, 3]))}


def warmed(m: Matcher) -> Matcher:
    """The same, searched so often that single events take the compiled way."""
    rng = random.Random(1)
    for _ in range(75):
        m.match(event(rng))
    return m


def agree(m: Matcher, events: list[dict[str, Any]]) -> None:
    answers = [by_definition(m, each) for each in events]
    assert [m.match(each) for each in events] == answers
    assert [m.match(General(each)) for each in events] == answers
    assert [m.match_json(json.dumps(each)) for each in events] == answers
    assert [m.match_count(each) for each in events] == [len(each) for each in answers]
    assert [m.exists(each) for each in events] == [bool(each) for each in answers]


@pytest.fixture
def savepoints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those of all facts that are taken."""
    taken: list[Any] = []
    take = savepoint.Savepoint.__init__
    monkeypatch.setattr(
        savepoint.Savepoint, "__init__", lambda self, store: (taken.append(store),
                                                              take(self, store))[1]
    )  # fmt: skip
    return taken


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("seed", range(8 if IS_LONG else 2))
def test_values_and_events_in_turn_have_the_answers_of_the_definition(
    index: str, seed: int
) -> None:
    rng, m = random.Random(seed), warmed(world(index))
    for step in range(1_000 if IS_LONG else 60):
        what = rng.random()
        context = rng.choice([*CONTEXTS, "new"])
        if what < 0.55:
            m.set_context(context, values(rng), flips=rng.random() < 0.1)
        elif what < 0.6:
            m.set_context_many({each: values(rng) for each in CONTEXTS})
        elif what < 0.63:
            m.remove_context(context)
        elif what < 0.68:
            m.add(f"s{step}", rng.choice(TEXTS), context=rng.choice(CONTEXTS))
        elif what < 0.72:
            m.remove(rng.choice([id_ for id_, _ in m.items()]))
        elif what < 0.74:
            m.compact()
        elif what < 0.76:
            m.stats()
        elif what < 0.8:
            events = [event(rng) for _ in range(5)]
            found = [list(each) for each in m.match_many(events)]
            assert found == [by_definition(m, each) for each in events]
        else:
            agree(m, [event(rng) for _ in range(rng.choice([1, 1, 3]))])
    agree(m, [event(rng) for _ in range(5)])
    check(m)


def test_what_is_set_is_what_is_told() -> None:
    m = world("auto")
    m.set_context("k", {"x": 1, "y": 2.5, "w": "word 3"})
    m.set_context("k", {"x": -0.0})
    m.set_context("k", {"y": 2**52, "w": "word 1"})
    told = {"x": 0, "y": 2**52, "w": "word 1"}
    assert m.context("k") == told
    for wrong in ({"x": "text"}, {"x": 3, "y": "text"}, {"x": True}, {5: 3}, {"w": 3}):
        with pytest.raises(EventError):
            m.set_context("k", wrong)  # type: ignore[dict-item]
        assert m.context("k") == told
    for wrong_id in (7.0, True, None):
        with pytest.raises(MatchwoodError):
            m.set_context(wrong_id, {"x": 2})  # type: ignore[arg-type]
    m.set_context(7, {"x": 2})
    assert m.context(7)["x"] == 2
    assert m.context("7") == {}


@pytest.mark.parametrize("index", INDEXES)
def test_known_values_take_no_savepoint_of_all_facts_and_publish_no_view(
    index: str, savepoints: list[Any]
) -> None:
    m = world(index)
    m.remove_many([id_ for id_, _ in m.items() if "LIKE" in str(m.expression(id_))])
    m.set_context("l", {"w": "word 0"})
    m.match({"a": 3, "b": 1})
    view = view_of(m)
    savepoints.clear()
    for i in range(20):
        m.set_context("k", {"x": i, "y": 20 - i})
        m.set_context(7, {"w": f"word {i % 2}"})
        m.set_context("l", {"x": -i})
    assert view_of(m) is view
    assert not savepoints


@pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")
@pytest.mark.parametrize("index", [each for each in INDEXES if each != "a_tree"])
def test_events_between_values_take_the_compiled_way(
    index: str, monkeypatch: pytest.MonkeyPatch, savepoints: list[Any]
) -> None:
    m = warmed(world(index))
    m.match({"a": 3})
    encoded: list[Any] = []
    encode = asked.encode_event
    monkeypatch.setattr(
        asked, "encode_event", lambda *given: (encoded.append(given), encode(*given))[1]
    )
    savepoints.clear()
    for i in range(40):
        m.set_context("k", {"x": 4 + i / 100})
        assert m.match({"a": 3, "b": i}) == by_definition(m, {"a": 3, "b": i})
    assert not savepoints
    assert len(encoded) <= 8  # where an index has other arrays since


@pytest.mark.parametrize("index", ["auto", "agile"])
def test_what_one_event_taught_is_absorbed_before_it_is_told(index: str) -> None:
    m = warmed(world(index))
    before = m.stats()["work"]
    for n in range(1, 4):
        m.match({"a": 3, "b": 1})
        work = m.stats()["work"]
        parts = 2 if index == "auto" else 1
        assert work["events"] - before["events"] == n * parts
    assert work["matches"] - before["matches"] == 3 * len(m.match({"a": 3, "b": 1}))


VALUES: tuple[dict[str, Any], ...] = (
    {"x": 5.5}, {"x": 5, "y": 1}, {"x": 900}, {"x": -900, "y": 3, "w": "word 0"},
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "agile", "eager", "gbu"])
@pytest.mark.parametrize("given", VALUES, ids=str)
def test_new_values_are_set_all_or_none_wherever_that_is_interrupted(
    index: str, given: dict[str, Any]
) -> None:
    """Also after searches that left something to absorb, and when an index follows."""
    events = [{"a": a, "b": 1, "s": "word 0"} for a in (-900, 3, 5, 899)]
    step, happened, n_faults = len(index), True, 0
    m = warmed(world(index))
    m.set_context("l", {"w": "word 0"})
    before = m.context("k")
    while happened:
        m.match(events[0])
        with fault_at(step, KeyboardInterrupt) as fault:
            m.set_context("k", given)
        happened = fault.happened
        n_faults += happened
        found = m.context("k")
        assert found in (before, {**before, **given}), (fault.where, found)
        assert happened or found == {**before, **given}
        agree(m, events)
        m.set_context("k", before)
        assert m.context("k") == before
        step += 1 if IS_LONG else 13
    assert n_faults > 2


@pytest.mark.parametrize("index", ["auto", "agile", "eager"])
def test_an_index_that_has_followed_values_goes_back_with_them(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last change before it published a view; this one publishes none that could count."""
    m = Matcher(index)
    m.add_many([(i, "a BETWEEN ctx.x - 3 AND ctx.x + 3", CONTEXTS[i % 3]) for i in range(400)])
    m.set_context_many({each: {"x": 4} for each in CONTEXTS})
    for _ in range(100):  # values rest, so that an index follows exactly
        m.match({"a": 3})
    m.set_context("l", {"x": 4}, flips=True)
    with monkeypatch.context() as patch:
        patch.setattr(MemberIndexes, "note_updates", interrupted)
        with pytest.raises(KeyboardInterrupt):
            m.set_context("k", {"x": 900})
    assert m.context("k") == {"x": 4}
    assert m.match({"a": 3}) == m.match(General(a=3)) == list(range(400))
    m.set_context("k", {"x": 900})
    assert m.match({"a": 899}) == list(range(0, 400, 3))


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "agile"])
def test_an_event_of_the_compiled_way_leaves_all_as_it_was_wherever_it_is_interrupted(
    index: str,
) -> None:
    m = warmed(world(index))
    events = [{"a": 3, "b": 1, "s": "word 1"}, {"a": 9}]
    step, happened = 0, True
    while happened:
        for _ in range(9 + step % 8):
            m.match(events[1])
        with fault_at(step, KeyboardInterrupt) as fault:
            m.match(events[0])
        happened = fault.happened
        agree(m, events)
        m.set_context("k", {"x": step % 7})
        assert m.match(events[0]) == by_definition(m, events[0])
        step += 1 if IS_LONG else 17
    check(m)


def test_an_event_that_sets_values_while_it_is_read_is_refused() -> None:
    class Changing(dict):  # type: ignore[type-arg]
        def __init__(self, m: Matcher) -> None:
            super().__init__(a=1)
            self.m = m

        def items(self) -> Any:
            self.m.set_context("k", {"x": 5})
            return super().items()

    m = warmed(world("auto"))
    with pytest.raises(MatchwoodError, match="leave the matcher alone"):
        m.match(Changing(m))
    assert m.context("k")["x"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "agile"])
def test_a_thread_never_finds_the_values_before_a_change_that_has_returned(index: str) -> None:
    m = Matcher(index)
    m.add("low", "a = ctx.x AND a = ctx.y", context="k")
    for i in range(40):
        m.add(i, f"a = {i}")
    m.set_context("k", {"x": 0, "y": 0})
    warmed(m)
    wrong: list[Any] = []
    is_over = threading.Event()
    first = [0]  # the values set last, at least

    def read() -> None:
        rng = random.Random(4)
        while not is_over.is_set() and not wrong:
            least = first[0]
            at = rng.randrange(5)
            found = "low" in m.match({"a": at})
            most = first[0] + 1
            seen = {n % 5 for n in range(least, most + 1)}
            if (found and at not in seen) or (not found and seen == {at}):
                wrong.append((at, least, most, found))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for n in range(1, 3_000):
        m.set_context("k", {"x": n % 5, "y": n % 5})
        first[0] = n
    is_over.set()
    for each in readers:
        each.join(60)
    assert not wrong
    check(m)
