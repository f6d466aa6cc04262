"""Batches of changes: all of one or nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import matchwood as mw
from engine.invariants import check
from engine.test_collection import filled, same


def test_a_batch_happens_at_the_end_of_its_block() -> None:
    m = filled()
    with m.batch() as b:
        b.add("new", "x = 5", priority=9)
        b.remove("s1")
        b.replace("7", "x = 5")
        b.set_context("ann", {"c": 4})
        b.add_many([("a", "x = 5"), ("b", "x = 6")])
        b.remove_many(["a"])
        assert m.match({"x": 5}) == ["s1", 7, "7"]
        assert len(b) == 6
    assert m.match({"x": 5}) == [7, "7", "new"]
    assert m.match({"x": 5}, limit=1) == ["new"]
    check(m)
    with pytest.raises(mw.MatchwoodError, match="outside"):
        b.add("late", "x = 1")


def bad_text(b: Any) -> None:
    b.add("bad", "x =")


def taken(b: Any) -> None:
    b.add("s1", "x = 1")


def unknown(b: Any) -> None:
    b.remove("nobody")


def clash(b: Any) -> None:
    b.add("bad", "z = 'text'")


def clash_within(b: Any) -> None:
    b.add("one", "fresh > ctx.other", context="ann")
    b.add("two", "fresh.a = 1")
    b.set_context("ann", {"other": 1})
    b.set_context("ann", {"other": "a"})


def bad_row(b: Any) -> None:
    b.add_many([("one", "x = 1"), ("two", "x =")])


def unknown_in_many(b: Any) -> None:
    b.remove_many(["s1", "nobody"])


def own_error(b: Any) -> None:
    raise mw.EventError("mine")


@pytest.mark.parametrize(
    "wrong", [bad_text, taken, unknown, clash, clash_within, bad_row, unknown_in_many, own_error]
)
def test_a_batch_with_something_refused_changes_nothing(wrong) -> None:
    m = filled()
    expected = filled()

    def change() -> None:
        with m.batch() as b:
            b.add("new", "x = 5")
            b.remove(7)
            b.set_context("ann", {"c": 50})
            wrong(b)
            b.add("later", "x = 5")

    with pytest.raises(mw.MatchwoodError):
        change()
    assert same(m, expected, but_added=True)
    assert m.context("ann") == {"c": 2}
    check(m)
    m.add("new", "x = 5")
    assert m.match({"x": 5})[-1] == "new"


@pytest.mark.slow
def test_a_search_sees_none_of_a_batch_or_all() -> None:
    m = mw.Matcher()
    m.add("kept", "x = 1")
    seen: set[tuple[Any, ...]] = set()
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            seen.add(tuple(m.match({"x": 1})))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(60):
            with m.batch() as b:
                b.add("a", "x = 1")
                b.add_many([("b", "x >= 1"), ("c", "x <= 1")])
            with m.batch() as b:
                b.remove_many(["a", "b", "c"])
    finally:
        is_done.set()
        reader.join()
    assert seen <= {("kept",), ("kept", "a", "b", "c")}


# -- forms for people --------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["auto", "be_tree", "folder"])
@pytest.mark.parametrize("has_context", [False, True])
def test_a_batch_may_clear_and_fill_anew(index: str, has_context: bool, tmp_path) -> None:
    m = mw.Matcher.open(tmp_path / "f") if index == "folder" else mw.Matcher(index=index)
    m.add_many([(i, f"x > {i}") for i in range(600)])
    if has_context:
        m.set_context("ann", {"c": 2})
        m.add("linked", "x > ctx.c", context="ann")
    before = m.ids()

    def fill(last: str) -> None:
        with m.batch() as b:
            b.add("early", "x = 1")
            b.clear()
            b.add(5, "x = 6", priority=2)
            b.add_many([("new", "x > 5"), (7, "x = 1")])
            assert m.ids() == before
            b.add("last", last)

    with pytest.raises(mw.ParseError):
        fill("x =")
    assert m.ids() == before
    fill("x = 6")
    assert (m.ids(), m.match({"x": 6})) == ([5, "new", 7, "last"], [5, "new", "last"])
    check(m)
    if index == "folder":
        m.close()
        with mw.Matcher.open(tmp_path / "f") as again:
            assert (again.ids(), again[5].priority) == ([5, "new", 7, "last"], 2)
            assert again.match({"x": 6}) == [5, "new", "last"]


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize("forgets", ["clear", "remove"])
def test_values_of_contexts_are_as_before_when_a_batch_gave_names_back(
    index: str, forgets: str
) -> None:
    m = mw.Matcher(index)
    m.add("linked", "x < ctx.budget", context="ann")
    m.set_context("ann", {"budget": 3})

    def change() -> None:
        with m.batch() as b:
            b.remove_context("ann")  # now the subscription alone keeps the name, and then nothing
            b.clear() if forgets == "clear" else b.remove("linked")
            b.set_context("bob", {"limit": 1})
            b.remove("unknown")

    with pytest.raises(mw.SubscriptionError):
        change()
    assert m.context("ann") == {"budget": 3}
    assert m.context_ids() == ["ann"]
    assert m.match({"x": 2}) == ["linked"]
