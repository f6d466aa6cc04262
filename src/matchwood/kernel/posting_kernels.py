"""Kernels of `postings`: write, move, remove and verify entries; arrays are in `postings.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import inlined, kernel, part
from matchwood.kernel.posting_cell_kernels import (
    ATTR,
    INSIDE,
    INTERVAL,
    KIND,
    LOW,
    MOST_ATTRIBUTES,
    PAST,
    WIDE,
    WIDE_SET,
    WORD,
    cell_attr,
    cell_words,
    offset,
    wide_pred,
    write_cell,
)
from matchwood.kernel.verify_kernels import CANDIDATES, PREDICATES, holds, holds_in_table

START, USED, ROOM, N = range(4)
"""Columns of `PostingLayout.lists`."""

TOP, FREED = range(2)
"""Positions in `PostingLayout.count`: words ever handed out, words in free segments."""

N_CLASSES = 128


class PostingLayout(NamedTuple):
    """See `postings.py` for the table of arrays."""

    word: np.ndarray
    lists: np.ndarray
    free: np.ndarray
    origin: np.ndarray
    count: np.ndarray


# ── segments ────────────────────────────────────────────────────────────────────────────────────


@part
def class_of(words):
    """The smallest size class that holds so many words: 8 10 12 14 16 20 24 28 32 40 ..."""
    k = np.int64(0)
    while ((np.int64(4) + (k & 3)) << (k >> 2)) * 2 < words:
        k += 1
    return k


@part
def class_words(k):
    return ((np.int64(4) + (k & 3)) << (k >> 2)) * 2


@part
def has_words(postings, words):
    """Whether segments for so many words, in at most three lists, surely fit."""
    return postings.count[TOP] + words + (words >> 2) + 64 <= len(postings.word)


@part
def _take_segment(postings, k):
    head = postings.free[k]
    if head >= 0:
        postings.free[k] = postings.word[head]
        postings.count[FREED] -= class_words(k)
        return head
    start = postings.count[TOP]
    postings.count[TOP] += class_words(k)
    return start


@part
def release_segment(postings, which):
    """Give a list's segment back; the list is then empty."""
    row = postings.lists[which]
    if row[ROOM] > 0:
        k = class_of(np.int64(row[ROOM]))
        postings.word[row[START]] = postings.free[k]
        postings.free[k] = row[START]
        postings.count[FREED] += row[ROOM]
    row[START], row[USED], row[ROOM], row[N] = 0, 0, 0, 0


@part
def resize(postings, which, words):
    """Give a list a segment of the class for `words`, and move what it holds there."""
    row = postings.lists[which]
    k = class_of(words)
    start = _take_segment(postings, k)
    used, n = row[USED], row[N]
    for i in range(used):
        postings.word[start + i] = postings.word[row[START] + i]
    release_segment(postings, which)
    row[START], row[USED], row[ROOM], row[N] = start, used, class_words(k), n


@part
def fit(postings, which):
    """Shrink a list that fills less than half of its segment."""
    row = postings.lists[which]
    if row[USED] == 0:
        release_segment(postings, which)
    elif row[USED] * 2 < row[ROOM] and row[ROOM] > 16 and has_words(postings, row[USED]):
        resize(postings, which, np.int64(row[USED]))


@kernel
def compact(postings, n_lists, fresh):
    """Copy all lists, each with a segment of its class, to a fresh arena; returns its length."""
    top = np.int64(0)
    for which in range(n_lists):
        row = postings.lists[which]
        if row[ROOM] == 0:
            continue
        room = class_words(class_of(np.int64(row[USED])))
        for i in range(row[USED]):
            fresh[top + i] = postings.word[row[START] + i]
        row[START], row[ROOM] = top, room
        top += room
    postings.count[TOP], postings.count[FREED] = top, 0
    postings.free[:] = -1
    return top


# ── entries ─────────────────────────────────────────────────────────────────────────────────────


@part
def entry_slot(w):
    return np.int32(w & WORD)


@part
def entry_words(w):
    return w >> 32


@part
def find_cell(postings, entry, attr):
    """Where an entry has its predicate on an attribute; -1 when it is not inline."""
    end = entry + entry_words(postings.word[entry])
    at = entry + 1
    while at < end:
        w = postings.word[at]
        if cell_attr(w) == attr:
            return at
        at += cell_words(w)
    return np.int64(-1)


@part
def push(postings, which, expressions, predicates, slot, skip, rarity):
    """Append an expression to a list, without the predicates on attributes with skip[attr] > 0.

    The others stand with the rarest attribute first, so that most false candidates are left at
    their first predicate.  Returns False, having done nothing, when the arena is full.
    """
    row = postings.lists[which]
    begin = expressions.start[slot]
    size = np.int64(expressions.size[slot])
    most = np.int64(row[USED]) + 1 + 3 * size
    if most > row[ROOM]:
        if not has_words(postings, most):
            return False
        resize(postings, which, most)
    first = np.int64(row[START] + row[USED])
    at = first + 1
    last_rarity, last_attr = np.int64(-1), np.int64(-1)
    for _ in range(size):  # selection by (rarity, attribute): sizes are small, nothing is kept
        best, best_rarity, best_attr = np.int64(-1), np.int64(0), np.int64(0)
        for k in range(begin, begin + size):
            attr = np.int64(predicates.attr[expressions.code[k]])
            rare = np.int64(rarity[attr])
            if skip[attr] > 0 or rare < last_rarity or (rare == last_rarity and attr <= last_attr):
                continue
            if best < 0 or rare < best_rarity or (rare == best_rarity and attr < best_attr):
                best, best_rarity, best_attr = np.int64(k), rare, attr
        if best < 0:
            break
        at = write_cell(postings, predicates, expressions.code[best], at)
        last_rarity, last_attr = best_rarity, best_attr
    postings.word[first] = ((at - first) << 32) | np.int64(slot)
    row[USED] += at - first
    row[N] += 1
    return True


@part
def copy_entry(postings, entry, which, without):
    """Append a copy of an entry to a list that has room, `without` one cell unless that is -1."""
    row = postings.lists[which]
    word = postings.word
    words = entry_words(word[entry])
    to = np.int64(row[START] + row[USED])
    at = to + 1
    dropped = cell_words(word[without]) if without >= 0 else 0
    for i in range(entry + 1, entry + words):
        if without < 0 or i < without or i >= without + dropped:
            word[at] = word[i]
            at += 1
    word[to] = ((at - to) << 32) | np.int64(entry_slot(word[entry]))
    row[USED] += at - to
    row[N] += 1


@part
def drop_entry(postings, which, slot):
    """Remove an expression from a list and close the gap; False when it is not there."""
    row = postings.lists[which]
    word = postings.word
    at, end = np.int64(row[START]), np.int64(row[START] + row[USED])
    while at < end and entry_slot(word[at]) != slot:
        at += entry_words(word[at])
    if at >= end:
        return False
    words = entry_words(word[at])
    for i in range(at, end - words):
        word[i] = word[i + words]
    row[USED] -= words
    row[N] -= 1
    return True


# ── verification ────────────────────────────────────────────────────────────────────────────────


@inlined
def post_offsets(postings, events, e, posted):
    """Post an event's keys as offsets, after `verify_kernels.post_event`."""
    for i in range(events.start[e], events.start[e + 1]):
        attr = events.attr[i]
        if attr < len(postings.origin):
            posted[attr] = offset(postings.origin[attr], events.lo[i])


@inlined
def clear_offsets(events, e, posted):
    for i in range(events.start[e], events.start[e + 1]):
        posted[events.attr[i]] = -1


@inlined
def _by_table(event, expressions, slot, attr):
    """An interval event: look the predicate up and compare whole sets."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        if event.predicates.attr[expressions.code[k]] == attr:
            return holds_in_table(event, expressions.code[k])
    return False


@inlined
def _wide_holds(event, word, at):
    pred = wide_pred(word[at])
    ref = pred if word[at] >> KIND == WIDE else ~pred
    low, high = word[at + np.uint64(1)], word[at + np.uint64(2)]
    return holds(event, cell_attr(word[at]), low, high, ref)


@inlined
def first_failing(word, at, end, event, posted, tested):
    """The first cell that does not hold for an event of values, or `end`; and the tests so far.

    Positions are unsigned: Numba then leaves out the check for negative ones, a third of the time.
    """
    while at < end:
        tested += 1
        w = word[at]
        kind = w >> KIND
        if kind == INTERVAL:
            x = posted[np.uint64(w >> ATTR)]  # -1 when absent: below every lower end
            if x < ((w >> LOW) & PAST) or x > (w & PAST):
                return at, tested
            at += np.uint64(1)
        elif kind == WIDE or kind == WIDE_SET:
            if not _wide_holds(event, word, at):
                return at, tested
            at += np.uint64(3)
        else:
            x = posted[np.uint64(w >> ATTR) & np.uint64(MOST_ATTRIBUTES - 1)]
            low, high = (w >> LOW) & PAST, w & PAST
            masks, bit = at + np.uint64(1), x - low
            is_set = low <= x <= high and (word[masks + np.uint64(bit >> 6)] >> (bit & 63)) & 1 == 1
            if x < 0 or is_set != (kind == INSIDE):
                return at, tested
            at = masks + np.uint64(1) + np.uint64(high - low >= 64)
    return at, tested


@inlined
def first_impossible(word, at, end, event, expressions, slot, tested):
    """The same for an event of sets, by the predicate table: hulls alone do not decide."""
    while at < end:
        tested += 1
        w = word[at]
        attr = cell_attr(w)
        if not _by_table(event, expressions, slot, attr):
            return at, tested
        at += np.uint64(cell_words(w))
    return at, tested


@inlined
def emit_watched(postings, which, event, posted, expressions, n, output):
    """As `emit_list`; also returns the predicate evaluations spent on what does not hold."""
    word, out, counters = postings.word, output.out, output.counters
    entry = np.uint64(postings.lists[which, START])
    end_of_list = entry + np.uint64(postings.lists[which, USED])
    one = np.uint64(1)
    is_plain = len(event.events.more) == 0
    tested, useful = np.int64(0), np.int64(0)
    while entry < end_of_list:
        before = tested
        head = word[entry]
        end = entry + np.uint64(head >> 32)
        if is_plain:
            at, tested = first_failing(word, entry + one, end, event, posted, tested)
        else:
            at, tested = first_impossible(
                word, entry + one, end, event, expressions, entry_slot(head), tested
            )
        if at >= end:
            if n == len(out):
                return np.int64(-1), np.int64(0)
            out[n] = entry_slot(head)
            n += 1
            useful += tested - before
        entry = end
    counters[CANDIDATES] += postings.lists[which, N]
    counters[PREDICATES] += tested
    return n, tested - useful


@inlined
def emit_list(postings, which, event, posted, expressions, n, output):
    """Append the expressions of a list that hold to `out`; returns its end, or -1 when it is full.

    Counts candidates and predicates.
    """
    n, _ = emit_watched(postings, which, event, posted, expressions, n, output)
    return n
