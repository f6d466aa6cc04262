"""What is always true of a `vcr` index, and plain answers to compare it with."""

from __future__ import annotations

from collections import Counter

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.vcr.activate import FREE, HIGH
from matchwood.index.vcr.change import BOX, FLAGS, KX, KY, MORE, NOT_HELD, PLACED, REST, RIGHT, TOP
from matchwood.index.vcr.decompose import overlapped_decomposition, simple_decomposition, vcr_id
from matchwood.index.vcr.index import VCR
from matchwood.kernel.pair_map_kernels import N_PAIRS, keys_and_ids

Rectangle = tuple[int, int, int, int]
Pieces = list[Rectangle]


def decomposed(
    rectangle: Rectangle, kx: int, ky: int, overlapped: bool, most: int = 4_096
) -> Pieces:
    """The VCRs (x, y, width, height) of a rectangle (a, b, w, h)."""
    out = np.zeros((most, 4), np.int64)
    decompose = overlapped_decomposition if overlapped else simple_decomposition
    n = decompose(*rectangle, kx, ky, out)
    return [(x, y, 1 << i, 1 << j) for x, y, i, j in out[:n].tolist()]


def grid_rectangle(index: VCR, table: ExpressionTable, slot: int) -> tuple[Rectangle, bool]:
    """Where an expression is placed, and whether its own ranges have to be tested."""
    grid, p = index._vcrs.grid, table.predicates.layout
    by_attribute = {int(p.attr[pred]): int(pred) for pred in table.code_of(slot)}
    ends, is_exact = [], True
    for axis, cut in enumerate((grid.cut_x, grid.cut_y)):
        pred = by_attribute[int(grid.shape[axis])]
        lo, hi = int(p.lo[pred]), int(p.hi[pred])
        first, last = np.searchsorted(cut, [lo, hi], "right") - 1
        until = int(cut[last + 1]) - 1 if last + 1 < len(cut) else 2**63 - 1
        is_exact &= first < last and int(cut[first]) == lo and until == hi
        ends.append((int(first), max(1, int(last - first))))
    (a, w), (b, h) = ends
    return (a, b, w, h), not is_exact


def check_vcr(index: VCR, table: ExpressionTable, held: np.ndarray) -> None:
    """The lists hold exactly the decompositions of what is placed; nothing else is activated."""
    vcrs = index._vcrs
    grid, active, pairs, lists = vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists
    kx, ky = int(grid.shape[KX]), int(grid.shape[KY])
    overlapped = index.stats()["decomposition"] == "overlapped"
    home, has_boxes = active.home, len(active.box) > 0
    assert np.flatnonzero(home != NOT_HELD).tolist() == sorted(held.tolist())
    in_rest = np.flatnonzero(home == REST)
    assert (0 if index._rest is None else len(index._rest)) == len(in_rest)
    placed = np.flatnonzero(home == PLACED).tolist()
    rectangles = {slot: grid_rectangle(index, table, slot) for slot in placed}
    expected: Counter[tuple[int, int]] = Counter()
    for slot, (rectangle, is_tested) in rectangles.items():
        for x, y, width, height in decomposed(rectangle, kx, ky, overlapped):
            i, j = width.bit_length() - 1, height.bit_length() - 1
            expected[int(vcr_id(x, y, i, j, len(grid.cut_x), kx, ky)), slot] += 1
        if is_tested and has_boxes:
            p = table.predicates.layout
            by_attribute = {int(p.attr[pred]): pred for pred in table.code_of(slot)}
            on = [by_attribute[int(attr)] for attr in grid.shape[:2]]
            box = [int(v) for pred in on for v in (p.lo[pred], p.hi[pred])]
            assert active.box[slot].tolist() == box
    found: Counter[tuple[int, int]] = Counter()
    by_vcr = _lists_by_vcr(active, pairs)
    n, n_free = int(active.count[HIGH]), 0
    assert not lists.size[n:].any()
    for which in range(n):
        begin, size = int(lists.start[which]), int(lists.size[which])
        items = lists.item[begin : begin + size].tolist()
        assert items == sorted(set(items))
        if not size:
            n_free += 1
            continue
        owner = int(active.owner[which])
        assert by_vcr[owner] == which
        for item in items:
            found[owner, item >> FLAGS] += 1
            rectangle, is_tested = rectangles[item >> FLAGS]
            assert bool(item & BOX) == (is_tested and has_boxes)
            assert bool(item & (BOX | MORE)) >= is_tested
            (x, y, width, height), (a, b, w, h) = vcrs.vcr(which), rectangle
            assert bool(item & RIGHT) == (x + width == a + w)
            assert bool(item & TOP) == (y + height == b + h)
    assert found == expected
    free, chain = int(active.count[FREE]), set()
    while free >= 0:
        assert free not in chain
        assert lists.size[free] == 0
        chain.add(free)
        free = ~int(active.owner[free])
    assert len(chain) == n_free
    assert vcrs.n_active == len({owner for owner, _ in expected})
    assert vcrs.n_active == len(by_vcr)
    if vcrs.form == "hash":
        assert pairs.count[N_PAIRS] == vcrs.n_active
        assert 2 * vcrs.n_active <= len(pairs.key)  # bounded load


def _lists_by_vcr(active, pairs) -> dict[int, int]:
    """The list of every activated VCR, as the table, the hash or its chains have it."""
    if len(active.chain):
        found = {}
        for which in (active.table - 1).tolist():
            while which >= 0:
                found[int(active.owner[which])] = which
                which = int(active.chain[which]) - 1
        return found
    if len(active.table):
        ids = np.flatnonzero(active.table)
        return dict(zip(ids.tolist(), (active.table[ids] - 1).tolist(), strict=True))
    keys, ids = keys_and_ids(pairs)
    return dict(zip(keys.tolist(), ids.tolist(), strict=True))
