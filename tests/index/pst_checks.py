"""Invariants of `pst_bloom` and `pst_hash`, checked from the outside, without their kernels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from matchwood.index.pst.bloom import PSTBloom
from matchwood.index.pst.hash import PSTHash
from matchwood.index.pst.records import NO_ACCESS
from matchwood.index.pst.space_hash import NODE, TAKEN
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

Space = tuple[int, int, int]
"""First key, last key, id."""


def ids(lists: Any, which: int) -> list[int]:
    start = int(lists.start[which])
    found: list[int] = lists.item[start : start + int(lists.size[which])].tolist()
    return found


def listed(index: PSTBloom, space: int) -> list[int]:
    """The refs of the expressions that a space lists."""
    return ids(index._records.lists, space)


def dimensions(index: PSTBloom) -> dict[int, list[Space]]:
    """The spaces of every dimension that is in use, in order."""
    x = index._spaces.lists
    found = {}
    for dim in np.flatnonzero(x.size).tolist():
        places = slice(int(x.start[dim]), int(x.start[dim] + x.size[dim]))
        cuts = [*x.cut[places].tolist(), int(MAX_KEY) + 1]
        ends = [cut - 1 for cut in cuts[1:]]
        found[dim] = list(zip(cuts[:-1], ends, x.item[places].tolist(), strict=True))
    return found


def check(index: PSTBloom, held: np.ndarray) -> None:
    dims = dimensions(index)
    spaces = [space for each in dims.values() for *_, space in each]
    assert len(set(spaces)) == len(spaces)
    for each in dims.values():  # they are a partition of all keys
        assert each[0][0] == MIN_KEY
        assert all(first <= last for first, last, _ in each)
    parts = access_parts(index, held)
    check_lists(index, dims, parts)
    check_uses(index, dims, parts)
    assert set(np.flatnonzero(index._homes.ref >= 0).tolist()) == set(held.tolist())
    if isinstance(index, PSTHash):
        check_hash(index, dims, parts)


Parts = dict[int, list[tuple[int, list[tuple[int, int]]]]]
"""Slot -> (dimension, intervals) of each access predicate."""


def access_parts(index: PSTBloom, held: np.ndarray) -> Parts:
    p = index._table.predicates
    found = {}
    for slot in held.tolist():
        arity = int(index._keyed.arity[slot]) if isinstance(index, PSTHash) else 0
        if arity:
            assert index._homes.access[slot] == NO_ACCESS
            access = index._keyed.access[slot, :arity].tolist()
        else:
            access = [int(index._homes.access[slot])]
        found[slot] = [
            (
                2 * int(p.layout.attr[a if a >= 0 else ~a]) + (a < 0),
                list(p.intervals(a if a >= 0 else ~a)),
            )
            for a in access
        ]
        assert found[slot] == sorted(found[slot])
    return found


def met(spaces: list[Space], intervals: list[tuple[int, int]]) -> list[int]:
    return [
        space
        for first, last, space in spaces
        if any(lo <= last and first <= hi for lo, hi in intervals)
    ]


def check_lists(index: PSTBloom, dims: dict[int, list[Space]], parts: Parts) -> None:
    """Every space lists exactly the expressions whose access predicate meets it."""
    records: dict[int, list[int]] = {}
    members: dict[int, list[int]] = {}
    for slot, each in parts.items():
        into = records if len(each) == 1 else members
        for dim, intervals in each:
            for space in met(dims[dim], intervals):
                into.setdefault(space, []).append(int(index._homes.ref[slot]))
    for each_space in [space for spaces in dims.values() for *_, space in spaces]:
        found = sorted(ids(index._records.lists, each_space))
        assert found == sorted(records.get(each_space, []))
        if isinstance(index, PSTHash):
            assert ids(index._members.lists, each_space) == sorted(members.get(each_space, []))
    assert index._records.n_ids == sum(map(len, records.values()))


def check_uses(index: PSTBloom, dims: dict[int, list[Space]], parts: Parts) -> None:
    x = index._spaces.lists
    for dim, spaces in dims.items():
        ends = [
            end
            for each in parts.values()
            for mine, intervals in each
            if mine == dim
            for lo, hi in intervals
            for end in (lo, hi + 1)
        ]
        for i, (cut, *_) in enumerate(spaces):
            if i > 0:
                assert x.uses[x.start[dim] + i] == ends.count(cut)


def check_hash(index: PSTHash, dims: dict[int, list[Space]], parts: Parts) -> None:
    """Every expression is under every combination of spaces that it meets, and nowhere else."""
    expected: dict[tuple[int, ...], list[int]] = {}
    for slot, each in parts.items():
        if len(each) > 1:
            for key in product(*[met(dims[dim], intervals) for dim, intervals in each]):
                expected.setdefault(key, []).append(int(index._homes.ref[slot]))
    places = [(key, held) for key, held in index._hash.cell.tolist() if held]
    assert len(places) == index._hash.count[TAKEN]
    assert len({key for key, _ in places}) == len(places)
    path: dict[int, tuple[int, ...]] = {}
    found: dict[tuple[int, ...], list[int]] = {}
    waiting = list(places)
    while waiting:
        later = []
        for key, held in waiting:
            prefix, space = key >> 32, key & 0xFFFFFFFF
            before = path.get(prefix) if prefix & int(NODE) else (prefix,)
            if before is None:
                later.append((key, held))
                continue
            whole = (*before, space)
            node, value = held >> 32, int(np.int64(held & 0xFFFFFFFF).astype(np.int32))
            if node:
                path[int(NODE) | node] = whole
            if value > 0:
                found[whole] = [value - 1]
            elif value < 0:
                found[whole] = ids(index._groups.lists, ~value)
                assert len(found[whole]) > 1
        assert len(later) < len(waiting)
        waiting = later
    assert found == {key: sorted(refs) for key, refs in expected.items()}
