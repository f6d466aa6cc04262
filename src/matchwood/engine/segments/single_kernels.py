"""A search for one event in all parts of a view, and the end of that in one part.

The end: what every event satisfies, order, what is gone, counters.

`search_parts` searches part after part, index after index, in one call (`kernel.chains`), and
`search_for_dict` reads a dict before that.  They get parts as words:

    part   number of steps | the bound `Ending` | a step for each index
    step   address of the kernel, number of settings, bound, mine, two settings, query
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.dicts.walk_kernels import HAS_UNKNOWN, READING_WORDS, add_for, read_for
from matchwood.engine.stores.arrange_kernels import arrange_event
from matchwood.kernel.bound import Layout
from matchwood.kernel.chains import call_with_one, call_with_two, call_without
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.objects import bytes_begin, kernel_with_gil, let_others_run, run_alone
from matchwood.kernel.slot_sort_kernels import SortRoom
from matchwood.kernel.verify_kernels import EVENTS, MATCHES

FULL = -1
"""The output has no room for what was found."""

NO_ROOM = -2
"""The same of the memory of index 0; of index i it is NO_ROOM - i."""

STOPPED = -3
"""Of `search_for_dict`: part 0 ended early; of part i it is STOPPED - i."""

STEP_WORDS = 7


class Ending(NamedTuple):
    """What the indexes of a part have found for an event, and what is done with it."""

    offsets: np.ndarray  # int64[2]: the last index has ended at offsets[1]
    out: np.ndarray  # int32
    counters: np.ndarray  # int64[len(COUNTERS)], of this event; zero between events
    work: np.ndarray  # int64[len(COUNTERS)], of all events
    order: np.ndarray  # int64, by slot; empty where slots ascend in the order of addition
    room: SortRoom  # as for `arrange_event`
    always: np.ndarray  # int32, slots that every event satisfies
    gone: np.ndarray  # uint8, marks of slots that are left out; empty: none


ENDING = Layout(
    Ending, offsets="int64", out="int32", counters="int64", work="int64", order="int64",
    room=Layout(SortRoom, word="int64", half="int32"), always="int32", gone="uint8",
)  # fmt: skip
_ending_of = ENDING.reader()

ENDING_WORDS = ENDING.n_words


@part
def _end(x):
    """Put the slots of an event in order, without those that are gone; their number, or FULL."""
    out, counters, work, gone = x.out, x.counters, x.work, x.gone
    n = x.offsets[1]
    if n + len(x.always) > len(out):
        return np.int64(FULL)
    for i in range(len(x.always)):
        out[n + i] = x.always[i]
    n += len(x.always)
    x.offsets[0] = x.offsets[1] = 0
    counters[EVENTS], counters[MATCHES] = 1, n
    for i in range(len(counters)):
        work[i] += counters[i]
        counters[i] = 0
    if len(gone) > 0:
        kept = np.int64(0)
        for i in range(n):
            slot = out[i]
            out[kept] = slot
            kept += ((gone[slot >> 3] >> (slot & 7)) & 1) == 0
        n = kept
    arrange_event(out, np.int64(0), n, x.order, x.room)
    return n


@part
def _search_part(words, stamp):
    """How many slots of a part hold, or FULL, or NO_ROOM."""
    x = _ending_of(words[1 : 1 + ENDING_WORDS])
    at = np.int64(1 + ENDING_WORDS)
    for i in range(words[0]):
        if i > 0:
            x.offsets[0] = x.offsets[1]
        address, bound, mine, query = words[at], words[at + 2], words[at + 3], words[at + 6]
        settings = (words[at + 4], words[at + 5])
        if words[at + 1] == 0:
            found = call_without(address, settings, bound, mine, query, stamp)
        elif words[at + 1] == 1:
            found = call_with_one(address, settings, bound, mine, query, stamp)
        else:
            found = call_with_two(address, settings, bound, mine, query, stamp)
        if found < 0:
            return np.int64(NO_ROOM - i)
        if found != 1:
            return np.int64(FULL)
        at += STEP_WORDS
    return _end(x)


@part
def _search_all(words, start, counts, first, stamp, most):
    """As `search_parts`."""
    total, n = np.int64(0), len(start) - 1
    for p in range(first, n):
        if most > 0 and total >= most:
            counts[p] = 0
            continue
        counts[p] = _search_part(words[start[p] : start[p + 1]], stamp + p)
        if counts[p] < 0:
            return p
        total += counts[p]
    return n


@kernel
def search_parts(words, start, counts, first, stamp, most):
    """Search parts first.. for the event that each has read; returns how many parts are done.

    start   int64[n + 1], where the words of each part begin
    counts  int64[n], how many hold in each; FULL or NO_ROOM in the one where it ends early
    most    so many in all are enough, and the other parts hold none; 0: all
    """
    return _search_all(words, start, counts, first, stamp, most)


class Asking(NamedTuple):
    """What reads a dict for all parts, and searches them."""

    reading: np.ndarray  # int64[n * READING_WORDS], a bound `Reading` for each part
    words: np.ndarray  # the others as for `search_parts`
    start: np.ndarray
    counts: np.ndarray


ASKING = Layout(Asking, reading="int64", words="int64", start="int64", counts="int64")
_asking_of = ASKING.reader()


@kernel_with_gil
def search_for_dict(bound, event, stamp, most, added):
    """Have all parts read a dict, and search them; how many hold, or a number below 0.

    added  the address of bytes with the computed attributes for one part after the other, as
           `added_kernels` takes them; 0: there are none

    LEFT, FULL       the dict was not read, as `read_dict` says
    STOPPED - i      part i ended early, as `search_parts` says
    HAS_UNKNOWN      added where values left predicates unknown
    """
    x = _asking_of(bound)
    n, unknown, at = len(x.start) - 1, np.int64(0), np.int64(0)
    if added != 0:
        at = bytes_begin(added)
    for p in range(n):
        words = x.reading[p * READING_WORDS : (p + 1) * READING_WORDS]
        found = read_for(words, event)
        if found < 0:
            return found
        unknown |= found & HAS_UNKNOWN
        if added != 0:
            at = add_for(words, at)
    thread = let_others_run()
    done = _search_all(x.words, x.start, x.counts, np.int64(0), stamp, most)
    run_alone(thread)
    if done < n:
        return STOPPED - done
    for p in range(n):
        unknown += x.counts[p]
    return unknown
