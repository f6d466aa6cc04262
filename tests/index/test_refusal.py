"""Laws of refusing: nothing is changed, nobody else is touched, and what is left stays possible."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import matchwood as mw
from encode.world import World, found, mixed_expressions, small_world
from engine.invariants import check
from matchwood.index.baselines import leaf_ids
from matchwood.index.core.registry import REGISTRY, find_index
from matchwood.index.vcr import index as vcr
from searching import search
from strategies import event, schema, seeds

pytestmark = pytest.mark.slow

FEWER = settings(max_examples=max(5, settings.default.max_examples // 4))

LIMITS: dict[str, dict[str, Any]] = {
    "bdd": {"node_limit": 60, "step_limit": 30},
    "k_index": {"max_postings": 60},
    "translation": {"limit": 3},
    "vcr": {"lists": "table"},
}
"""Settings with which an index soon refuses; `small_limits` is for what cannot be set."""


@pytest.fixture(scope="module", autouse=True)
def small_limits():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(leaf_ids, "LONGEST", 7)
        patched.setattr(vcr, "MOST_PLACES", 60)
        yield


@pytest.fixture(scope="module", params=sorted(REGISTRY))
def limited(request) -> tuple[str, dict[str, Any]]:
    return request.param, LIMITS.get(request.param, {})


def contents(index) -> dict[str, list]:
    return {name: array.tolist() for name, array in index.layout().items()}


# ── the index ───────────────────────────────────────────────────────────────────────────────────


@FEWER
@given(seed=seeds())
def test_asking_changes_nothing_and_what_is_refused_is_not_inserted(limited, seed):
    name, config = limited
    world, encoded, raw = small_world(seed, n_expressions=40)
    slots = world.speaking(find_index(name).language)
    index = find_index(name).build(world.table, slots[:0], **config)
    held = np.empty(0, np.int32)
    for part in np.array_split(slots, 5):
        before = contents(index)
        refused = index.refusals(part)
        assert contents(index) == before
        assert all(isinstance(error, mw.MatchwoodError) for error in refused.values())
        if refused:
            with pytest.raises(mw.MatchwoodError):
                index.insert(part)
        assert contents(index) == before
        kept = np.setdiff1d(part, list(refused)).astype(np.int32)
        try:
            index.insert(kept)
            held = np.concatenate([held, kept])
        except mw.IndexBuildError:
            assert name == "bdd"  # all diagrams together are too large; it stays as it was
        assert len(index) == len(held)
        assert found(search(index, encoded)) == world.expected(np.sort(held), raw)


@FEWER
@given(seed=seeds())
def test_every_part_of_what_was_accepted_is_accepted(limited, seed):
    name, config = limited
    rng = Random(seed)
    world, encoded, raw = small_world(seed, n_expressions=40)
    index = find_index(name).build(world.table, np.empty(0, np.int32), **config)
    accepted = []
    slots = world.speaking(find_index(name).language).tolist()
    rng.shuffle(slots)
    for slot in slots:
        try:
            index.insert(np.array([slot], np.int32))
            accepted.append(slot)
        except mw.MatchwoodError:
            pass
    for _ in range(6):
        part = np.array(rng.sample(accepted, rng.randint(0, len(accepted))), np.int32)
        built = find_index(name).build(world.table, part, **config)
        assert found(search(built, encoded)) == world.expected(np.sort(part), raw)
    while accepted:
        gone = {slot for slot in accepted if rng.random() < 0.4}
        index.delete(np.array(sorted(gone), np.int32))
        accepted = [slot for slot in accepted if slot not in gone]
        left = np.array(sorted(accepted), np.int32)
        assert found(search(index, encoded)) == world.expected(left, raw)


# ── the matcher ─────────────────────────────────────────────────────────────────────────────────


@FEWER
@given(seed=seeds())
def test_whatever_is_refused_the_rest_matches_as_scan_says(limited, seed, tmp_path_factory):
    name, config = limited
    rng = Random(seed)
    types = schema(rng)
    matcher, plain = mw.Matcher(name, schema=types, **config), mw.Matcher("scan", schema=types)
    events = [event(rng, types) for _ in range(6)]
    next_id = 0
    for _ in range(12):
        exprs = [str(expr) for expr in mixed_expressions(rng, types, rng.randint(1, 6))]
        action = rng.choice(("add", "many", "replace", "remove", "compact", "keep"))
        if action == "add":
            add(matcher, plain, next_id, exprs[0])
            next_id += 1
        elif action == "many":
            rows = list(enumerate(exprs, next_id))
            next_id += len(rows)
            add_many(matcher, plain, rows, may_fail=name == "bdd")
        elif action == "replace" and len(plain):
            replace(matcher, plain, rng.choice(plain.ids()), exprs[0])
        elif action == "remove" and len(plain):
            ids = plain.ids()
            chosen = rng.sample(ids, rng.randint(1, len(ids)))
            assert matcher.remove_many(chosen).errors == []
            plain.remove_many(chosen)
        elif action == "compact":
            matcher.compact()
        elif action == "keep":
            folder = tmp_path_factory.mktemp("kept") / "matcher"
            matcher.save(folder)
            matcher = mw.Matcher.load(folder)
        check(matcher)
        assert len(matcher) == len(plain)
        assert list(matcher.match_many(events)) == list(plain.match_many(events))


def add(matcher: mw.Matcher, plain: mw.Matcher, id_: int, text: str) -> None:
    try:
        matcher.add(id_, text)
    except mw.MatchwoodError:
        assert id_ not in matcher
        return
    plain.add(id_, text)


def add_many(
    matcher: mw.Matcher, plain: mw.Matcher, rows: list[tuple[int, str]], may_fail: bool
) -> None:
    try:
        report = matcher.add_many(rows)
    except mw.IndexBuildError:
        assert may_fail
        return
    refused = {each.id for each in report.errors}
    assert [each.row for each in report.errors] == [
        row for row, (id_, _) in enumerate(rows) if id_ in refused
    ]
    assert report.count == len(rows) - len(refused)
    plain.add_many([row for row in rows if row[0] not in refused])


def replace(matcher: mw.Matcher, plain: mw.Matcher, id_: int, text: str) -> None:
    before = str(matcher.expression(id_))
    try:
        matcher.replace(id_, text)
    except mw.MatchwoodError:
        assert str(matcher.expression(id_)) == before
        return
    plain.replace(id_, text)


# ── examples ────────────────────────────────────────────────────────────────────────────────────

WIDE = " AND ".join(f"(a{i} = 1 OR b{i} = 1 OR c{i} = 1)" for i in range(10))
"""3^10 conjunctions."""


def test_one_expression_that_is_too_large_touches_no_other():
    m = mw.Matcher("translation")
    m.add(1, "a = 1")
    with pytest.raises(mw.ExpansionError, match="59,049"):
        m.add(2, WIDE)
    assert 2 not in m
    report = m.add_many([(3, "a = 1"), (2, WIDE), (4, "a = 1 OR b = 1"), (5, "a = = 1")])
    assert report.count == 2
    assert [(each.row, each.id) for each in report.errors] == [(1, 2), (3, 5)]
    assert isinstance(report.errors[0].error, mw.ExpansionError)
    with pytest.raises(mw.ExpansionError):
        m.replace(1, WIDE)
    assert m.match({"a": 1}) == [1, 3, 4]
    m.remove(3)
    assert m.match({"a": 1}) == [1, 4]


def test_removing_from_a_k_index_never_makes_the_others_too_many():
    m = mw.Matcher("k_index")
    lines = [(i, f"a > {i}") for i in range(1_500)]  # over a million postings
    assert m.add_many([*lines, *[(2_000 + i, f"b = {i}") for i in range(5_000)]]).errors == []
    assert m.remove_many(range(2_000, 7_000)).count == 5_000  # the matcher is compacted
    assert m.match({"a": 100}) == list(range(100))


def test_a_table_of_vcrs_takes_narrow_ranges_when_the_wide_ones_have_left(monkeypatch):
    """Without the wide ones every end would be a grid line, and the table too large."""
    monkeypatch.setattr(vcr, "MOST_PLACES", 30_000)
    rng = Random(5)

    def box(width: int) -> str:
        x, y = rng.randrange(100_000), rng.randrange(100_000)
        return f"x BETWEEN {x} AND {x + width} AND y BETWEEN {y} AND {y + width}"

    m, plain = mw.Matcher("vcr", lists="table"), mw.Matcher("scan")
    rows = [(i, box(80_000 if i < 1_500 else 300)) for i in range(1_900)]
    for each in (m, plain):
        assert each.add_many(rows).errors == []
        assert each.remove_many(range(1_500)).count == 1_500  # the matcher is compacted
    events = [{"x": rng.randrange(100_000), "y": rng.randrange(100_000)} for _ in range(300)]
    found = [each.match_many(events) for each in (m, plain)]
    assert list(found[0]) == list(found[1])


def test_expressions_that_wait_count_as_well():
    m = mw.Matcher("k_index", max_postings=2_000)
    n = 0
    for i in range(100):
        try:
            m.add(i, f"a > {i}")
            n += 1
        except mw.IndexBuildError:
            break
    assert n == 62  # 62 * 63 / 2 postings
    m.compact()
    m.remove_many(range(0, 60, 2))
    assert m.match({"a": 100}) == [*range(1, 60, 2), 60, 61]


def interleaved(k: int, n: int) -> str:
    """Exponentially many nodes when all a's are tested before all b's."""
    return " OR ".join(f"(a{i} = {k} AND b{i} = 1)" for i in range(n))


def test_bdd_gives_an_expression_up_after_so_many_steps():
    m = mw.Matcher("bdd", schema={f"{name}{i}": "int" for name in "ab" for i in range(40)})
    m.add("kept", "a1 = 5 OR b1 = 7")
    for k in range(7):
        with pytest.raises(mw.IndexBuildError, match="step_limit"):
            m.add(k, interleaved(k, 24 + k))
    stats = m.stats()["indexes"][0]
    assert stats["steps"] <= 7 * 3 * stats["step_limit"]
    assert m.match({"a1": 5}) == ["kept"]
    m.add("small", interleaved(1, 8))
    assert m.match({"a3": 1, "b3": 1}) == ["small"]


def test_a_bdd_is_as_large_as_what_it_holds_whatever_came_before():
    world = World({f"{name}{i}": "int" for name in "ab" for i in range(8)})
    order = [mw.parse(f"b{i} = 1 AND a{i} = 0") for i in range(8)]
    slots = world.store([*order, mw.parse(interleaved(0, 8))])
    index_class = find_index("bdd")
    index = index_class.build(world.table, slots)
    index.delete(slots[:8])
    alone = index_class.build(world.table, slots[8:])
    assert index.stats()["nodes"] == alone.stats()["nodes"]
