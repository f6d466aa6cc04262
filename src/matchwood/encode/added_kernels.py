"""Entries that are added to those of events that were read: those of computed attributes.

Layout of the memory of one event after the other
    start  int64[2]   the event has the entries 0..start[1]
    attr, key         its entries, with room for those that are added
    held, marks       for `sort_ids`

What is added comes as bytes: attribute and key of each entry, an int64 each, then a pair whose
attribute is negative (`added.END`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.memory import int64_at
from matchwood.kernel.objects import bytes_begin, kernel_with_gil
from matchwood.kernel.sort_kernels import sort_ids


class Adding(NamedTuple):
    """See the module's docstring."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray
    held: np.ndarray
    marks: np.ndarray


ADDING = Layout(Adding, start="int64", attr="int32", key="int64", held="int64", marks="int64")
_adding_of = ADDING.reader()


class Entries(NamedTuple):
    """Entries of events, as in `event_batch`; those of each ascending by attribute, or not yet."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray


@part
def add_from(at, event):
    """Add the entries from an address on to an event that has others (`Adding`).

    Returns the address behind the pair that ends them.
    """
    n = event.start[1]
    attr = int64_at(at)
    while attr >= 0:
        event.attr[n], event.key[n] = attr, int64_at(at + 8)
        n += 1
        at += 16
        attr = int64_at(at)
    if n > event.start[1]:
        event.start[1] = n
        sort_ids(event.attr, event.key, np.int64(0), n, event.held, event.marks)
    return at + 16


@kernel_with_gil
def add_entries(bound, pairs):
    """Add the entries in a bytes object, given by its address, to an event that has others."""
    return add_from(bytes_begin(pairs), _adding_of(bound))


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
