"""The text of a computed attribute is read once, by the parser."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

import matchwood as mw
from matchwood.encode.attribute import formula_of
from matchwood.engine.segments import tiers
from matchwood.lang import general, scalars
from matchwood.lang.parser import parse

N = 40


@pytest.fixture
def n_read(monkeypatch):
    """How often the text of a computed attribute was read by itself."""
    read: list[str] = []
    reader = general.read_scalar
    monkeypatch.setattr(general, "read_scalar", lambda text: (read.append(text), reader(text))[1])
    return lambda: len(read)


def texts(name: str) -> list[tuple[int, str]]:
    return [(i, f"array_contains(tags, '{name}{i}') OR lower({name}) = '{i}'") for i in range(N)]


def test_changes_searches_and_merges_read_no_text_of_a_computed_attribute_again(
    n_read, monkeypatch
):
    monkeypatch.setattr(tiers, "HEAD_MOST", 8)
    monkeypatch.setattr(tiers, "RECENT_MOST", 2)
    m = mw.Matcher()
    for id_, text in texts("n"):
        m.add(id_, text)
        assert m.match({"tags": [f"n{id_}"]}) == [id_]
    m.add_many([(f"b{id_}", f"upper(x) = '{id_}'") for id_ in range(N)])
    m.compact()
    assert m.match({"n": "3", "x": "a"}) == [3]
    assert m.explain(3, {"n": "3"}).matches
    assert n_read() == 0


@pytest.mark.slow
def test_a_snapshot_is_read_once(tmp_path, n_read):
    m = mw.Matcher()
    m.add_many(texts("saved"))
    m.save(tmp_path / "s")
    del m
    gc.collect()
    loaded = mw.Matcher.load(tmp_path / "s")
    assert n_read() == N + 1
    loaded.compact()
    assert loaded.match({"tags": ["saved3"]}) == [3]
    assert n_read() == N + 1


def test_trees_are_kept_while_a_name_is_in_use_and_no_longer():
    expr = parse("lower(kept) = 'x'")
    (name,) = [each for each in scalars._NAMES if "kept" in each]
    assert scalars.tree_of(str(name)) is scalars.tree_of(expr.name)
    formula = formula_of(name)
    assert formula_of(str(name)) is formula
    del expr, name, formula
    gc.collect()
    assert not [each for each in scalars._NAMES if "kept" in each]


def test_copies_of_an_expression_know_the_tree(n_read):
    expr = parse("lower(copied) = 'x'")
    for other in (copy.deepcopy(expr), pickle.loads(pickle.dumps(expr))):
        assert other == expr
        assert scalars.tree_of(other.name) is scalars.tree_of(expr.name)
    assert n_read() == 0
