"""Searches run beside each other, a change alone; nothing that is raised leaves a lock behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import matchwood as mw
from faults import fault_at
from inside import is_waited_for
from matchwood.engine.access import Reader
from matchwood.errors import EventError, MatchwoodError
from matchwood.index.scan.index import Scan
from matchwood.lang.parser import parse
from naive import matches

WAIT = 120.0


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """The results of works that run at the same time; an exception of one is raised here."""
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(which: int, work: Callable[[], Any]) -> None:
        try:
            results[which] = work()
        except BaseException as error:  # noqa: BLE001 (raised again by the caller)
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(i, work), daemon=True) for i, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "waits forever"
    for error in errors:
        raise error
    return results


def small(index: str = "auto") -> mw.Matcher:
    m = mw.Matcher(index=index)
    m.add_many([(i, f"x = {i % 3}") for i in range(6)])
    m.match({"x": 1})
    return m


def counted_readers(monkeypatch) -> list[Reader]:
    """The readers that are made from now on; it grows."""
    made: list[Reader] = []
    make = Reader.__init__

    def counted(self: Reader) -> None:
        made.append(self)
        make(self)

    monkeypatch.setattr(Reader, "__init__", counted)
    return made


def test_two_searches_run_at_the_same_time(monkeypatch):
    m, barrier, search = small(), threading.Barrier(2), Scan.search

    def meeting(self, events, scratch):
        barrier.wait(WAIT)  # is broken, and raises, unless both searches are here
        return search(self, events, scratch)

    monkeypatch.setattr(Scan, "search", meeting)
    assert in_threads(lambda: m.match({"x": 1}), lambda: m.match({"x": 2})) == [[1, 4], [2, 5]]


def test_a_change_of_a_named_index_waits_for_the_search_under_way(monkeypatch):
    m, search = small("scan"), Scan.search
    is_inside, may_go, found = threading.Event(), threading.Event(), {}

    def slow(self, events, scratch):
        if threading.current_thread() is first:
            is_inside.set()
            assert may_go.wait(WAIT)
        return search(self, events, scratch)

    def match():
        found[threading.current_thread().name] = m.match({"x": 1})

    monkeypatch.setattr(Scan, "search", slow)
    first = threading.Thread(target=match, name="first", daemon=True)
    first.start()
    assert is_inside.wait(WAIT)
    changing = threading.Thread(target=lambda: m.add("new", "x = 1"), daemon=True)
    changing.start()
    while not is_waited_for(m):
        changing.join(0.001)
    late = threading.Thread(target=match, name="late", daemon=True)
    late.start()
    assert found == {}
    may_go.set()
    for thread in (first, changing, late):
        thread.join(WAIT)
    assert found == {"first": [1, 4], "late": [1, 4, "new"]}


def test_a_change_of_auto_waits_for_no_search_and_later_searches_see_it(monkeypatch):
    m, search = small(), Scan.search
    is_inside, may_go, found = threading.Event(), threading.Event(), []

    def slow(self, events, scratch):
        if threading.current_thread() is first:
            is_inside.set()
            assert may_go.wait(WAIT)
        return search(self, events, scratch)

    monkeypatch.setattr(Scan, "search", slow)
    first = threading.Thread(target=lambda: found.append(m.match({"x": 1})), daemon=True)
    first.start()
    assert is_inside.wait(WAIT)
    for i in range(5):  # both stores of the head, the one in use among them
        in_threads(lambda i=i: m.add(f"new {i}", "x = 1"))
        assert m.match({"x": 1}) == [1, 4, *[f"new {n}" for n in range(i + 1)]]
    in_threads(lambda: m.remove(1))
    assert m.match({"x": 1}) == [4, *[f"new {n}" for n in range(5)]]
    may_go.set()
    first.join(WAIT)
    assert found == [[1, 4]]


def test_a_search_is_answered_while_a_change_is_stuck_in_the_middle():
    m = small()
    is_inside, may_go = threading.Event(), threading.Event()

    def stuck(done, total):
        is_inside.set()
        assert may_go.wait(WAIT)

    rows = [(f"n{i}", "x = 1") for i in range(3)]
    writer = threading.Thread(target=lambda: m.add_many(rows, progress=stuck), daemon=True)
    writer.start()
    assert is_inside.wait(WAIT)
    assert in_threads(lambda: m.match({"x": 1}), lambda: m.match({"x": 2})) == [[1, 4], [2, 5]]
    assert in_threads(lambda: len(m), lambda: 4 in m, lambda: m[4].text) == [6, True, "x = 1"]
    may_go.set()
    writer.join(WAIT)
    assert m.match({"x": 1}) == [1, 4, "n0", "n1", "n2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", ["auto", "be_tree", "pst_bloom", "a_tree", "counting", "vcr", "agile"]
)
def test_answers_are_those_before_or_after_a_change_and_never_between(index):
    texts = {i: f"x = {i % 4} AND y > {i % 5}" for i in range(60)}
    brief = {f"b{i}": f"x = {i % 4} AND y < {i + 4}" for i in range(8)}
    m = mw.Matcher(index=index)
    m.add_many(list(texts.items()))
    events = [{"x": i % 5, "y": i} for i in range(10)]
    without = [expected(texts, event) for event in events]
    beside = [expected({**texts, **brief}, event) for event in events]
    is_over = threading.Event()

    def change():
        try:
            for _ in range(12):
                m.add_many(list(brief.items()))
                m.remove_many(list(brief))
        finally:
            is_over.set()

    def search():
        n = 0
        while not is_over.is_set() or not n:
            found = m.match_many(events)
            lists = [
                found.ids[a:b].tolist()
                for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)
            ]
            assert lists in (without, beside)
            at = n % len(events)
            assert m.match(events[at]) in (without[at], beside[at])
            n += 1
        return n

    assert all(in_threads(search, search, change)[:2])
    assert [m.match(event) for event in events] == without


def expected(texts: dict[Any, str], event: dict[str, Any]) -> list[Any]:
    return [id_ for id_, text in texts.items() if matches(parse(text), event)]


def test_events_that_are_made_while_they_are_read_may_use_the_matcher():
    m = small()

    def events():
        m.add("new", "x = 7")
        yield {"x": 7}
        yield {"x": m.match({"x": 0})[0]}

    found = m.match_many(events())
    assert found.ids.tolist() == ["new", 0, 3]


class Meddling(dict[str, Any]):
    """An event that does something when it is read."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(x=1)
        self._work = work

    def items(self) -> Any:
        self._work()
        return super().items()


def test_a_search_inside_of_a_search_is_answered():
    m, inner = small(), []
    assert m.match(Meddling(lambda: inner.append(m.match({"x": 2})))) == [1, 4]
    assert inner == [[2, 5]]


def test_a_change_inside_of_a_search_is_refused_and_changes_nothing():
    m = small()
    with pytest.raises(MatchwoodError, match="leave the matcher alone"):
        m.match(Meddling(lambda: m.add("new", "x = 1")))
    assert m.match({"x": 1}) == [1, 4]
    m.add("new", "x = 1")
    assert m.match({"x": 1}) == [1, 4, "new"]


def test_bad_events_cost_no_scratch(monkeypatch):
    m = mw.Matcher(schema={"x": "int"})
    m.add("s", "x = 1")
    m.match({"x": 1})
    made = counted_readers(monkeypatch)
    for _ in range(5):
        with pytest.raises(EventError):
            m.match({"x": "one"})
    assert made == []


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "be_tree", "agile"])
def test_an_interrupted_search_leaves_no_lock_behind(index):
    m = mw.Matcher(index=index)
    m.add_many([(i, f"x = {i % 3}") for i in range(6)])
    m.match({"x": 1})
    step, is_reached = 0, True
    while is_reached:
        with fault_at(step, KeyboardInterrupt) as fault:
            m.match({"x": 1})
        is_reached = fault.happened
        step += 1
        if step % 9 == 0 or not is_reached:
            in_threads(lambda: m.replace("new", "x = 1"))
            assert m.match({"x": 1}) == [1, 4, "new"]
            in_threads(lambda: m.remove("new"))
        assert in_threads(lambda: m.match({"x": 2})) == [[2, 5]]
    assert step > 20


def test_what_searches_have_learned_is_counted_by_stats():
    m = mw.Matcher(index="pst_bloom")
    m.add_many([(i, f"x = {i % 3}") for i in range(60)])
    for i in range(64):
        m.match({"x": i % 3})
    stats = m.stats()
    assert stats["work"]["events"] == 64
    assert stats["indexes"][0]["events_counted"] == 4


def test_many_threads_share_the_readers_there_are(monkeypatch):
    monkeypatch.setattr("matchwood.engine.access.MOST_READERS", 3)
    made = counted_readers(monkeypatch)
    m = small()
    works = [lambda: [m.match({"x": 1}) for _ in range(20)]] * 12
    assert in_threads(*works) == [[[1, 4]] * 20] * 12
    assert len(made) <= 3 + 1  # and that of changes
