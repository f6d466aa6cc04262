"""Kernels of the context-aware filter: probe, merge, postfilter with short circuit."""

from __future__ import annotations

import numpy as np

from matchwood.context.agile_kernels import probe, probe_size
from matchwood.context.cif_layout_kernels import (
    MINE,
    N_EVENTS,
    N_NOTED,
    N_WRONG,
    VIEW,
    Filter,
    Lists,
)
from matchwood.context.leaf_kernels import Hulls, is_decided, lead
from matchwood.context.member_kernels import MATCH, N_LOOSE, N_MEMBERS, test
from matchwood.context.policy_kernels import DECAY, P_UPDATES, P_WRONG, SAMPLE, ask
from matchwood.context.update_kernels import FALSE_POSITIVES
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.jit import kernel, part, prefetch
from matchwood.kernel.verify_kernels import Posted, finish_event, post_event

SPARSE = 32
"""From one candidate in so many subscriptions on, candidates are put in order."""

IN_ORDER = 4
"""From one found entry in so many subscriptions on, K(i) of all of them are read in order instead:
to follow a chain of markers costs as much an entry as to read ranges that lie side by side."""

NOTHING, FALSE_POSITIVE, FIND = range(3)
"""What searches note for the policy: nothing, false positives, or these and what was found."""

AHEAD = 16
"""How many candidates before its turn one is asked for."""


@part
def _note(search, what):
    """Note something about an entry; what has no room is forgotten."""
    n = search.count[N_NOTED]
    if n < len(search.noted):
        search.noted[n, 0] = what
        search.noted[n, 1] = search.count[N_EVENTS]
        search.count[N_NOTED] = n + 1


@kernel
def absorb_notes(search, wrong, spent, policy, requests, work):
    """Let the policy know what searches have noted, event by event, and leave nothing noted."""
    decayed = np.int64(0)
    for i in range(search.count[N_NOTED]):
        e, event = np.int64(search.noted[i, 0]), np.int64(search.noted[i, 1])
        while decayed <= event and decayed < search.count[N_EVENTS]:
            policy[P_UPDATES] *= DECAY
            policy[P_WRONG] *= DECAY
            decayed += 1
        if e >= 0:
            ask(policy, wrong, e, requests)
        else:
            spent[~e] = min(np.int64(spent[~e]) + 1, 255)
    left = DECAY ** (search.count[N_EVENTS] - decayed)
    policy[P_UPDATES] *= left
    policy[P_WRONG] *= left
    work[FALSE_POSITIVES] += search.count[N_WRONG]
    for i in range(len(search.count)):
        search.count[i] = 0


_view_of, _mine_of = VIEW.reader(), MINE.reader()


@part
def _list_of(lists, attr):
    return np.int64(lists.of_attr[attr]) if attr < len(lists.of_attr) else np.int64(-1)


@part
def _ask(x, k, key, base, n, search):
    """Count the subscriptions that an index finds under a key; those found often are candidates.

    Returns how many candidates there are then.
    """
    need, width = x.members.need, x.lists.width
    seen, found, candidates = search.seen, search.found, search.candidates
    n_found = probe(x.s, k, key, found, np.int64(0))
    if x.notes == FIND and search.clock[0] % SAMPLE == 0:
        for i in range(n_found):
            _note(search, ~np.int64(found[i]))
    for i in range(n_found):
        e = np.int64(found[i])
        p = e >> 1 if width == 2 else e // width  # a division costs as much as all this
        count = max(np.int64(seen[p]), base) + 1
        seen[p] = count
        if count == base + need[p]:
            candidates[n] = p
            n += 1
    return n


@part
def _pose(x, events, e, search):
    """Write the event's key for every index that it asks; returns how many entries they hold under
    these keys, at least.
    """
    lists, clock, n_found = x.lists, search.clock[0], np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        k = _list_of(lists, events.attr[entry])
        if k >= 0:
            search.key[k, 0], search.key[k, 1] = events.lo[entry], clock
            n_found += probe_size(x.s, k, np.int64(events.lo[entry]))
    if lists.every >= 0:
        search.key[lists.every, 0], search.key[lists.every, 1] = 0, clock
        n_found += probe_size(x.s, np.int64(lists.every), np.int64(0))
    return n_found


@part
def _is_found(x, e, search):
    """Whether the event's key is in K(e): 1 or 0, without a jump that could be guessed wrong."""
    k, held = np.int64(x.members.listed[e]), x.s.range
    key = search.key[k, 0]
    return np.int64(held[e, 0] <= key) & np.int64(key <= held[e, 1]) & search.key[k, 2]


@part
def _read_in_order(x, search):
    """The candidates that `_ask` of all indexes would find, in order, from K(i) of every entry."""
    need, width, n_members = x.members.need, x.lists.width, x.members.count[N_MEMBERS]
    for k in range(len(search.key)):
        search.key[k, 2] = search.key[k, 1] == search.clock[0]
    n = np.int64(0)
    for p in range(n_members):
        e = p * width
        found = _is_found(x, e, search)
        if width == 2:  # a loop of one turn costs as much as the turn
            found += _is_found(x, e + 1, search)
        else:
            for other in range(e + 1, e + width):
                found += _is_found(x, other, search)
        search.candidates[n] = p
        n += np.int64(found >= need[p]) & np.int64(need[p] > 0)
    if x.notes == FIND and search.clock[0] % SAMPLE == 0:
        _note_found(x, n_members * width, search)
    return n


@part
def _note_found(x, n_entries, search):
    """Note all entries that have the event's key in K(e), as far as there is room."""
    n, event, noted = search.count[N_NOTED], search.count[N_EVENTS], search.noted
    for e in range(n_entries):
        if n == len(noted):
            break
        noted[n, 0], noted[n, 1] = ~e, event
        n += _is_found(x, e, search)
    search.count[N_NOTED] = n


@part
def _merge(x, events, e, search):
    """Candidates of the posted event: what all its indexes have found, and the loose.

    `seen` counts, above a base that rises from event to event, so it is cleared once in 31.  Many
    candidates are read off it in order: testing them then runs through memory, not across it.
    Where indexes would find very many, as they do after escalations, they are not asked.
    """
    members, lists = x.members, x.lists
    clock, seen, candidates = search.clock, search.seen, search.candidates
    clock[0] += 1  # an event that has to be repeated counts anew
    if clock[0] % 31 == 0:
        for p in range(len(seen)):
            seen[p] = 0
    base = 8 * (clock[0] % 31)
    n, n_asked = np.int64(0), np.int64(0)
    need = members.need
    if _pose(x, events, e, search) * IN_ORDER > members.count[N_MEMBERS]:
        n = _read_in_order(x, search)
    else:
        for entry in range(events.start[e], events.start[e + 1]):
            k = _list_of(lists, events.attr[entry])
            if k >= 0:
                n = _ask(x, k, np.int64(events.lo[entry]), base, n, search)
                n_asked += 1
        if lists.every >= 0:
            n = _ask(x, np.int64(lists.every), np.int64(0), base, n, search)
            n_asked += 1
        if n * SPARSE > members.count[N_MEMBERS]:
            n = 0
            for p in range(members.count[N_MEMBERS]):
                if need[p] > 0 and seen[p] >= base + need[p]:
                    candidates[n] = p
                    n += 1
    for i in range(members.count[N_LOOSE]):
        p = members.loose[i]
        if members.slot[p] >= 0:
            candidates[n] = p
            n += 1
    return n, n_asked


@part
def _all(members, candidates):
    n = np.int64(0)
    for p in range(members.count[N_MEMBERS]):
        if members.slot[p] >= 0:
            candidates[n] = p
            n += 1
    return n


@part
def _can_probe(events, e, lists):
    """Whether the event has single keys where indexes are asked."""
    for entry in range(events.start[e], events.start[e + 1]):
        if _list_of(lists, events.attr[entry]) >= 0:
            if events.lo[entry] != events.hi[entry]:
                return False
            if len(events.more) > 0 and events.more[entry] >= 0:
                return False  # a double, and values between it and the next
    return True


@part
def _failed_entry(entry, p, at, is_tree, n_indexes):
    """The entry whose leaf decided against a subscription, -1 when no index holds that leaf.

    Of a tree, whose leaves do not decide alone, the first one.
    """
    for e in range(p * n_indexes, (p + 1) * n_indexes):
        first = entry[e, 0]
        if first <= at < first + entry[e, 1] or (is_tree and entry[e, 1] > 0):
            return np.int64(e)
    return np.int64(-1)


@part
def _look_ahead(members, cells, candidates, n, i, width):
    """Ask for what the candidates after this one need: first where it is, then it itself."""
    p = np.int64(candidates[min(i + AHEAD, n - 1)])
    prefetch(members.start, p)
    prefetch(members.row, p)
    prefetch(members.entry, 3 * width * p)
    p = np.int64(candidates[min(i + AHEAD // 2, n - 1)])
    prefetch(members.leaf, 4 * members.start[p])
    prefetch(cells, 4 * cells.shape[1] * max(np.int64(members.row[p]), 0))


@part
def _postfilter(x, n, is_probed, event, search, out, used):
    """Append the slots of the n candidates that match to out; returns how many are there then.

    A false positive of an index is noted for the policy.
    """
    members, cells, events = x.members, x.cells, event.events
    hulls = Hulls(events.lo, events.hi, event.stamp, event.board)
    candidates, tested = search.candidates, search.tested
    start, leaf, rows, is_tree = members.start, members.leaf, members.row, members.is_tree
    has_sets = len(events.more) > 0
    n_tested = np.int64(0)
    is_scattered = 2 * n <= members.count[N_MEMBERS]
    for i in range(n):
        if is_scattered:
            _look_ahead(members, cells, candidates, n, i, x.lists.width)
        p = np.int64(candidates[i])
        first, end, row = start[p], start[p + 1], np.int64(rows[p])
        at = first
        is_open = is_tree[p] != 0 or has_sets
        if not is_open:
            at = lead(leaf, first, end, row, cells, hulls)
            n_tested += min(at + 1, end) - first
            is_open = at < end and not is_decided(leaf, at)
        if is_open:
            at = test(members, p, at, cells, event, tested)
        if at == MATCH or at == end:
            out[used] = members.slot[p]
            used += 1
        elif is_probed:
            e = _failed_entry(members.entry, p, at, is_tree[p] != 0, x.lists.width)
            if e >= 0:
                search.count[N_WRONG] += 1
                if x.notes >= FALSE_POSITIVE:
                    _note(search, e)
    tested[0] += n_tested
    return used


@kernel
def filter_batch(bound, mine, notes, query, first, stamp):
    """Match events first..; returns the one at which the output was full, or their number."""
    view, memory, asked = _view_of(bound), _mine_of(mine), query_of(query)
    lists = Lists(view.of_attr, view.every_width[0], view.every_width[1])
    x = Filter(view.members, view.s, view.cells, lists, notes)
    search, events, output = memory.search, asked.events, asked.output
    offsets, out = output.offsets, output.out
    used = offsets[first]
    for e in range(first, len(events.start) - 1):
        event = Posted(events, stamp + e, memory.board, view.predicates)
        post_event(events, e, event.stamp, event.board)
        is_probed = x.lists.width > 0 and _can_probe(events, e, x.lists)
        n_asked = np.int64(0)
        if is_probed:
            n, n_asked = _merge(x, events, e, search)
        else:
            n = _all(x.members, search.candidates)
        if used + n > len(out):
            return e
        search.tested[0] = 0
        used = _postfilter(x, n, is_probed, event, search, out, used)
        search.count[N_EVENTS] += 1
        finish_event(e, used, n_asked, n, search.tested[0], output)
    return len(events.start) - 1


@kernel
def filter_chosen(x, search, start, chosen, predicates, batch, output):
    """As `filter_batch`, where event e is tested with chosen[start[e]:start[e + 1]] alone."""
    events, offsets, out = batch.events, output.offsets, output.out
    used = offsets[batch.first]
    for e in range(batch.first, len(events.start) - 1):
        n = start[e + 1] - start[e]
        if used + n > len(out):
            return e
        event = Posted(events, batch.stamp + e, batch.board, predicates)
        post_event(events, e, event.stamp, event.board)
        for i in range(n):
            search.candidates[i] = chosen[start[e] + i]
        search.tested[0] = 0
        used = _postfilter(x, n, False, event, search, out, used)
        finish_event(e, used, np.int64(0), n, search.tested[0], output)
    return len(events.start) - 1


@kernel
def probe_one(s, k, key, found):
    """The entries that index k finds under a key: the step before a merge of bitmaps."""
    return probe(s, k, key, found, np.int64(0))


@kernel
def postfilter_first(x, n, is_probed, search, predicates, batch, out):
    """Test the n candidates of the first event of a batch; returns how many matched."""
    event = Posted(batch.events, batch.stamp + batch.first, batch.board, predicates)
    post_event(batch.events, batch.first, event.stamp, event.board)
    used = _postfilter(x, n, is_probed, event, search, out, np.int64(0))
    search.count[N_EVENTS] += 1
    return used
