"""`match_many` in several threads: each form of events, encoded and searched slice by slice."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping
from datetime import date
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.engine.segments import parallel

RULES = {
    "int": "a < 40",
    "both": "a >= 20 AND b > 0.5",
    "text": "c = 'red' OR c LIKE 'b%'",
    "mixed": "a = 'seven' OR a = 7",
    "absent": "b IS NULL AND a > 10",
    "there": "d IS NOT NULL",
    "day": "e >= DATE '2024-02-01'",
    "wide": "f <> 3 AND g < 9007199254740993",
    "flag": "h = TRUE",
    "inside": "s.x > 5",
}
COMPUTED = {"upper": "upper(c) = 'RED'", "sum": "a + f > 50", "broken": "1 / f > 0.25"}
SCHEMA = {"f": "int", "h": "bool"}


@pytest.fixture(autouse=True)
def short_slices(monkeypatch):
    """Slices of few events, and of tables with columns that cost time in each."""
    monkeypatch.setattr(parallel, "LEAST", 5)


def event(rng: Random) -> dict:
    found = {
        "a": rng.randrange(60),
        "b": rng.choice([0.0, -0.0, 0.25, 0.75, 3e300]),
        "c": rng.choice(["red", "blue", "green", ""]),
        "d": rng.random() < 0.5,
        "f": rng.randrange(-3, 8),
        "g": rng.choice([2**53 - 1, 2**53 + 1, 4]),
        "h": rng.random() < 0.5,
        "s": {"x": rng.randrange(10)},
    }
    return {name: value for name, value in found.items() if rng.random() < 0.7}


def events(n: int, seed: int = 0) -> list[dict]:
    """Some of them equal."""
    rng = Random(seed)
    some = [event(rng) for _ in range(n - n // 3)]
    return [*some, *rng.choices(some, k=n // 3)]


def forms(given: list[dict]) -> dict:
    """The same events in each form that is encoded in its own way."""
    names = {"a": pa.int64(), "b": pa.float64(), "c": pa.string(), "d": pa.bool_(),
             "f": pa.int32(), "g": pa.int64(), "h": pa.bool_(),
             "s": pa.struct([("x", pa.int64())])}  # fmt: skip
    columns = {name: pa.array([e.get(name) for e in given], kind) for name, kind in names.items()}
    table = pa.table(columns)
    third = len(given) // 3
    chunks = pa.concat_tables([table.slice(0, third), table.slice(third)])
    coded = table.set_column(2, "c", table["c"].dictionary_encode())
    return {
        "dicts": given,
        "table": table,
        "slice": pa.concat_tables([table] * 2).combine_chunks().slice(len(given)),
        "chunks": chunks,
        "coded": coded,
        "batch": table.combine_chunks().to_batches()[0],
        "json": "\n".join(map(json.dumps, given)).encode(),
        "documents": [json.dumps(each) for each in given],
    }


def ask(m: mw.Matcher, form: str, given, threads: int | None, **asks) -> mw.Matches:
    call = m.match_many_json if form in ("json", "documents") else m.match_many
    if call == m.match_many_json:
        from matchwood.encode.json.events import JsonLines

        return m.match_many(JsonLines(given), threads=threads, **asks)
    return m.match_many(given, threads=threads, **asks)


def facts(found: mw.Matches) -> tuple:
    return (
        found.to_pylist(),
        found.offsets.tolist(),
        {e: str(error) for e, error in found.errors.items()},
        {e: list(map(str, each)) for e, each in found.warnings.items()},
    )


def counted(m: mw.Matcher) -> tuple:
    stats = m.stats()
    return dict(stats["unknown"]), dict(stats["failed"])


def matcher(rules: dict, index: str = "auto") -> mw.Matcher:
    m = mw.Matcher(index=index, schema=SCHEMA)
    assert m.add_many(list(rules.items())).count == len(rules)
    return m


@pytest.mark.parametrize("n", [1, 63, 64, 65, 331])
@pytest.mark.parametrize("rules", [RULES, {**RULES, **COMPUTED}], ids=["plain", "computed"])
def test_each_form_in_threads_is_what_one_thread_gives(rules, n):
    given = events(n)
    for form, of_form in forms(given).items():
        alone = matcher(rules)
        first = ask(alone, form, of_form, None)
        expected, counts = facts(first), counted(alone)
        assert first.to_pylist() == [alone.match(each) for each in given], form
        for threads in (1, 2, 3, 4, 5):
            m = matcher(rules)
            assert facts(ask(m, form, of_form, threads)) == expected, (form, threads)
            assert counted(m) == counts, (form, threads)


@pytest.mark.parametrize("form", ["dicts", "table", "json"])
def test_limits_and_filters_in_threads_are_those_of_one_thread(form):
    m = matcher({})
    for i, text in enumerate(RULES.values()):
        m.add(i, text, priority=i % 3, attributes={"age": i})
    given = forms(events(300))[form]
    for asks in (
        {"limit": 2},
        {"first": True},
        {"where": "age > 3"},
        {"where": "age < 7", "limit": 1},
    ):
        assert facts(ask(m, form, given, 3, **asks)) == facts(ask(m, form, given, None, **asks))


def test_bad_events_in_the_middle_are_refused_as_in_one_thread():
    given = events(300)
    wrong = {7: {"f": "text"}, 150: 5, 151: {"h": 1}, 299: {"f": 1.5}}
    dicts = [wrong.get(i, each) for i, each in enumerate(given)]
    m = matcher(RULES)
    one = m.match_many(dicts)
    assert list(one.errors) == list(wrong)
    documents = [b'{"a": ' if i in wrong else json.dumps(e).encode() for i, e in enumerate(given)]
    column = pa.array([str(i) if i in wrong else None for i in range(300)])
    table = pa.table({"a": [each.get("a") for each in given], "f": column})
    for threads in (2, 3, 4, 5):
        assert facts(m.match_many(dicts, threads=threads)) == facts(one)
        for form, of_form in (("documents", documents), ("table", table)):
            expected = ask(m, form, of_form, None)
            assert list(expected.errors) == list(wrong)
            assert facts(ask(m, form, of_form, threads)) == facts(expected)


class Raising(Mapping):
    """An event that raises when it is read, or does what it is told to."""

    def __init__(self, act) -> None:
        self._act = act

    def __getitem__(self, name):
        self._act()
        return 7

    def __iter__(self):
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize("at", [0, 140, 299])
def test_an_exception_in_one_slice_ends_the_call_and_leaves_the_matcher_usable(at, index):
    m = matcher(RULES, index)
    expected = m.match_many(events(300)).to_pylist()

    def fail() -> None:
        raise KeyError("of the event")

    given: list = events(300)
    given[at] = Raising(fail)
    for threads in (None, 2, 4):
        with pytest.raises(KeyError, match="of the event"):
            m.match_many(given, threads=threads)
        assert m.match_many(events(300), threads=2).to_pylist() == expected


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_code_of_events_runs_in_the_calling_thread_and_may_change_nothing(index):
    m, seen = matcher(RULES, index), set()

    def act() -> None:
        seen.add(threading.get_ident())
        with pytest.raises(mw.MatchwoodError, match="leave the matcher alone"):
            m.add("new", "a = 1")
        m.match({"a": 1})

    given = [Raising(act) if i % 40 == 0 else each for i, each in enumerate(events(300))]
    expected = m.match_many(given).to_pylist()
    assert m.match_many(given, threads=3).to_pylist() == expected
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("form", ["table", "json", "dicts"])
def test_what_fails_in_any_slice_is_raised_and_no_thread_goes_on(form, monkeypatch):
    m = matcher(RULES)
    given, begun, search = forms(events(640))[form], [], parallel.View.match

    def match(view, encoded, reader, choice):
        begun.append(threading.get_ident())
        if len(begun) >= 3:
            raise MemoryError(f"search {len(begun)}")
        return search(view, encoded, reader, choice)

    monkeypatch.setattr(parallel.View, "match", match)
    with pytest.raises(MemoryError, match="search"):
        ask(m, form, given, 2)
    assert len(begun) <= 4
    monkeypatch.undo()
    assert facts(ask(m, form, given, 2)) == facts(ask(m, form, given, None))


def test_an_interrupt_while_others_are_waited_for_ends_the_call_when_they_have_ended(monkeypatch):
    m = matcher(RULES)
    table, caller = forms(events(300))["table"], threading.get_ident()
    begun, is_stopped, ended = threading.Event(), threading.Event(), threading.Event()
    search, wait = parallel.View.match, parallel.wait

    def match(view, encoded, reader, choice):
        if threading.get_ident() == caller:
            assert begun.wait(30)
        else:
            begun.set()
            assert is_stopped.wait(30)
            time.sleep(0.05)
            signal.pthread_kill(caller, signal.SIGINT)
            time.sleep(0.1)
            ended.set()
        return search(view, encoded, reader, choice)

    def waiting(helpers):
        is_stopped.set()
        return wait(helpers)

    monkeypatch.setattr(parallel.View, "match", match)
    monkeypatch.setattr(parallel, "wait", waiting)
    # a job in the background may have been started with this signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            m.match_many(table, threads=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.is_set(), "a change would not wait for a search that goes on"
    monkeypatch.undo()
    monkeypatch.setattr(parallel, "LEAST", 5)
    assert facts(m.match_many(table, threads=2)) == facts(m.match_many(table))


@pytest.mark.parametrize("form", ["table", "json", "dicts"])
def test_a_call_in_threads_sees_one_view_while_another_thread_changes_things(form):
    m = matcher({f"r{i}": f"a >= {i}" for i in range(40)})
    given = forms([{"a": 50}] * 400)[form]
    is_over = threading.Event()

    def change() -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            with m.batch() as b:
                b.clear()
                b.add_many({f"t{turn}.{i}": f"a >= {i}" for i in range(turn % 7 + 1)})

    writer = threading.Thread(target=change)
    writer.start()
    try:
        for threads in (2, 3, 4) * 8:
            found = ask(m, form, given, threads).to_pylist()
            assert all(each == found[0] for each in found)
            assert len({each.split(".")[0] for each in found[0] if each[0] == "t"}) <= 1
    finally:
        is_over.set()
        writer.join()


def test_what_expires_is_decided_once_for_all_slices(monkeypatch):
    m = matcher({})
    m.add("soon", "a >= 0", expires=1000)
    m.add("never", "a >= 0")
    clock = iter(range(999_999_000_000, 10**18, 500_000_000))
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    found = m.match_many(pa.table({"a": np.arange(400)}), threads=4).to_pylist()
    assert all(each == found[0] for each in found)


def test_a_table_with_one_attribute_twice_is_refused():
    m = matcher(RULES)
    columns = [pa.array(range(100))] * 2
    for table in (
        pa.table(columns, ["a", "a"]),
        pa.table([pa.array([{"x": 1}] * 100), columns[0]], ["s", "s.x"]),
    ):
        for threads in (None, 2):
            with pytest.raises(mw.EventError, match="expected one column"):
                m.match_many(table, threads=threads)


def test_numbers_in_columns_are_read_as_those_of_dicts():
    special = [0.0, -0.0, 1.5, float("inf"), -float("inf"), 2.0**53, 2.0**63, 5e-324, None]
    whole = [0, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None, 7, 8]
    texts = ["x > 1.5", "x = 9007199254740992", "x < 0", "x >= 9223372036854775807", "x = 1e400",
             "x IS NULL", "x = 'seven'", "x IN (0, 7, 1.5)", "x = DATE '2024-01-01'"]  # fmt: skip
    for declared in ({}, {"x": "float"}, {"x": "number"}, {"x": "int"}):
        m = mw.Matcher(schema=declared)
        m.add_many([(i, text) for i, text in enumerate(texts)])
        m.match_many([{"x": 1}] * 100)
        for kind, values in ((pa.float64(), special), (pa.int64(), whole), (pa.int32(), whole[:2])):
            found = m.match_many(pa.table({"x": pa.array(values, kind)}))
            dicts = m.match_many([{"x": value} for value in values])
            assert found.to_pylist() == dicts.to_pylist(), (declared, kind)
            assert found.errors.keys() == dicts.errors.keys()
    nan = mw.Matcher()
    nan.add_many([("above", "x > 1"), ("equal", "x = CAST('NaN' AS DOUBLE)")])
    column = pa.array([float("nan"), 2.0] * 40, from_pandas=False)
    events_ = [{"x": float("nan")}, {"x": 2.0}] * 40
    assert (
        nan.match_many(pa.table({"x": column})).to_pylist() == nan.match_many(events_).to_pylist()
    )


def test_dates_and_unused_columns_in_threads():
    m = matcher(RULES)
    days = [date(2024, 1 + i % 4, 1) for i in range(200)]
    table = pa.table(
        {"e": days, "unused": days, "void": pa.nulls(200), "a": pa.nulls(200, pa.int64())}
    )
    expected = m.match_many([{"e": day} for day in days]).to_pylist()
    for threads in (None, 2, 3):
        assert m.match_many(table, threads=threads).to_pylist() == expected
