"""What the blocks of a snapshot must be, so that kernels can take them as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.blocks.build import Structure, folds_of
from matchwood.index.blocks.check_layout import check_blocks, check_codes, check_places
from matchwood.index.blocks.words import Blocks, Codes, Places
from matchwood.kernel.arrays import named, restored
from matchwood.kernel.checks import Column, check, check_members, check_offsets, expect

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
    expect(check_codes(codes), "code_cut", "a code for each key")
    folds = folds_of(codes.n)
    expect(np.array_equal(codes.fold, folds), "code_fold", "what 8 bits need")
    expect(check_places(codes, places), "place_first_code", "spaces of all codes")
    seen = np.zeros(n_slots, np.bool_)
    expect(check_blocks(codes, blocks, seen), "block_word", "blocks of these expressions")
    check_members("block_word", np.flatnonzero(seen), slots, n_slots)
