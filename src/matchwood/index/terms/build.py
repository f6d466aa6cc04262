"""From the expression table to terms: leaves, their segment trees, terms by leaf and rest."""

from __future__ import annotations

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.errors import IndexBuildError
from matchwood.index.blocks.build import empty_structure as no_blocks
from matchwood.index.blocks.build import make_codes
from matchwood.index.blocks.words import Codes
from matchwood.index.terms.leaves import NO_LEAF, put_leaves
from matchwood.index.terms.odds import count_leaves, find_hulls, find_odds
from matchwood.index.terms.pieces import Leaves, measure_pieces, write_pieces
from matchwood.index.terms.split import (
    GROWTH,
    N_RESTS,
    N_STEPS,
    N_TERMS,
    NO_REST,
    SPARE,
    Scratch,
    Source,
    Target,
    enter_rests,
    split_expressions,
)
from matchwood.index.terms.words import HEAD, LEAF, REST, SLOTS, Structure, Terms, Tree
from matchwood.kernel.arrays import doubled, grown, offsets_of
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

MOST_TERMS = 2**31 - 1
"""Terms that 32 bits can count."""


def build_structure(table: ExpressionTable, slots: np.ndarray) -> Structure:
    """The terms of these slots, ascending."""
    if not len(slots):
        return empty_structure()
    p, n_attributes = table.predicates.layout, table.n_attributes
    uses, attr_uses = np.zeros(len(p.attr), np.int32), np.zeros(n_attributes, np.int64)
    longest = int(count_leaves(table.layout, p, slots, uses, attr_uses))
    preds = _in_order(p, np.flatnonzero(uses))
    leaf_of = np.full(len(p.attr), -1, np.int32)
    leaf_of[preds] = np.arange(len(preds), dtype=np.int32)
    codes = make_codes(p, np.sort(preds), n_attributes)
    odds = _odds(p, preds, attr_uses)
    target = _split(table, slots, Source(leaf_of, odds), longest)
    terms, leaves = _terms(target, len(preds))
    return Structure(codes, _tree(p, preds, codes, leaves), terms)


def empty_structure() -> Structure:
    """No attributes, no leaves, no terms."""
    none, one = np.empty(0, np.int32), np.zeros(1, np.int64)
    pairs, row = np.empty((0, 2), np.int32), np.zeros((1, 2), np.int64)
    return Structure(no_blocks().codes, Tree(one, one, none, none), Terms(none, row, none, pairs))


def _in_order(p: PredicateLayout, preds: np.ndarray) -> np.ndarray:
    """Predicates in the order of leaves: those that hold together are neighbours.

    By attribute; then values, ranges without a lower end, ranges without an upper end, what is
    open at both ends (<>, NOT IN), and others, each by the end that decides.
    """
    lo, hi, n = p.lo[preds], p.hi[preds], p.n_intervals[preds]
    is_low, is_high = lo == MIN_KEY, hi == MAX_KEY
    kind = np.where(lo == hi, 0, np.where(is_low & is_high, 3, np.where(is_low, 1, 4)))
    kind[is_high & ~is_low & (n == 1)] = 2
    kind[is_low & ~is_high & (n > 1)] = 4
    key = np.where(kind == 1, hi, lo)
    is_hole = (kind == 3) & (n > 1)
    key[is_hole] = p.interval_hi[p.interval_start[preds[is_hole]]]
    return preds[np.lexsort((hi, key, kind, p.attr[preds]))]


def _odds(p: PredicateLayout, preds: np.ndarray, attr_uses: np.ndarray) -> np.ndarray:
    low, high = np.full(len(attr_uses), MAX_KEY), np.full(len(attr_uses), MIN_KEY)
    find_hulls(p, preds, low, high)
    odds = np.empty(len(preds), np.float64)
    find_odds(p, preds, low, high, attr_uses, odds)
    return odds


def _tree(p: PredicateLayout, preds: np.ndarray, codes: Codes, leaves: Leaves) -> Tree:
    base = offsets_of(2 * codes.n.astype(np.int64))
    n_nodes = int(base[-1])
    last, count = np.full(n_nodes, NO_LEAF, np.int32), np.zeros(n_nodes, np.int64)
    put_leaves(codes, base, p, preds, last, count, np.empty((0, 2), np.int32))
    start = offsets_of(count)
    run = np.empty((int(start[-1]), 2), np.int32)
    last[:] = NO_LEAF
    put_leaves(codes, base, p, preds, last, start[:-1].copy(), run)
    counts = np.empty(HEAD, np.int64)
    measure_pieces(leaves, start, run, counts, count)
    at = offsets_of(count)
    piece = np.empty(int(at[-1]), np.int32)
    write_pieces(leaves, start, run, counts, at, piece)
    return Tree(base, at, piece, p.attr[preds].astype(np.int32))


def _split(table: ExpressionTable, slots: np.ndarray, source: Source, longest: int) -> Target:
    """All terms of these slots."""
    n, room = len(slots), longest + 1
    whole, real = np.int32, np.float64
    types = (whole, whole, whole, real, real, *[whole] * 8)
    scratch = Scratch(*[np.empty(room, each) for each in types])
    target = Target(
        leaf=np.empty(2 * n + room, np.int32),
        slot=np.empty(2 * n + room, np.int32),
        rest=np.empty(2 * n + room, np.int32),
        rest_start=np.zeros(n + room + 2, np.int64),
        rest_hash=np.empty(n + room + 1, np.int64),
        step=np.empty((4 * n + (GROWTH + 2) * room + SPARE, 2), np.int32),
        table=_no_rests(n + room + 1),
        count=np.zeros(3, np.int64),
    )
    done = 0
    while True:
        done = int(split_expressions(table.layout, slots, done, source, target, scratch))
        if done == n:
            return target
        target = _with_room(target, room)


def _no_rests(n: int) -> np.ndarray:
    """An empty table for n rests."""
    return np.full(1 << max(4, (2 * n).bit_length()), NO_REST, np.int32)


def _with_room(x: Target, room: int) -> Target:
    """The target with room for one more expression of this length, at least, and for many more."""
    n_terms, n_rests, n_steps = (int(x.count[i]) for i in (N_TERMS, N_RESTS, N_STEPS))
    terms = doubled(len(x.leaf), n_terms + room)
    rests = doubled(len(x.rest_hash), n_rests + room + 1)
    steps = doubled(len(x.step), n_steps + (GROWTH + 2) * room + SPARE)
    step = np.empty((steps, 2), np.int32)
    step[:n_steps] = x.step[:n_steps]
    target = Target(
        leaf=grown(x.leaf, terms),
        slot=grown(x.slot, terms),
        rest=grown(x.rest, terms),
        rest_start=grown(x.rest_start, rests + 1),
        rest_hash=grown(x.rest_hash, rests),
        step=step,
        table=_no_rests(rests),
        count=x.count,
    )
    enter_rests(target)
    return target


def _terms(x: Target, n_leaves: int) -> tuple[Terms, Leaves]:
    """Terms by leaf: those without a rest, and groups of those with the same rest."""
    n, n_rests = int(x.count[N_TERMS]), int(x.count[N_RESTS])
    if n > MOST_TERMS:
        raise IndexBuildError(f"terms: expected at most {MOST_TERMS:,} terms, found {n:,}")
    leaf, slot, rest = x.leaf[:n], x.slot[:n], x.rest[:n]
    order = np.argsort(leaf.astype(np.int64) * (n_rests + 1) + rest + 1, kind="stable")
    leaf, slot, rest = leaf[order], slot[order], rest[order]
    is_sure = rest == NO_REST
    sure, sure_start = slot[is_sure], _offsets(leaf[is_sure], n_leaves)
    leaf, slot, rest = leaf[~is_sure], slot[~is_sure], rest[~is_sure]
    is_new = np.ones(len(leaf), bool)
    is_new[1:] = (leaf[1:] != leaf[:-1]) | (rest[1:] != rest[:-1])
    first = np.flatnonzero(is_new)
    group = np.zeros((len(first) + 1, 2), np.int64)
    group[:-1, REST] = x.rest_start[rest[first]]
    group[:, SLOTS] = np.append(first, len(leaf))
    step = x.step[: int(x.count[N_STEPS])].copy()
    needed = np.unique(step[:, LEAF])
    leaves = Leaves(sure_start, _offsets(leaf[first], n_leaves), _offsets(needed, n_leaves), sure)
    return Terms(sure, group, slot, step), leaves


def _offsets(leaf: np.ndarray, n_leaves: int) -> np.ndarray:
    """Where each leaf begins among sorted ones; the end of all at last."""
    return offsets_of(np.bincount(leaf, minlength=n_leaves))
