"""Segments are merged in the background, whatever changes meanwhile."""

from __future__ import annotations

import gc
import os
import threading
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any
from weakref import ref

import pytest

import matchwood as mw
from engine.invariants import check
from engine.segments_world import EVENTS, WAIT, agree, expected, filled
from inside import attributes_of, merge_thread_of, merger_of, subscriptions_of, table_of, view_of
from matchwood.encode.decode import decode
from matchwood.encode.leaves import LeafBatch
from matchwood.engine.input import parsing
from matchwood.engine.segments import background, tiers

pytestmark = pytest.mark.usefixtures("small_segments")


def test_segments_of_one_tier_are_merged_with_all_smaller_ones(monkeypatch):
    monkeypatch.setattr(tiers, "FACTOR", 8)
    assert tiers.chosen([], []) == []
    assert tiers.chosen([4, 3, 4, 2, 1, 4, 4], [0] * 7) == []
    assert tiers.chosen([4, 3, 4, 2, 1, 4, 4, 4], [0] * 8) == list(range(8))
    assert tiers.chosen([900, *[4] * 8], [0] * 9) == list(range(1, 9))
    assert tiers.chosen([*[32] * 8, 4, 4], [0] * 10) == list(range(10))
    assert tiers.chosen([100, 7], [99, 8]) == [1], "more than half is gone"


@pytest.mark.usefixtures("merging")
def test_merges_in_the_background_leave_few_segments_and_the_same_answers():
    m, model = filled(60)
    for id_ in range(0, 60, 3):
        m.remove(id_)
        del model[id_]
    m.replace(1, "x = 3")
    model[1] = "x = 3"
    merger_of(m).wait()
    assert merger_of(m).error is None
    assert len(view_of(m).parts) <= 8
    agree(m, model)
    m.add("later", "x = 1")
    merger_of(m).wait()
    agree(m, {**model, "later": "x = 1"})


def test_memory_returns_after_churn(monkeypatch):
    monkeypatch.setattr(tiers, "FACTOR", 2)
    m = mw.Matcher()
    for turn in range(12):
        monkeypatch.setattr(background, "IS_ON", turn == 11)
        m.add_many([(i, f"x = {i + 100 * turn}") for i in range(40)])
        m.remove_many(list(range(40)))
    m.add_many([(i, f"x = {i}") for i in range(40)])
    m.add("one more", "x = 1")
    merger_of(m).wait()
    assert sum(part.store.subscriptions.n_slots for part in view_of(m).parts) <= 41
    assert m.stats()["constants"] <= 41


@pytest.mark.usefixtures("merging")
def test_what_is_changed_during_a_merge_counts_in_the_merged_segment(monkeypatch):
    is_built, may_go, real = threading.Event(), threading.Event(), background.merged

    def slow(parts, pause, step):
        store = real(parts, pause, step)
        is_built.set()
        assert may_go.wait(WAIT)
        return store

    monkeypatch.setattr(background, "merged", slow)
    m, model = filled(20)
    assert is_built.wait(WAIT)
    m.remove_many([0, 1, 2, 3, 11])  # one segment as a whole among them
    m.replace(6, "x = 5")
    m.add(1, "x = 2")
    for id_ in (0, 1, 2, 3, 11):
        del model[id_]
    model |= {6: "x = 5", 1: "x = 2"}
    agree(m, model)
    may_go.set()
    merger_of(m).wait()
    assert merger_of(m).error is None
    agree(m, model)


@pytest.mark.slow
@pytest.mark.usefixtures("merging")
def test_a_merge_ends_with_its_matcher():
    m, _ = filled(40)
    thread = merge_thread_of(m)
    del m
    gc.collect()
    if thread is not None:
        thread.join(WAIT)
        assert not thread.is_alive()


@pytest.mark.slow
@pytest.mark.usefixtures("merging")
def test_two_writers_two_readers_and_merges_agree_with_the_naive_evaluator():
    """Every answer is one between the state before the search and the state after it."""
    m = mw.Matcher()
    n_turns = 400 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 60
    done = [0, 0]  # changes that have returned, by writer
    is_over, wrong = threading.Event(), []

    def write(which: int) -> None:
        for i in range(n_turns):
            m.add(10_000 * which + i, f"w = {which} AND k >= {i % 5}")
            done[which] = i + 1

    def read() -> None:
        while not is_over.is_set():
            for which in (0, 1):
                before = done[which]
                seen = m.match({"w": which, "k": 2})
                after = done[which] + 1  # one may be under way
                at_least = [10_000 * which + i for i in range(before) if i % 5 <= 2]
                at_most = [10_000 * which + i for i in range(after) if i % 5 <= 2]
                if seen[: len(at_least)] != at_least or not set(seen) <= set(at_most):
                    wrong.append((before, after, seen))

    writers = [threading.Thread(target=write, args=(which,), daemon=True) for which in (0, 1)]
    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for each in [*writers, *readers]:
        each.start()
    for each in writers:
        each.join(WAIT)
    is_over.set()
    for each in readers:
        each.join(WAIT)
    merger_of(m).wait()
    assert wrong == []
    assert merger_of(m).error is None
    assert len(m) == 2 * n_turns
    check(m)


# -- threads --------------------------------------------------------------------------------------


def encoded_lists(m: mw.Matcher, events) -> list[list]:
    """What `find` gives, as ids."""
    found = m.find(events)
    ids = m.arrow_ids(events).to_pylist()
    return [
        [ids[slot] for slot in found.slots[first:last]]
        for first, last in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]


def test_encoded_events_are_searched_in_all_parts():
    m, model = filled(23)
    for id_ in (2, 9, 10):
        m.remove(id_)
        del model[id_]
    events = m.encode(EVENTS)
    assert len(view_of(m).searched) > 3
    assert encoded_lists(m, events) == [expected(model, e) for e in EVENTS]
    kind = {type(id_) for id_ in m.ids()}
    assert {type(id_) for id_ in m.arrow_ids().to_pylist()} == kind | {type(None)}
    m.compact()  # is a change as far as slots go
    with pytest.raises(mw.MatchwoodError, match="found a change since"):
        m.find(events)
    assert encoded_lists(m, m.encode(EVENTS)) == [expected(model, e) for e in EVENTS]


@pytest.mark.usefixtures("merging")
def test_a_merge_does_not_spoil_encoded_events(monkeypatch):
    monkeypatch.setattr(background, "IS_ON", False)
    m, model = filled(23)
    events = m.encode(EVENTS)
    n_parts = len(view_of(m).searched)
    while background.merge_once(ref(m), merger_of(m)):
        pass
    assert len(view_of(m).searched) < n_parts
    assert encoded_lists(m, events) == [expected(model, e) for e in EVENTS]
    m.add("new", "x = 1")
    with pytest.raises(mw.MatchwoodError, match="found a change since"):
        m.find(events)


@pytest.mark.slow
def test_a_merged_store_is_that_of_one_loaded_at_once():
    """The same predicates, constants and attributes, though no text is read again."""
    rng = Random(7)
    m = mw.Matcher(schema={"z": "float"})
    model: dict[int, str] = {}
    for i in range(240):
        model[i] = rng.choice(RICH).format(a=rng.randrange(8), b=rng.randrange(8))
        m.add(i, model[i])
    for i in rng.sample(list(model), 90):
        m.remove(i)
        del model[i]
    for i in rng.sample(list(model), 30):
        model[i] = rng.choice(RICH).format(a=rng.randrange(8), b=rng.randrange(8))
        m.replace(i, model[i])
    once = mw.Matcher(schema={"z": "float"})
    assert not once.add_many(list(model.items())).errors
    once.compact()
    assert len(view_of(m).parts) > 10
    m.compact()
    check(m)
    assert _picture(m) == _picture(once)
    assert m.match_many(RICH_EVENTS).to_pylist() == once.match_many(RICH_EVENTS).to_pylist()
    for _ in range(3):  # what was merged can be merged again
        m.add_many([(f"more {len(m)} {i}", f"x = {i}") for i in range(6)])
        m.remove_many([id_ for id_ in m.ids() if isinstance(id_, str)])
        m.compact()
    check(m)
    assert _picture(m) == _picture(once)


def _picture(m: mw.Matcher) -> list[object]:
    table, attributes = table_of(m), attributes_of(m)
    slot_of = {id_: subscriptions_of(m).find(id_) for id_ in m.ids()}
    expressions = {id_: str(decode(table, attributes, slot)) for id_, slot in slot_of.items()}
    kinds = {id_: int(table.layout.kind[slot]) for id_, slot in slot_of.items()}
    left_out = {
        id_: sorted(attributes.all[attr].name for attr in table.left_out.get(slot, ()))
        for id_, slot in slot_of.items()
    }
    return [
        m.ids(), expressions, kinds, left_out, len(table.predicates), attributes.n_constants,
        sorted(attributes.by_name), len(attributes), dict(m.schema), subscriptions_of(m).in_order,
    ]  # fmt: skip


RICH = [
    "x = {a}", "x > {a} AND y = 1", "s = 'v{a}' OR x < {b}", "x IN ({a}, {b}, 9) AND NOT y = 2",
    "s LIKE '%b_{a}%' AND x >= {a}", "y IS NULL", "TRUE", "x < 1 AND x > 2", "x NOT IN ({a}, {b})",
    "x <> {a} AND z BETWEEN {a} AND 7.5", "NOT (x = {a} AND y IS NOT NULL)",
    "s LIKE 'ab%' AND (x = {a} OR z > {b})", "lower(s) = 'v{a}'", "x = 1.12345678901234567{a}",
    "d > DATE '2024-01-0{a}' AND y = {a}".replace("0{a}", "1{a}"), "b = TRUE OR x = 'str'",
    "x < {a} AND x >= {a} OR s = 'never'",
]  # fmt: skip
RICH_EVENTS: list[dict[str, Any]] = [
    {"x": x, "y": x % 3, "z": x + 0.5, "s": s, "b": x > 3, "d": date(2024, 1, 10 + x)}
    for x in range(9)
    for s in ("v1", "V2", "abx", "xb_3", "b13")
] + [{}, {"s": "v1"}, {"x": "str"}, {"x": Decimal("1.123456789012345672")}, {"z": 4.0}]  # fmt: skip


def test_a_merge_reads_no_text(monkeypatch):
    m, model = filled(23)
    m.match({})  # encodes recent additions

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a text was read")

    monkeypatch.setattr(LeafBatch, "add", refused)
    monkeypatch.setattr(parsing, "write_texts", refused)
    m.compact()
    monkeypatch.undo()
    assert len(view_of(m).searched) == 1
    agree(m, model)


@pytest.mark.usefixtures("merging")
def test_a_merge_that_failed_is_tried_again_by_a_later_change(monkeypatch):
    real, n_left = background.merged, 3

    def fails(*arguments: Any, **more: Any) -> Any:
        nonlocal n_left
        n_left -= 1
        if n_left >= 0:
            raise MemoryError("no room")
        return real(*arguments, **more)

    monkeypatch.setattr(background, "merged", fails)
    m, model = mw.Matcher(), {}
    n_changes = 0
    while n_left >= 0 or merger_of(m).error is not None:
        was_failing = merger_of(m).error is not None
        m.add(n_changes, f"x = {n_changes % 7}")
        model[n_changes] = f"x = {n_changes % 7}"
        merger_of(m).wait()
        assert not was_failing or n_left < 0 or "MemoryError" in m.stats()["merge_error"]
        n_changes += 1
        assert n_changes < 60
    assert "merge_error" not in m.stats()
    assert len(view_of(m).segments) <= 4
    agree(m, model)
