"""The lines of a buffer: where documents begin and end, 64 bytes in one step."""

from __future__ import annotations

import numpy as np

from matchwood.encode.json.token_kernels import NEWLINE, RETURN, SPACE, TAB
from matchwood.kernel.byte_search import newlines
from matchwood.kernel.jit import inlined, kernel, lowest_bit


@inlined
def _add_line(data, start, stop, begin, end, n):
    """Write a line unless it is blank, as JSON means it; returns the number of lines."""
    for k in range(start, stop):
        if data[k] != SPACE and data[k] != TAB and data[k] != RETURN:
            begin[n], end[n] = start, stop
            return n + 1
    return n


@kernel
def split_lines(data, at, begin, end):
    """Write where the lines from `at` on that are not blank begin and end.

    Returns their number, and where the lines begin that found no room; the end of the data if all
    did.
    """
    n, start, at = np.int64(0), np.int64(at), np.int64(at)
    while at < len(data) and n < len(begin):
        if at + 64 <= len(data):
            found = newlines(data, at)
            while found != 0 and n < len(begin):
                bit = lowest_bit(found)
                found ^= np.int64(1) << bit
                stop = at + bit
                n = _add_line(data, start, stop, begin, end, n)
                start = stop + 1
            at += 64
            continue
        if data[at] == NEWLINE:
            n = _add_line(data, start, at, begin, end, n)
            start = at + 1
        at += 1
    if at >= len(data) and n < len(begin) and start < len(data):
        n = _add_line(data, start, np.int64(len(data)), begin, end, n)
        start = np.int64(len(data))
    return n, start
