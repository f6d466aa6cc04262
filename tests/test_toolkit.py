"""Hash tables of the toolkit are compared with dicts, its sorting with `sorted`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from matchwood.kernel.byte_kernels import are_same, hash_bytes
from matchwood.kernel.byte_search import first_special, newlines
from matchwood.kernel.id_table_kernels import (
    EMPTY,
    cell_of_id,
    first_cell,
    moved_back,
    next_cell,
    put_id,
)
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import (
    ABSENT,
    find_pair,
    has_places,
    keys_and_ids,
    new_pair_map,
    put_pair,
    remove_pair,
    renumber_ids,
    with_room,
)
from matchwood.kernel.sort_kernels import (
    first_not_below,
    last_not_above,
    sort_by,
    sort_ids,
    sort_rows,
    sort_words,
)

SEEDS = range(5)


class Named(NamedTuple):
    """Ids with a number each, and the table that finds an id by its number."""

    number: np.ndarray
    table: np.ndarray


@part
def hash_of(named, id_):
    return np.uint64(named.number[id_] & 3)  # few hashes: long runs, some around the table's end


@kernel
def put_named(named, id_):
    put_id(named.table, hash_of(named, id_), id_)


@kernel
def drop_named(named, id_):
    hole = cell_of_id(named.table, hash_of(named, id_), id_)
    nearby = next_cell(named.table, hole)
    while named.table[nearby] != EMPTY:
        hole = moved_back(named.table, hole, nearby, hash_of(named, named.table[nearby]))
        nearby = next_cell(named.table, nearby)
    named.table[hole] = EMPTY


@kernel
def find_named(named, number):
    at = first_cell(named.table, np.uint64(number & 3))
    while named.table[at] != EMPTY:
        if named.number[named.table[at]] == number:
            return np.int64(named.table[at])
        at = next_cell(named.table, at)
    return np.int64(EMPTY)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_of_ids_is_a_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    named = Named(rng.permutation(100), np.full(32, EMPTY, np.int32))
    held: set[int] = set()
    for _ in range(300):
        id_ = int(rng.integers(100))
        if id_ in held:
            drop_named(named, id_)
            held.remove(id_)
        elif len(held) < 16:
            put_named(named, id_)
            held.add(id_)
        for each in range(100):
            found = find_named(named, named.number[each])
            assert found == (each if each in held else EMPTY)
    for id_ in held:
        drop_named(named, id_)
    assert (named.table == EMPTY).all()


@kernel
def change_pairs(pairs, keys, ids, found):
    """Put a pair (id >= 0), or remove the one that is there; `found` gets what was there before."""
    for i in range(len(keys)):
        found[i] = find_pair(pairs, keys[i])
        if ids[i] >= 0 and found[i] == ABSENT:
            if not has_places(pairs, 1):
                return i
            put_pair(pairs, keys[i], ids[i])
        elif ids[i] < 0 and found[i] != ABSENT:
            remove_pair(pairs, keys[i])
    return len(keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_map_of_pairs_is_a_dict(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, expected = new_pair_map(), dict[int, int]()
    for _ in range(400):
        keys = rng.integers(60, size=5) << 32 | rng.integers(3, size=5)
        ids = rng.integers(-3, 9, size=5)
        found, done = np.zeros(5, np.int64), 0
        while done < 5:
            done += change_pairs(pairs, keys[done:], ids[done:], found[done:])
            if done < 5:
                pairs = with_room(pairs, 1)
        for key, id_, before in zip(keys.tolist(), ids.tolist(), found.tolist(), strict=True):
            assert before == expected.get(key, ABSENT)
            if id_ < 0:
                expected.pop(key, None)
            else:
                expected.setdefault(key, id_)
        assert _as_dict(pairs) == expected
    renumber_ids(pairs, np.arange(10, 20))
    assert _as_dict(pairs) == {key: id_ + 10 for key, id_ in expected.items()}


def _as_dict(pairs: Any) -> dict[int, int]:
    keys, ids = keys_and_ids(pairs)
    return dict(zip(keys.tolist(), ids.tolist(), strict=True))


@kernel
def sort_all(word, key, value, item, rank, begin, end):
    sort_words(word, begin, end)
    sort_rows(key, value, begin, end)
    sort_by(item, rank, begin, end)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 7, 40, 300])
def test_runs_are_sorted_and_nothing_beside_them_is_touched(n: int) -> None:
    rng = np.random.default_rng(n)
    begin, end = 3, 3 + n
    word, key = rng.integers(-50, 50, n + 6), rng.permutation(n + 6)
    item, rank = rng.permutation(n + 6), rng.permutation(n + 6)
    value = key * 7
    expected = [
        *(_with_sorted(each, begin, end, None) for each in (word, key)),
        _with_sorted(item, begin, end, rank),
    ]
    sort_all(word, key, value, item, rank, begin, end)
    for array, other in zip((word, key, item), expected, strict=True):
        assert array.tolist() == other
    assert value.tolist() == (key * 7).tolist()


def _with_sorted(array: np.ndarray, begin: int, end: int, rank: np.ndarray | None) -> list[int]:
    items: list[int] = array.tolist()
    by = None if rank is None else lambda item: rank[item]
    return [*items[:begin], *sorted(items[begin:end], key=by), *items[end:]]


@kernel
def sort_by_id(ids, value, begin, end, held, marks):
    sort_ids(ids, value, begin, end, held, marks)


@pytest.mark.parametrize("highest", [20, 64, 1_000, 100_000])
def test_ids_are_sorted_whether_near_or_far_and_no_mark_is_left(highest: int) -> None:
    rng = np.random.default_rng(highest)
    held, marks = np.empty(highest, np.int64), np.zeros(highest // 64 + 1, np.int64)
    for n in (0, 1, 2, 7, 20):
        ids = rng.choice(highest, n + 6 if n + 6 < highest else highest, replace=False)
        ids, begin, end = ids.astype(np.int32), 3, len(ids) - 3
        value, expected = ids * 7, _with_sorted(ids, 3, len(ids) - 3, None)
        sort_by_id(ids, value, begin, end, held, marks)
        assert ids.tolist() == expected
        assert value.tolist() == [7 * each for each in expected]
        assert not marks.any()


@kernel
def look_at_bytes(one, other, begin, n, found):
    found[0] = np.int64(hash_bytes(one, begin, begin + n))
    found[1] = np.int64(hash_bytes(other, begin, begin + n))
    found[2] = are_same(one, begin, other, begin, n)
    if begin + 64 <= len(one):
        found[3], found[4] = first_special(one, begin), newlines(one, begin)


def test_bytes_are_compared_and_searched_as_python_does() -> None:
    rng, found = np.random.default_rng(1), np.zeros(5, np.int64)
    n_same = 0
    for _ in range(3_000):
        one = rng.choice(np.frombuffer(b'ab"\\\x1f\n \x7f\x80\xff', np.uint8), rng.integers(1, 90))
        one[rng.random(len(one)) < rng.random()] = ord("a")
        other = one.copy()
        other[rng.integers(len(one))] = ord("a")
        begin = int(rng.integers(len(one)))
        n = int(rng.integers(len(one) - begin + 1))
        look_at_bytes(one, other, begin, n, found)
        is_same = one[begin : begin + n].tobytes() == other[begin : begin + n].tobytes()
        assert bool(found[2]) == is_same
        assert (found[0] == found[1]) == is_same
        n_same += is_same
        if begin + 64 <= len(one):
            text = one[begin : begin + 64].tobytes()
            special = [i for i, b in enumerate(text[:16]) if b in b'"\\' or not 32 <= b < 128]
            assert found[3] == min([*special, 16])
            lines = sum(1 << i for i, b in enumerate(text) if b == 10)
            assert int(found[4]) & (2**64 - 1) == lines
    assert 500 < n_same < 2_900


@kernel
def search_all(word, begin, end, key):
    return first_not_below(word, begin, end, key), last_not_above(word, begin, end, key)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_searches_of_a_sorted_run_agree_with_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    word = np.sort(rng.integers(-20, 20, n + 6))
    begin, end = 3, 3 + n
    for key in range(-22, 23):
        first, last = search_all(word, begin, end, key)
        assert first == begin + np.searchsorted(word[begin:end], key)
        expected = begin + np.searchsorted(word[begin:end], key, side="right") - 1
        assert last == max(expected, begin)
