"""One event in a few compiled calls: the same answers as the general way, and less work."""

from __future__ import annotations

import copy
import random
import threading
from typing import Any

import pytest

from engine.singles import (
    General,
    apart,
    check,
    conjunction,
    event,
    matcher_of,
    mixed,
    rectangle,
    tree,
    warmed,
    wide,
)
from inside import attributes_of, is_bound, view_of
from matchwood import EventError, Matcher
from matchwood.engine import matching
from matchwood.engine.segments.asked import one_event
from matchwood.kernel import chains
from matchwood.kernel.store import IS_CHECKED

pytestmark = pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")


@pytest.mark.parametrize(
    ("rule", "n", "index"),
    [
        (conjunction, 40, "scan"),
        (mixed, 200, "scan"),
        (conjunction, 5_000, "blocks"),
        (wide, 5_000, "blocks"),
        (apart, 5_000, "pst_bloom"),
        (tree, 5_000, "terms"),
        (rectangle, 5_000, "vcr"),
        (mixed, 5_000, "terms"),
    ],
)
def test_a_dict_alone_has_the_answer_of_the_general_way(rule: Any, n: int, index: str) -> None:
    m = matcher_of(rule, n)
    assert index in {row["index"] for row in m.plan()}
    rng = random.Random(2)
    check(m, [event(rng) for _ in range(60)])


@pytest.mark.slow
def test_segments_a_head_and_what_is_gone_are_one() -> None:
    rng = random.Random(3)
    m = matcher_of(mixed, 5_000)
    m.add_many([(f"n{i}", mixed(rng)) for i in range(4_200)])
    events = [event(rng) for _ in range(40)]
    for i in range(300):
        m.add(f"h{i}", mixed(rng))
    check(m, events)  # all of a part was added before all of the next
    m.remove_many(range(0, 5_000, 3))
    for i in range(1, 200, 3):
        m.replace(i, mixed(rng))
    assert len(view_of(m).searched) >= 3
    check(m, events)
    before = m.match(events[0])
    assert len(before) > 1
    m.remove(before[0])
    assert m.match(events[0]) == before[1:]
    m.add("last", "TRUE")
    assert m.match(events[0]) == [*before[1:], "last"]
    check(m, events)


@pytest.mark.slow
def test_an_event_that_nothing_holds_for_in_parts_that_are_not_in_order() -> None:
    m = matcher_of(conjunction, 20_000)
    events = [{"a": 3, "b": 4}, {"a": 77}]
    warmed(m, events)
    m.replace(7, "a = 5")  # keeps its number in the order: younger ones are in the part before
    warmed(m, events)
    assert is_bound(m)
    assert m.match({"a": 77}) == []
    assert m.match({"a": 5}) == m.match(General(a=5)) == [7]


@pytest.mark.slow
def test_a_change_is_seen_by_the_next_event() -> None:
    m = matcher_of(conjunction, 10)
    rng = random.Random(4)
    events = [event(rng) for _ in range(10)]
    warmed(m, events)
    for i in range(300):
        m.add(f"x{i}", conjunction(rng))
        if i % 3 == 0:
            m.remove(rng.choice(list(m.ids())))
        for each in events[: 1 + i % 6]:
            assert m.match(each) == m.match(General(each))


@pytest.fixture
def in_general(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The events that were searched for in the general way."""
    found: list[Any] = []

    def noting(each: Any) -> Any:
        found.append(each)
        return one_event(each)

    monkeypatch.setattr(matching, "one_event", noting)
    return found


def test_a_removal_leaves_a_view_bound(in_general: list[Any]) -> None:
    rng = random.Random(8)
    m = matcher_of(mixed, 5_000)
    m.add_many([(f"n{i}", mixed(rng)) for i in range(300)])
    events = [event(rng) for _ in range(20)]
    warmed(m, events)
    expected = [set(m.match(General(each))) for each in events]
    in_general.clear()
    for id_ in [*rng.sample(range(5_000), 30), *[f"n{i}" for i in range(0, 90, 3)]]:
        m.remove(id_)
        for each, ids in zip(events, expected, strict=True):
            ids.discard(id_)
            assert set(m.match(each)) == ids
    assert not in_general


def test_additions_are_made_ready_for_the_next_event(in_general: list[Any]) -> None:
    rng = random.Random(10)
    m = matcher_of(mixed, 5_000)
    events = [event(rng) for _ in range(12)]
    warmed(m, events)
    for i in range(12):  # recent ones alone, and taken by the head
        with m.batch() as batch:
            for j in range(10):
                batch.add(f"a{i}-{j}", mixed(rng))
            batch.remove(i)
            batch.replace(100 + i, mixed(rng))
        in_general.clear()
        found = [m.match(each) for each in events]
        assert not in_general
        assert found == [m.match(General(each)) for each in events]


@pytest.mark.slow
def test_parts_are_searched_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where kernels cannot be chained the general way gives the same answers."""
    rng = random.Random(9)
    m = matcher_of(mixed, 5_000)
    m.add_many([(f"n{i}", mixed(rng)) for i in range(4_200)])
    m.remove_many(range(0, 400, 7))
    events = [event(rng) for _ in range(20)]
    warmed(m, events)

    def answers() -> Any:
        return [(m.match(each), m.match_count(each), m.exists(each)) for each in events]

    assert is_bound(m)
    chained = answers()
    m = copy.copy(m)
    monkeypatch.setattr(chains, "is_usable", lambda: False)
    warmed(m, events)
    assert not is_bound(m)
    assert answers() == chained


def test_more_matches_than_there_is_room_for() -> None:
    m = Matcher()
    m.add_many([(i, f"a > {i % 7} AND b = 1") for i in range(9_000)])
    m.add_many([(f"t{i}", "a = 8 OR b = 9") for i in range(4_500)])
    check(m, [{"a": 8, "b": 1}, {"a": 3, "b": 1}, {"b": 9}, {}])


def test_what_expires_is_left_out_when_it_is_due() -> None:
    m = matcher_of(conjunction, 10)
    m.add("late", "b = 1", expires=4e9)
    events: list[dict[str, Any]] = [{"b": 1}, {"b": 2}]
    check(m, events)
    m.add("soon", "b = 1", expires=1.0)
    warmed(m, events)
    assert m.match({"b": 1})[-1] == "late"
    assert m.match({"b": 1}, now=0.5)[-2:] == ["late", "soon"]
    assert m.exists({"b": 1})
    m.sweep()
    check(m, events)


def test_values_of_other_kinds_are_counted_once() -> None:
    m = matcher_of(conjunction, 40)
    m.add_many([(f"n{i}", f"a < {i}") for i in range(4_200)])
    events: list[dict[str, Any]] = [{"a": "word", "b": 1}, {"a": 1, "b": "x"}, {"a": 1}]
    warmed(m, events)

    def counted(each: dict[str, Any]) -> dict[str, int]:
        stores = [part.store.attributes for part in view_of(m).searched]
        for attributes in stores:
            attributes.unknown.clear()
        m.match(each)
        return {f"{k}{name}": n for k, of in enumerate(stores) for name, n in of.unknown.items()}

    odd = {"a": "word", "b": object()}  # read by none of the compiled ways
    for each in events:
        assert counted(each) == counted(General(each))
    assert counted(odd) == counted(General(odd))


def test_values_of_other_kinds_beside_a_text_without_room_are_counted_once() -> None:
    m = matcher_of(conjunction, 40)
    m.add("long", f"s = '{'x' * 30_000}'")
    m.add_many([(f"n{i}", f"a < {i}") for i in range(4_200)])
    long: dict[str, Any] = {"a": "word", "b": 1, "s": "x" * 30_000}
    warmed(m, [{"a": 1}])
    assert is_bound(m)
    stores = [part.store.attributes for part in view_of(m).searched]
    counted = []
    for each in (long, General(long)):
        for attributes in stores:
            attributes.unknown.clear()
        assert "long" in m.match(each)
        counted.append([dict(attributes.unknown) for attributes in stores])
    assert counted[0] == counted[1]
    assert any(counted[0])
    check(m, [long, {"a": 3}, long])


def test_what_is_wrong_with_an_event_is_said() -> None:
    m = Matcher(schema={"a": "int"})
    m.add("one", "a = 1")
    warmed(m, [{"a": 1}, {"a": 2}])
    with pytest.raises(EventError, match="expected int, found"):
        m.match({"a": "word"})
    with pytest.raises(EventError):
        m.match_count({"a": 1.5})
    assert m.match({"a": 1}) == ["one"]


def test_work_is_counted_as_in_the_general_way() -> None:
    m = matcher_of(mixed, 5_000)
    rng = random.Random(5)
    events = [event(rng) for _ in range(20)]
    warmed(m, events)

    def work(kind: Any) -> list[int]:
        before = m.stats()["work"]
        for each in events:
            m.match(kind(each))
        after = m.stats()["work"]
        return [after[name] - before[name] for name in after]

    assert work(dict) == work(General)
    assert m.stats()["calls"]["match"]["count"] >= 40


@pytest.mark.parametrize(("n", "rule"), [(200, "a > {0}"), (5_000, "a = 1 AND b < {0}")])
def test_exists_stops_at_the_first_match(n: int, rule: str) -> None:
    m = Matcher()
    m.add_many([(i, rule.format(i - n)) for i in range(n)])
    one = {"a": 1, "b": -9_000}
    warmed(m, [one, {"a": -500}])

    def candidates(ask: Any) -> int:
        before = m.stats()["work"]["candidates"]
        assert ask(one)
        return int(m.stats()["work"]["candidates"] - before)

    assert candidates(m.match_count) == n
    assert candidates(m.exists) <= max(1, n // 5)
    m.remove_many(range(10))
    warmed(m, [one])
    assert m.match_count(one) == n - 10
    assert m.exists(one)
    m.remove_many(range(10, n))
    assert not m.exists(one)


def test_threads_have_memory_of_their_own() -> None:
    m = matcher_of(mixed, 5_000)
    rng = random.Random(6)
    events = [event(rng) for _ in range(50)]
    expected = [m.match(General(each)) for each in events]
    warmed(m, events)
    wrong: list[Any] = []

    def run(start: int) -> None:
        for k in range(400):
            e = (start + k) % len(events)
            if m.match(events[e]) != expected[e]:
                wrong.append(e)

    threads = [threading.Thread(target=run, args=(i * 7,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert attributes_of(m).dict_plan is not None
