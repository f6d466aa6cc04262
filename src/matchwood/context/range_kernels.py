"""Kernels that pair events with the subscriptions that they are tested with (`event_ranges`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part


class Ranges(NamedTuple):
    """Where subscriptions can match; one has several where any of them is enough."""

    number: np.ndarray  # int64, ascending, of its subscription
    begin: np.ndarray  # int64, of events by key: the first one in its range
    end: np.ndarray  # and the one after the last; all events where it is above what there is
    first: np.ndarray  # int64, the first event that it is tested for
    last: np.ndarray  # and the one after the last


class ByKey(NamedTuple):
    """The events of a batch."""

    event: np.ndarray  # int64, of one attribute after the other: those that have it, by key
    others: np.ndarray  # int64, ascending: those with several keys, which are in every range


@part
def _put(at, newest, pair, e, number):
    """Note a subscription for event e, once; without room, only count it."""
    if newest[e] == number:
        return
    newest[e] = number
    if len(pair) > 0:
        pair[at[e]] = number
    at[e] += 1


@kernel
def place_pairs(ranges, by_key, since, until, at, newest, pair):
    """Write the subscriptions that events since .. until - 1 are tested with to `pair`, those of
    event `since + i` from at[i] on; at[i] is their end then.  With no room in `pair`, count them.

    newest  by event, the last subscription that was noted: -1 before
    """
    for c in range(len(ranges.number)):
        first, last = max(ranges.first[c], since), min(ranges.last[c], until)
        begin, end, number = ranges.begin[c], ranges.end[c], ranges.number[c]
        if ranges.last[c] - ranges.first[c] <= end - begin:  # the same whatever since and until are
            for e in range(first, last):
                _put(at, newest, pair, e - since, number)
            continue
        for i in range(begin, end):
            e = by_key.event[i]
            if first <= e and e < last:
                _put(at, newest, pair, e - since, number)
        for i in range(len(by_key.others)):
            e = by_key.others[i]
            if first <= e and e < last:
                _put(at, newest, pair, e - since, number)
