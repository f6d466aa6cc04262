"""Subscriptions of a frozen segment: smaller, and the same to everyone who reads them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside import has_map_of_ids, view_of
from matchwood import Matcher
from matchwood.engine.segments import tiers
from matchwood.engine.stores.id_lookup import Names, lookup_of_ints, lookup_of_names
from matchwood.engine.stores.packed_integers import Narrow, Runs, Starts, packed
from matchwood.engine.stores.texts import TextArena

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.lists(INT64, max_size=40),
    st.lists(st.integers(-300, 300), max_size=40),
    st.lists(st.integers(0, 2), max_size=40).map(lambda steps: np.cumsum(steps).tolist()),
    st.lists(st.tuples(INT64, st.integers(1, 9)), max_size=5).map(
        lambda runs: [first for first, n in runs for _ in range(n)]
    ),
)
FAR = (-(2**63), -1, 0, 1, 255, 256, 2**32, 2**63 - 1, 2**63, -(2**63) - 1, 2**200)


@given(VALUES)
def test_packed_integers_read_as_the_array(values):
    array = np.array(values, np.int64)
    small = packed(array)
    n = len(array)
    assert len(small) == n
    assert small.nbytes <= max(array.nbytes, 24)
    assert np.array_equal(small[:], array)
    assert np.array_equal(small[1:3], array[1:3])
    slots = np.arange(n, dtype=np.int32)[::-1]
    assert small[slots].dtype == np.int64
    assert np.array_equal(small[slots], array[slots])
    assert [int(small[slot]) for slot in range(n)] == values


def test_packed_integers_take_the_form_that_fits():
    assert packed(np.arange(1_000) + 2**40).nbytes == 24
    assert isinstance(packed(np.full(1_000, 5)), Runs)
    scattered = packed(np.arange(1_000) * 7 % 251)
    assert isinstance(scattered, Narrow)
    assert scattered.nbytes == 1_000
    assert isinstance(packed(np.array([-(2**63), 2**63 - 1, 3, 9])), np.ndarray)


@given(
    st.lists(st.none() | st.text("aé€ 𝄞", max_size=5), min_size=1, max_size=150),
    st.lists(st.integers(0, 149), max_size=60),
    st.booleans(),
)
def test_some_texts_are_those_that_are_asked_for_one_by_one(texts, asked, is_frozen):
    arena = TextArena()
    n = len(texts)
    arena.put(np.arange(n), ["gone"] * n)
    arena.put(np.arange(n)[::-1], texts[::-1])
    if is_frozen:
        arena.freeze(n)
    slots = np.array([slot for slot in asked if slot < n], np.int32)
    assert arena.some(slots) == [arena.get(slot) for slot in slots] == [texts[s] for s in slots]
    assert arena.all(n) == texts
    starts = Starts(np.array([-1 if each is None else len(each) for each in texts]))
    assert starts[slots].tolist() == [int(starts[slot]) for slot in slots]
    assert starts[2:].tolist() == [int(starts[slot]) for slot in range(2, n)]


@given(st.lists(st.one_of(INT64, st.integers(-20, 20)), unique=True, max_size=40), st.booleans())
def test_ints_are_found_as_a_dict_finds_them(ids, ascend):
    ids = sorted(ids) if ascend else ids
    slot_of = {id_: slot for slot, id_ in enumerate(ids)}
    for form in (np.array(ids, np.int64), packed(np.array(ids, np.int64))):
        if not len(form):
            continue
        lookup = lookup_of_ints(form)
        for sought in (*ids, *FAR, 1.0, True, 1.5, float("nan"), float("inf"), "1", None, (1,)):
            assert lookup.get(sought) == slot_of.get(sought)
        for some in ([*FAR[:-3]], [5, 6], ids[:1], ids[-1:], ["1"], [None], [2**63, *ids[:1]]):
            assert lookup.has_any(some) == (not slot_of.keys().isdisjoint(some))


@pytest.mark.slow
@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-5, 5)), unique=True, max_size=30))
def test_strings_and_ints_beside_them_are_found_as_a_dict_finds_them(ids):
    slot_of = {id_: slot for slot, id_ in enumerate(ids)}
    lookup = lookup_of_names(ids, ids.__getitem__)
    for sought in (*ids, "", "a", "none of them", 0, 3, 1.0, None):
        assert lookup.get(sought) == slot_of.get(sought)
    for some in (["a", "b"], [1, 2], ids[:1], ids[-1:], ["none of them"], [None, "a"]):
        assert lookup.has_any(some) == (not slot_of.keys().isdisjoint(some))


def test_names_with_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(
        "matchwood.engine.stores.id_lookup._hashes", lambda names: np.zeros(len(names), np.uint32)
    )
    ids = ["a", "b", "c"]
    names = Names(np.arange(3, dtype=np.int32), ids, ids.__getitem__)
    assert [names.get(id_, 0) for id_ in ("a", "b", "c", "d")] == [0, 1, 2, None]


def test_what_has_no_hash_is_no_id():
    with pytest.raises(TypeError):
        lookup_of_ints(packed(np.arange(3))).get([])


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_ints_are_found_after_the_last_string_has_left(monkeypatch, index):
    monkeypatch.setattr(tiers, "HEAD_MOST", 4)
    m = Matcher(index)
    m.add_many([("a", "x = 1"), *[(i, "x = 1") for i in range(9)]])
    m.remove("a")
    m.compact()
    assert 3 in m
    assert "a" not in m
    m.remove_many([3, 5])
    assert m.match({"x": 1}) == [0, 1, 2, 4, 6, 7, 8]


@pytest.mark.parametrize("name", [lambda i: i, lambda i: 7 * i % 101, lambda i: f"s{i}"])
def test_a_segment_has_no_map_of_its_ids_and_answers_as_before(monkeypatch, name):
    monkeypatch.setattr(tiers, "HEAD_MOST", 20)
    m = Matcher()
    ids = [name(i) for i in range(100)]
    m.add_many([(id_, f"x > {i}") for i, id_ in enumerate(ids)])
    segment = view_of(m).parts[0].store.subscriptions
    assert not has_map_of_ids(segment)
    assert m.match({"x": 50}) == ids[:50]
    assert m[ids[7]].text == "x > 7"
    assert "nothing" not in m
    assert len(m.add_many([(ids[3], "x > 1"), ("new", "x > 2")]).errors) == 1
    m.remove(ids[5])
    m.replace(ids[6], "x > 1000")
    assert m.ids() == [*ids[:5], *ids[6:], "new"]
    assert not has_map_of_ids(segment)
    m.compact()
    assert m.ids() == [*ids[:5], *ids[6:], "new"]
    assert m.match({"x": 50}) == [*ids[:5], *ids[7:50], "new"]
