"""Markers: which identifiers are on which part of a structure, each movable in a few steps.

Idea.    A structure is made of *cells*: the ranges of an interval skip list, the sets of a search
         tree, the buckets of a hash table.  A cell is a chain of small chunks of markers; taking
         one out moves the last of the chain to its position.  The markers of one identifier are
         chained too, in the order of their ranges, so that it can leave, or grow at one end,
         without a search.

Layout   (N nodes, C cells, K chunks, M markers, I identifiers; several structures may share these)
         node_key   int64[N]
         node       int32[N, 4]   meaning by structure
         edge       int32[E, 3]   interval skip list: target node, node it leaves, node before that
         cell_head  int32[C]      its first chunk, -1 when empty; cell 0 is not used
         cell_size  int32[C]      markers in it
         chunk      int32[K, 16]  next chunk, markers in it, then (marker, identifier) seven times;
                                  all chunks of a cell but the first are full
         marker     int32[M, 6]   identifier, cell, chunk, position in it, next and previous marker
         ends       int32[I, 2]   first and last marker of an identifier, -1 when it has none
         range      int64[I, 2]   K(i): first and last key it is found under; empty when lo > hi
         count      int64[16]     see the names below
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import part

(
    NODES, EDGES, CHUNKS, FREE_CHUNK, N_FREE_CHUNKS,
    MARKERS, FREE_MARKER, N_FREE_MARKERS, KIND, FIRST_NODE, SEED, VISITED,
) = range(12)  # fmt: skip
"""Places in `count`: how many were ever used, the chains of free ones, which structure it is, its
first node that has a key, what hashes of keys begin with, and how many nodes were visited to put
identifiers into boxes."""

OWNER, CELL, CHUNK, PLACE, NEXT, PREVIOUS = range(6)
SEVEN = 7
MIN_KEY, MAX_KEY = -(2**63), 2**63 - 1


class Structure(NamedTuple):
    """One or several structures in one set of arrays; see the module's docstring."""

    node_key: np.ndarray
    node: np.ndarray
    edge: np.ndarray
    cell_head: np.ndarray
    cell_size: np.ndarray
    chunk: np.ndarray
    marker: np.ndarray
    ends: np.ndarray
    range: np.ndarray
    count: np.ndarray


@part
def has_room(s, n):
    """Whether n markers can be added without growing."""
    chunks = len(s.chunk) - s.count[CHUNKS] + s.count[N_FREE_CHUNKS]
    markers = len(s.marker) - s.count[MARKERS] + s.count[N_FREE_MARKERS]
    return chunks >= n and markers >= n


@part
def _take_chunk(s):
    at = s.count[FREE_CHUNK]
    if at >= 0:
        s.count[FREE_CHUNK] = s.chunk[at, 0]
        s.count[N_FREE_CHUNKS] -= 1
    else:
        at = s.count[CHUNKS]
        s.count[CHUNKS] += 1
    return at


@part
def add_marker(s, i, cell):
    """A marker of identifier i on a cell, not yet in the chain of i; there must be room."""
    m = s.count[FREE_MARKER]
    if m >= 0:
        s.count[FREE_MARKER] = s.marker[m, NEXT]
        s.count[N_FREE_MARKERS] -= 1
    else:
        m = s.count[MARKERS]
        s.count[MARKERS] += 1
    at = np.int64(s.cell_head[cell])
    if at < 0 or s.chunk[at, 1] == SEVEN:
        fresh = _take_chunk(s)
        s.chunk[fresh, 0] = at
        s.chunk[fresh, 1] = 0
        s.cell_head[cell] = fresh
        at = fresh
    position = s.chunk[at, 1]
    s.chunk[at, 2 + 2 * position] = m
    s.chunk[at, 3 + 2 * position] = i
    s.chunk[at, 1] = position + 1
    s.cell_size[cell] += 1
    s.marker[m, OWNER] = i
    s.marker[m, CELL] = cell
    s.marker[m, CHUNK] = at
    s.marker[m, PLACE] = position
    s.marker[m, NEXT] = -1
    s.marker[m, PREVIOUS] = -1
    return m


@part
def _out_of_cell(s, m):
    """Move the last marker of the first chunk to the position of this one."""
    cell = s.marker[m, CELL]
    head = np.int64(s.cell_head[cell])
    last = s.chunk[head, 1] - 1
    moved = s.chunk[head, 2 + 2 * last]
    at, position = s.marker[m, CHUNK], s.marker[m, PLACE]
    s.chunk[at, 2 + 2 * position] = moved
    s.chunk[at, 3 + 2 * position] = s.chunk[head, 3 + 2 * last]
    s.marker[moved, CHUNK] = at
    s.marker[moved, PLACE] = position
    s.chunk[head, 1] = last
    s.cell_size[cell] -= 1
    if last == 0:
        s.cell_head[cell] = s.chunk[head, 0]
        s.chunk[head, 0] = s.count[FREE_CHUNK]
        s.count[FREE_CHUNK] = head
        s.count[N_FREE_CHUNKS] += 1


@part
def drop_marker(s, m):
    """Take a marker out of its cell and of its identifier's chain."""
    _out_of_cell(s, m)
    i = s.marker[m, OWNER]
    after, before = s.marker[m, NEXT], s.marker[m, PREVIOUS]
    if before >= 0:
        s.marker[before, NEXT] = after
    else:
        s.ends[i, 0] = after
    if after >= 0:
        s.marker[after, PREVIOUS] = before
    else:
        s.ends[i, 1] = before
    s.marker[m, NEXT] = s.count[FREE_MARKER]
    s.count[FREE_MARKER] = m
    s.count[N_FREE_MARKERS] += 1


@part
def _add_at(s, i, cell, end, inward, outward):
    """A marker at one end of identifier i's: the others lie `inward` of it."""
    m = add_marker(s, i, cell)
    outermost = s.ends[i, end]
    s.marker[m, inward] = outermost
    if outermost >= 0:
        s.marker[outermost, outward] = m
    else:
        s.ends[i, 1 - end] = m
    s.ends[i, end] = m
    return m


@part
def append_marker(s, i, cell):
    """A marker after all others of identifier i."""
    return _add_at(s, i, cell, 1, PREVIOUS, NEXT)


@part
def prepend_marker(s, i, cell):
    """A marker before all others of identifier i."""
    return _add_at(s, i, cell, 0, NEXT, PREVIOUS)


@part
def append_after(s, m, cell):
    """A marker of the same identifier right after marker m."""
    i = s.marker[m, OWNER]
    fresh = add_marker(s, i, cell)
    after = s.marker[m, NEXT]
    s.marker[fresh, PREVIOUS] = m
    s.marker[fresh, NEXT] = after
    s.marker[m, NEXT] = fresh
    if after >= 0:
        s.marker[after, PREVIOUS] = fresh
    else:
        s.ends[i, 1] = fresh
    return fresh


@part
def take_out(s, i):
    """Remove all markers of an identifier; K(i) becomes empty."""
    while s.ends[i, 0] >= 0:
        drop_marker(s, s.ends[i, 0])
    s.range[i, 0] = MAX_KEY
    s.range[i, 1] = MIN_KEY


@part
def put_everywhere(s, i, cell, lo, hi):
    """Hold identifier i under [lo, hi] in the cell of every key: each probe of its list looks
    whether its key is in K(i).
    """
    append_marker(s, i, cell)
    s.range[i, 0] = lo
    s.range[i, 1] = hi


@part
def emit(s, cell, out, n):
    """Append the identifiers of a cell to out; returns how many it holds then."""
    at = np.int64(s.cell_head[cell])
    while at >= 0:
        for position in range(s.chunk[at, 1]):
            out[n] = s.chunk[at, 3 + 2 * position]
            n += 1
        at = np.int64(s.chunk[at, 0])
    return n


@part
def emit_held(s, cell, key, out, n):
    """The same for the cell of every key: those that have this one in K(i)."""
    at = np.int64(s.cell_head[cell])
    while at >= 0:
        for position in range(s.chunk[at, 1]):
            i = np.int64(s.chunk[at, 3 + 2 * position])
            out[n] = i
            n += np.int64(s.range[i, 0] <= key) & np.int64(key <= s.range[i, 1])
        at = np.int64(s.chunk[at, 0])
    return n
