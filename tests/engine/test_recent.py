"""Recent additions: seen by every later search, encoded by none of the changes."""

from __future__ import annotations

from random import Random

import pytest

import matchwood as mw
import strategies
from engine.invariants import check
from engine.segments_world import agree, filled, text
from inside import view_of
from matchwood.encode.attributes import Attributes
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import is_plain, learned_types, reference_rows
from matchwood.encode.schema import Schema
from matchwood.engine import holding
from matchwood.engine.segments import background, recent, tiers


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """The head takes four additions together, and is frozen at sixteen."""
    monkeypatch.setattr(tiers, "RECENT_MOST", 4)
    monkeypatch.setattr(tiers, "HEAD_MOST", 16)
    monkeypatch.setattr(background, "IS_ON", False)


def test_changes_encode_nothing_before_a_search_asks(monkeypatch, tmp_path):
    with mw.Matcher.open(tmp_path / "d") as m:
        m.add_many([(i, f"x = {i}") for i in range(6)])
        real, asked = recent.encoded, []
        monkeypatch.setattr(recent, "encoded", lambda *a: asked.append(1) or real(*a))
        m.add("a", "x = 1", priority=3)
        m.replace("a", "x = 2")
        m.replace(3, "x = 2")
        m.add("b", "x = 2")
        m.remove("b")
        assert "a" in m
        assert "b" not in m
        assert len(m) == 7
        assert asked == []
        assert m.match({"x": 2}) == [2, 3, "a"]
        assert m.match({"x": 3}) == []
        assert asked == [1], "searches share what the first one made"
    with mw.Matcher.open(tmp_path / "d") as m:
        assert m.match({"x": 2}) == [2, 3, "a"]
        assert m["a"].priority == 3


def test_the_head_takes_them_together():
    m, model = mw.Matcher(), {}
    for i in range(11):
        m.add(i, f"x = {i % 3}")
        model[i] = f"x = {i % 3}"
        view = view_of(m)
        assert len(view.head.subscriptions) == (i + 1) // 4 * 4
        assert (0 if view.recent is None else len(view.recent)) == (i + 1) % 4
    agree(m, model)


def test_what_leaves_the_head_is_marked_until_the_head_takes_more():
    m = mw.Matcher()
    model: dict[int | str, str] = {i: f"x = {i % 3}" for i in range(12)}
    for id_, expr in model.items():
        m.add(id_, expr)
    for id_ in (1, 5, 6):
        m.remove(id_)
        del model[id_]
        assert id_ not in m
        with pytest.raises(mw.MatchwoodError, match="no such"):
            m.remove(id_)
    m.replace(2, "x = 9")
    model[2] = "x = 9"
    assert view_of(m).stored[-1].n_gone == 4
    agree(m, model)
    for id_ in ("a", "b", "c"):
        m.add(id_, "x = 1")
        model[id_] = "x = 1"
    assert view_of(m).stored[-1].n_gone == 0
    agree(m, model)
    for id_ in list(model):
        m.remove(id_)
    assert sum(part.store.subscriptions.n_slots for part in view_of(m).parts) == 0
    check(m)


def test_fields_of_recent_additions_are_kept_and_count():
    m = mw.Matcher()
    m.add_many([("old", "x = 1")])
    m.add("a", "x = 1", priority=5, attributes={"age": 3}, payload={"n": 1}, expires=100)
    m.add("b", "x = 1")
    before = m["a"]
    m.replace("a", "x >= 1", priority=7)
    assert (m["a"].priority, m["a"].payload, m["a"].added) == (7, {"n": 1}, before.added)
    assert m.match({"x": 1}, now=50, limit=1) == ["a"]
    assert m.match({"x": 1}, now=50, where="age = 3") == ["a"]
    assert m.match({"x": 1}, now=150) == ["old", "b"]
    assert m.sweep(150) == 1
    assert m.ids() == ["old", "b"]
    m.replace("b", "x = 2", attributes={"age": 4}, expires=300)
    for i in range(4):
        m.add(i, "x = 2")
    assert m.match({"x": 2}, now=200, where="age = 4") == ["b"]
    assert m.match({"x": 2}, now=300) == [0, 1, 2, 3]


def test_what_no_store_would_take_is_refused_at_once():
    m = mw.Matcher(schema={"n": "int"})
    m.add("kept", "x = 1")
    for wrong in ("n = 'word'", "x IN (1, 'a')", "x BETWEEN 1 AND 'b'", "x < ctx.c", "x = = 1"):
        with pytest.raises(mw.MatchwoodError):
            m.add("new", wrong)
        with pytest.raises(mw.MatchwoodError):
            m.replace("kept", wrong)
        with pytest.raises(mw.MatchwoodError):
            _together(m, {"other": "x = 2", "new": wrong})
    agree(m, {"kept": "x = 1"})


def _together(m: mw.Matcher, rows: dict[str, str]) -> None:
    with m.batch() as b:
        for id_, expr in rows.items():
            b.add(id_, expr)


def test_a_copy_has_them_and_is_independent():
    m, model = filled(7)
    other = m.__copy__()
    m.add("mine", "x = 1")
    other.add("its", "x = 1")
    agree(m, {**model, "mine": "x = 1"})
    agree(other, {**model, "its": "x = 1"})


def test_a_batch_of_many_becomes_a_segment():
    m, model = filled(3)
    with m.batch() as b:
        for i in range(100, 140):
            b.add(i, f"x = {i % 7}")
            model[i] = f"x = {i % 7}"
        b.remove(1)
        b.remove(105)
        b.replace(106, "x = 6")
        b.replace(2, "x = 6")
    del model[1], model[105]
    model[106] = model[2] = "x = 6"
    (segment,) = view_of(m).segments
    assert segment.store.subscriptions.is_compact, "in the order of addition, for its files"
    agree(m, model)


def test_an_id_that_goes_and_comes_back_in_one_batch_is_there_once():
    m = mw.Matcher()
    m.add_many([(i, f"x = {i}") for i in range(20)])  # a segment
    with m.batch() as b:
        b.remove(3)
        b.remove(4)
        b.add_many([(i, "x = 50") for i in (3, *range(100, 120))])  # another one
        b.replace(3, "x = 51")
        b.add(4, "x = 51")
    assert m.match({"x": 51}) == [3, 4]
    assert m.match({"x": 3}) == m.match({"x": 4}) == []
    assert m.match({"x": 50}) == list(range(100, 120))
    with pytest.raises(mw.MatchwoodError, match="taken"):
        m.add(3, "x = 1")
    check(m)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_of_one_change_go_to_the_head_with_those_it_is_behind_by(monkeypatch, seed):
    monkeypatch.setattr(tiers, "AT_ONCE", 3)
    monkeypatch.setattr(tiers, "RECENT_MOST", 50)
    monkeypatch.setattr(tiers, "HEAD_MOST", 60)
    n_joined, then = [], recent.Taking.then
    monkeypatch.setattr(recent.Taking, "then", lambda *a: n_joined.append(1) or then(*a))
    rng, m, model = Random(seed), mw.Matcher(), dict[int | str, str]()
    for number in range(40):
        with m.batch() as b:
            for i in range(number * 4, number * 4 + rng.randrange(1, 5)):
                b.add(i, text(i))
                model[i] = text(i)
            for id_ in rng.sample(list(model), min(len(model), rng.randrange(4))):
                b.remove(id_)
                del model[id_]
                if rng.random() < 0.5:  # it comes back, behind all others
                    b.add(id_, "x = 1")
                    model[id_] = text(rng.randrange(50))
                    b.replace(id_, model[id_])
            if model and rng.random() < 0.3:  # another text in its place
                id_ = rng.choice(list(model))
                model[id_] = text(rng.randrange(50))
                b.replace(id_, model[id_])
        if number % 3:
            m.match({"x": 1})  # searches come between changes, but not always
        if number % 5 == 4:
            agree(m, model)
    agree(m, model)
    assert n_joined


def test_a_head_that_was_ahead_is_not_used_when_the_change_is_dropped(monkeypatch):
    monkeypatch.setattr(tiers, "AT_ONCE", 2)
    m, model = mw.Matcher(), dict[int | str, str]()

    def more(first: int) -> None:
        with m.batch() as b:
            for i in (first, first + 1):
                b.add(i, f"x = {i % 3}")
        m.match({"x": 1})

    def taken_and_lost(view: object, before: object) -> None:
        raise KeyboardInterrupt

    for first in (0, 2, 4):
        more(first)
        model |= {first: f"x = {first % 3}", first + 1: f"x = {(first + 1) % 3}"}
    with monkeypatch.context() as patch:
        patch.setattr(holding, "make_ready", taken_and_lost)
        with pytest.raises(KeyboardInterrupt):
            more(6)
    agree(m, model)
    for first in (8, 6):
        more(first)
        model |= {first: f"x = {first % 3}", first + 1: f"x = {(first + 1) % 3}"}
    agree(m, model)


def test_what_looks_plain_is_never_refused():
    """The short look at single expressions is on the safe side."""
    n_plain = 0
    for seed in range(400):
        rng = Random(seed)
        types = strategies.schema(rng, 4)
        declared = {name: kind for name, kind in types.items() if rng.random() < 0.2}
        attributes = Attributes(Schema(declared))
        batch = LeafBatch()
        batch.add(strategies.expression(rng, types, 4))
        if is_plain(batch, attributes):
            n_plain += 1
            learned_types(batch, attributes)
            assert reference_rows(batch) == []
    assert n_plain > 50


def test_a_long_expression_does_not_wait_and_is_encoded_once(monkeypatch):
    """Else the first search after each of the next changes would encode it again."""
    real, sizes = recent.encoded, []

    def noted(additions, *rest):
        sizes.append(sum(each.expr.batch.size for each in additions.values()))
        return real(additions, *rest)

    monkeypatch.setattr(recent, "encoded", noted)
    monkeypatch.setattr(tiers, "RECENT_MOST", 64)
    monkeypatch.setattr(tiers, "HEAD_MOST", 4_096)
    long = " OR ".join(f"a{i} = {i}" for i in range(tiers.RECENT_SIZE_MOST))
    middle = " OR ".join(f"x = {i} AND y = {i}" for i in range(tiers.RECENT_SIZE_MOST // 10))
    m, model = mw.Matcher(), {}
    for i, each in enumerate(["x = 1", long, *["x = 2"] * 5, *[middle] * 5, "x = 1"]):
        m.add(i, each)
        model[i] = each
        agree(m, model)
    assert sizes
    assert max(sizes) < tiers.RECENT_SIZE_MOST
