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
    Board,
)
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
    Active,
    Grid,
    grid_point,
    list_of,
    vcr_id,
)
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import PairMap
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    COUNTERS,
    NODES,
    PREDICATES,
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
    """Nothing was found so far."""
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


@part
def _passes(
    item, slot, edge, box, x, y,
    expressions, predicates, events, stamp, board_event, board_entry, work,
):  # fmt: skip
    """What is left to test of an id; its ranges need no test where the point is inside of a VCR."""
    if item & BOX and not edge & INNER:
        work[PREDICATES] += 2
        if x < box[slot, 0] or x > box[slot, 1] or y < box[slot, 2] or y > box[slot, 3]:
            return False
    return not item & MORE or all_hold(
        slot, expressions, predicates, events, stamp, board_event, board_entry, work
    )


@part
def _read_simple(
    lists, which, edge, box, x, y,
    expressions, predicates, events, stamp, board_event, board_entry, out, n, work,
):  # fmt: skip
    """Emit the ids of a list, each in one of its VCRs alone; the end of `out`, FULL if short.

    Pieces of SD meet at their sides.  A point there belongs to the piece that it is the left or
    lower side of; to the other one only where the rectangle ends.
    """
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
            n += _passes(
                item, item >> FLAGS, edge, box, x, y,
                expressions, predicates, events, stamp, board_event, board_entry, work,
            )  # fmt: skip
    return n


@part
def _read_overlapped(
    lists, which, seen, now, edge, box, x, y,
    expressions, predicates, events, stamp, board_event, board_entry, out, n, work,
):  # fmt: skip
    """Emit the ids of a list that were not seen at this event; the end of `out`, FULL if short."""
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
            is_match = is_match and _passes(
                item, slot, edge, box, x, y,
                expressions, predicates, events, stamp, board_event, board_entry, work,
            )  # fmt: skip
        out[n] = slot  # in any case: a branch on what is new is guessed wrong too often
        n += is_match
    work[CANDIDATES] += n_seen
    return n


@part
def _match_point(
    grid, active, pairs, lists, overlapped, seen, now, x, y,
    expressions, predicates, events, stamp, board_event, board_entry, out, n, work,
):  # fmt: skip
    """The lists of Cov(a, b): from the pivot VCR, by the distance table."""
    kx, ky = grid.shape[KX], grid.shape[KY]
    a, b = grid_point(grid.cut_x, x), grid_point(grid.cut_y, y)
    left, bottom = a - (np.int64(1) << kx), b - (np.int64(1) << ky)
    pivot = vcr_id(left, bottom, np.int64(0), np.int64(0), len(grid.cut_x), kx, ky)
    is_border = left < 0 or bottom < 0
    for d in range(len(grid.distance)):
        if is_border and (left + grid.step_x[d] < 0 or bottom + grid.step_y[d] < 0):
            continue  # a corner outside of the plane: the number is another VCR's
        which = list_of(active, pairs, pivot + grid.distance[d])
        if which >= 0:
            work[NODES] += 1
            if overlapped:
                n = _read_overlapped(
                    lists, which, seen, now, grid.edge[d], active.box, x, y,
                    expressions, predicates, events, stamp, board_event, board_entry, out, n, work,
                )  # fmt: skip
            else:
                n = _read_simple(
                    lists, which, grid.edge[d], active.box, x, y,
                    expressions, predicates, events, stamp, board_event, board_entry, out, n, work,
                )  # fmt: skip
            if n < 0:
                break
    return n


@part
def _match_area(
    active, expressions, predicates, events, stamp, board_event, board_entry, out, n, work
):
    """An event whose x or y is a set of values: test every expression."""
    for slot in range(len(active.home)):
        if active.home[slot] != PLACED:
            continue
        work[CANDIDATES] += 1
        if all_hold(slot, expressions, predicates, events, stamp, board_event, board_entry, work):
            if n == len(out):
                return np.int64(FULL)
            out[n] = slot
            n += 1
    return n


@kernel
def match_events(bound, mine, overlapped, events, first, stamp, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    view, own = _view_of(bound), _mine_of(mine)
    grid, active, pairs, lists = view.grid, view.active, view.pairs, view.lists
    expressions, predicates = view.expressions, view.predicates
    seen, clock, work = own.search.seen, own.search.clock, own.search.work
    board_event, board_entry = own.board.event, own.board.entry
    offsets, out, counters = output.offsets, output.out, output.counters
    x_attr, y_attr = grid.shape[X_ATTR], grid.shape[Y_ATTR]
    # attributes that were given, and neither expressions nor events have, are not on the board
    has_plane = x_attr >= 0 and max(x_attr, y_attr) < len(board_event)
    for e in range(first, len(events.start) - 1):
        post_event(events, e, stamp + e, board_event, board_entry)
        n = offsets[e]
        work[:] = 0
        if has_plane and board_event[x_attr] == stamp + e and board_event[y_attr] == stamp + e:
            at_x, at_y = board_entry[x_attr], board_entry[y_attr]
            x, y = events.lo[at_x], events.lo[at_y]
            if x == events.hi[at_x] and y == events.hi[at_y]:
                if clock[0] == 255:
                    seen[:] = 0
                    clock[0] = 0
                clock[0] += 1
                n = _match_point(
                    grid, active, pairs, lists, overlapped, seen, np.uint8(clock[0]), x, y,
                    expressions, predicates,
                    events, stamp + e, board_event, board_entry, out, n, work,
                )  # fmt: skip
            else:
                n = _match_area(
                    active, expressions, predicates,
                    events, stamp + e, board_event, board_entry, out, n, work,
                )  # fmt: skip
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], offsets, counters)
    return len(events.start) - 1
