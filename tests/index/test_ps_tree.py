"""PS-Tree: spaces are a partition, and each lists exactly the predicates that cover it."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from matchwood.errors import IndexBuildError
from matchwood.index.stabbing.elements import elements
from matchwood.index.stabbing.ps_tree import CUTS, TRIE, PSTree
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from strategies import seeds

FORMS = [(CUTS, "int64"), (TRIE, "int64")]
FEWER = settings(max_examples=max(10, settings.default.max_examples // 4))


@pytest.mark.parametrize(("form", "kind"), [(CUTS, "int64"), (TRIE, "byte")])
def test_the_five_spaces_of_figure_2(form, kind):
    tree = PSTree(form, kind)
    tree.insert(1, [(-5, -1)])
    tree.insert(2, [(1, 5)])
    assert [(s.lo, s.hi, s.ids) for s in tree.spaces()] == [
        (None, -6, []),
        (-5, -1, [1]),
        (0, 0, []),
        (1, 5, [2]),
        (6, None, []),
    ]
    offsets, ids = tree.stab([2, -128, -5, 0])
    assert (offsets.tolist(), ids.tolist()) == ([0, 1, 1, 2, 2], [2, 1])


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_ages_of_section_4_4(form, kind):
    tree = PSTree(form, kind)
    tree.insert(1, [(20, 60)])
    tree.insert(2, [(30, 80)])
    assert [s.n_predicates for s in tree.spaces()] == [0, 1, 2, 1, 0]
    assert [(s.lo, s.hi) for s in tree.spaces()][1:4] == [(20, 29), (30, 60), (61, 80)]
    tree.delete(2, [(30, 80)])
    assert [(s.lo, s.hi, s.n_predicates) for s in tree.spaces()] == [
        (None, 19, 0),
        (20, 60, 1),
        (61, None, 0),
    ]


def test_elements_of_the_paper():
    assert elements(-5, "byte").tolist() == [0, 7, 11]
    assert elements(5, "byte").tolist() == [1, 0, 5]
    assert len(elements(12345, "int32")) == 9


@given(seed=seeds())
def test_elements_are_in_the_order_of_the_values(seed):
    rng = Random(seed)
    drawn: dict[str, list[Any]] = {
        "byte": [rng.randint(-128, 127) for _ in range(20)],
        "int64": [rng.choice((-1, 1)) * rng.getrandbits(rng.randint(1, 62)) for _ in range(20)],
        "float64": [rng.choice((-1, 1)) * 10 ** rng.uniform(-300, 300) for _ in range(20)],
        "string": ["".join(rng.choices("abé", k=rng.randint(0, 4))) for _ in range(20)],
    }
    for kind, values in drawn.items():
        by_value = sorted(values, key=lambda v: v.encode() if isinstance(v, str) else v)
        rows = [tuple(elements(value, kind).tolist()) for value in values]
        assert [tuple(elements(value, kind).tolist()) for value in by_value] == sorted(rows)


def drawn_intervals(rng: Random) -> list[tuple[int | None, int | None]]:
    """Any of the nine operators as disjoint intervals that do not touch."""
    points = sorted(rng.sample(range(-6, 20, 2), 2 * rng.randint(1, 3)))
    found: list[tuple[int | None, int | None]] = list(
        zip(points[::2], [p + rng.randint(-1, 0) for p in points[1::2]], strict=True)
    )
    if rng.random() < 0.2:
        found[0] = (None, found[0][1])
    if rng.random() < 0.2:
        found[-1] = (found[-1][0], None)
    if rng.random() < 0.3:
        found = [(points[0], points[0])]
    return found


def holds(intervals: list[tuple[int | None, int | None]], key: int) -> bool:
    return any((lo is None or lo <= key) and (hi is None or key <= hi) for lo, hi in intervals)


def check(tree: PSTree, model: dict[int, list[tuple[int | None, int | None]]]) -> None:
    spaces = list(tree.spaces())
    assert len(spaces) == len(tree)
    assert (spaces[0].lo, spaces[-1].hi) == (None, None)
    assert all(a.hi + 1 == b.lo for a, b in pairwise(spaces))
    assert len({space.leaf for space in spaces}) == len(spaces)
    for space in spaces:
        if None not in (space.lo, space.hi) and space.lo > space.hi:
            continue  # the trie knows no neighbours: nothing lies behind -1 and before 0
        for key in {k for k in (space.lo, space.hi) if k is not None} or {0}:
            expected = sorted(id_ for id_, each in model.items() if holds(each, key))
            assert space.ids == expected
            assert space.n_predicates == len(expected)


@pytest.mark.parametrize(("form", "kind"), FORMS)
@FEWER
@given(seed=seeds())
def test_every_space_lists_exactly_the_predicates_that_cover_it(form, kind, seed):
    rng = Random(seed)
    tree = PSTree(form, kind)
    model: dict[int, list[tuple[int | None, int | None]]] = {}
    for step in range(30):
        if model and rng.random() < 0.45:
            id_ = rng.choice(sorted(model))
            tree.delete(id_, model.pop(id_))
        else:
            model[step] = drawn_intervals(rng)
            tree.insert(step, model[step])
        check(tree, model)
        keys = [rng.randint(-10, 25) for _ in range(5)]
        offsets, ids = tree.stab(keys)
        for i, key in enumerate(keys):
            found = ids[offsets[i] : offsets[i + 1]].tolist()
            assert found == sorted(id_ for id_, each in model.items() if holds(each, key))
    for id_ in sorted(model):
        tree.delete(id_, model[id_])
    assert [(s.lo, s.hi, s.ids) for s in tree.spaces()] == [(None, None, [])]


def test_strings_in_the_trie():
    tree = PSTree(TRIE, "string")
    tree.insert(1, [("b", "d")])
    tree.insert(2, [("bb", "bb")])
    tree.insert(3, [(None, "c")])
    words = ["", "a", "b", "ba", "bb", "bba", "c", "ca", "d", "da", "é"]
    offsets, ids = tree.stab(words)
    found = {w: ids[offsets[i] : offsets[i + 1]].tolist() for i, w in enumerate(words)}
    assert found == {
        "": [3], "a": [3], "b": [1, 3], "ba": [1, 3], "bb": [1, 2, 3], "bba": [1, 3], "c": [1, 3],
        "ca": [1], "d": [1], "da": [], "é": [],
    }  # fmt: skip


def test_event_counters_count_the_values_of_a_space():
    tree = PSTree()
    tree.insert(1, [(0, 9)])
    tree.stab([3, 4, -1], counts=True)
    assert [space.n_events for space in tree.spaces()] == [1, 2, 0]
    tree.insert(2, [(5, 9)])  # a new space copies what the one it was part of had
    assert [space.n_events for space in tree.spaces()] == [1, 2, 2, 0]


def test_building_at_once_equals_inserting():
    rng = np.random.default_rng(1)
    lo = rng.integers(-100, 100, 60)
    hi = lo + rng.integers(0, 40, 60)
    lo[0], hi[1] = MIN_KEY, MAX_KEY
    built = PSTree.of_intervals(lo, hi)
    inserted = PSTree()
    for i in range(60):
        inserted.insert(i, [(None if i == 0 else int(lo[i]), None if i == 1 else int(hi[i]))])
    assert [(s.lo, s.hi, s.ids) for s in built.spaces()] == [
        (s.lo, s.hi, s.ids) for s in inserted.spaces()
    ]
    built.delete(5, [(int(lo[5]), int(hi[5]))])
    inserted.delete(5, [(int(lo[5]), int(hi[5]))])
    assert [s.ids for s in built.spaces()] == [s.ids for s in inserted.spaces()]


def test_an_unknown_form_is_refused():
    with pytest.raises(IndexBuildError, match="expected form 'cuts' or 'trie'"):
        PSTree("tree")
