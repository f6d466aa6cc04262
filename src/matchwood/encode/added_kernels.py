"""Entries that are added to those of events that were read: those of computed attributes.

Layout of the memory of one event after the other
    start  int64[2]   the event has the entries 0..start[1]
    attr, key         its entries, with room for those that are added
    added  int64[]    attribute and key of what is added, one after the other
    held, marks       for `sort_ids`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import kernel
from matchwood.kernel.objects import kernel_with_gil
from matchwood.kernel.sort_kernels import sort_ids


class Adding(NamedTuple):
    """See the module's docstring."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray
    added: np.ndarray
    held: np.ndarray
    marks: np.ndarray


ADDING = Layout(
    Adding, start="int64", attr="int32", key="int64", added="int64", held="int64", marks="int64"
)
_adding_of = ADDING.reader()


class Entries(NamedTuple):
    """Entries of events, as in `event_batch`; those of each ascending by attribute, or not yet."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray


@kernel_with_gil
def add_entries(bound, n):
    """Add n entries to an event that has others; returns how many it has then."""
    event = _adding_of(bound)
    begin = event.start[1]
    for i in range(n):
        event.attr[begin + i] = event.added[2 * i]
        event.key[begin + i] = event.added[2 * i + 1]
    event.start[1] = begin + n
    sort_ids(event.attr, event.key, np.int64(0), begin + n, event.held, event.marks)
    return begin + n


@kernel
def join_entries(read, added, joined, held, marks):
    """Write the entries of all events from both to `joined`, in order."""
    n = np.int64(0)
    for i in range(len(read.start) - 1):
        begin = n
        for j in range(read.start[i], read.start[i + 1]):
            joined.attr[n], joined.key[n] = read.attr[j], read.key[j]
            n += 1
        for j in range(added.start[i], added.start[i + 1]):
            joined.attr[n], joined.key[n] = added.attr[j], added.key[j]
            n += 1
        sort_ids(joined.attr, joined.key, begin, n, held, marks)
        joined.start[i + 1] = n
