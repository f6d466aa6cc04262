"""Contexts through the matcher: snapshots, batches, errors, flips, what an event cannot do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import matchwood as mw
from inside import routing_of
from matchwood import Matcher, attr, ctx
from matchwood.errors import EventError, SchemaError, SubscriptionError
from matchwood.index.stabbing.marker_kernels import MARKERS


def talks() -> Matcher:
    """Figure 1 of the paper."""
    m = Matcher()
    m.add(
        "researcher",
        "type = 'talk' AND day = ctx.today AND ctx.location LIKE 'campus%' "
        "AND ctx.unread < 100 AND starts_at < ctx.last_appointment",
        context="user 1",
    )
    return m


TALK = {
    "type": "talk",
    "day": date(2026, 5, 4),
    "starts_at": datetime(2026, 5, 4, 17, tzinfo=UTC),
}
BUSY = {
    "today": date(2026, 5, 4),
    "location": "campus, room 7",
    "unread": 12,
    "last_appointment": datetime(2026, 5, 4, 18, tzinfo=UTC),
}


def test_figure_1_a_talk_before_the_last_appointment():
    m = talks()
    assert m.match(TALK) == []  # nothing is known of the user yet
    m.set_context("user 1", BUSY)
    assert m.match(TALK) == ["researcher"]
    m.set_context("user 1", {"unread": 100})
    assert m.match(TALK) == []
    m.set_context("user 1", {"unread": 99, "location": "home"})
    assert m.match(TALK) == []
    m.set_context("user 1", {"location": "campus"})
    assert m.match(TALK) == ["researcher"]
    m.set_context("user 1", {"last_appointment": None})
    assert m.match(TALK) == []
    assert m.context("user 1").keys() == {"today", "location", "unread"}


def test_an_explanation_shows_both_sides():
    m = talks()
    m.set_context("user 1", {**BUSY, "unread": 100})
    said = str(m.explain("researcher", TALK))
    assert "ctx.unread is 100" in said
    assert "ctx.last_appointment is 2026-05-04 18:00:00+00:00" in said
    assert m.explain("researcher", TALK).reasons == (
        "ctx.unread < 100 is FALSE: ctx.unread is 100",
    )


def test_an_event_cannot_supply_a_value_of_the_context():
    m = Matcher()
    m.add(1, "ctx.admin AND x > 1", context="c")
    m.set_context("c", {"admin": False})
    assert m.match({"ctx.admin": True, "x": 2}) == []
    assert m.match({"ctx": {"admin": True}, "x": 2}) == []
    table = pa.table({"ctx.admin": [True], "x": [2]})
    assert m.match_many(table).offsets.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "context", "says"),
    [
        ("ctx.x < 5", None, "expected a context"),
        ("a = 1 OR b < ctx.x", None, "expected a context"),
        ("name = 'x' AND name < ctx.size + 1", "c", "expected a number beside the offset"),
        ("level = 3 AND level = ctx.word AND ctx.word = 'x'", "c", "expected types"),
        ("level < ctx.rank + 0.5", "c", "expected an integer as its offset"),
        ("weight < ctx.rank AND weight > 1.5", "c", "declare both alike"),
        ("any = ctx.rank", "c", "declare both alike"),
        ("level > 3 OR any < ctx.rank + 1", "c", "declare both alike"),
        ("ctx.rank < ctx.size AND ctx.size > 1", "c", "declare both alike"),
        ("ctx.rank = 'x'", "c", "expected a int constant"),
    ],
)
def test_a_bad_reference_is_refused_at_registration(text, context, says):
    declared = {"level": "int", "weight": "number", "name": "string", "ctx": {"rank": "int"}}
    m = Matcher(schema=declared)
    with pytest.raises(SchemaError, match=says) as caught:
        m.add(1, text, context=context)
    assert caught.value.position >= 0
    assert len(m) == 0
    m.add(1, "level < ctx.rank + 1", context="c")
    report = m.add_many([(2, text, context), (3, "level = ctx.rank", "c")])
    assert report.count == 1
    assert [(each.row, type(each.error)) for each in report.errors] == [(0, SchemaError)]


def test_a_value_of_another_type_is_refused_and_nothing_changes():
    m = Matcher()
    m.add(1, "price < ctx.budget", context="c")
    m.set_context("c", {"budget": 20})
    with pytest.raises(EventError, match=r"ctx.budget.*expected number"):
        m.set_context("c", {"other": 1, "budget": "cheap"})
    with pytest.raises(EventError, match="a 64-bit float would round"):
        m.set_context("c", {"budget": 2**53 + 1})
    with pytest.raises(EventError, match="at row 1"):
        m.set_context_many(pa.table({"context": ["c", "c"], "budget": [1, 2**53 + 1]}))
    with pytest.raises(EventError, match="expected a mapping"):
        m.set_context("c", [("budget", 1)])  # type: ignore[arg-type]
    with pytest.raises(SubscriptionError, match="a context's id"):
        m.set_context(1.5, {"budget": 1})  # type: ignore[arg-type]
    assert m.context("c") == {"budget": 20}
    assert m.match({"price": 19.5}) == [1]


def test_types_are_learned_from_whichever_side_is_known_first():
    m = Matcher()
    m.add(1, "when_ < ctx.deadline", context="c")
    m.add(2, attr("place") == ctx("home"), context="c")
    m.add(3, "place > 'k'", context="c")
    m.set_context("c", {"deadline": date(2026, 1, 5), "home": "lima"})
    assert m.schema == {
        "when_": "date", "ctx.deadline": "date", "place": "string", "ctx.home": "string",
    }  # fmt: skip
    assert m.match({"when_": date(2026, 1, 4), "place": "lima"}) == [1, 2, 3]
    assert m.match({"when_": "tomorrow", "place": "lima"}) == [2, 3]
    assert m.match({"when_": "2026-01-04"}) == [1]
    assert m.stats()["unknown"] == {"when_": 1}


def random_matcher(rng: Random) -> tuple[Matcher, list[dict[str, object]]]:
    m = Matcher()
    for i in range(60):
        context = f"c{i % 12}"
        m.add(
            i,
            rng.choice(
                [
                    f"price BETWEEN ctx.target - {rng.randrange(9)} AND ctx.target + 2",
                    "city = ctx.home AND ctx.level >= 3",
                    "ctx.home LIKE '%a%' OR price > ctx.target",
                    "NOT (city = ctx.home) AND price < 30",
                ]
            ),
            context=context,
        )
    m.add("plain", "price > 10")
    cities = ["rome", "oslo", "lima", "bonn"]
    for i in range(12):
        m.set_context(
            f"c{i}",
            {"target": rng.randrange(40), "home": rng.choice(cities), "level": rng.randrange(6)},
        )
    events = [{"price": rng.randrange(50), "city": rng.choice(cities)} for _ in range(40)]
    return m, events


@pytest.mark.parametrize("mmap", [True, False])
def test_a_snapshot_keeps_contexts(tmp_path: Path, mmap: bool) -> None:
    m, events = random_matcher(Random(1))
    expected = m.match_many(events)
    m.remove_many([3, 4, 5])
    m.add(3, "ctx.level = 0", context="c3")
    m.save(tmp_path / "s")
    loaded = Matcher.load(tmp_path / "s", mmap=mmap)
    for each in ("c0", "c7"):
        assert loaded.context(each) == m.context(each)
    assert loaded.match_many(events).ids.tolist() == m.match_many(events).ids.tolist()
    assert len(expected.ids) > 100
    for both in (m, loaded):
        both.set_context("c0", {"target": 5, "home": "zadar"})
        both.add("late", "ctx.home LIKE '%d%' AND city = ctx.home", context="c0")
    late = {"price": 6, "city": "zadar"}
    assert loaded.match(late) == m.match(late)
    assert "late" in loaded.match(late)


def test_an_index_of_contexts_can_be_chosen_and_saved(tmp_path: Path) -> None:
    m = Matcher(index="eager", indexes=1)
    m.add(1, "price < ctx.budget", context="c")
    m.add(2, "price < 5")
    m.set_context("c", {"budget": 3})
    m.save(tmp_path / "s")
    loaded = Matcher.load(tmp_path / "s")
    assert loaded.match({"price": 2}) == [1, 2]
    assert [each["index"] for each in loaded.stats()["indexes"]] == ["eager"]


def test_updates_come_from_tables_mappings_and_pairs():
    m = Matcher()
    m.add(1, "x < ctx.a.b", context=1)
    m.add(2, "x < ctx.a.b", context=2)
    m.set_context_many({1: {"a": {"b": 5}}, 2: {"a": {"b": 7.5}}})
    assert m.match({"x": 6}) == [2]
    m.set_context_many([(1, {"a.b": 9})])
    assert m.match({"x": 6}) == [1, 2]
    struct = pa.array([{"b": 1.0}, {"b": None}, {"b": 2.0}])
    m.set_context_many(pa.table({"context": [1, 2, 1], "a": struct}))
    assert (m.context(1), m.context(2)) == ({"a.b": 2}, {"a.b": 7.5})
    assert m.match({"x": 6}) == [2]
    for wrong in ("c", [(1, 2)], pa.table({"id": [1]})):
        with pytest.raises(EventError):
            m.set_context_many(wrong)


def test_flips_tell_what_the_context_has_opened_and_closed():
    m = Matcher()
    m.add("quiet", "ctx.unread < 100 AND x = 1", context="u")
    m.add("loud", "ctx.unread >= 100 OR ctx.vip", context="u")
    m.add("other", "ctx.unread < 100", context="v")
    m.add("plain", "x = 1")
    m.add("budget", "price < ctx.budget", context="u")
    assert m.set_context("u", {"unread": 5}, flips=True) == mw.Flips(["quiet"], [])
    assert m.set_context("u", {"unread": 7}, flips=True) == ([], [])
    assert m.set_context("u", {"unread": 200}, flips=True) == (["loud"], ["quiet"])
    assert m.set_context("u", {"vip": True}, flips=True) == ([], [])
    assert m.set_context("u", {"budget": 3}, flips=True) == (["budget"], [])
    both = pa.table({"context": ["u", "v"], "unread": [1, 1]})
    assert m.set_context_many(both, flips=True) == (["quiet", "other"], [])
    assert m.set_context("nobody", {"unread": 1}, flips=True) == ([], [])


def test_events_that_carry_ranges_meet_a_context():
    m = Matcher(schema={"size": "float"})
    m.add(1, "price < ctx.budget", context="c")
    m.add(2, "size = ctx.size", context="c")
    m.set_context("c", {"budget": 10, "size": 3.0})
    assert m.match(attr("price").between(9, 20) & attr("size").between(1, 5)) == [1, 2]
    assert m.match(attr("price").between(10, 20) & (attr("size") > 3)) == []
    assert m.match(attr("size").isin(2, 3)) == [2]
    assert m.match(attr("size").isin(2, 4)) == []


@pytest.mark.slow
def test_strings_of_contexts_are_forgotten_with_them():
    m = Matcher()
    m.add(1, "city = ctx.home", context="c")
    for i in range(3_000):
        m.set_context("c", {"home": f"street {i}"})
    assert m.match({"city": "street 2999"}) == [1]
    assert m.stats()["context_strings"] < 600
    m.compact()
    assert m.stats()["context_strings"] == 1
    assert m.match({"city": "street 2999"}) == [1]
    assert m.match({"city": "street 2998"}) == []


def test_plain_matchers_know_nothing_of_contexts():
    m = Matcher()
    m.add(1, "x = 1")
    assert m.match({"x": 1}) == [1]
    assert "contexts" not in m.stats()["bytes"]
    assert [each["index"] for each in m.stats()["indexes"]] == ["scan"]
    assert m.context("c") == {}


def test_a_replaced_subscription_keeps_its_context_unless_told_otherwise():
    m = Matcher()
    m.add(1, "x < ctx.a", context="c")
    m.set_context_many({"c": {"a": 5}, "d": {"a": 50}})
    m.replace(1, "x <= ctx.a")
    assert m.match({"x": 5}) == [1]
    m.replace(1, "x <= ctx.a", context="d")
    assert m.match({"x": 30}) == [1]
    with pytest.raises(SchemaError):
        m.replace(2, "x <= ctx.a")


@pytest.mark.parametrize("index", ["auto", "eager", "gbu"])
def test_an_update_that_stops_for_want_of_room_reaches_every_subscription(index: str) -> None:
    m = mw.Matcher(index=index)
    m.add("t", "a = 1 AND ctx.budget = 1 AND ctx.taste = '' AND ctx.away", context="x")
    for n in range(40):
        m.add(n, "price < ctx.budget", context="ann")
        m.match({"price": 10})
    m.set_context("ann", {"budget": 10})
    assert m.match({"price": 9}) == list(range(40))
    m.set_context("ann", {"budget": 9})
    assert m.match({"price": 8}) == list(range(40))
    assert m.match({"price": 9}) == []


def test_a_range_that_fills_the_scope_of_a_partial_index_can_leave_it():
    m = Matcher(index="partial", low=1, high=6)
    for i in range(200):
        m.add(i, "x BETWEEN ctx.a - 2.5 AND ctx.a + 2.5 AND y >= 0", context=i)
    m.set_context_many({i: {"a": 3.5 if i == 7 else 100.0 + i} for i in range(200)})
    assert m.match({"x": 3, "y": 1}) == [7]
    assert m.stats()["indexes"][0]["index_attributes"] != []
    m.set_context(7, {"a": 50.0})
    assert m.match({"x": 50, "y": 1}) == [7]
    assert m.match({"x": 3, "y": 1}) == []


@pytest.mark.slow
@pytest.mark.parametrize("index", ["gbu", "agile", "eager"])
def test_half_lines_over_many_nodes_need_few_markers(index: str) -> None:
    """Kernels ask for room for 512 markers at once; a box is a 16th of the nodes it may span."""
    m = Matcher(index=index, structure="interval_skip_list")
    n = 12_000
    m.add_many([{"id": i, "expr": "x <= ctx.a AND x >= ctx.b", "context": i} for i in range(n)])
    m.set_context_many({i: {"a": 10.0 * i, "b": -7.0 * i} for i in range(n)})
    assert len(m.match({"x": 0})) == n
    m.set_context_many({i: {"a": 10.0 * i + 3, "b": -7.0 * i - 2} for i in range(0, n, 3)})
    assert m.match({"x": 10.0 * (n - 1)}) == [n - 1]
    structure = routing_of(m).context_index.structure
    assert structure.count[MARKERS] < 40 * n
