"""Layouts of what all searches share: the board, and the tables that they read."""

from __future__ import annotations

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.verify_kernels import Board

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
