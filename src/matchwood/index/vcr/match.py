"""Kernels of `vcr`: read the lists of all activated VCRs that cover a point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.core.hit_kernels import all_hold
from matchwood.index.core.layout_kernels import (
    BOARD,
    EXPRESSION_TABLE,
    ID_LISTS,
    PREDICATE_TABLE,
)
from matchwood.index.core.query_kernels import query_of
from matchwood.index.vcr.activate import Active, list_of
from matchwood.index.vcr.change import (
    BOX,
    FLAGS,
    INNER,
    KX,
    KY,
    MORE,
    PLACED,
    RIGHT,
    TOP,
    X_ATTR,
    Y_ATTR,
    Grid,
    grid_point,
)
from matchwood.index.vcr.decompose import vcr_id
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.jit import inlined, kernel
from matchwood.kernel.pair_map_kernels import PairMap
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    COUNTERS,
    NODES,
    PREDICATES,
    Board,
    Posted,
    finish_event,
    post_event,
)

FULL = -1


class Seen(NamedTuple):
    """What a search writes to."""

    seen: np.ndarray  # uint8[slots], the clock when each was last found; overlapped pieces only
    clock: np.ndarray  # int64[1], counts events up to 255
    work: np.ndarray  # int64[len(COUNTERS)], of the event at hand


def new_seen(n_slots: int) -> Seen:
    """Scratch of a search that has found nothing so far."""
    return Seen(
        np.zeros(n_slots, np.uint8), np.zeros(1, np.int64), np.zeros(len(COUNTERS), np.int64)
    )


class View(NamedTuple):
    """What a search reads."""

    grid: Grid
    active: Active
    pairs: PairMap
    lists: IdLists
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    search: Seen
    board: Board


VIEW = Layout(
    View,
    grid=Layout(
        Grid,
        cut_x="int64", cut_y="int64", shape="int64", distance="int64", step_x="int32",
        step_y="int32", edge="uint8",
    ),
    active=Layout(
        Active,
        table="int32", chain="int32", owner="int64", count="int64", home="uint8", box="int64[2]",
    ),
    pairs=Layout(PairMap, key="int64", value="int32", count="int64"),
    lists=ID_LISTS, expressions=EXPRESSION_TABLE, predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(Mine, search=Layout(Seen, seen="uint8", clock="int64", work="int64"), board=BOARD)
_view_of, _mine_of = VIEW.reader(), MINE.reader()


class Point(NamedTuple):
    """An event of two values."""

    x: int
    y: int


@inlined
def _passes(view, item, edge, point, event, work):
    """Test what is left of an id; its ranges need no test if the point lies inside a VCR."""
    slot = item >> FLAGS
    if item & BOX and not edge & INNER:
        work[PREDICATES] += 2
        box, x, y = view.active.box, point.x, point.y
        if x < box[slot, 0] or x > box[slot, 1] or y < box[slot, 2] or y > box[slot, 3]:
            return False
    return not item & MORE or all_hold(slot, view.expressions, event, work)


@inlined
def _read_simple(view, which, edge, point, event, work, out, n):
    """Emit the ids of a list, each in one of its VCRs alone; the end of `out`, FULL if short.

    Pieces of SD share their sides.  A point on a shared side counts for the piece whose left or
    lower side it is; a point on the right or upper side of the whole rectangle for the last piece.
    """
    lists = view.lists
    begin, size = lists.start[which], np.int64(lists.size[which])
    if n + size > len(out):
        return np.int64(FULL)
    ends = edge & (RIGHT | TOP)
    flags = np.int32(0)
    last = n
    for k in range(begin, begin + size):  # no branches: most lists end here
        item = lists.item[k]
        out[last] = item >> FLAGS
        last += item & ends == ends
        flags |= item
    if not flags & (MORE if edge & INNER else BOX | MORE):
        work[CANDIDATES] += last - n
        return last
    for k in range(begin, begin + size):
        item = lists.item[k]
        if item & ends == ends:
            work[CANDIDATES] += 1
            out[n] = item >> FLAGS
            n += _passes(view, item, edge, point, event, work)
    return n


@inlined
def _read_overlapped(view, which, edge, point, event, search, out, n):
    """Emit the ids of a list that were not seen at this event; the end of `out`, FULL if short."""
    seen, now, work = search.seen, np.uint8(search.clock[0]), search.work
    lists = view.lists
    begin, size = lists.start[which], np.int64(lists.size[which])
    if n + size > len(out):
        return np.int64(FULL)
    n_seen = np.int64(0)
    for k in range(begin, begin + size):
        item = lists.item[k]
        slot = item >> FLAGS
        is_new = seen[slot] != now
        seen[slot] = now
        n_seen += is_new
        is_match = is_new
        if item & (BOX | MORE):
            is_match = is_match and _passes(view, item, edge, point, event, work)
        out[n] = slot  # in any case: a branch on what is new is guessed wrong too often
        n += is_match
    work[CANDIDATES] += n_seen
    return n


@inlined
def _match_point(view, overlapped, point, event, search, out, n):
    """The lists of Cov(a, b): from the pivot VCR, by the distance table."""
    grid = view.grid
    kx, ky = grid.shape[KX], grid.shape[KY]
    a, b = grid_point(grid.cut_x, point.x), grid_point(grid.cut_y, point.y)
    left, bottom = a - (np.int64(1) << kx), b - (np.int64(1) << ky)
    pivot = vcr_id(left, bottom, np.int64(0), np.int64(0), len(grid.cut_x), kx, ky)
    is_border = left < 0 or bottom < 0
    for d in range(len(grid.distance)):
        if is_border and (left + grid.step_x[d] < 0 or bottom + grid.step_y[d] < 0):
            continue  # a corner outside of the plane: the number is another VCR's
        which = list_of(view.active, view.pairs, pivot + grid.distance[d])
        if which >= 0:
            search.work[NODES] += 1
            edge = grid.edge[d]
            if overlapped:
                n = _read_overlapped(view, which, edge, point, event, search, out, n)
            else:
                n = _read_simple(view, which, edge, point, event, search.work, out, n)
            if n < 0:
                break
    return n


@inlined
def _match_area(view, event, work, out, n):
    """An event whose x or y is a set of values: test every expression."""
    home = view.active.home
    for slot in range(len(home)):
        if home[slot] != PLACED:
            continue
        work[CANDIDATES] += 1
        if all_hold(slot, view.expressions, event, work):
            if n == len(out):
                return np.int64(FULL)
            out[n] = slot
            n += 1
    return n


@kernel
def match_events(bound, mine, overlapped, bound_query, first, stamp):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    view, memory, query = _view_of(bound), _mine_of(mine), query_of(bound_query)
    events, output = query.events, query.output
    search, board, out = memory.search, memory.board, output.out
    clock, work = search.clock, search.work
    x_attr, y_attr = view.grid.shape[X_ATTR], view.grid.shape[Y_ATTR]
    # attributes that were given, and neither expressions nor events have, are not on the board
    has_plane = x_attr >= 0 and max(x_attr, y_attr) < len(board.event)
    for e in range(first, len(events.start) - 1):
        post_event(events, e, stamp + e, board)
        event = Posted(events, stamp + e, board, view.predicates)
        n = output.offsets[e]
        work[:] = 0
        if has_plane and board.event[x_attr] == stamp + e and board.event[y_attr] == stamp + e:
            at_x, at_y = board.entry[x_attr], board.entry[y_attr]
            x, y = events.lo[at_x], events.lo[at_y]
            if x == events.hi[at_x] and y == events.hi[at_y]:
                if clock[0] == 255:
                    search.seen[:] = 0
                    clock[0] = 0
                clock[0] += 1
                n = _match_point(view, overlapped, Point(x, y), event, search, out, n)
            else:
                n = _match_area(view, event, work, out, n)
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
