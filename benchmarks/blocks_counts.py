"""Counts about `blocks`: candidates if access were by two attributes, equal remainders.

    python benchmarks/blocks_counts.py [subscriptions] [workload,...]

"candidates": members of the spaces of an event, matches among them: in all, those of coarse
divisions, and those of subscriptions whose access predicate is a single value.  "pairs": the
same if each subscription without a single value were listed once, under two of its attributes
instead.  Attributes are of two classes, and both are of one class: among three attributes there
are always two such, and an event of n attributes has about n * n / 4 pairs to look up instead of
n * n / 2.

"remainders": members of all spaces, and how many have the same predicates apart from the access
predicate as another member, in the same space and anywhere.  Equal subscriptions count once.

`growth` is the workload of the row "10M against 1M": pstree with 1,000 attributes, 1,000 matches.
"""

from __future__ import annotations

import sys

import numpy as np

from matchwood.bench.speed.index_cases import distinct
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.blocks.members import count_members, list_members
from matchwood.index.core.registry import find_index
from matchwood.index.pst.bloom import Division, PSTBloom
from matchwood.index.pst.spaces import Spaces
from matchwood.kernel.arrays import slices
from matchwood.workload import Workload, find_workload
from matchwood.workload.loading import load_events, load_subscriptions

WORKLOADS = "growth,begen,begen:zipf,pstree,pstree:dims-30k"
N_EVENTS = 200
MIXER = np.uint64(0x9E3779B97F4A7C15)


def workload_of(name: str, n: int) -> Workload:
    if name != "growth":
        return find_workload(name, n_subscriptions=n, n_events=N_EVENTS)
    return find_workload(
        "pstree", n_subscriptions=n, n_events=N_EVENTS, n_attributes=1_000,
        match_probability=1_000 / n,
    )  # fmt: skip


def without_equal(table: ExpressionTable, slots: np.ndarray) -> np.ndarray:
    """One slot of each set of equal subscriptions."""
    total = _sums(table, slots, _mixed(np.arange(len(table.predicates.layout.attr))))
    return slots[np.sort(np.unique(total, return_index=True)[1])]


def _mixed(ids: np.ndarray) -> np.ndarray:
    """Numbers whose sums tell sets of ids apart."""
    x = (ids.astype(np.uint64) + np.uint64(1)) * MIXER
    for shift in (31, 29):
        x = (x ^ (x >> np.uint64(shift))) * MIXER
    return x ^ (x >> np.uint64(32))


def _sums(table: ExpressionTable, slots: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """The sum of the numbers of each subscription's predicates."""
    x = table.layout
    size = x.size[slots].astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(size)[:-1]])
    return np.add.reduceat(mixed[x.code[slices(x.start[slots], size)]], begin)


def members_of(
    spaces: Spaces, n_attributes: int, table: ExpressionTable, division: Division
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where dimensions begin, where spaces do, and the members of all spaces."""
    p, access = table.predicates.layout, division.access
    dim_start = np.concatenate([[0], np.cumsum(spaces.size[: 2 * n_attributes].astype(np.int64))])
    n_members = np.zeros(int(dim_start[-1]), np.int64)
    count_members(spaces, dim_start, p, access, np.empty(len(access), np.int32), n_members)
    start = np.concatenate([[0], np.cumsum(n_members)])
    listed = np.empty(int(start[-1]), np.int32)
    order = np.arange(len(access))
    list_members(spaces, dim_start, p, access, order, start[:-1].copy(), listed)
    return dim_start, start, listed


def count_candidates(
    events: EventBatch, spaces: Spaces, single: np.ndarray,
    dim_start: np.ndarray, start: np.ndarray, listed: np.ndarray,
) -> tuple[float, float, float]:  # fmt: skip
    """Candidates of an event: all, those of coarse divisions, those with a single value."""
    found = np.zeros(3)
    n_single = np.concatenate([[0], np.cumsum(single[listed])])
    for attr, key in zip(events.attr.tolist(), events.lo.tolist(), strict=True):
        for dim in (2 * attr, 2 * attr + 1):
            size = int(dim_start[dim + 1] - dim_start[dim])
            if not size:
                continue
            cuts = spaces.cut[spaces.start[dim] : spaces.start[dim] + size]
            at = int(dim_start[dim]) + int(np.searchsorted(cuts, key, side="right")) - 1
            n = start[at + 1] - start[at]
            found += (n, n * (dim & 1), n_single[start[at + 1]] - n_single[start[at]])
    return tuple((found / events.n_events).tolist())


def count_pairs(
    events: EventBatch, table: ExpressionTable, slots: np.ndarray
) -> tuple[float, float, int]:
    """Candidates and pairs of an event if these slots had two attributes each; pairs that occur."""
    x, p = table.layout, table.predicates.layout
    size = x.size[slots].astype(np.int64)
    attr = p.attr[x.code[slices(x.start[slots], size)]].astype(np.int64)
    owner = np.repeat(np.arange(len(slots)), size)
    order = np.lexsort((attr, attr & 1, owner))
    attr, owner = attr[order], owner[order]
    is_pair = (owner[1:] == owner[:-1]) & ((attr[1:] ^ attr[:-1]) & 1 == 0) & (attr[1:] > attr[:-1])
    at = np.flatnonzero(is_pair)
    at = at[np.unique(owner[at], return_index=True)[1]]
    wide = table.n_attributes
    keys, n = np.unique(attr[at] * wide + attr[at + 1], return_counts=True)
    n_found = n_pairs = 0
    for e in range(events.n_events):
        named = np.unique(events.attr[events.start[e] : events.start[e + 1]]).astype(np.int64)
        for each in (named[named & 1 == 0], named[named & 1 == 1]):
            i, j = np.triu_indices(len(each), 1)
            asked = each[i] * wide + each[j]
            n_pairs += len(asked)
            position = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            n_found += int(n[position[keys[position] == asked]].sum())
    return n_found / events.n_events, n_pairs / events.n_events, len(keys)


def n_repeated(values: np.ndarray) -> int:
    """How many values have an equal one before them."""
    return len(values) - len(np.unique(values))


def count(name: str, n: int) -> None:
    workload = workload_of(name, n)
    loaded = load_subscriptions(workload)
    table, events = loaded.table, distinct(load_events(workload, loaded.attributes))
    slots, p = without_equal(table, loaded.slots), loaded.table.predicates.layout
    settings = find_index("blocks").Config().division()
    division = PSTBloom.build(table, slots[:0], **settings).divide(slots)
    access = np.where(division.access < 0, ~division.access, division.access)
    single = (p.lo[access] == p.hi[access]) & (p.n_intervals[access] == 1)
    placed = members_of(division.spaces, table.n_attributes, table, division)
    every, coarse, of_single = count_candidates(events, division.spaces, single, *placed)
    print(
        f"{name} {n:,}: {len(slots):,} different, {len(placed[2]):,} members; candidates "
        f"{every:,.0f}, coarse {coarse:,.0f}, single values {of_single:,.0f} "
        f"({single.mean():.1%} of all)",
        flush=True,
    )
    found, n_pairs, n_keys = count_pairs(events, table, slots[~single])
    print(f"  pairs: {found:,.0f} candidates in {n_pairs:,.0f} lookups, {n_keys:,} pairs occur")
    mixed = _mixed(np.arange(len(p.attr)))
    rest = (_sums(table, slots, mixed) - mixed[access])[placed[2]]
    space = np.repeat(np.arange(len(placed[1]) - 1), np.diff(placed[1]))
    once = (_sums(table, slots, mixed) - mixed[access]) ^ _mixed(p.attr[access])
    print(
        f"  remainders: {n_repeated(rest + _mixed(space)):,} of {len(rest):,} members are equal to "
        f"another of their space, {n_repeated(once):,} of {len(slots):,} subscriptions to another "
        "with the same access attribute",
        flush=True,
    )


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    for each in given.get(1, WORKLOADS).split(","):
        count(each, int(given.get(0, 1_000_000)))
