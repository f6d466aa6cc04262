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
    one predicate         terms    nothing to test: slots are copied
    two ranges, no more   vcr      on one pair of attributes, if a table of its grid is small enough
    little in common      pst_bloom  if not many: its table stays in the cache, blocks are small
    other conjunctions    blocks   verified where they are listed

`python benchmarks/auto_against_best.py` compares plans with every single index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.segments.reach import reach_of
from matchwood.index.core.protocol import Index
from matchwood.index.core.registry import find_index
from matchwood.index.terms.conjunctions import ONE_IN, are_few, is_several
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

SCAN, BLOCKS, PST_BLOOM, VCR = "scan", "blocks", "pst_bloom", "vcr"
TERMS, A_TREE, AGILE = "terms", "a_tree", "agile"
PLANNED = (SCAN, BLOCKS, PST_BLOOM, VCR, TERMS, A_TREE)
"""Indexes that a segment may have; `a_tree` only one of a snapshot that has it."""

FEW = 256
"""Expressions up to which testing all of them is as fast as entering another index."""

NOT_MANY, LITTLE = 64_000, 5.0
"""Conjunctions up to which `pst_bloom` can be ahead of `blocks`, and `Reach.sharing` below which it
is.  In µs, `blocks` and `pst_bloom`, quiet: pstree 5K, 20K and 50K 2.5 / 1.6, 4.1 / 2.5, 5.8 / 3.7,
sharing 1 to 3, and 9.2 / 14.3 at 100K; begen at 50K 5.3 / 8.9, sharing 11; ads at 20K 6.5 / 9.2,
sharing 6.
"""

MOST_ATTRIBUTES, MOST_SLOTS = 2**24, 2**27
"""What `blocks` and `vcr` refuse more of: a plan gives to an index only what it takes."""

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
    both = np.sort(np.concatenate([conjunctions, trees]))
    if len(both) <= FEW:
        return [Choice(SCAN, both, f"at most {FEW} expressions: testing all is fastest")]
    several = conjunctions[is_several(table, conjunctions)]
    n, n_trees, n_single = len(several), len(trees), len(conjunctions) - len(several)
    if not n_trees and n_single <= max(FEW, n // ONE_IN):
        return _for_conjunctions(table, conjunctions)
    what = [f"{n_trees:,} trees: only predicates that hold lead to them"] if n_trees else []
    if n_single:
        what.append(f"{n_single:,} single predicates: nothing to test")
    if n_trees + n_single <= FEW or not are_few(n, n_trees + n_single):
        rest = np.setdiff1d(both, several, assume_unique=True)
        return [*_for_conjunctions(table, several), Choice(TERMS, rest, "; ".join(what))]
    if n:
        what.append(f"{n:,} conjunctions beside them: too few for one more index")
    return [Choice(TERMS, both, "; ".join(what))]


def _for_conjunctions(table: ExpressionTable, slots: np.ndarray) -> list[Choice]:
    is_pair, pair_reason = _two_ranges(table, slots)
    rest = slots[~is_pair]
    return [Choice(VCR, slots[is_pair], pair_reason), _for_any_conjunctions(table, rest)]


def _for_any_conjunctions(table: ExpressionTable, slots: np.ndarray) -> Choice:
    if not len(slots):
        return Choice(BLOCKS, slots, "")
    if table.n_attributes > MOST_ATTRIBUTES:
        return Choice(PST_BLOOM, slots, f"more than {MOST_ATTRIBUTES:,} attributes")
    mean, found = float(table.layout.size[slots].mean()), reach_of(table, slots)
    what = (
        f"{mean:.1f} predicates on average, an event reaches {found.by_ranges:.2%} of them by "
        f"ranges, {found.sharing:.1f} of those on the same attribute"
    )
    if len(slots) <= NOT_MANY and found.by_ranges > 0.0 and found.sharing < LITTLE:
        return Choice(PST_BLOOM, slots, f"{what}: not many, and blocks would have little to share")
    return Choice(BLOCKS, slots, f"{what}: verified where they are listed")


def _two_ranges(table: ExpressionTable, slots: np.ndarray) -> tuple[np.ndarray, str]:
    """Which slots are two ranges with both ends on one pair of attributes, if `vcr` is for them."""
    none = np.zeros(len(slots), bool)
    is_two = table.layout.size[slots] == 2
    if is_two.sum() < RANGES_FROM or slots[-1] >= MOST_SLOTS:
        return none, ""
    from matchwood.index.vcr.plan import NONE, choose_attributes, make_plan

    p = table.predicates.layout
    two = slots[is_two]
    preds = table.codes_of(two).reshape(-1, 2)
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
