"""Kernels of entries: an expression with what verification needs, at a fixed offset in an arena.

    word  ... [4|slot 7][cell][cell][cell]  [3|slot 2][cell][cell] ...
              ^ ref                         ^ ref

Lists that hold an expression many times hold its `ref`, the position of its entry; cells are those
of `postings`, intervals before sets, so that most tests need no branch (`after_intervals`).  An
entry never moves, so refs stay.  When all entries are written at once, those that are reached
together lie side by side.

Layout   word    int64[]    the entries; a free one's first word is the next free one of its class
         origin  int64[A]   key with offset 1, by attribute (see postings); MAX_KEY: not yet known
         free    int64[]    first free entry of each size class, -1 for none
         count   int64[2]   TOP: words handed out, FREED: words among them in free entries
         skipped int64[]    scratch: predicates that the next entry leaves out
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import part
from matchwood.kernel.posting_cell_kernels import (
    ATTR,
    INTERVAL,
    KIND,
    LOW,
    PAST,
    write_cell,
)
from matchwood.kernel.posting_kernels import class_of, class_words, entry_slot, entry_words

TOP, FREED = range(2)
EXACT = 32
"""Entries up to so many words have a class of their own."""

AHEAD = 8
"""Words behind the last entry that may be read, so that fetching ahead needs no check."""

N_CLASSES = EXACT + 1 + 128


class Entries(NamedTuple):
    """See the module's docstring for the arrays."""

    word: np.ndarray
    origin: np.ndarray
    free: np.ndarray
    count: np.ndarray
    skipped: np.ndarray


@part
def _class(words):
    return words if words <= EXACT else EXACT + 1 + class_of(words)


@part
def _room(words):
    return words if words <= EXACT else class_words(class_of(words))


@part
def has_room(entries, size):
    """Whether an expression of so many predicates surely fits."""
    most = 1 + 3 * np.int64(size)
    return entries.count[TOP] + most + (most >> 2) + 2 * AHEAD <= len(entries.word)


@part
def give_entry(entries, ref):
    words = entry_words(entries.word[ref])
    k = _class(words)
    entries.word[ref] = entries.free[k]
    entries.free[k] = ref
    entries.count[FREED] += _room(words)


@part
def _is_skipped(entries, pred, n_skipped):
    for i in range(n_skipped):
        if entries.skipped[i] == pred:
            return True
    return False


@part
def _write(entries, expressions, predicates, slot, n_skipped, at):
    """Write an entry at a position, intervals before sets; returns the words used."""
    begin = expressions.start[slot]
    end = begin + np.int64(expressions.size[slot])
    first = at
    at += 1
    for is_set in range(2):
        for k in range(begin, end):
            pred = np.int64(expressions.code[k])
            if (predicates.n_intervals[pred] > 1) == is_set:
                if not _is_skipped(entries, pred, n_skipped):
                    at = write_cell(entries, predicates, pred, at)
    entries.word[first] = ((at - first) << 32) | np.int64(slot)
    return at - first


@part
def put_entry(entries, expressions, predicates, slot, n_skipped):
    """Write an expression without the predicates in `skipped`; there is room; returns its ref."""
    at = entries.count[TOP]
    words = _write(entries, expressions, predicates, slot, n_skipped, at)
    k = _class(words)
    ref = entries.free[k]
    if ref < 0:
        entries.count[TOP] += _room(words)
        return at
    entries.free[k] = entries.word[ref]
    entries.count[FREED] -= _room(words)
    for i in range(words):
        entries.word[ref + i] = entries.word[at + i]
    return ref


@part
def after_intervals(word, at, end, posted):
    """Test an entry's INTERVAL cells up to the first of another kind: its position, and a verdict.

    The verdict is negative when a cell fails.  No branch depends on the outcome of a test: there
    are few cells, most candidates pass, and a wrong guess would cost more than testing them all.
    """
    verdict = np.int64(0)
    while at < end:
        w = word[at]
        if w >> KIND != INTERVAL:
            break
        x = posted[np.uint64(w >> ATTR)]  # -1 when absent: below every lower end
        verdict |= (x - ((w >> LOW) & PAST)) | ((w & PAST) - x)
        at += np.uint64(1)
    return at, verdict


@part
def slot_of(entries, ref):
    return np.int64(entry_slot(entries.word[ref]))
