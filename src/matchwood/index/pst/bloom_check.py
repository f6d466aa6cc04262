"""What a `pst_bloom` of a snapshot must be, so that its kernels can take it as it is.

Ranges of every array first; then kernels look at what depends on each other: an id for each space,
an entry for each expression, and a record for each space that an access predicate meets.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.pst import entries
from matchwood.index.pst.bloom_check_layout import (
    check_free_ids,
    check_homes,
    check_records,
    check_spaces,
)
from matchwood.index.pst.records import HIGH, NO_ACCESS, NONE, Homes, Records
from matchwood.index.pst.spaces import Spaces
from matchwood.kernel.arrays import restored
from matchwood.kernel.checks import Column, check, expect
from matchwood.kernel.id_list_kernels import NO_BLOCK
from matchwood.kernel.id_lists import check_lists

Layout = Mapping[str, np.ndarray]

_COLUMNS = {
    "entry_word": Column("int64", "W"),
    "entry_origin": Column("int64", "a"),
    "entry_free": Column("int64", entries.N_CLASSES),
    "entry_count": Column("int64", 2, 0),
    "entry_skipped": Column("int64", "skipped"),
    "home_ref": Column("int32", "s", NONE),
    "home_access": Column("int32", "s"),
    "home_space_seen": Column("int32", "n"),
    "home_count": Column("int64", 2, NONE),
    "statistics_uses": Column("int64", "a"),
    "statistics_lo": Column("int64", "a"),
    "statistics_hi": Column("int64", "a"),
    "statistics_values": Column("int64", "a"),
    "statistics_seen": Column("int64", "a"),
    "statistics_total": Column("int64", 2),
    "signature_low": Column("int64", "a"),
    "signature_scale": Column("float64", "a"),
    "signature_absent": Column("int64", "w"),
    "record_mark": Column("int64", ("m", "w")),
    "space_cut": Column("int64", "c"),
    "space_uses": Column("int32", "c"),
}


def check_bloom(
    table: ExpressionTable, slots: np.ndarray, layout: Layout, signature_bits: int
) -> None:
    """Raise a FormatError unless a layout holds these slots, and nothing else."""
    check_lists(layout, "record_")
    check_lists(layout, "space_")
    sizes = check(
        layout,
        _COLUMNS,
        n=len(layout["record_size"]),
        m=len(layout["record_item"]),
        c=len(layout["space_item"]),
        w=signature_bits // 64,
    )
    needed = table.needed_by(slots)
    expect(sizes["a"] >= needed["A"], "entry_origin", "an item for each attribute")
    expect(len(layout["space_size"]) == 2 * sizes["a"], "space_size", "two divisions of each")
    expect(sizes["skipped"] >= 1, "entry_skipped", "an item")
    top = int(layout["entry_count"][entries.TOP])
    expect(top + entries.AHEAD <= sizes["W"], "entry_word", f"{top} words and some more")
    is_finite = np.isfinite(layout["signature_scale"]) & (layout["signature_scale"] >= 0)
    expect(is_finite.all(), "signature_scale", "positive numbers")
    is_held = np.zeros(sizes["s"], bool)
    expect(int(slots.max(initial=-1)) < sizes["s"], "home_ref", "an item for each expression")
    is_held[slots] = True
    expect(((layout["home_ref"] != NONE) == is_held).all(), "home_ref", "these expressions")
    no_access = layout["home_access"] == NO_ACCESS
    expect((no_access == ~is_held).all(), "home_access", "predicates of these expressions")
    is_open = layout["space_room"] != NO_BLOCK
    expect(
        ((layout["space_size"] > 0) == is_open).all(), "space_size", "a space where there is room"
    )
    _check_links(table, slots, layout, top)


def _check_links(table: ExpressionTable, slots: np.ndarray, layout: Layout, top: int) -> None:
    spaces, records = restored(Spaces, layout, "space_"), restored(Records, layout, "record_")
    homes, word = restored(Homes, layout, "home_"), layout["entry_word"][:top]
    n, n_slots = len(records.size), len(homes.ref)
    expect(homes.count[HIGH] in range(n + 1), "home_count", "ids of spaces")
    owner = np.full(n, NONE, np.int32)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    expect(check_spaces(spaces, homes, owner, first, last), "space_cut", "a partition of all keys")
    expect(check_free_ids(records, homes, owner), "home_count", "free ids of spaces")
    p, x = table.predicates.layout, table.layout
    room = np.zeros(len(slots), np.int64)
    n_attributes = min(table.n_attributes, len(layout["entry_origin"]))
    n_records = check_homes(spaces, homes, word, x, p, n_attributes, slots, room)
    expect(n_records >= 0, "entry_word", "an entry of each expression")
    ref = homes.ref[slots].astype(np.int64)
    order = np.argsort(ref)
    ends = ref[order] + room[order]
    expect((ends[:-1] <= ref[order][1:]).all(), "home_ref", "entries apart")
    expect(not len(ends) or ends[-1] <= top, "home_ref", f"entries before {top}")
    listed = np.full(n_slots, NONE, np.int32)
    found = check_records(records, homes, word, p, owner, first, last, listed)
    expect(found == n_records, "record_item", "each expression where its predicate is")
