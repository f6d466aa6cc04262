"""The ordered dictionary: new constants never change what was encoded before."""

from __future__ import annotations

import pickle
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from encode.world import World
from engine.invariants import check
from matchwood.encode import dictionary as dictionaries
from matchwood.encode import keys
from matchwood.encode.arrow.columns import string_table
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.encode.expression_kernels import ALWAYS, NEVER
from matchwood.encode.number_labels import number_labels
from matchwood.lang.nodes import And, Comparison, Expr, In
from naive import matches
from strategies import seeds

INTS = st.integers(-50, 50)


def labels_are_sound(dictionary: OrderedDictionary) -> None:
    values, labels = list(dictionary.values), dictionary.labels().tolist()
    assert values == sorted(dictionary.label_of)
    assert all(b - a >= 2 for a, b in pairwise(labels))
    assert all(abs(label) < 2**63 - 2 for label in labels)


@given(st.lists(st.lists(INTS, max_size=5), max_size=12), st.sampled_from([2, 3, 8, 2**32]))
def test_labels_ascend_whatever_comes_in_whatever_portions(portions, step):
    dictionary = OrderedDictionary(step)
    expected: set[int] = set()
    for portion in portions:
        before = {value: dictionary.label_of[value] for value in expected}
        dictionary.add(portion)
        expected.update(portion)
        labels_are_sound(dictionary)
        assert set(dictionary.values) == expected
        moved = dictionary.take_relabelling()
        assert dictionary.take_relabelling() is None
        now = {value: dictionary.label_of[value] for value in before}
        if moved is None:
            assert now == before
        else:
            as_moved = dict(zip(moved.old.tolist(), moved.new.tolist(), strict=True))
            assert now == {value: as_moved[label] for value, label in before.items()}


@given(st.lists(st.lists(INTS, max_size=5), max_size=12), st.sampled_from([2, 8, 2**32]))
def test_labels_are_the_same_where_constants_are_copied_and_where_not(portions, step):
    both = []
    for most in (0, 2**32):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(dictionaries, "COPIED_FOR_ONE", most)
            dictionary = OrderedDictionary(step)
            for portion in portions:
                dictionary.add(portion)
        both.append(dictionary.label_of)
    assert both[0] == both[1]


CONSTANTS = {
    "ints": INTS,
    "numbers": st.one_of(INTS, st.sampled_from([0.5, 2.0**60, 2**53, -(2**53), 10**30, keys.NAN])),
    "strings": st.text(st.characters(codec="utf-8"), max_size=3),
}


@pytest.mark.parametrize("kind", CONSTANTS)
@given(data=st.data())
def test_tables_that_follow_new_constants_are_those_of_all_at_once(kind, data):
    """Few constants in a list, many in parts; where labels move, and constants are forgotten."""
    portions = data.draw(st.lists(st.lists(CONSTANTS[kind], max_size=6), max_size=8))
    few, step = (
        data.draw(st.sampled_from([0, 3, 9, 8192])),
        data.draw(st.sampled_from([2, 9, 2**32])),
    )
    make = string_table if kind == "strings" else number_labels
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dictionaries, "FEW", few)
        dictionary = OrderedDictionary(step)
        for portion in portions:
            dictionary.add(portion)
            labels_are_sound(dictionary)
            fresh = OrderedDictionary(step)
            fresh.restore(list(dictionary.values), dictionary.labels().tolist())
            found, expected = dictionary.kept(make), make(fresh)
            for each, wanted in zip(found, expected, strict=True):
                assert np.array_equal(each, wanted)
                assert getattr(each, "dtype", None) == getattr(wanted, "dtype", None)
            if data.draw(st.booleans()):
                labels = dictionary.labels()
                dictionary.keep(labels[data.draw(st.integers(0, 3)) :: 2])


@given(st.lists(INTS, max_size=300), st.lists(INTS, max_size=12), st.sampled_from([0, 4, 8192]))
def test_events_fall_between_the_same_constants_in_a_list_and_in_parts(constants, values, few):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dictionaries, "FEW", few)
        dictionary = OrderedDictionary()
        dictionary.add(constants[:150])
        dictionary.add(constants[150:])
    for value in values:
        key = dictionary.key(value)
        for constant in set(constants):
            label = dictionary.label_of[constant]
            assert (key > label) - (key < label) == (value > constant) - (value < constant)


@given(st.lists(st.text(st.characters(codec="utf-8")), unique=True, max_size=12))
def test_a_table_of_strings_has_their_bytes(constants):
    dictionary = OrderedDictionary()
    dictionary.add(constants)
    table = string_table(dictionary)
    texts = [each.encode() for each in sorted(constants)]
    assert table.texts == b"".join(texts)
    assert table.lengths.tolist() == list(map(len, texts))
    assert table.lengths.dtype == np.int64
    assert table.labels.tolist() == [dictionary.label_of[each] for each in sorted(constants)]


@given(st.lists(INTS, min_size=1), INTS, st.sampled_from([2, 2**32]))
def test_a_value_between_two_constants_has_the_key_of_their_gap(constants, value, step):
    dictionary = OrderedDictionary(step)
    dictionary.add(constants)
    key = dictionary.key(value)
    for constant in constants:
        label = dictionary.label_of[constant]
        assert (key < label, key == label) == (value < constant, value == constant)
    assert dictionary.value_of(key) == (value if value in constants else None)


@pytest.mark.parametrize("direction", [1, -1])
def test_runs_in_order_do_not_use_up_their_gap(direction):
    dictionary = OrderedDictionary()
    dictionary.add([0, 10_000_000])
    for i in range(1, 5_000):
        dictionary.add([i if direction > 0 else 10_000_000 - i])
        assert dictionary.take_relabelling() is None
    labels_are_sound(dictionary)


@pytest.mark.parametrize("direction", [1, -1])
def test_constants_beyond_the_ends_never_move_the_others(direction):
    dictionary = OrderedDictionary()
    for i in range(5_000):
        dictionary.add([direction * i])
        assert dictionary.take_relabelling() is None
    labels_are_sound(dictionary)


@pytest.mark.slow
def test_many_constants_at_once_have_room_left_between_them():
    dictionary = OrderedDictionary()
    dictionary.add(range(0, 50_000, 2))
    dictionary.add(range(1, 50_000, 2))
    assert dictionary.take_relabelling() is None
    assert int(np.diff(dictionary.labels()).min()) > 2**16


def halves(n: int) -> list[float]:
    """Each constant in the middle of the gap beside the last one, from alternating sides."""
    low, high, found = 0.0, 1.0, [0.0, 1.0]
    for i in range(n):
        middle = (low + high) / 2
        found.append(middle)
        low, high = (middle, high) if i % 2 else (low, middle)
    return found


def test_an_adversary_in_the_middle_forces_relabelling_and_nothing_else():
    dictionary = OrderedDictionary()
    relabelled = 0
    for constant in halves(50):
        dictionary.add([constant])
        relabelled += dictionary.take_relabelling() is not None
        labels_are_sound(dictionary)
    assert 1 <= relabelled <= 25


def test_the_matcher_follows_an_adversary_in_the_middle():
    m = mw.Matcher()
    constants = halves(50)
    for i, constant in enumerate(constants):
        m.add(i, Comparison("x", "<=", constant))
        for x in constants[: i + 1]:
            assert m.match({"x": x}) == [k for k in range(i + 1) if x <= constants[k]]
    check(m)


def drawn(rng: Random, values: list, name: str = "x") -> Expr:
    ops = ("=", "<>", "<", "<=", ">", ">=")
    compared = [Comparison(name, rng.choice(ops), rng.choice(values)) for _ in range(2)]
    listed = In(name, tuple(rng.sample(values, 3)), rng.random() < 0.5)
    return rng.choice((compared[0], And(tuple(compared)), listed))


@pytest.mark.slow
@given(seed=seeds(), step=st.sampled_from([2, 5, 2**32]))
def test_answers_of_what_was_encoded_before_stay_the_same(seed, step):
    rng = Random(seed)
    values = [rng.choice((i, i + 0.5, float(i))) for i in range(-9, 9)]
    rng.shuffle(values)
    world = World({"x": "number"})
    world.attributes.by_name["x"].keys.dictionary._step = step
    raw = [{"x": value} for value in values] + [{"x": 100}, {"x": -100}, {}]
    for n in range(1, 6):
        epoch = world.table.epoch
        world.store([drawn(rng, values) for _ in range(n)])
        assert world.table.epoch == epoch or step < 2**32
        for event in raw:
            for slot, expr in enumerate(world.exprs):
                assert holds(world, slot, event) is matches(expr, event)


def holds(world: World, slot: int, event: dict) -> bool:
    """A conjunction of merged predicates, by the tables alone."""
    encoded = world.events([event])
    keys_ = dict(zip(encoded.attr.tolist(), encoded.lo.tolist(), strict=True))
    layout, predicates = world.table.layout, world.table.predicates
    if layout.kind[slot] in (ALWAYS, NEVER):
        return bool(layout.kind[slot] == ALWAYS)
    return all(
        any(lo <= keys_[attr] <= hi for lo, hi in predicates.intervals(pred))
        if (attr := int(predicates.layout.attr[pred])) in keys_
        else False
        for pred in world.table.code_of(slot).tolist()
    )


@pytest.mark.slow
@given(seed=seeds())
def test_forgetting_constants_changes_no_answer(seed):
    rng = Random(seed)
    patched = pytest.MonkeyPatch()
    with patched.context() as patch:
        patch.setattr(keys, "OrderedDictionary", lambda: OrderedDictionary(rng.choice((2, 2**32))))
        m = mw.Matcher()
        values = [f"{a}{b}" for a in "abc" for b in "xyz"]
        exprs = {i: drawn(rng, values) for i in range(12)}
        for id_, expr in exprs.items():
            m.add(id_, expr)
        for _ in range(3):
            for id_ in rng.sample(sorted(exprs), 3):
                m.remove(id_)
                del exprs[id_]
            m.compact()
            check(m)
            for value in [*values, "a", "bxx", "z"]:
                assert m.match({"x": value}) == [
                    id_ for id_, expr in exprs.items() if matches(expr, {"x": value})
                ]


def test_constants_that_nobody_uses_are_forgotten():
    m = mw.Matcher()
    m.add_many((i, f"x = 'v{i}'") for i in range(3_000))
    m.remove_many(range(1, 3_000))
    assert m.stats()["constants"] < 1_500
    assert m.match({"x": "v0"}) == [0]
    assert m.match({"x": "v1"}) == []


def test_reading_leaves_a_dictionary_as_it_is():
    """Events of several threads are encoded at the same time, without a lock."""
    fresh = OrderedDictionary()
    for first in range(0, 9_000, 3_000):
        fresh.add(range(first, first + 3_000))
    loaded = OrderedDictionary()
    loaded.restore(list(fresh.values), fresh.labels().tolist())
    for each in (fresh, loaded):
        assert each.values._index, "positions are numbered when constants change"
        before = pickle.dumps(each.values)
        assert each.key(4_500) == fresh.label_of[4_500]
        assert each.key(4_500.5) == each.gap(4_500.5) == fresh.label_of[4_500] + 1
        assert pickle.dumps(each.values) == before
