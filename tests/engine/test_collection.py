"""A matcher as a collection: lookup, ids, tables, copies."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matchwood as mw
from engine.invariants import check
from matchwood.engine.snapshots import manifest

SOON = datetime(2100, 1, 1, tzinfo=UTC)


def filled() -> mw.Matcher:
    m = mw.Matcher(schema={"z": "int"})
    m.add("s1", "x  >  3", priority=4, attributes={"age": 20, "at": date(2020, 1, 2)}, expires=SOON)
    m.add(7, "x > ctx.c", context="ann", payload={"to": ["a", None, 1.5]})
    m.add("7", "x = 5 OR y = 1", attributes={"user": {"age": 3}, "d": Decimal("1.10")})
    m.set_context("ann", {"c": 2})
    return m


def test_what_was_given_is_given_back() -> None:
    before = datetime.now(UTC)
    m = filled()
    first = m["s1"]
    assert (first.id, first.text, first.context, first.priority) == ("s1", "x  >  3", None, 4)
    assert (first.attributes, first.payload) == ({"age": 20, "at": date(2020, 1, 2)}, None)
    assert first.expires == SOON
    assert first.added is not None
    assert before - timedelta(seconds=1) <= first.added <= datetime.now(UTC)
    assert (m[7].context, m[7].payload) == ("ann", {"to": ["a", None, 1.5]})
    assert m["7"].attributes == {"user": {"age": 3}, "d": Decimal("1.10")}
    assert m.ids() == list(m) == ["s1", 7, "7"]
    assert [id_ for id_, _ in m.items()] == m.ids()
    assert dict(m.items())["s1"] == first
    assert 7 in m
    assert "8" not in m
    with pytest.raises(mw.SubscriptionError, match="no such subscription"):
        m["8"]


def test_a_replacement_keeps_what_it_does_not_give() -> None:
    m = filled()
    added = m["s1"].added
    m.replace("s1", "x > 9")
    assert (m["s1"].priority, m["s1"].expires, m["s1"].text) == (4, SOON, "x > 9")
    m.replace("s1", "x > 9", priority=-1, expires=None, attributes=None, payload="p")
    one = m["s1"]
    assert (one.priority, one.expires, one.attributes, one.payload) == (-1, None, None, "p")
    assert one.added == added
    m.replace("new", "x = 1", priority=3)
    assert m["new"].priority == 3


def test_a_freed_slot_forgets_its_fields() -> None:
    m = filled()
    m.remove("s1")
    m.add("other", "x > 0")
    one = m["other"]
    assert (one.priority, one.attributes, one.expires, one.payload) == (0, None, None, None)


def same(m: mw.Matcher, other: mw.Matcher, but_added: bool = False) -> bool:
    def rows(which: mw.Matcher) -> list[dict[str, Any]]:
        table = which.to_arrow()
        return (table.drop_columns(["added"]) if but_added else table).to_pylist()

    events = [{"x": x, "y": 1} for x in range(8)]
    return rows(m) == rows(other) and list(m.match_many(events)) == list(other.match_many(events))


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_is_independent(make) -> None:
    m = filled()
    m.add("gone", "z = 1")
    m.remove("gone")
    other = make(m)
    assert same(m, other)
    assert other.context("ann") == {"c": 2}
    other.remove("s1")
    other.set_context("ann", {"c": 100})
    m.add("mine", "x = 1")
    assert m.ids() == ["s1", 7, "7", "mine"]
    assert other.ids() == [7, "7"]
    assert m.match({"x": 6}) == ["s1", 7]
    assert other.match({"x": 6}) == []
    check(m)
    check(other)


def test_a_table_of_all_makes_the_same_matcher() -> None:
    m = filled()
    other = mw.Matcher()
    report = other.add_many(m.to_arrow())
    other.set_context("ann", {"c": 2})
    assert not report.errors
    assert same(m, other, but_added=True)


def test_fields_survive_a_snapshot_a_compaction_and_a_rebuild(tmp_path) -> None:
    m = filled()
    for i in range(20):
        m.add(f"more {i}", f"x = {i}", priority=i, payload=i)
    m.remove_many([f"more {i}" for i in range(0, 20, 2)])
    expected = dict(m.items())
    m.compact()
    assert dict(m.items()) == expected
    m.save(tmp_path / "s")
    for mmap in (True, False):
        loaded = mw.Matcher.load(tmp_path / "s", mmap=mmap)
        assert dict(loaded.items()) == expected
        loaded.replace("more 1", "x = 1", priority=50)
        assert loaded.match({"x": 1}, limit=1) == ["more 1"]


def test_fields_stay_when_a_matcher_is_built_again_after_an_interruption() -> None:
    m = filled()
    expected = dict(m.items())

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        m.add_many([("new", "x = 1")], progress=interrupt)
    assert dict(m.items()) == expected


@pytest.mark.parametrize("version", [1, 2])
def test_a_snapshot_of_an_older_format_has_no_fields(tmp_path, version: int) -> None:
    m = mw.Matcher()
    m.add_many([("a", "x > 1"), ("b", "x > 2")])
    m.save(tmp_path / "s")
    file = tmp_path / "s" / "manifest.json"
    found = json.loads(file.read_text())
    found.pop("checksum")
    found["version"] = version
    del found["files"]["subscription_added"]
    found["checksum"] = manifest.checksum(found)
    file.write_text(json.dumps(found))
    old = mw.Matcher.load(tmp_path / "s")
    assert old.match({"x": 3}, limit=1) == ["a"]
    old.add("c", "x > 1", priority=2, payload="p")
    assert old.match({"x": 3}, limit=1) == ["c"]
    assert [each.priority for _, each in old.items()] == [0, 0, 2]
    old.save(tmp_path / "s")
    assert mw.Matcher.load(tmp_path / "s")["c"].payload == "p"


def test_ids_of_slots_are_null_after_a_removal() -> None:
    for ids in ([1, 2, 3], ["a", "b", "c"], [1, "b", 3]):
        m = mw.Matcher()
        m.add_many([(id_, "x = 1") for id_ in ids])
        m.remove(ids[1])
        found = m.arrow_ids().to_pylist()
        assert found[1] is None
        assert [found[0], found[2]] == [ids[0], ids[2]] or ids[1] == "b"
        assert len(found) == 3


def test_seven_and_its_text_are_two() -> None:
    m = mw.Matcher()
    m.add(7, "x = 1")
    m.add("7", "x = 2")
    found = m.match_many([{"x": 1}, {"x": 2}])
    assert found.to_pylist() == [[7], ["7"]]
    assert found.to_arrow().column("subscription").to_pylist() == [
        {"int": 7, "str": None},
        {"int": None, "str": "7"},
    ]
    assert found.to_pandas().subscription.tolist() == [7, "7"]
    m.remove(7)
    assert m.match_many([{"x": 2}]).to_arrow().schema.field(1).type == pa.string()
    assert isinstance(m.match_many([{"x": 2}]).to_pandas(), pd.DataFrame)


def test_polars_gets_the_rows_of_arrow() -> None:
    pytest.importorskip("polars")
    m = filled()
    found = m.match_many([{"x": 5}])
    assert found.to_polars().height == 3


def test_clear_leaves_an_empty_matcher() -> None:
    m = filled()
    m.clear()
    assert (len(m), m.ids(), m.match({"x": 5}), m.to_arrow().num_rows) == (0, [], [], 0)
    assert m.context("ann") == {"c": 2}
    m.clear()
    m.add("s1", "x = 5")
    assert m.match({"x": 5}) == ["s1"]
    check(m)


# -- batches -----------------------------------------------------------------------------------


def test_forms_for_people_say_what_is_held() -> None:
    m = filled()
    m.add("<b>", "name = '<i>'")
    assert repr(m) == "<Matcher: 4 subscriptions, index 'auto', 1 contexts>"
    assert "&lt;i&gt;" in m._repr_html_()
    assert "<i>" not in m._repr_html_()
    found = m.match_many([{"name": "<i>"}])
    assert "&lt;b&gt;" in found._repr_html_()
    assert "does not match" in m.explain("s1", {"x": 1})._repr_html_()


@pytest.mark.parametrize(
    "bad",
    [
        {"priority": 1.5}, {"priority": 2**63}, {"priority": True}, {"expires": "soon"},
        {"expires": float("nan")}, {"expires": True}, {"expires": 1e30}, {"attributes": 5},
        {"attributes": "[1]"}, {"attributes": "{"}, {"attributes": {"a": object()}},
        {"payload": object()}, {"payload": (1, 2)}, {"payload": {1: 2}},
    ],
)  # fmt: skip
def test_a_bad_field_is_refused(bad: dict[str, Any]) -> None:
    m = filled()
    with pytest.raises(mw.SubscriptionError):
        m.add("bad", "x = 1", **bad)
    with pytest.raises(mw.SubscriptionError):
        m.replace("s1", "x = 1", **bad)
    report = m.add_many([{"id": "bad", "expr": "x = 1", **bad}, {"id": "good", "expr": "x = 5"}])
    assert (report.count, [each.id for each in report.errors]) == (1, ["bad"])
    assert m["s1"].text == "x  >  3"
    assert m.match({"x": 5}) == ["s1", 7, "7", "good"]


def test_numpy_scalars_are_fields() -> None:
    m = mw.Matcher()
    m.add(1, "x = 1", priority=np.int32(3), expires=np.float64(4e9), attributes={"a": np.int8(2)})
    assert (m[1].priority, m[1].attributes) == (3, {"a": 2})


@pytest.mark.parametrize("frame", [lambda table: table, pl.from_arrow], ids=["arrow", "polars"])
@pytest.mark.parametrize("ids", [(7, "7", "a"), (1, 2, 3), ("a", "b", "c")])
def test_ids_of_a_table_are_taken_back_in_any_frame(frame, ids) -> None:
    m = mw.Matcher()
    m.add_many([(id_, f"x = {n}") for n, id_ in enumerate(ids)])
    other = mw.Matcher()
    assert other.add_many(frame(m.to_arrow().select(["id", "expr", "priority"]))).errors == []
    assert other.ids() == list(ids)
    assert m.replace_many(frame(m.to_arrow().select(["id", "expr"]))).count == 3
    matches = m.match_many([{"x": 0}, {"x": 2}])
    assert copy.copy(m).remove_many(matches.to_pandas()["subscription"]).count == 2
    found = frame(matches.to_arrow())
    assert m.remove_many(found["subscription"]).count == 2
    assert m.ids() == [ids[1]]
    with other.batch() as b:
        b.remove_many(found["subscription"])
    assert other.ids() == [ids[1]]


class Named(mw.Matcher):
    """A matcher of a user's own class."""


@pytest.mark.parametrize("index", ["auto", "be_tree"])
def test_a_copy_has_the_class_of_its_matcher(index: str) -> None:
    m = Named(index=index)
    m.add("a", "x = 1")
    for other in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert type(other) is Named
        assert other.match({"x": 1}) == ["a"]
