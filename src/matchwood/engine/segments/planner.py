"""The planner: which index holds which subscriptions of a part that does not change any more.

    plan(table, slots) ──► Plan ── Choice("blocks",  slots, "94,120 conjunctions of ...")
                             ├──── Choice("terms",   slots, "5,880 trees: ...")
                             ├──── always   slots that every event satisfies
                             └──── never    slots that no event satisfies

Only statistics of the expression table decide, so the same table gives the same plan: nothing is
built, timed or drawn at random.  `Plan.rows` says in words what went where and why.

    few                   scan     entering another index takes longer than testing them all
    bound to a context    agile    it follows values that change
    trees                 terms    only predicates that hold lead to them; a few conjunctions, too
    two ranges, no more   vcr      on one pair of attributes, if a table of its grid is small enough
    wide ranges           pst_bloom  many candidates: a signature excludes most of them
    other conjunctions    blocks   verified where they are listed

`python benchmarks/auto_against_best.py` compares plans with every single index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.protocol import Index
from matchwood.index.core.registry import find_index
from matchwood.kernel.arrays import slices
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

SCAN, BLOCKS, PST_BLOOM, VCR = "scan", "blocks", "pst_bloom", "vcr"
TERMS, A_TREE, AGILE = "terms", "a_tree", "agile"
PLANNED = (SCAN, BLOCKS, PST_BLOOM, VCR, TERMS, A_TREE)
"""Indexes that a segment may have; `a_tree` only one of a snapshot that has it."""

FEW = 256
"""Expressions up to which testing all of them is as fast as entering another index."""

FEW_BESIDE = 2_000
"""Conjunctions up to which the index of the trees holds them, too: searching one index more takes
as long as they do.  At 2,000 `blocks` alone takes 1.6 to 2.6 µs and `terms` 3.0 to 5.0, at 8,000
3.7 to 4.6 and 9.7 to 14 (begen and pstree)."""

WEAK, SEVERAL = 0.008, 2.5
"""Share of the conjunctions that an event reaches by ranges, and predicates on average, from which
most candidates fail by another predicate: `pst_bloom` takes less time for one that fails.  With
`uniform`, where it wins, 0.071 and 0.009 are reached; with `pstree` and `ads` 0.007."""

MOST_ATTRIBUTES, MOST_SLOTS = 2**24, 2**27
"""What `blocks` and `vcr` refuse more of: a plan gives to an index only what it takes."""

EVENT_SIZE, SAMPLE = 16, 10_000
"""Attributes that an event is taken to have; conjunctions that statistics are made of."""

RANGES_FROM = 4_000
"""Subscriptions of two ranges from which they get an index of their own."""


class Choice(NamedTuple):
    """One index, what it is to hold, and why."""

    name: str  # in the registry of indexes
    slots: Any  # int32, ascending; Packed once the segment is frozen
    reason: str

    def build(self, table: ExpressionTable) -> Index:
        """The index with its slots, ready for searches."""
        index = find_index(self.name).build(table, self.slots)
        index.settle()
        return index


class Plan(NamedTuple):
    """What goes where: every slot is in one choice, in `always` or in `never`."""

    choices: tuple[Choice, ...]
    always: np.ndarray
    never: np.ndarray

    def rows(self) -> list[dict[str, Any]]:
        """The plan for people: index, number of subscriptions, reason."""
        found: list[dict[str, Any]] = [
            {"index": each.name, "subscriptions": len(each.slots), "reason": each.reason}
            for each in self.choices
        ]
        for slots, reason in (
            (self.always, "every event satisfies them: no index has to look"),
            (self.never, "no event satisfies them: no index has to look"),
        ):
            if len(slots):
                found.append({"index": None, "subscriptions": len(slots), "reason": reason})
        return found


def plan(table: ExpressionTable, slots: np.ndarray, linked: np.ndarray | None = None) -> Plan:
    """The plan for different slots of a table.

    linked   for each slot, whether it is bound to a context; none is by default
    """
    order = np.argsort(slots, kind="stable")
    slots = slots[order].astype(np.int32)
    is_linked = np.zeros(len(slots), bool) if linked is None else np.asarray(linked, bool)[order]
    kind = table.layout.kind[slots]
    is_held = (kind == CONJUNCTION) | (kind == TREE)
    found = [
        _for_contexts(slots[is_held & is_linked]),
        *_for_others(
            table, slots[(kind == CONJUNCTION) & ~is_linked], slots[(kind == TREE) & ~is_linked]
        ),
    ]
    choices = tuple([each for each in found if len(each.slots)])
    return Plan(choices, slots[kind == ALWAYS], slots[kind == NEVER])


def _for_contexts(slots: np.ndarray) -> Choice:
    return Choice(AGILE, slots, "bound to contexts: the index follows values that change")


def _for_others(
    table: ExpressionTable, conjunctions: np.ndarray, trees: np.ndarray
) -> list[Choice]:
    n, n_trees = len(conjunctions), len(trees)
    both = np.sort(np.concatenate([conjunctions, trees]))
    if n + n_trees <= FEW:
        return [Choice(SCAN, both, f"at most {FEW} expressions: testing all is fastest")]
    reason = f"{n_trees:,} trees: only predicates that hold lead to them"
    if n <= FEW_BESIDE and n_trees > FEW:
        few = f", {n:,} conjunctions beside them: too few for one more index" if n else ""
        return [Choice(TERMS, both, reason + few)]
    return [*_for_conjunctions(table, conjunctions), Choice(TERMS, trees, reason)]


def _for_conjunctions(table: ExpressionTable, slots: np.ndarray) -> list[Choice]:
    is_pair, pair_reason = _two_ranges(table, slots)
    rest = slots[~is_pair]
    return [Choice(VCR, slots[is_pair], pair_reason), _for_any_conjunctions(table, rest)]


def _for_any_conjunctions(table: ExpressionTable, slots: np.ndarray) -> Choice:
    if not len(slots):
        return Choice(BLOCKS, slots, "")
    mean, reach = float(table.layout.size[slots].mean()), reached(table, slots)
    what = f"{mean:.1f} predicates on average, an event reaches {reach:.2%} of them by ranges"
    if table.n_attributes > MOST_ATTRIBUTES:
        return Choice(PST_BLOOM, slots, f"more than {MOST_ATTRIBUTES:,} attributes")
    if reach >= WEAK and mean >= SEVERAL:
        return Choice(PST_BLOOM, slots, f"{what}: many candidates, signatures exclude most")
    return Choice(BLOCKS, slots, f"{what}: few candidates, verified where they are listed")


def reached(table: ExpressionTable, slots: np.ndarray) -> float:
    """The share of conjunctions without equalities that an event is expected to reach.

    A conjunction is reached by its best predicate: the odds are that an event has the attribute, as
    far as subscriptions tell, and a key that is accepted, all keys being equally likely.  One with
    an equality counts as not reached.  The mean over a sample: every so many of the slots.
    """
    x, p = table.layout, table.predicates.layout
    sample = slots[:: -(-len(slots) // SAMPLE)]
    preds = x.code[slices(x.start[sample], x.size[sample])]
    attr, lo, hi = p.attr[preds], p.lo[preds], p.hi[preds]
    low, high = np.full(table.n_attributes, MAX_KEY), np.full(table.n_attributes, MIN_KEY)
    for ends in (lo, hi):
        known = (ends != MIN_KEY) & (ends != MAX_KEY)
        np.minimum.at(low, attr[known], ends[known])
        np.maximum.at(high, attr[known], ends[known])
    first, last = low[attr].astype(np.float64), high[attr].astype(np.float64)
    whole = np.maximum(last - first, 0.0) + 1.0
    covered = np.minimum(hi, last) - np.maximum(lo, first) + 1.0
    share = np.clip(covered / whole, 0.0, 1.0)
    is_set = (p.n_intervals[preds] > 1) & (lo != MIN_KEY)  # an IN list: its values, not its hull
    share[is_set] = np.minimum(share[is_set], p.n_intervals[preds][is_set] / whole[is_set])
    named = EVENT_SIZE * np.bincount(attr) / len(attr)
    share *= (named / (1.0 + named))[attr]
    share[lo == hi] = 0.0
    begin = np.cumsum(x.size[sample]) - x.size[sample]
    return float(np.minimum.reduceat(share, begin).mean())


def _two_ranges(table: ExpressionTable, slots: np.ndarray) -> tuple[np.ndarray, str]:
    """Which slots are two ranges with both ends on one pair of attributes, if `vcr` is for them."""
    none = np.zeros(len(slots), bool)
    is_two = table.layout.size[slots] == 2
    if is_two.sum() < RANGES_FROM or slots[-1] >= MOST_SLOTS:
        return none, ""
    from matchwood.index.vcr.plan import NONE, choose_attributes, make_plan

    x, p = table.layout, table.predicates.layout
    two = slots[is_two]
    preds = x.code[slices(x.start[two], x.size[two])].reshape(-1, 2)
    is_range = (p.n_intervals[preds] == 1) & (p.lo[preds] != MIN_KEY) & (p.hi[preds] != MAX_KEY)
    is_range &= p.lo[preds] < p.hi[preds]
    pair = choose_attributes(table, two[is_range.all(axis=1)]) if is_range.any() else (NONE, NONE)
    fits = is_range.all(axis=1) & (np.sort(p.attr[preds], axis=1) == np.sort(pair)).all(axis=1)
    if fits.sum() < RANGES_FROM:
        return none, ""
    grid = make_plan(table, two[fits], pair, None, None)
    if not grid.suits_table(int(fits.sum())):
        return none, ""
    found = none.copy()
    found[np.flatnonzero(is_two)[fits]] = True
    cells = f"{len(grid.cut_x):,} x {len(grid.cut_y):,}"
    return found, f"two ranges on one pair of attributes, on a grid of {cells}"
