"""Kernels of Bloom filters in leaves, and of a search that sieves candidates by them.

Layout   (A attributes, L leaves, W words)
         first  int64[A+1]   leaves of attribute a: first[a] .. first[a + 1] - 1; none: not sieved
         cut    int64[L]     first key of each leaf; MIN_KEY for the first of an attribute
         bits   int64[L, W]  Bloom filter over the slots that have a predicate, which is not their
                             access predicate, on keys of the leaf
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.pst.bloom_match import (
    begin_event,
    end_event,
    find_spaces,
    gather_sets,
    sieve_spaces,
    verify,
    verify_sets,
)
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.posting_kernels import clear_offsets, entry_slot, post_offsets

NOT_THERE, NOT_SIEVED = -1, -2
"""Instead of a leaf: the event has no such attribute; the attribute has no leaves."""

_ODD, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Leaves(NamedTuple):
    """See the module's docstring for the arrays."""

    first: np.ndarray
    cut: np.ndarray
    bits: np.ndarray


class LeafSieve(NamedTuple):
    """What a search sieves by, and where it notes the leaves of the event at hand."""

    leaves: Leaves
    access: np.ndarray  # int32[S], see `bloom`
    at: np.ndarray  # int64[attributes], the leaf of the event's value; NOT_THERE between events


@part
def _has_leaves(leaves, attr):
    return attr < len(leaves.first) - 1 and leaves.first[attr] < leaves.first[attr + 1]


@part
def _leaf_of(leaves, attr, key):
    """The leaf of an attribute that a key falls into."""
    low, high = leaves.first[attr], leaves.first[attr + 1]
    while high - low > 1:
        middle = (low + high) >> 1
        if leaves.cut[middle] <= key:
            low = middle
        else:
            high = middle
    return low


@part
def _places(slot, n_bits):
    """The two bits of a slot in a filter."""
    h = np.uint64(slot + 1) * _ODD
    h = (h ^ (h >> np.uint64(29))) * _OTHER
    high, low, n = h >> np.uint64(40), h >> np.uint64(8) & np.uint64(0xFFFFFF), np.uint64(n_bits)
    return np.int64(high % n), np.int64(low % n)


@part
def _is_access(access, slot, pred):
    access_pred = np.int64(access[slot])
    return pred == (~access_pred if access_pred < 0 else access_pred)


@kernel
def sign_leaves(leaves, expressions, predicates, access, slots):
    """Enter slots into the filters of all leaves that their other predicates meet."""
    n_bits = 64 * leaves.bits.shape[1]
    for slot in slots:
        one, other = _places(np.int64(slot), n_bits)
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            pred = np.int64(expressions.code[k])
            attr = np.int64(predicates.attr[pred])
            if _is_access(access, slot, pred) or not _has_leaves(leaves, attr):
                continue
            for i in range(predicates.n_intervals[pred]):
                lo, hi = interval(predicates, pred, i)
                for leaf in range(_leaf_of(leaves, attr, lo), _leaf_of(leaves, attr, hi) + 1):
                    leaves.bits[leaf, one >> 6] |= np.int64(1) << (one & 63)
                    leaves.bits[leaf, other >> 6] |= np.int64(1) << (other & 63)


@part
def _note_leaves(sieve, events, e):
    """Step 1 for other predicates: the leaves of the event's values."""
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        leaf = np.int64(NOT_SIEVED)
        if _has_leaves(sieve.leaves, attr):
            leaf = _leaf_of(sieve.leaves, attr, np.int64(events.lo[entry]))
        sieve.at[attr] = leaf


@part
def _forget_leaves(sieve, events, e):
    for entry in range(events.start[e], events.start[e + 1]):
        sieve.at[events.attr[entry]] = NOT_THERE


@part
def _is_known(sieve, expressions, predicates, slot):
    """Whether every leaf that an expression asks for may know it (Algorithm 5, lines 8 to 13)."""
    bits = sieve.leaves.bits
    one, other = _places(np.int64(slot), 64 * bits.shape[1])
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = np.int64(expressions.code[k])
        if _is_access(sieve.access, slot, pred):
            continue
        leaf = sieve.at[predicates.attr[pred]]
        if leaf == NOT_THERE:
            return False
        if leaf >= 0:
            found = bits[leaf, one >> 6] >> (one & 63) & bits[leaf, other >> 6] >> (other & 63)
            if found & 1 == 0:
                return False
    return True


@part
def _sieve_picks(view, sieve, picks, n_picks):
    """Step 2: keep the picks that the leaves may know; returns how many."""
    n = np.uint64(0)
    for i in range(n_picks):
        slot = entry_slot(view.entries.word[picks[i]])
        picks[n] = picks[i]
        n += np.uint64(_is_known(sieve, view.expressions, view.predicates, slot))
    return n


@kernel
def match_leaves(view, sieve, search, every, is_plain, batch, output):
    """What `match_bloom` does, with filters of leaves instead of signatures of records."""
    spaces, records, entries = view.spaces, view.records, view.entries
    events, out = batch.events, output.out
    n = output.offsets[batch.first]
    for e in range(batch.first, len(events.start) - 1):
        now = batch.stamp + e
        event = begin_event(events, e, now, batch.board, view.predicates, search.work)
        if is_plain:
            post_offsets(entries, events, e, search.posted)
            _note_leaves(sieve, events, e)
            n_spaces = find_spaces(spaces, records, events, e, search)
            n_picks = sieve_spaces(records, search.absent, search, n_spaces)
            n_picks = _sieve_picks(view, sieve, search.picks, n_picks)
            found = verify(entries, event, search, n_picks, n_picks, n, out)
            _forget_leaves(sieve, events, e)
            clear_offsets(events, e, search.posted)
        else:
            n_picks = gather_sets(spaces, records, entries, events, e, search, np.uint64(0))
            found = verify_sets(entries, event, view.expressions, search, n_picks, n, out)
        if found < 0:
            return e
        n = found
        end_event(spaces, events, e, now, every, search, n, output)
    return len(events.start) - 1
