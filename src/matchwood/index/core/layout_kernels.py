"""What all searches share: the board, the output, and layouts of the tables that they read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists


class Board(NamedTuple):
    """Where the event at hand has each attribute; see `verify_kernels`."""

    event: np.ndarray  # int64[A], the stamp of the event that last had it
    entry: np.ndarray  # int64[A], where its entry is


class Output(NamedTuple):
    """What a search gives out: event e has found out[offsets[e]:offsets[e + 1]]."""

    offsets: np.ndarray  # int64[n + 1]
    out: np.ndarray  # int32, doubled when it is full
    counters: np.ndarray  # int64[len(COUNTERS)]


BOARD = Layout(Board, event="int64", entry="int64")

EXPRESSION_TABLE = Layout(
    ExpressionLayout, kind="uint8", start="int64", size="int32", code="int32", count="int64"
)

PREDICATE_TABLE = Layout(
    PredicateLayout,
    attr="int32", lo="int64", hi="int64", n_intervals="int32", interval_start="int64",
    refs="int32", interval_lo="int64", interval_hi="int64", table="int32", free="int32",
    count="int64",
)  # fmt: skip

ID_LISTS = Layout(
    IdLists,
    start="int64", size="int32", room="int8", item="int32", free="int32", count="int64",
)  # fmt: skip
