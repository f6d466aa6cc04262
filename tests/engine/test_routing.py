"""Which index holds what: `auto` grows into PSTBloom, and a refusal leaves no trace."""

import pytest

import matchwood as mw
from matchwood.engine.stores import routing
from matchwood.engine.stores.routing import AUTO_FROM, TREES_FROM

EVENTS = [{f"a{k}": k % 7, "b": 10 * k, "c": k % 6} for k in range(40)]


def conjunction(i):
    return f"a{i % 50} = {i % 7} AND b < {i % 400}"


def names(m):
    return [each["index"] for each in m.stats()["indexes"]]


def filled(n, **settings):
    m = mw.Matcher(**settings)
    m.add_many([(i, conjunction(i)) for i in range(n)])
    m.add_many([(-1 - i, conjunction(i) + " OR c = 5") for i in range(50)])
    return m


def test_auto_scans_a_small_set_and_indexes_a_large_one():
    assert names(filled(AUTO_FROM - 1)) == ["scan"]
    assert names(filled(AUTO_FROM)) == ["pst_bloom", "scan"]


def test_auto_moves_over_with_the_subscription_that_makes_it_large():
    m = filled(AUTO_FROM - 1)
    before = list(m.match_many(EVENTS))
    m.add_many([("last", "c = 4")])
    assert names(m) == ["pst_bloom", "scan"]
    after = list(m.match_many(EVENTS))
    assert after == [b + ["last"] * (e["c"] == 4) for b, e in zip(before, EVENTS, strict=True)]
    assert any(before)


def test_auto_puts_many_other_expressions_into_an_a_tree():
    m = mw.Matcher()
    m.add_many([(i, f"a = {i} OR b = {i}") for i in range(TREES_FROM - 1)])
    assert names(m) == ["scan"]
    m.add_many([("one", "a = 1")])
    assert names(m) == ["scan"]
    m.add_many([("last", "a = 1 OR b = 7")])
    assert names(m) == ["a_tree"]
    assert m.match({"a": 1, "b": 7}) == [1, 7, "one", "last"]


def test_auto_has_an_index_for_conjunctions_and_one_for_the_others(tmp_path):
    m = filled(AUTO_FROM)
    m.add_many([(f"t{i}", f"c = {i} OR b = {i}") for i in range(TREES_FROM)])
    assert names(m) == ["pst_bloom", "a_tree"]
    m.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    assert names(loaded) == ["pst_bloom", "a_tree"]
    m.remove_many([f"t{i}" for i in range(1, TREES_FROM)])
    assert names(m) == ["pst_bloom", "a_tree"]
    m.save(tmp_path / "s")
    smaller = mw.Matcher.load(tmp_path / "s")
    assert names(smaller) == ["pst_bloom", "scan"]
    assert smaller.match({"c": 0}) == m.match({"c": 0}) == ["t0"]


def test_auto_answers_as_scan_does_while_it_grows_shrinks_and_is_kept(tmp_path):
    auto, scan = filled(3 * AUTO_FROM), filled(3 * AUTO_FROM, index="scan")
    for m in (auto, scan):
        m.remove_many(range(0, 3 * AUTO_FROM, 2))
        m.replace(1, "c = 3")
    assert list(auto.match_many(EVENTS)) == list(scan.match_many(EVENTS))
    auto.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    assert names(loaded) == names(auto) == ["pst_bloom", "scan"]
    assert list(loaded.match_many(EVENTS)) == list(scan.match_many(EVENTS))
    auto.remove_many(list(range(3 * AUTO_FROM)))
    auto.compact()
    assert names(auto) == ["scan"]
    assert auto.match({"c": 5}) == [-1 - i for i in range(50)]


def test_settings_go_to_the_index_that_was_named_and_to_no_other():
    assert names(mw.Matcher(index="be_tree", max_cap=5)) == ["be_tree", "scan"]
    with pytest.raises(mw.IndexBuildError, match="max_cap"):
        mw.Matcher(index="scan", max_cap=5)
    with pytest.raises(mw.IndexBuildError, match="expected one of"):
        mw.Matcher(index="no such index")


@pytest.fixture
def fussy(monkeypatch):
    """A matcher whose index refuses every expression on an attribute called `bad`."""
    scan = routing.find_index("scan")

    class Fussy(scan):
        name = "fussy"

        def insert(self, slots):
            attributes = self._table.attributes_of(slots)
            if 1 in attributes:  # the second attribute that was named
                raise mw.IndexBuildError("fussy: no bad ones")
            super().insert(slots)

    find = routing.find_index
    monkeypatch.setattr(
        routing, "find_index", lambda name, *more: Fussy if name == "fussy" else find(name, *more)
    )
    m = mw.Matcher(index="fussy", schema={"good": "int", "bad": "int"})
    m.add("first", "good = 1")
    return m


def test_what_an_index_refuses_is_not_there_afterwards(fussy):
    for refused in (
        lambda: fussy.add("second", "bad = 1"),
        lambda: fussy.add_many([("second", "bad = 1"), ("third", "good = 1")]),
    ):
        with pytest.raises(mw.IndexBuildError, match="no bad ones"):
            refused()
        assert len(fussy) == 1
        assert "second" not in fussy
        assert fussy.match({"good": 1, "bad": 1}) == ["first"]
    fussy.add("second", "good >= 1")
    assert fussy.match({"good": 1}) == ["first", "second"]


def test_a_replacement_that_an_index_refuses_leaves_the_old_expression(fussy):
    with pytest.raises(mw.IndexBuildError, match="no bad ones"):
        fussy.replace("first", "bad = 1")
    assert fussy.match({"good": 1, "bad": 1}) == ["first"]
    assert str(fussy.expression("first")) == "good = 1"
