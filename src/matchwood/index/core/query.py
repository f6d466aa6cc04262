"""Binding a query (`query_kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.encode.event_batch import EventBatch
from matchwood.index.core.query_kernels import ALL_MATCHES, QUERY, Query, write_query
from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.verify_kernels import Output

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
