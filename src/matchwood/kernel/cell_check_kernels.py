"""Kernels that look at entries of a snapshot before others trust them; see `postings.py`."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part
from matchwood.kernel.posting_cell_kernels import (
    INTERVAL,
    KIND,
    LOW,
    MOST_ATTRIBUTES,
    MOST_KEYS,
    PAST,
    WIDE,
    WIDE_SET,
    cell_attr,
    cell_words,
    is_wide_cell,
    wide_pred,
)
from matchwood.kernel.posting_kernels import entry_slot, entry_words


@part
def has_predicate(expressions, slot, pred):
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        if expressions.code[k] == pred:
            return True
    return False


@part
def _is_cell(w, n_attributes, expressions, predicates, slot):
    """Whether a word begins a cell: of an attribute, and of a predicate of the expression."""
    kind = w >> KIND
    if kind < WIDE or kind > WIDE_SET:
        return False
    attr = cell_attr(w)
    if attr >= n_attributes:
        return False
    if is_wide_cell(w):
        pred = np.int64(wide_pred(w))
        return has_predicate(expressions, slot, pred) and predicates.attr[pred] == attr
    low, high = (w >> LOW) & PAST, w & PAST
    return attr < MOST_ATTRIBUTES and (kind == INTERVAL or low <= high < low + MOST_KEYS)


@part
def entry_end(word, at, end, n_attributes, expressions, predicates):
    """The position behind the entry at a position, or -1 if there is none that ends before `end`.

    n_attributes are those that predicates test.
    """
    if at < 0 or at >= end:
        return np.int64(-1)
    words, slot = entry_words(word[at]), np.int64(entry_slot(word[at]))
    if words < 1 or words > end - at or slot < 0 or slot >= len(expressions.kind):
        return np.int64(-1)
    last = at + words
    at += 1
    while at < last:
        if not _is_cell(word[at], n_attributes, expressions, predicates, slot):
            return np.int64(-1)
        at += cell_words(word[at])
    return np.int64(at) if at == last else np.int64(-1)
