"""A segment of `blocks` keeps its expressions packed, and answers every verb as before."""

from __future__ import annotations

import copy
import pickle
from random import Random

import numpy as np
import pytest

from engine.invariants import check
from inside import is_packed, view_of
from matchwood import Matcher

N = 5_000


def text_of(rng: Random) -> str:
    names = rng.sample("abcdefgh", 4)
    low = rng.randrange(50)
    few = ", ".join(str(rng.randrange(60)) for _ in range(3))
    return (
        f"{names[0]} = {rng.randrange(60)} AND {names[1]} BETWEEN {low} AND {low + 20} "
        f"AND {names[2]} IN ({few}) AND {names[3]} > -{2**40 + low}"
    )


@pytest.fixture(scope="module")
def matchers() -> tuple[Matcher, Matcher]:
    """A segment, and the same subscriptions where nothing is frozen."""
    rng = Random(5)
    rows = [(i, text_of(rng)) for i in range(N)]
    segment, plain = Matcher(), Matcher("blocks")
    segment.add_many(rows)
    plain.add_many(rows)
    assert segment.plan()[0]["index"] == "blocks"
    return segment, plain


def table_of(m: Matcher):
    return view_of(m).parts[0].store.table


def events(n: int) -> list[dict[str, int]]:
    rng = Random(7)
    return [{name: rng.randrange(60) for name in "abcdefgh"} for _ in range(n)]


def test_searches_do_not_unpack_the_table(matchers):
    segment, plain = matchers
    table = table_of(segment)
    table.shut()
    assert table.nbytes < 30 * N
    some = events(200)
    found = segment.match_many(some)
    assert found.to_pylist() == plain.match_many(some).to_pylist()
    assert len(found.ids) > 0
    assert [segment.match(event) for event in some[:5]] == found.to_pylist()[:5]
    stats, expected = segment.stats(), plain.stats()
    for name in ("subscriptions", "conjunctions", "trees", "predicates"):
        assert stats[name] == expected[name]
    assert is_packed(table)


def test_a_packed_table_is_unpacked_to_what_it_was(matchers):
    segment, plain = matchers
    table, expected = table_of(segment), view_of(plain).head.table
    assert np.array_equal(table.kinds(), expected.layout.kind[:N])
    for slot in range(N):
        code, other = table.code_of(slot), expected.code_of(slot)
        assert [table.predicates.intervals(pred) for pred in code] == [
            expected.predicates.intervals(pred) for pred in other
        ]
    check(segment)


@pytest.mark.slow
def test_verbs_that_read_the_table_answer_as_before(matchers, tmp_path):
    segment, plain = matchers
    some = events(20)
    for m in (segment, copy.copy(segment), pickle.loads(pickle.dumps(segment))):
        table_of(m).shut()
        assert m.verify(some)
        assert m.near(some[0], 5) == plain.near(some[0], 5)
        assert m.overlaps(3) == plain.overlaps(3)
        assert m.subsumes(3, 4) == plain.subsumes(3, 4)
        assert m.duplicates() == plain.duplicates()
        assert str(m.explain(3, some[0])) == str(plain.explain(3, some[0]))
    table_of(segment).shut()
    segment.save(tmp_path / "s")
    assert is_packed(table_of(segment))
    loaded = Matcher.load(tmp_path / "s")
    assert loaded.match_many(some).to_pylist() == plain.match_many(some).to_pylist()
    assert loaded.verify(some)


def test_changes_of_a_packed_segment(matchers):
    _, plain = matchers
    m, some = copy.copy(matchers[0]), events(20)
    m.remove(17)
    m.add("new", "a >= 0")
    m.replace(18, "b < 0")
    m.compact()
    expected = [
        [*[i for i in ids if i not in (17, 18)], "new"]
        for ids in plain.match_many(some).to_pylist()
    ]
    assert m.match_many(some).to_pylist() == expected
    assert 17 in matchers[0]
