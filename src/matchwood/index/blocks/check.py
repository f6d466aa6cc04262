"""What the blocks of a snapshot must be, so that kernels can take them as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.blocks.build import Structure, folds_of
from matchwood.index.blocks.check_layout import check_blocks
from matchwood.index.blocks.words import Blocks, Codes, Places
from matchwood.kernel.arrays import named, restored
from matchwood.kernel.checks import (
    Column,
    begins_of,
    check,
    check_members,
    check_offsets,
    do_ascend,
    expect,
)
from matchwood.kernel.interval_kernels import MIN_KEY

Layout = Mapping[str, np.ndarray]

CODE_COLUMNS = {
    "code_n": Column("int32", "A", 0),
    "code_low": Column("int64", "A"),
    "code_dense_start": Column("int64", "a"),
    "code_dense": Column("uint16", "D"),
    "code_cut_start": Column("int64", "a"),
    "code_cut": Column("int64", "C"),
    "code_shift": Column("int64", "A", 0, 64),
    "code_guide_start": Column("int64", "a"),
    "code_guide": Column("int32", "G", 0),
    "code_fold": Column("uint8", "A"),
}
"""The arrays of `Codes`."""

_COLUMNS = {
    **CODE_COLUMNS,
    "place_dim_start": Column("int64", "d"),
    "place_first_code": Column("int32", "N", 1),
    "place_shift": Column("int64", "D2", 0, 64),
    "place_guide_start": Column("int64", "d"),
    "place_guide": Column("int32", "H", 0),
    "place_block": Column("int64", "p"),
    "block_at": Column("int64", "b"),
    "block_gate": Column("int64", "g", 0),
    "block_word": Column("int64", "W"),
    "block_pool": Column("int32", "P"),
    "block_twin_start": Column("int64", "t"),
    "block_twin": Column("int32", "T"),
}


def arrays_of(structure: Structure) -> dict[str, np.ndarray]:
    """The arrays of a snapshot; the halves are the words."""
    codes, places, blocks = structure
    found = {**named(codes, "code_"), **named(places, "place_"), **named(blocks, "block_")}
    del found["block_half"]
    return found


def structure_of(layout: Layout) -> Structure:
    """A structure back from the arrays of a snapshot."""
    halves = {**layout, "block_half": layout["block_word"].view(np.int32)}
    return Structure(
        restored(Codes, layout, "code_"),
        restored(Places, layout, "place_"),
        restored(Blocks, halves, "block_"),
    )


def check_codes(codes: Codes) -> None:
    """Raise a FormatError unless every key has a code from 1 to n."""
    n, dense_size = codes.n, np.diff(codes.dense_start)
    n_cuts, n_guides = np.diff(codes.cut_start), np.diff(codes.guide_start)
    is_dense = dense_size > 0
    is_right = np.where(
        is_dense,
        (n_cuts == 0) & (n_guides == 0) & (n >= 1) & (codes.low + (dense_size - 1) >= codes.low),
        n_cuts == n,
    )
    expect(is_right.all(), "code_n", "as many codes as keys that differ")
    expect(do_ascend(codes.cut, codes.cut_start, int(MIN_KEY)), "code_cut", "cuts that ascend")
    expect(_do_guide(codes.guide, codes.guide_start, n), "code_guide", "the way to each cut")
    most = np.repeat(n, dense_size)
    is_code = (codes.dense >= 1) & (codes.dense <= most)
    expect(is_code.all(), "code_dense", "a code for each key")


def _check_places(codes: Codes, places: Places) -> None:
    """Raise a FormatError unless the spaces of every dimension cover all codes."""
    first, start = places.first_code, places.guide_start
    n_spaces = np.diff(places.dim_start)
    expect(do_ascend(first, places.dim_start, 1), "place_first_code", "spaces of all codes")
    needed = 2 + ((np.repeat(codes.n.astype(np.int64), 2) - 1) >> places.shift)
    is_long = (np.diff(start) >= needed) | (n_spaces == 0)
    expect(is_long.all(), "place_guide_start", "the way to each space")
    expect(_do_guide(places.guide, start, n_spaces), "place_guide", "the way to each space")


def _do_guide(guide: np.ndarray, start: np.ndarray, n: np.ndarray) -> bool:
    """Whether every guide that is not empty leads to n places, in their order."""
    size = np.diff(start)
    rises = (guide[1:] >= guide[:-1]) | begins_of(start)[1:]
    is_inside = (guide >= 0) & (guide < np.repeat(n, size))
    return bool((size != 1).all() and rises.all() and is_inside.all())


def check_structure(table: ExpressionTable, slots: np.ndarray, layout: Layout) -> None:
    """Raise a FormatError unless a layout holds these slots, and nothing else."""
    sizes = check(layout, _COLUMNS)
    n, n_blocks = sizes["A"], sizes["b"] - 1
    expect(sizes["a"] == n + 1, "code_dense_start", f"{n + 1} offsets")
    expect(sizes["d"] == 2 * n + 1, "place_dim_start", f"{2 * n + 1} offsets")
    expect(sizes["D2"] == 2 * n, "place_shift", f"{2 * n} shifts")
    expect(sizes["p"] == sizes["N"] + 1, "place_block", f"{sizes['N'] + 1} offsets")
    expect(sizes["g"] == n_blocks, "block_gate", f"{n_blocks} gates")
    expect(n >= table.needed_by(slots)["A"] or not len(slots), "code_n", "each attribute")
    for name, end in (
        ("code_dense_start", sizes["D"]),
        ("code_cut_start", sizes["C"]),
        ("code_guide_start", sizes["G"]),
        ("place_dim_start", sizes["N"]),
        ("place_guide_start", sizes["H"]),
        ("place_block", n_blocks),
        ("block_at", sizes["W"]),
        ("block_twin_start", sizes["T"]),
    ):
        check_offsets(name, layout[name], end)
    twin, n_slots = layout["block_twin"], int(slots.max(initial=-1)) + 1
    is_inside = not len(twin) or (int(twin.min()) >= 0 and int(twin.max()) < n_slots)
    expect(is_inside, "block_twin", "slots")
    codes, places, blocks = structure_of(layout)
    check_codes(codes)
    folds = folds_of(codes.n)
    expect(np.array_equal(codes.fold, folds), "code_fold", "what 8 bits need")
    _check_places(codes, places)
    seen = np.zeros(n_slots, np.bool_)
    expect(check_blocks(codes, blocks, seen), "block_word", "blocks of these expressions")
    check_members("block_word", np.flatnonzero(seen), slots, n_slots)
