"""One event in a few compiled calls: the same answers as the general way, and less work."""

from __future__ import annotations

import copy
import json
import random
import threading
from typing import Any

import pytest

from inside import attributes_of, is_bound, view_of
from matchwood import EventError, Matcher
from matchwood.encode.json.events import JsonLines
from matchwood.engine import matching
from matchwood.engine.segments.asked import one_event
from matchwood.engine.segments.single_part import SinglePart
from matchwood.kernel import chains
from matchwood.kernel.store import IS_CHECKED

pytestmark = pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")


class General(dict[str, Any]):
    """A dict that is read in the general way, because it is of another type."""


def conjunction(rng: random.Random) -> str:
    names = rng.sample("abcdef", 2)
    return f"{names[0]} = {rng.randrange(12)} AND {names[1]} >= {rng.randrange(12)}"


def tree(rng: random.Random) -> str:
    return f"({conjunction(rng)}) OR (s = 'w{rng.randrange(30)}' AND NOT ({conjunction(rng)}))"


def wide(rng: random.Random) -> str:
    return " AND ".join(f"{name} > {rng.randrange(4)}" for name in rng.sample("abcdef", 4))


def apart(rng: random.Random) -> str:
    """With little in common."""
    return " AND ".join(f"k{k} > {rng.randrange(12)}" for k in rng.sample(range(100), 3))


def rectangle(rng: random.Random) -> str:
    x, y = rng.randrange(100), rng.randrange(100)
    return f"a BETWEEN {x} AND {x + 9} AND b BETWEEN {y} AND {y + 9}"


def mixed(rng: random.Random) -> str:
    kinds = [conjunction, tree, wide, lambda _: "g IS NULL", lambda _: "TRUE"]
    return rng.choices(kinds, [40, 30, 20, 3, 1])[0](rng)


def event(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: rng.choice([rng.randrange(12), rng.random() * 12, str(rng.randrange(12))])
        if rng.random() < 0.3
        else rng.randrange(12)
        for name in "abcdef"
        if rng.random() < 0.7
    }
    found |= {"s": f"w{rng.randrange(30)}", "unused": [1, {"x": 2}]}
    found |= {f"k{k}": rng.randrange(14) for k in rng.sample(range(100), 40)}
    if rng.random() < 0.5:
        found["g"] = None if rng.random() < 0.5 else {"h": 1}
    return found


def matcher_of(rule: Any, n: int, seed: int = 1) -> Matcher:
    rng = random.Random(seed)
    m = Matcher()
    m.add_many([(i, rule(rng)) for i in range(n)])
    return m


def warmed(m: Matcher, events: list[dict[str, Any]]) -> None:
    """Have so many events matched that dicts are read by compiled code."""
    m.encode(events * (1 + 4_000 // len(events)))
    for _ in range(4):
        m.match(events[0])


def check(m: Matcher, events: list[dict[str, Any]]) -> None:
    warmed(m, events)
    assert is_bound(m)
    for each in events:
        expected = m.match(General(each))
        assert m.match(each) == expected
        assert m.match_count(each) == len(expected)
        assert m.exists(each) == bool(expected)
        assert m.match_many([each])[0] == expected


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


def test_a_json_document_alone_has_the_answer_of_many() -> None:
    rng = random.Random(7)
    m = matcher_of(mixed, 5_000)
    m.add_many([(f"n{i}", mixed(rng)) for i in range(300)])
    documents = [json.dumps(event(rng)).encode() for _ in range(60)]
    documents += [b'{"a": 1, "a": 2, "b": 11}', b'{"a\\u0062": 1, "a": 1e400}', b' {"s": "w\\t3"} ']
    m.encode(JsonLines(documents * 100))
    for _ in range(4):
        m.match_json(documents[0])
    assert is_bound(m)
    expected = m.match_many_json(documents)
    for document, ids in zip(documents, expected, strict=True):
        assert m.match_json(document) == m.match_json(document.decode()) == ids
    for wrong in (b"", b"[]", b'{"a": }', b'{"a": 1} {}', b'{"s": "\xff"}'):
        with pytest.raises(EventError, match="expected a JSON object"):
            m.match_json(wrong)
    long = json.dumps({"unused": "\\" * 20_000, "s": "w3", "a": 1}).encode()
    assert m.match_json(long) == m.match_many_json([long])[0]


def test_values_of_other_kinds_in_documents_are_counted_once() -> None:
    m = matcher_of(conjunction, 40)
    documents = [b'{"a": "word", "b": 1}', b'{"a": 1, "b": [1]}', b'{"a": 1}']
    m.encode(JsonLines(documents * 500))
    for _ in range(4):
        m.match_json(documents[0])
    assert is_bound(m)

    def counted(ask: Any) -> dict[str, int]:
        attributes_of(m).unknown.clear()
        for document in documents:
            ask(document)
        return dict(attributes_of(m).unknown)

    assert counted(m.match_json) == counted(lambda each: m.match_many_json([each]))


COMPUTED = ("a + 1 > 4", "a * b = 12", "upper(s) = 'W1'", "10 / b > 3", "g + 1 = 2", "size(l) = 2",
            "n.x + 1 = 3", "length(s) > 40", "coalesce(a, 5) = 5", "g = l")  # fmt: skip


def test_computed_attributes_alone_have_the_answer_of_the_general_way() -> None:
    """Known and new values, ones that fail or are of another kind, and texts without room."""
    m = matcher_of(conjunction, 40)
    m.add_many([(text, text) for text in COMPUTED])
    m.add_many([(f"n{i}", f"a < {i} AND {COMPUTED[i % 5]}") for i in range(4_200)])
    rng = random.Random(11)
    values: list[Any] = [0, 1, 2, 3, 4.5, "w1", "w" * 5_000, [1, 2], None, True, 2**70, object()]
    events = [{name: rng.choice(values) for name in rng.sample("abgsl", 4)} for _ in range(150)]
    events += [{"a": i, "n": {"x": i}, "s": f"w{i}"} for i in range(20)]
    warmed(m, [{"a": 1}])
    assert is_bound(m)
    stores = [part.store.attributes for part in view_of(m).searched]

    def counted(each: dict[str, Any]) -> Any:
        for attributes in stores:
            attributes.unknown.clear()
            attributes.failed.clear()
        return m.match(each), [(dict(of.unknown), dict(of.failed)) for of in stores]

    for _ in range(2):
        rng.shuffle(events)
        for each in events:
            assert counted(each) == counted(General(each)), each


def test_computed_attributes_that_are_known_need_no_call_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = matcher_of(conjunction, 40)
    m.add_many([(text, text) for text in COMPUTED])
    events = [{"a": i % 5, "b": 3, "s": f"w{i % 4}", "n": {"x": i % 3}} for i in range(40)]
    warmed(m, events)
    expected = [m.match(each) for each in events]
    monkeypatch.setattr(SinglePart, "read", None)  # which reads an event by itself
    assert [m.match(each) for each in events] == expected
    assert any("upper(s) = 'W1'" in each for each in expected)


def test_memory_that_grew_for_a_long_text_beside_something_to_compute_is_that_of_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled code would write to the memory that there was before, which is free by then."""
    m = matcher_of(conjunction, 40)
    m.add("sum", "a + 1 > 4")
    m.add("text", f"s = '{'é' * 5_000}'")
    warmed(m, [{"a": 5, "s": "é"}])
    m.match({"a": 5, "s": "é"})
    assert is_bound(m)
    long = {"a": 7, "s": "é" * 5_000}  # what 7 becomes is not known yet
    found = m.match(long)
    assert found[-2:] == ["sum", "text"]
    monkeypatch.setattr(SinglePart, "read", None)  # which is asked where there was no room
    assert m.match(long) == found == m.match(General(long))
