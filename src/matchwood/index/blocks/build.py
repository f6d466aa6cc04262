"""From the expression table to blocks: access predicates, spaces, codes, members, words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.blocks.cluster import Clusters, cluster_spaces
from matchwood.index.blocks.codes import (
    Coded,
    encode_predicates,
    ends_of,
    fill_pool,
    guide_codes,
    guide_places,
    lay_dense,
    mark_ends,
)
from matchwood.index.blocks.members import (
    count_members,
    find_equal,
    find_shapes,
    hash_expressions,
    list_members,
)
from matchwood.index.blocks.pack import Members, Plan, Shares, Source, Target, pack_blocks
from matchwood.index.blocks.words import MOST_FOLDED, MOST_MEMBERS, Blocks, Codes, Places
from matchwood.index.pst.bloom import Division, PSTBloom
from matchwood.index.stabbing.odds_kernels import presences_of
from matchwood.index.stabbing.segments import sorted_cuts
from matchwood.kernel.arrays import doubled, offsets_of
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

GUIDED = 8
"""Cuts of an attribute from which they have a guide."""

GUIDE_STEPS = 4
"""Steps of the guide of a dimension for each of its spaces."""

DENSE = 2**16 - 2
"""Keys from the lowest cut to the highest up to which an attribute has a table of codes: there may
be a code more than keys, and 16 bits hold each.
"""


class Structure(NamedTuple):
    """What `blocks` searches: see the three tuples in `words`."""

    codes: Codes
    places: Places
    blocks: Blocks


def build_structure(table: ExpressionTable, slots: np.ndarray, config: Any) -> Structure:
    """The blocks of these slots, ascending."""
    if not len(slots):
        return empty_structure()
    p = table.predicates.layout
    chosen, items, twin_start, twin = _without_equal(table, slots)
    division = PSTBloom.build(table, slots[:0], **config.division()).divide(chosen)
    used = np.flatnonzero(np.isfinite(division.costs))
    n_attributes = table.n_attributes
    codes = make_codes(p, used, n_attributes)
    coded, pool = _coded(p, used, codes, division.costs)
    members, dim_start, first_key = _members(table, chosen, items, division, n_attributes)
    places = _places(codes, dim_start, first_key)
    plan, shares = _plan(division, n_attributes), _shares(config)
    clusters = _clusters(members, dim_start)
    n = cluster_spaces(table.layout, coded, pool, codes, members, plan, shares, clusters)
    bound, gate = clusters.bound[: n + 1], clusters.gate[:n].copy()
    source = Source(table.layout, p, coded, pool, codes)
    at, word = _packed(source, members, plan, shares, bound)
    blocks = Blocks(at, gate, word, word.view(np.int32), pool, twin_start, twin)
    return Structure(codes, places._replace(block=clusters.block), blocks)


def empty_structure() -> Structure:
    """No attributes, no spaces, no blocks."""
    none, one = np.empty(0, np.int64), np.zeros(1, np.int64)
    no_guide = np.empty(0, np.int32)
    no_codes = Codes(
        np.empty(0, np.int32),
        none,
        one,
        np.empty(0, np.uint16),
        one,
        none,
        none,
        one,
        no_guide,
        np.empty(0, np.uint8),
    )
    no_places = Places(one, np.empty(0, np.int32), none, one, no_guide, one)
    no_blocks = Blocks(
        one, none, none, none.view(np.int32), np.empty(0, np.int32), one, np.empty(0, np.int32)
    )
    return Structure(no_codes, no_places, no_blocks)


def _without_equal(
    table: ExpressionTable, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One slot of each set of equal subscriptions, its item, and the lists of twins."""
    n = len(slots)
    hashes, first_of = np.empty(n, np.int64), np.empty(n, np.int64)
    hash_expressions(table.layout, slots, hashes)
    find_equal(table.layout, slots, hashes, np.full(doubled(1, 2 * n), -1, np.int32), first_of)
    is_first = first_of == np.arange(n)
    count = np.bincount(first_of, minlength=n)[is_first]
    items = slots[is_first].astype(np.int32)
    has_twins = count > 1
    items[has_twins] = ~np.arange(int(has_twins.sum()), dtype=np.int32)
    twin_start = offsets_of(count[has_twins])
    has_twin = np.zeros(n, bool)
    has_twin[np.flatnonzero(is_first)[has_twins]] = True
    among = np.flatnonzero(has_twin[first_of])
    twin = slots[among[np.argsort(first_of[among], kind="stable")]].astype(np.int32)
    return slots[is_first], items, twin_start, twin


def make_codes(p: PredicateLayout, used: np.ndarray, n_attributes: int) -> Codes:
    """The cut points of the predicates `used`, by attribute."""
    lowest = np.full(n_attributes, MAX_KEY)
    highest, n_ends = np.full(n_attributes, MIN_KEY), np.zeros(n_attributes, np.int64)
    ends_of(p, used, lowest, highest, n_ends)
    is_near = highest.view(np.uint64) - lowest.view(np.uint64) < DENSE
    is_near &= lowest <= highest
    span = np.zeros(n_attributes, np.int64)
    span[is_near] = highest[is_near] - lowest[is_near] + 1
    span[span > 8 * n_ends + 64] = 0
    start = offsets_of(span)
    marks = np.zeros(int(start[-1]), np.uint8)
    rest = int(n_ends[span == 0].sum())
    attrs, cuts = np.empty(rest, np.int64), np.empty(rest, np.int64)
    n = mark_ends(p, used, lowest, start, marks, attrs, cuts)
    is_known = np.zeros(n_attributes, bool)
    is_known[p.attr[used]] = True
    cut_start, cut = sorted_cuts(
        attrs[:n], cuts[:n], np.flatnonzero(is_known & (span == 0)), n_attributes
    )
    n_cuts = np.diff(cut_start)
    low = np.where(span > 0, lowest, 0)
    has_guide = n_cuts >= GUIDED
    low[has_guide] = cut[cut_start[:-1][has_guide] + 1]
    between = np.zeros(n_attributes, np.uint64)
    last = cut[cut_start[1:][has_guide] - 1]
    between[has_guide] = last.view(np.uint64) - low[has_guide].view(np.uint64)
    shift, size = _guides(between, np.where(has_guide, n_cuts, 0))
    codes = Codes(
        n_cuts.astype(np.int32),
        low,
        start,
        np.empty(len(marks), np.uint16),
        cut_start,
        cut,
        shift,
        offsets_of(size),
        np.empty(int(size.sum()), np.int32),
        np.empty(n_attributes, np.uint8),
    )
    lay_dense(start, marks, codes)
    guide_codes(codes)
    return codes._replace(fold=folds_of(codes.n))


def folds_of(n_codes: np.ndarray) -> np.ndarray:
    """Bits that codes lose when they are folded, by how many there are."""
    fold = np.zeros(len(n_codes), np.uint8)
    for bits in range(32):
        fold[(n_codes - 1) >> bits >= MOST_FOLDED] = bits + 1
    return fold


def _guides(span: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shifts and sizes of guides over 0..span, uint64, with about `most` steps; 0: no guide."""
    shift = np.zeros(len(span), np.int64)
    for bits in range(64):
        shift[(span >> np.uint64(bits)) >= most.astype(np.uint64)] = bits + 1
    shift[most == 0] = 0
    steps = (span >> shift.astype(np.uint64)).astype(np.int64)
    return shift, np.where(most > 0, steps + 2, 0)


def _places(codes: Codes, dim_start: np.ndarray, first_key: np.ndarray) -> Places:
    """Spaces by codes, without blocks yet."""
    n_spaces = np.diff(dim_start)
    n_codes = np.repeat(codes.n, 2).astype(np.int64)
    span = np.maximum(n_codes - 1, 0).astype(np.uint64)
    shift, size = _guides(span, GUIDE_STEPS * n_spaces)
    places = Places(
        dim_start,
        np.empty(len(first_key), np.int32),
        shift,
        offsets_of(size),
        np.empty(int(size.sum()), np.int32),
        dim_start[:1],
    )
    guide_places(codes, first_key, places)
    return places


def _coded(
    p: PredicateLayout, used: np.ndarray, codes: Codes, odds: np.ndarray
) -> tuple[Coded, np.ndarray]:
    """Predicates in codes, and the pool of sets that do not fit into cells."""
    arena = len(p.interval_lo)
    coded = Coded(
        cell=np.empty(len(p.attr), np.int64),
        interval_low=np.empty(arena, np.int32),
        interval_high=np.empty(arena, np.int32),
        odds=odds,
    )
    pool = np.empty(encode_predicates(p, used, codes, coded), np.int32)
    fill_pool(p, used, codes, coded, pool)
    return coded, pool


def _members(
    table: ExpressionTable,
    chosen: np.ndarray,
    items: np.ndarray,
    division: Division,
    n_attributes: int,
) -> tuple[Members, np.ndarray, np.ndarray]:
    """The members of every space, those of the same shape side by side; where spaces begin."""
    p, spaces = table.predicates.layout, division.spaces
    size = spaces.size[: 2 * n_attributes].astype(np.int64)
    dim_start = offsets_of(size)
    at = np.repeat(spaces.start[: len(size)] - dim_start[:-1], size) + np.arange(dim_start[-1])
    skipped, n_members = np.empty(len(chosen), np.int32), np.zeros(len(at), np.int64)
    count_members(spaces, dim_start, p, division.access, skipped, n_members)
    start = offsets_of(n_members)
    shape = np.empty(len(chosen), np.int16)
    find_shapes(table.layout, p, chosen, skipped, shape)
    listed = np.empty(int(start[-1]), np.int32)
    order = np.argsort(shape, kind="stable")
    list_members(spaces, dim_start, p, division.access, order, start[:-1].copy(), listed)
    access = np.where(division.access < 0, ~division.access, division.access)
    return Members(chosen, items, access, skipped, start, listed), dim_start, spaces.cut[at]


def _plan(division: Division, n: int) -> Plan:
    """Scratch for n attributes, and how likely an event has each, as far as subscriptions tell."""
    uses = division.uses[:n]
    return Plan(
        count=np.zeros(n, np.int64),
        cells=np.zeros(n, np.int64),
        shift=np.zeros(n, np.int64),
        zero=np.zeros(n, np.int64),
        rows=np.zeros(n, np.int64),
        attr=np.zeros(n, np.int64),
        column=np.zeros(n, np.int64),
        loss=np.zeros(n, np.float64),
        presence=presences_of(uses, uses.sum()),
        gate=np.zeros(2 * MOST_MEMBERS, np.int64),
    )


def _shares(config: Any) -> Shares:
    return Shares(
        config.exact, config.undecided, config.sieve, config.least, config.columns,
        config.ungated, config.gated,
    )  # fmt: skip


def _clusters(members: Members, dim_start: np.ndarray) -> Clusters:
    """Room for the blocks of all spaces."""
    n_members = np.diff(members.start)
    most, n_spaces = int(n_members.max(initial=0)), len(n_members)
    n_blocks = len(members.listed) + n_spaces  # what is not touched costs nothing
    return Clusters(
        attr=np.repeat(np.arange(len(dim_start) - 1) >> 1, np.diff(dim_start)),
        block=np.empty(n_spaces + 1, np.int64),
        bound=np.empty(n_blocks + 1, np.int64),
        gate=np.empty(n_blocks, np.int64),
        key=np.empty(most, np.int64),
        moved=np.empty(most, np.int32),
    )


def _packed(
    source: Source, members: Members, plan: Plan, shares: Shares, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where each block begins, and the words of all of them."""
    word = np.zeros(64 + 24 * len(members.listed), np.int64)  # what is not touched costs nothing
    starts = np.empty(len(bound), np.int64)
    done, at, lacking = 0, 0, 0
    while True:
        target = Target(word, word.view(np.int32), starts)
        done, at, lacking = pack_blocks(
            source, members, plan, shares, bound, target, done, at
        )  # fmt: skip
        if done == len(bound) - 1:
            return starts, word[:at]  # what is behind was never touched
        fresh = np.zeros(2 * len(word) + 2 * lacking, np.int64)
        fresh[:at] = word[:at]
        word = fresh
