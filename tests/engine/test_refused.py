"""Subscriptions of a log that are refused now: set aside, and neither lost nor in the way."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchwood as mw
from engine.invariants import check
from inside import log_of
from matchwood import Matcher
from matchwood.errors import FormatError

BAD = "x = = 3"
"""A text that is read by no version; it stands for one that an earlier version has read."""

INDEXES = ["auto", "scan", "be_tree"]


def spoiled(folder: Path, ids: list[Any]) -> None:
    """Have the log other texts of some subscriptions, as a change that was acknowledged."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as db, db:
        (seq,) = db.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'seq'").fetchone()
        for id_ in ids:
            query = "UPDATE subscriptions SET text = ?, seq = ? WHERE id = ?"
            assert db.execute(query, (BAD, seq + 1, id_)).rowcount == 1
        db.execute("UPDATE meta SET value = ? WHERE key = 'seq'", (str(seq + 1),))


def opened(folder: Path, **options: Any) -> Matcher:
    """A matcher that has to say that something is set aside."""
    with pytest.warns(RuntimeWarning, match=r"cannot be used by this version(?s:.)*replace\(id"):
        return Matcher.open(folder, **options)


def filled(folder: Path, index: str = "auto", bad: tuple[Any, ...] = (2, "c")) -> None:
    with Matcher.open(folder, index) as m:
        m.add(1, "x = 1")
        m.add(2, "x = 1", priority=7, payload=["p"], attributes={"age": 3}, expires=4e9)
        m.add("c", "x = ctx.c", context="k", priority=2)
        m.add("d", "x < ctx.c", context="k")
        m.set_context("k", {"c": 3})
        m.add(5, "x > 0")
    spoiled(folder, list(bad))


def rows(m: Matcher) -> list[Any]:
    return m.to_arrow().to_pylist()


def texts(folder: Path) -> dict[Any, str]:
    """What the log has."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as db:
        return dict(db.execute("SELECT id, text FROM subscriptions ORDER BY position").fetchall())


def expect_alike(m: Matcher, folder: Path) -> None:
    """The log has what memory has, with the same places, and what is set aside."""
    positions = {}
    with closing(sqlite3.connect(folder / "log.sqlite")) as db:
        positions = dict(db.execute("SELECT id, position FROM subscriptions").fetchall())
    aside = {each.subscription.id for each in m.refused()}
    assert positions.keys() == {*m.ids(), *aside}
    assert m.ids() == sorted(m.ids(), key=positions.__getitem__)
    check(m)


@pytest.mark.parametrize("index", INDEXES)
def test_a_subscription_that_is_refused_is_set_aside_and_the_others_work(
    tmp_path: Path, index: str
) -> None:
    filled(tmp_path, index)
    for is_checkpointed in (False, True, True):
        with opened(tmp_path) as m:
            assert (len(m), m.ids(), 2 in m, "c" in m, 1 in m) == (
                3, [1, "d", 5], False, False, True
            )  # fmt: skip
            assert m.match({"x": 1}) == [1, "d", 5]
            assert m.match({"x": 3}) == [5]
            assert m.stats()["refused"] == 2
            assert "matchwood_refused 2" in m.metrics()
            first, second = m.refused()
            assert first.subscription.id == 2
            assert first.subscription.text == BAD
            assert (first.subscription.priority, first.subscription.payload) == (7, ["p"])
            assert first.subscription.attributes == {"age": 3}
            assert first.subscription.expires is not None
            assert first.subscription.added is not None
            assert (second.subscription.id, second.subscription.context) == ("c", "k")
            for asked in (lambda m=m: m[2], lambda m=m: m.explain(2, {}),
                          lambda m=m: m.why_not(2, {}), lambda m=m: m.expression(2)):  # fmt: skip
                with pytest.raises(mw.SubscriptionError, match=r"set aside(?s:.)*replace\(\)"):
                    asked()
            with pytest.raises(mw.SubscriptionError, match="no such subscription"):
                m["none"]
            expect_alike(m, tmp_path)
            if is_checkpointed:
                m.checkpoint()
        assert texts(tmp_path)[2] == texts(tmp_path)["c"] == BAD


def test_the_warning_says_which_and_why(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.warns(RuntimeWarning) as said:
        Matcher.open(tmp_path).close()
    (only,) = said
    assert only.filename == __file__
    message = str(only.message)
    assert f"2: {BAD}" in message
    assert f"'c': {BAD}" in message
    assert "expected" in message


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_what_is_set_aside_can_be_replaced_and_removed(
    tmp_path: Path, index: str, is_checkpointed: bool
) -> None:
    filled(tmp_path, index)
    with opened(tmp_path) as m:
        before = m.refused()[0].subscription
        if is_checkpointed:
            m.checkpoint()
        for refused in (lambda: m.add(2, "x = 1"), lambda: m.add("c", "x = 1", context="k")):
            with pytest.raises(mw.SubscriptionError, match=r"taken: use replace\(\)"):
                refused()
        report = m.add_many([(2, "x = 1"), (9, "x = 9")])
        assert (report.count, [each.id for each in report.errors]) == (1, [2])
        with pytest.raises(mw.ParseError):
            m.replace(2, BAD)
        assert len(m.refused()) == 2
        m.replace(2, "x = 3", priority=8)
        found = m[2]
        assert (found.text, found.priority) == ("x = 3", 8)
        for name in ("payload", "attributes", "expires", "added"):
            assert getattr(found, name) == getattr(before, name)
        assert m.ids() == [1, 2, "d", 5, 9]
        assert m.match({"x": 3}) == [2, 5]
        m.replace("c", "x = ctx.c OR x = 9")
        assert m["c"].context == "k"
        assert m.ids() == [1, 2, "c", "d", 5, 9]
        assert m.match({"x": 3}) == [2, "c", 5]
        assert m.refused() == []
        assert m.stats()["refused"] == 0
        expect_alike(m, tmp_path)
        held = rows(m)
    for _ in range(2):
        with Matcher.open(tmp_path) as m:  # without a warning
            assert rows(m) == held
            m.checkpoint()


@pytest.mark.parametrize("index", INDEXES)
def test_what_is_set_aside_goes_with_changes_of_many(tmp_path: Path, index: str) -> None:
    filled(tmp_path / "a", index)
    with opened(tmp_path / "a") as m:
        report = m.remove_many([2, "c", 5, "none"])
        assert (report.count, [each.id for each in report.errors]) == (3, ["none"])
        assert (m.ids(), m.refused()) == ([1, "d"], [])
        expect_alike(m, tmp_path / "a")
    filled(tmp_path / "b", index)
    with opened(tmp_path / "b") as m:
        assert m.replace_many([(2, "x = 4"), ("n", "x = 4"), (1, "x = 4")]).count == 3
        assert m.match({"x": 4}) == [1, 2, 5, "n"]
        m.clear()
        assert (len(m), m.refused()) == (0, [])
        expect_alike(m, tmp_path / "b")
    filled(tmp_path / "c", index)
    with opened(tmp_path / "c") as m:
        assert m.sweep(now=4e9 + 1) == 1
        assert [each.subscription.id for each in m.refused()] == ["c"]
        with m.batch() as b:
            b.remove("c")
            b.add("c", "x = 3")
        assert m.ids() == [1, "d", 5, "c"]
        assert m.match({"x": 3}) == [5, "c"]
        expect_alike(m, tmp_path / "c")
    for name in "abc":
        Matcher.open(tmp_path / name).close()


def test_ids_7_and_text_7_stay_apart(tmp_path: Path) -> None:
    with Matcher.open(tmp_path) as m:
        m.add(7, "x = 1")
        m.add("7", "x = 1")
    spoiled(tmp_path, [7])
    for _ in range(2):
        with opened(tmp_path) as m:
            assert m.match({"x": 1}) == ["7"]
            m.checkpoint()
    with opened(tmp_path) as m:
        m.remove(7)
        assert m.ids() == ["7"]
    Matcher.open(tmp_path).close()


@pytest.mark.parametrize("index", INDEXES)
def test_what_a_segment_has_of_it_is_older_and_matches_nothing(tmp_path: Path, index: str) -> None:
    with Matcher.open(tmp_path, index) as m:
        m.add_many([(i, f"x >= {i}") for i in range(9)])
        m.add("k", "x < ctx.c", context="k")
        m.set_context("k", {"c": 3})
        m.checkpoint()
    spoiled(tmp_path, [4, "k"])
    for _ in range(3):
        with opened(tmp_path) as m:
            assert m.match({"x": 5}) == [0, 1, 2, 3, 5]
            assert m.match({"x": 1}) == [0, 1]
            expect_alike(m, tmp_path)
            m.checkpoint()


def test_an_opening_from_segments_is_not_one_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known to be refused does not make every opening build all again."""
    filled(tmp_path)
    with opened(tmp_path) as m:
        m.checkpoint()
    monkeypatch.setattr(
        "matchwood.engine.durable.opening.from_log", lambda *_, **__: pytest.fail("built anew")
    )
    for _ in range(2):
        with opened(tmp_path) as m:
            assert m.match({"x": 1}) == [1, "d", 5]
            m.add(f"n{len(m)}", "x = 2")
            m.checkpoint()


@pytest.mark.parametrize("index", INDEXES)
def test_numbers_in_the_order_of_addition_are_not_given_twice(tmp_path: Path, index: str) -> None:
    filled(tmp_path, index, (5,))  # the last one
    for n in range(3):
        with opened(tmp_path) as m:
            m.add(f"n{n}", "x = 1")
            m.checkpoint()
            m.add(f"m{n}", "x = 1")
            expect_alike(m, tmp_path)
    with opened(tmp_path) as m:
        m.replace(5, "x = 1")
        assert m.ids() == [1, 2, "c", "d", 5, "n0", "m0", "n1", "m1", "n2", "m2"]


def test_readers_and_a_writer_set_the_same_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    reader = opened(tmp_path, read_only=True)
    m = opened(tmp_path)
    late = opened(tmp_path, read_only=True)
    for each in (reader, late):
        assert rows(each) == rows(m)
        assert [r.subscription for r in each.refused()] == [r.subscription for r in m.refused()]
        with pytest.raises(mw.StorageError, match="read_only"):
            each.remove(2)
        assert each.refresh() == 0
    m.checkpoint()  # its rows get other numbers
    m.checkpoint()
    for each in (reader, late):
        assert each.refresh() == 0
        assert len(each.refused()) == 2
    m.replace(2, "x = 3")
    m.add("new", "x = 3")
    for each in (reader, late):
        assert each.refresh() == 2
        assert rows(each) == rows(m)
        assert [r.subscription.id for r in each.refused()] == ["c"]
        check(each)
    m.remove("c")
    m.checkpoint()
    for each in (reader, late):
        each.refresh()
        assert each.refused() == []
        assert rows(each) == rows(m)
    m.close()
    spoiled(tmp_path, ["d"])
    with pytest.warns(RuntimeWarning, match="'d'"):
        assert reader.refresh() > 0
    assert "d" not in reader
    assert "d" in late


def test_options_that_refuse_are_an_error_and_change_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as m:
        before = rows(m)
    for options in ({"schema": {"x": "string"}}, {"index": "scan"}):
        with pytest.raises(mw.StorageError, match="the folder is as it was"):
            Matcher.open(tmp_path, **options)
    with opened(tmp_path) as m:
        assert rows(m) == before
        m.remove_many([2, "c"])
    with Matcher.open(tmp_path, "scan") as m:
        assert m.ids() == [1, "d", 5]


def test_a_change_that_is_not_written_leaves_it_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    m = opened(tmp_path)
    write = log_of(m).write

    def fails(*args: Any, **options: Any) -> None:
        raise mw.StorageError("full")

    def interrupted(*args: Any, **options: Any) -> None:
        write(*args, **options)
        raise KeyboardInterrupt

    for fault in (fails, interrupted):
        with monkeypatch.context() as patch:
            patch.setattr(log_of(m), "write", fault)
            with pytest.raises((mw.StorageError, KeyboardInterrupt)):
                m.remove(2)
            with pytest.raises((mw.StorageError, KeyboardInterrupt)):
                m.replace("c", "x = 9")
        is_written = fault is interrupted
        m.add(f"after {is_written}", "x = 100")
        assert [each.subscription.id for each in m.refused()] == ([] if is_written else [2, "c"])
        assert ("c" in m) == is_written
        expect_alike(m, tmp_path)
    m.close()
    with Matcher.open(tmp_path) as m:
        assert m.match({"x": 9}) == ["c", 5]


def test_groups_write_what_became_of_it(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path, commit_every=1000.0) as m:
        m.remove(2)
        m.replace("c", "x = 9")
        assert texts(tmp_path)[2] == BAD
        m.flush()
        assert 2 not in texts(tmp_path)
        expect_alike(m, tmp_path)
    with Matcher.open(tmp_path) as m:
        assert m.ids() == [1, "c", "d", 5]


def test_a_comparison_that_is_refused_now_is_set_aside_whether_segments_have_it_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`x = ctx.rank` with an int and an open name: an earlier version compared the wrong keys."""
    for folder in (tmp_path / "log", tmp_path / "segments"):
        with monkeypatch.context() as before:
            before.setattr(
                "matchwood.encode.resolve.check_relations",
                lambda batch, attributes, learned, rows: learned,
            )
            with Matcher.open(folder, schema={"ctx.rank": "int"}) as m:
                m.add(1, "x = ctx.rank", context="u")
                m.add(2, "y = 1")
                m.add(3, "z < ctx.other", context="u")
                m.set_context("u", {"rank": 3, "other": 5})
                if folder.name == "segments":
                    m.checkpoint()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "a segment in|the segments in")
            m = opened(folder)
        with m:
            assert m.match({"x": 3, "y": 1, "z": 4}) == [2, 3]
            assert [each.subscription.id for each in m.refused()] == [1]
            m.checkpoint()
        with opened(folder) as m:
            assert m.match({"x": 3, "y": 1, "z": 4}) == [2, 3]
        with Matcher.open(folder, schema={"x": "int", "ctx.rank": "int"}) as m:
            assert m.match({"x": 3, "y": 1, "z": 4}) == [1, 2, 3]
            assert m.refused() == []
        with Matcher.open(folder) as m:
            assert m.match({"x": 4, "y": 1, "z": 4}) == [2, 3]


@pytest.mark.parametrize("index", ["auto", "agile"])
def test_a_snapshot_with_a_comparison_that_is_refused_now_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    with monkeypatch.context() as before:
        before.setattr(
            "matchwood.encode.resolve.check_relations",
            lambda batch, attributes, learned, rows: learned,
        )
        m = Matcher(index, schema={"ctx.rank": "int"})
        m.add(1, "x = ctx.rank", context="u")
        m.set_context("u", {"rank": 3})
        m.save(tmp_path / "saved")
    for verify in (True, False):
        with pytest.raises(FormatError, match=r"expected number beside(?s:.)*save it again"):
            Matcher.load(tmp_path / "saved", verify=verify)


@pytest.mark.parametrize("index", ["auto", "be_tree"])
@pytest.mark.parametrize("seed", range(3))
def test_random_changes_and_openings_agree_with_a_dict(
    tmp_path: Path, index: str, seed: int
) -> None:
    random = Random(f"{index} {seed}")
    with Matcher.open(tmp_path, index, sync=False) as m:
        m.add_many([(i, f"x >= {i}") for i in range(8)])
    model = {i: f"x >= {i}" for i in range(8)}
    for _ in range(8):
        bad = random.sample(sorted(model), min(3, len(model)))
        spoiled(tmp_path, bad)
        model |= dict.fromkeys(bad, BAD)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*cannot be used by this version", RuntimeWarning)
            m = Matcher.open(tmp_path, sync=False)
        with m:
            for _ in range(random.randrange(6)):
                id_ = random.randrange(10)
                text = f"x >= {random.randrange(9)}"
                verb = random.choice(["add", "replace", "remove", "checkpoint"])
                if verb == "checkpoint":
                    m.checkpoint()
                elif verb == "replace":
                    m.replace(id_, text)
                    model[id_] = text
                elif (verb == "add") == (id_ in model):
                    with pytest.raises(mw.SubscriptionError):
                        getattr(m, verb)(id_, *([text] if verb == "add" else []))
                elif verb == "add":
                    m.add(id_, text)
                    model[id_] = text
                else:
                    m.remove(id_)
                    del model[id_]
            held = {id_: text for id_, text in model.items() if text != BAD}
            assert {id_: each.text for id_, each in m.items()} == held
            assert {r.subscription.id for r in m.refused()} == model.keys() - held.keys()
            for x in range(9):
                wanted = {id_ for id_, text in held.items() if x >= int(text[5:])}
                assert set(m.match({"x": x})) == wanted
            expect_alike(m, tmp_path)
