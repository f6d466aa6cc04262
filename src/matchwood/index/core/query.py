"""Query: the events that a search is given and the arrays that it answers in, bound as one.

A kernel of a search takes `(bound, mine, *settings, query, first, stamp)`, and the first three
arrays are addresses (`kernel.bound`).  An owner that searches one event after the other in the same
arrays (`engine.single`) binds its query once.

most   the matches of an event after which a search of it may end, for owners that want no more; a
       kernel that does not look at it finds all
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.event_batch import EventBatch
from matchwood.index.core.query_kernels import write_query
from matchwood.kernel.bound import IS_COMPILED, Layout
from matchwood.kernel.verify_kernels import Output

ALL_MATCHES = 2**62
"""`most` of a search for all matches."""


class Query(NamedTuple):
    """See the module's docstring."""

    events: EventBatch
    output: Output
    most: np.ndarray  # int64[1]


QUERY = Layout(
    Query,
    events=Layout(
        EventBatch, start="int64", attr="int32", lo="int64", hi="int64", more="int32",
        more_start="int64", more_lo="int64", more_hi="int64",
    ),
    output=Layout(Output, offsets="int64", out="int32", counters="int64"),
    most="int64",
)  # fmt: skip
query_of = QUERY.reader()

_ALL = np.array([ALL_MATCHES])
_KINDS = [np.dtype(each).char for each in ("i8", "i4", "i8", "i8", "i4", "i8", "i8", "i8")]
_KINDS += [np.dtype(each).char for each in ("i8", "i4", "i8")]


def in_one_piece(events: EventBatch) -> EventBatch:
    """The events, copied where an array of them is a part of another with gaps."""
    if all(each.flags.c_contiguous for each in events):
        return events
    return EventBatch(*[np.ascontiguousarray(each) for each in events])


def bind_query(events: EventBatch, output: Output, most: np.ndarray = _ALL) -> Any:
    """A query as a kernel takes it; the caller keeps the arrays until the kernel returns.

    Raises TypeError where an array is of another type or not `in_one_piece`.
    """
    if not IS_COMPILED:
        return Query(events, output, most)
    arrays = (*events, *output)
    if [each.dtype.char for each in arrays] == _KINDS and all(a.flags.carray for a in arrays):
        words = np.empty(24, np.int64)
        write_query(events, output, most, words)  # the other way takes several times as long
        return words
    found: list[int] = []
    QUERY.write(Query(events, output, most), found)
    return np.array(found, np.int64)
