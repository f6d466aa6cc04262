"""What a search of the context-aware filter reads and writes, and how that is bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.context.member_kernels import Members
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.core.layout_kernels import BOARD, PREDICATE_TABLE
from matchwood.index.stabbing.marker_kernels import Structure
from matchwood.kernel.bound import Layout
from matchwood.kernel.verify_kernels import Board


class Search(NamedTuple):
    """What a search writes to: one per filter and scratch."""

    clock: np.ndarray  # int64[1], counts events that were probed
    key: np.ndarray  # int64[lists, 3], key that an event has for an index; its clock; is it this
    seen: np.ndarray  # uint8[subscriptions], indexes that found each, see `_merge`
    found: np.ndarray  # int32[subscriptions], entries that one index found
    candidates: np.ndarray  # int32[subscriptions]
    tested: np.ndarray  # int64[1], predicates tested of the event at hand
    noted: np.ndarray  # int32[, 2], for `absorb_notes`: e of a false positive, ~e of a find; event
    count: np.ndarray  # int64[3], N_NOTED, N_EVENTS, N_WRONG


N_NOTED, N_EVENTS, N_WRONG = range(3)
"""Positions in `count`: rows of `noted`, events since they were absorbed, false positives."""


class Lists(NamedTuple):
    """Which indexes an event is looked up in."""

    of_attr: np.ndarray  # int32[attributes], the index on an attribute, -1: none
    every: int  # the index of subscriptions on the context alone, which every event asks; -1: none
    width: int  # indexes that a subscription is in, at most


class Filter(NamedTuple):
    """What a search reads: subscriptions, their indexes, and the values they refer to."""

    members: Members
    s: Structure
    cells: np.ndarray
    lists: Lists
    notes: int  # NOTHING, FALSE_POSITIVE or FIND


class View(NamedTuple):
    """The arrays of a `Filter`, and the predicates that it tests."""

    members: Members
    s: Structure
    cells: np.ndarray
    of_attr: np.ndarray
    every_width: np.ndarray  # int64[2], the numbers of `Lists`
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to, and the board of its scratch."""

    search: Search
    board: Board


VIEW = Layout(
    View,
    members=Layout(
        Members,
        leaf="int64[2]", jump="int32[2]", start="int64", slot="int32", row="int32", need="uint8",
        is_tree="uint8", entry="int32[2]", listed="int32", link="int32[2]", loose="int32",
        wrong="uint8", spent="uint8", count="int64",
    ),
    s=Layout(
        Structure,
        node_key="int64", node="int32[2]", edge="int32[2]", cell_head="int32", cell_size="int32",
        chunk="int32[2]", marker="int32[2]", ends="int32[2]", range="int64[2]", count="int64",
    ),
    cells="int64[3]", of_attr="int32", every_width="int64", predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(
    Mine,
    search=Layout(
        Search,
        clock="int64", key="int64[2]", seen="uint8", found="int32", candidates="int32",
        tested="int64", noted="int32[2]", count="int64",
    ),
    board=BOARD,
)  # fmt: skip
