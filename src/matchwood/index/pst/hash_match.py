"""Kernels that match events against `pst_hash`: combine the spaces of an event, look them up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.core.layout_kernels import (
    BOARD,
    EXPRESSION_TABLE,
    ID_LISTS,
    PREDICATE_TABLE,
)
from matchwood.index.core.query_kernels import query_of
from matchwood.index.pst.bloom_match import (
    ENTRIES,
    RECORDS,
    SIGNATURES,
    SPACES,
    begin_event,
    end_event,
    find_spaces,
    gather_sets,
    sieve_spaces,
    verify,
    verify_sets,
)
from matchwood.index.pst.entries import Entries, slot_of
from matchwood.index.pst.keys import Keyed
from matchwood.index.pst.records import Records
from matchwood.index.pst.signatures import Signatures, sign_event
from matchwood.index.pst.space_hash import (
    NODE,
    SpaceHash,
    key_of,
    node_of,
    value_of,
)
from matchwood.index.pst.spaces import Spaces, position_of
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.jit import inlined, kernel, prefetch
from matchwood.kernel.posting_kernels import clear_offsets, post_offsets
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    Board,
    holds_in_table,
)
from matchwood.kernel.word_map_kernels import HELD, find_cell, home_of

BLOCK = 128
"""Lookups whose entries are prefetched before the first of them is made."""

VISIT = 4
"""Lookups that take about as long as testing one member of a space."""


class HashSearch(NamedTuple):
    """What a search writes to: that of `pst_bloom`, and keys on their way."""

    posted: np.ndarray
    found: np.ndarray
    picks: np.ndarray
    seen: np.ndarray
    clock: np.ndarray
    work: np.ndarray
    sieve: np.ndarray
    absent: np.ndarray
    learned: np.ndarray
    count: np.ndarray
    waiting: np.ndarray  # int64[BLOCK], keys that are looked up together
    chosen: np.ndarray  # int64[N + 1], which spaces of the event are in the key at hand
    prefix: np.ndarray  # int64[N + 1], what stands for the first parts of that key


class View(NamedTuple):
    """What a search reads."""

    spaces: Spaces
    records: Records
    entries: Entries
    signatures: Signatures
    keyed: Keyed
    members: IdLists
    table: SpaceHash
    groups: IdLists
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    search: HashSearch
    board: Board


VIEW = Layout(
    View,
    spaces=SPACES, records=RECORDS, entries=ENTRIES, signatures=SIGNATURES,
    keyed=Layout(Keyed, access="int32[2]", arity="int8", by_arity="int64", demoted="int64"),
    members=ID_LISTS,
    table=Layout(SpaceHash, cell="int64[2]", chain="int32", node="int32", count="int64"),
    groups=ID_LISTS, expressions=EXPRESSION_TABLE, predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(
    Mine,
    search=Layout(
        HashSearch,
        posted="int64", found="int64", picks="int32", seen="int64", clock="int64", work="int64",
        sieve="int64", absent="int64", learned="int32[2]", count="int64", waiting="int64",
        chosen="int64", prefix="int64",
    ),
    board=BOARD,
)  # fmt: skip
_view_of, _mine_of = VIEW.reader(), MINE.reader()


@inlined
def _take(groups, value, picks, n):
    """Append the expressions of a hash entry to the picks; returns their number."""
    if value > 0:
        picks[n] = value - 1
        return n + np.uint64(1)
    group = ~value
    for i in range(groups.start[group], groups.start[group] + groups.size[group]):
        picks[n] = groups.item[i]
        n += np.uint64(1)
    return n


@inlined
def _look_up(table, groups, scratch, n_keys, n):
    """Look up the waiting keys, then append what they hold; memory is prefetched in between."""
    n_values = np.uint64(0)
    for i in range(n_keys):
        value = value_of(table.cell[find_cell(table.cell, scratch.waiting[i]), HELD])
        scratch.waiting[n_values] = value
        n_values += np.uint64(value != 0)
        prefetch(groups.start, ~value)
        prefetch(groups.size, ~value)
    for i in range(n_values):
        if scratch.waiting[i] < 0:
            prefetch(groups.item, groups.start[~scratch.waiting[i]])
    for i in range(n_values):
        n = _take(groups, scratch.waiting[i], scratch.picks, n)
    scratch.work[NODES] += n_keys
    return n


@inlined
def member_spaces(spaces, members, events, e, found):
    """The spaces of an event that are part of some combination: how many, and all their members."""
    n, n_members = np.int64(0), np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        dim = 2 * np.int64(events.attr[entry])
        if dim < len(spaces.size) and spaces.size[dim] > 0:
            space = spaces.item[position_of(spaces, dim, events.lo[entry])]
            if members.size[space] > 0:
                found[n] = space
                n += 1
                n_members += members.size[space]
    return n, n_members


@inlined
def has_fewer_members(n_spaces, n_members, most):
    """Whether testing all members of an event's spaces takes less than looking up combinations.

    There are C(n, 2) + ... + C(n, most) combinations at most: an event of thousands of attributes
    makes millions of them, most of which nothing is under.
    """
    lookups, combinations = np.int64(0), n_spaces
    for d in range(2, most + 1):
        combinations = combinations * max(n_spaces - d + 1, 0) // d
        lookups += combinations
        if lookups > VISIT * n_members:
            return True
    return False


@inlined
def combine_pairs(table, groups, scratch, n_spaces, n):
    """Look up all pairs of an event's spaces."""
    waiting = np.int64(0)
    for i in range(n_spaces):
        for j in range(i + 1, n_spaces):
            key = key_of(scratch.found[i], scratch.found[j])
            prefetch(table.cell, np.uint64(2) * home_of(table.cell, key))
            scratch.waiting[waiting] = key
            waiting += 1
            if waiting == BLOCK:
                n = _look_up(table, groups, scratch, waiting, n)
                waiting = np.int64(0)
    return _look_up(table, groups, scratch, waiting, n)


@inlined
def combine(table, groups, scratch, n_spaces, most, n):
    """As `combine_pairs`, for up to `most` parts; a prefix that no combination has is dropped."""
    chosen, prefix = scratch.chosen, scratch.prefix
    d = np.int64(0)
    chosen[0] = -1
    while d >= 0:
        chosen[d] += 1
        if chosen[d] >= n_spaces:
            d -= 1
            continue
        space = scratch.found[chosen[d]]
        if d == 0:
            prefix[1] = space
        else:
            held = table.cell[find_cell(table.cell, key_of(prefix[d], space)), HELD]
            scratch.work[NODES] += 1
            if value_of(held) != 0:
                n = _take(groups, value_of(held), scratch.picks, n)
            if node_of(held) == 0:
                continue
            prefix[d + 1] = NODE | node_of(held)
        if d + 1 < most:
            chosen[d + 1] = chosen[d]
            d += 1
    return n


@inlined
def _can_hold(keyed, slot, event):
    """Whether an event satisfies all access predicates of an expression."""
    for d in range(keyed.arity[slot]):
        if not holds_in_table(event, keyed.access[slot, d]):
            return False
    return True


@inlined
def walk_members(spaces, members, keyed, entries, event, e, scratch, n):
    """Members of an event's spaces that satisfy all their access predicates, each once.

    A member is met in one space of each of its access attributes; the first one counts.
    """
    events = event.events
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if 2 * attr >= len(spaces.size) or spaces.size[2 * attr] == 0:
            continue
        space = spaces.item[position_of(spaces, 2 * attr, events.lo[entry])]
        first = members.start[space]
        scratch.work[NODES] += members.size[space]
        for i in range(first, first + members.size[space]):
            ref = members.item[i]
            slot = slot_of(entries, ref)
            is_first = event.predicates.attr[keyed.access[slot, 0]] == attr
            if is_first and _can_hold(keyed, slot, event):
                scratch.picks[n] = ref
                n += np.uint64(1)
    return n


@inlined
def _member_sets(spaces, members, keyed, entries, event, e, scratch, n):
    """Members of all spaces that an event of sets meets, each once."""
    events = event.events
    clock, before = scratch.clock[0], n
    for entry in range(events.start[e], events.start[e + 1]):
        dim = 2 * np.int64(events.attr[entry])
        if dim >= len(spaces.size) or spaces.size[dim] == 0:
            continue
        first, last = (
            position_of(spaces, dim, events.lo[entry]),
            position_of(spaces, dim, events.hi[entry]),
        )
        for position in range(first, last + 1):
            space = spaces.item[position]
            for i in range(members.start[space], members.start[space] + members.size[space]):
                ref = members.item[i]
                slot = slot_of(entries, ref)
                if scratch.seen[slot] != clock:
                    scratch.seen[slot] = clock
                    if _can_hold(keyed, slot, event):
                        scratch.picks[n] = ref
                        n += np.uint64(1)
    scratch.work[CANDIDATES] += np.int64(n - before)
    return n


@kernel
def match_hash(bound, mine, every, is_plain, bound_query, first, stamp):
    """Match events first..; returns how many are done.

    every  one event in so many is noted, 0: none
    """
    view, memory, query = _view_of(bound), _mine_of(mine), query_of(bound_query)
    events, output = query.events, query.output
    spaces, records, entries, signatures = view.spaces, view.records, view.entries, view.signatures
    keyed, members, table, groups = view.keyed, view.members, view.table, view.groups
    scratch, out = memory.search, output.out
    most = np.int64(keyed.access.shape[1])
    while most > 1 and keyed.by_arity[most] == 0:
        most -= 1
    n = output.offsets[first]
    for e in range(first, len(events.start) - 1):
        now = stamp + e
        event = begin_event(events, e, now, memory.board, view.predicates, scratch.work)
        n_picks = n_sieved = np.uint64(0)
        if is_plain:
            post_offsets(entries, events, e, scratch.posted)
            if keyed.by_arity[1] > 0:
                sign_event(signatures, events, e, scratch.absent)
                n_spaces = find_spaces(spaces, records, events, e, scratch)
                n_sieved = sieve_spaces(records, scratch.absent, scratch, n_spaces)
            n_spaces, n_members = member_spaces(spaces, members, events, e, scratch.found)
            n_picks = n_sieved
            if has_fewer_members(n_spaces, n_members, most):
                n_picks = walk_members(spaces, members, keyed, entries, event, e, scratch, n_picks)
            elif most == 2:
                n_picks = combine_pairs(table, groups, scratch, n_spaces, n_picks)
            elif most > 2:
                n_picks = combine(table, groups, scratch, n_spaces, most, n_picks)
            scratch.work[CANDIDATES] += np.int64(n_picks - n_sieved)
            found = verify(entries, event, scratch, n_sieved, n_picks, n, out)
            clear_offsets(events, e, scratch.posted)
        else:
            n_picks = gather_sets(spaces, records, entries, events, e, scratch, n_picks)
            n_picks = _member_sets(spaces, members, keyed, entries, event, e, scratch, n_picks)
            found = verify_sets(entries, event, view.expressions, scratch, n_picks, n, out)
        if found < 0:
            return e
        n = found
        end_event(spaces, events, e, now, every, scratch, n, output)
    return len(events.start) - 1
