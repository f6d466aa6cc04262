"""A view of segments and a head answers as one matcher; every test crosses several segments."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from random import Random

import pytest

import matchwood as mw
from engine.invariants import check
from engine.segments_world import EVENTS, WAIT, Model, agree, expected, filled, text
from faults import fault_at
from inside import view_of
from matchwood.engine.segments import tiers

pytestmark = pytest.mark.usefixtures("small_segments")


def test_segments_answer_in_the_order_of_addition():
    m, model = filled(23)
    assert len(view_of(m).searched) > 3
    agree(m, model)
    assert m.to_arrow()["id"].to_pylist() == list(model)
    m.compact()
    assert len(view_of(m).searched) == 1
    agree(m, model)


@pytest.mark.slow
def test_random_changes_agree_with_a_dict():
    for seed in range(6):
        rng = Random(seed)
        m, model, n = mw.Matcher(), {}, 0
        for _ in range(40):
            kind = rng.randrange(7)
            some = rng.sample(list(model), min(len(model), rng.randrange(4)))
            if kind <= 1:
                rows = {n + i: text(rng.randrange(50)) for i in range(rng.randrange(1, 9))}
                n += len(rows)
                assert not m.add_many(list(rows.items())).errors
                model |= rows
            elif kind == 2:
                m.add(f"s{n}", text(n))
                model[f"s{n}"] = text(n)
                n += 1
            elif kind == 3:
                assert m.remove_many([*some, "unknown"]).count == len(some)
                for id_ in some:
                    del model[id_]
            elif kind == 4:
                for id_ in some:
                    model[id_] = text(rng.randrange(50))
                    m.replace(id_, model[id_])
            elif kind == 5:
                with m.batch() as b:
                    for id_ in some:
                        b.remove(id_)
                        b.add(id_, "x = 3")
                        del model[id_]
                        model[id_] = "x = 3"
            elif rng.random() < 0.3:
                m.compact()
            else:
                m = pickle.loads(pickle.dumps(m)) if rng.random() < 0.5 else copy.copy(m)
            answers = [expected(model, event) for event in EVENTS]
            assert list(m.match_many(EVENTS)) == answers
        agree(m, model)


def test_an_id_is_known_in_every_segment():
    m, model = filled(14)
    for id_ in model:
        assert id_ in m
        with pytest.raises(mw.MatchwoodError, match="taken"):
            m.add(id_, "x = 1")
        assert m.expression(id_) == mw.parse(model[id_])
    report = m.add_many([(i, "x = 1") for i in range(20)])
    assert [each.id for each in report.errors] == list(range(14))
    assert report.count == 6
    for id_ in (0, 13, 19):
        m.remove(id_)
        assert id_ not in m
        with pytest.raises(mw.MatchwoodError, match="no such"):
            m.remove(id_)
        m.add(id_, "x = 2")
    assert m.ids() == [*range(1, 13), *range(14, 19), 0, 13, 19]


def test_a_replaced_subscription_keeps_its_place_and_what_is_not_given():
    m = mw.Matcher()
    for i in range(12):
        m.add(i, "x = 1", priority=i, payload={"n": i}, attributes={"age": i})
    before = m[3]
    m.replace(3, "x = 2")
    assert m.match({"x": 2}) == [3]
    m.replace(3, "x >= 1", priority=50)
    assert m.match({"x": 1}) == list(range(12))
    assert m.match({"x": 1}, limit=3) == [3, 11, 10]
    assert m[3].payload == {"n": 3}
    assert m[3].attributes == {"age": 3}
    assert m[3].added == before.added
    assert m.match({"x": 1}, where="age >= 3 AND age < 6") == [3, 4, 5]


def test_what_expires_is_found_in_every_segment():
    m = mw.Matcher()
    for i in range(12):
        m.add(i, "x = 1", expires=None if i % 3 else 100 + i)
    assert m.match({"x": 1}, now=50) == list(range(12))
    assert m.match({"x": 1}, now=104) == [i for i in range(12) if i % 3 or i > 4]
    assert m.sweep(104) == 2
    assert m.match({"x": 1}, now=50) == [i for i in range(12) if i not in (0, 3)]


def test_values_of_a_wrong_type_are_one_error_an_event():
    m = mw.Matcher(schema={"x": "int"})
    for i in range(10):
        m.add(i, f"x = {i}" if i < 5 else "y = 1")
    found = m.match_many([{"x": 1}, {"x": "one", "y": 1}, {"y": 1}])
    assert list(found) == [[1], [], [5, 6, 7, 8, 9]]
    assert list(found.errors) == [1]


def test_contexts_are_told_apart_from_segments():
    m, model = filled(13)
    m.set_context("k", {"c": 3})
    agree(m, model)
    m.add("bound", "x < ctx.c", context="k")
    assert m.match({"x": 2})[-1] == "bound"
    m.set_context("k", {"c": 1})
    assert m.match({"x": 2}) == expected(model, {"x": 2})


def test_relations_and_near_misses_look_at_all_segments():
    m = mw.Matcher()
    for i in range(11):
        m.add(i, f"x = {i % 3} AND y > {i}")
    assert m.near({"x": 1, "y": 1}, 20) != []
    assert {miss.id for miss in m.near({"x": 1, "y": 100}, 20)} == {0, 2, 3, 5, 6, 8, 9}
    m.add("same", "y > 3 AND x = 0")
    assert m.duplicates() == [[3, "same"]]
    assert m.subsumes(0, 9)
    assert set(m.overlaps(1)) == {4, 7, 10}


def test_a_snapshot_of_segments_is_one_segment(tmp_path):
    m, model = filled(19)
    for id_ in (2, 7, 11, 18):
        m.remove(id_)
        del model[id_]
    m.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    agree(loaded, model)
    loaded.add("new", "x = 1")
    loaded.remove(0)
    del model[0]
    agree(loaded, {**model, "new": "x = 1"})
    agree(m, {0: text(0), **model})


def test_a_durable_matcher_of_segments_loses_nothing(tmp_path):
    model: Model = {}
    for turn in range(3):
        with mw.Matcher.open(tmp_path / "d") as m:
            agree(m, model)
            rows = {100 * turn + i: text(i) for i in range(11)}
            m.add_many(list(rows.items()))
            model |= rows
            for i in range(3):
                m.add(f"{turn} {i}", text(i))
                model[f"{turn} {i}"] = text(i)
            m.replace(100 * turn + 1, "x = 5")
            model[100 * turn + 1] = "x = 5"
            m.remove(100 * turn + 7)
            del model[100 * turn + 7]
            if turn == 1:
                m.checkpoint()
            agree(m, model)


def test_a_forked_child_has_all_segments():
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    m, model = filled(17)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            m.add("child", "x = 1")
            m.remove(1)
            code = 0 if m.match({"x": 1})[-1] == "child" and 1 not in m else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    agree(m, model)


@pytest.mark.slow
def test_no_search_sees_half_of_a_batch_over_segments():
    """Pairs that come and go together, in the head and in segments, are never seen apart."""
    m = mw.Matcher()
    m.add_many([(i, f"x = {i}") for i in range(20)])
    is_over, wrong = threading.Event(), []

    def read() -> None:
        while not is_over.is_set():
            seen = m.match({"pair": 1})
            if len(seen) not in (0, 6):
                wrong.append(seen)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for each in readers:
        each.start()
    try:
        for turn in range(30):
            m.add_many([(f"p{i}", "pair = 1") for i in range(6)])  # a segment
            with m.batch() as b:
                b.replace("p1", "pair = 1 AND NOT x = 9 OR pair = 1")
                b.remove("p2")
                b.add("p2", "pair = 1")
            assert sorted(m.match({"pair": 1})) == [f"p{i}" for i in range(6)]
            m.remove_many([f"p{i}" for i in range(6)])
            assert m.match({"pair": 1}) == []
            m.add(f"more {turn}", "x = 1")
    finally:
        is_over.set()
        for each in readers:
            each.join(WAIT)
    assert wrong == []


# -- merges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["auto", "scan", "agile"])
def test_a_batch_in_threads_gives_what_one_thread_gives(index):
    m = mw.Matcher(index=index, schema={"x": "int"})
    m.add_many([(i, text(i)) for i in range(20)])
    events = [EVENTS[i % len(EVENTS)] if i % 50 else {"x": "wrong"} for i in range(300)]
    one = m.match_many(events)
    events_before = m.stats()["work"]["events"]
    for threads in (2, 3, 16):
        many = m.match_many(events, threads=threads)
        assert list(many) == list(one)
        assert list(many.errors) == list(one.errors) == list(range(0, 300, 50))
        assert many.counters == one.counters
        assert m.match_many(events, threads=threads, limit=2).to_pylist() == [e[:2] for e in one]
    assert m.stats()["work"]["events"] - events_before == 6 * 300


def test_ids_of_a_batch_in_threads_are_those_of_one_thread(monkeypatch):
    monkeypatch.setattr(tiers, "HEAD_MOST", 8)  # one segment, whose ids are looked up late
    m = mw.Matcher()
    m.add_many([(i * 7 % 20, text(i)) for i in range(20)])
    events = [EVENTS[i % len(EVENTS)] if i % 3 else {} for i in range(300)]
    one = m.match_many(events)
    for asks in (lambda f: f[:], lambda f: f.ids.tolist(), lambda f: f.to_arrow(), pickled_lists):
        assert asks(m.match_many(events, threads=2)) == asks(one)


def pickled_lists(found: mw.Matches) -> list[list[int | str]]:
    return pickle.loads(pickle.dumps(found)).to_pylist()


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(mw.MatchwoodError, match="threads"):
        mw.Matcher().match_many([{}], threads=threads)


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["add", "add_many", "replace", "remove_many", "compact", "batch"])
def test_an_exception_at_any_step_leaves_all_segments_as_before(verb):
    def change(m: mw.Matcher) -> None:
        if verb == "add":
            m.add("new", "x = 1")
        elif verb == "add_many":
            m.add_many([(f"n{i}", text(i)) for i in range(6)])
        elif verb == "replace":
            m.replace(2, "x = 6")
        elif verb == "remove_many":
            m.remove_many([1, 6, 12])
        elif verb == "compact":
            m.compact()
        else:
            with m.batch() as b:
                b.remove(1)
                b.replace(7, "x = 6")
                b.add("new", "x = 1")

    m, model = filled(13)
    done = dict(model)
    if verb in ("add", "batch"):
        done["new"] = "x = 1"
    if verb == "add_many":
        done |= {f"n{i}": text(i) for i in range(6)}
    if verb == "replace":
        done[2] = "x = 6"
    if verb == "batch":
        done[7] = "x = 6"
        del done[1]
    if verb == "remove_many":
        done = {id_: expr for id_, expr in model.items() if id_ not in (1, 6, 12)}
    step = 0
    while True:
        with fault_at(step, KeyboardInterrupt) as fault:
            change(m)
        if not fault.happened:
            break
        answers = list(m.match_many(EVENTS))
        before = [expected(model, event) for event in EVENTS]
        if answers != before or list(m) != list(model):
            agree(m, done)
            m, _ = filled(13)
        check(m)
        step += 41 if verb in ("add", "replace", "remove_many") else 173
    agree(m, done)


def test_an_attribute_of_several_kinds_in_a_segment_has_no_type():
    m = mw.Matcher()
    m.add_many([(0, "x = 1"), (1, "x = 'a'"), (2, "y = 1")])
    m.compact()
    m.add(3, "x = TRUE")
    assert dict(m.schema) == {"y": "number"}
    m.compact()
    assert dict(m.schema) == {"y": "number"}
