"""Hash tables of the toolkit are compared with dicts, its sorting with `sorted`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from matchwood.kernel.id_table_kernels import (
    EMPTY,
    first_place,
    moved_back,
    next_place,
    place_of_id,
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
    hole = place_of_id(named.table, hash_of(named, id_), id_)
    nearby = next_place(named.table, hole)
    while named.table[nearby] != EMPTY:
        hole = moved_back(named.table, hole, nearby, hash_of(named, named.table[nearby]))
        nearby = next_place(named.table, nearby)
    named.table[hole] = EMPTY


@kernel
def find_named(named, number):
    at = first_place(named.table, np.uint64(number & 3))
    while named.table[at] != EMPTY:
        if named.number[named.table[at]] == number:
            return np.int64(named.table[at])
        at = next_place(named.table, at)
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
