"""What the terms of a snapshot must be, so that kernels can take them as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.blocks.check import CODE_COLUMNS, check_codes
from matchwood.index.blocks.words import Codes
from matchwood.index.terms.check_layout import check_steps, check_tree
from matchwood.index.terms.words import REST, SLOTS, Structure, Terms, Tree
from matchwood.kernel.arrays import named, restored
from matchwood.kernel.checks import Column, check, check_members, check_offsets, expect

Layout = Mapping[str, np.ndarray]

_COLUMNS = {
    **CODE_COLUMNS,
    "tree_base": Column("int64", "a"),
    "tree_start": Column("int64", "n"),
    "tree_piece": Column("int32", "R"),
    "tree_leaf": Column("int32", "L", 0),
    "term_sure": Column("int32", "S"),
    "term_group": Column("int64", ("g", 2)),
    "term_slot": Column("int32", "T"),
    "term_step": Column("int32", ("steps", 2)),
}


def arrays_of(structure: Structure) -> dict[str, np.ndarray]:
    """The arrays of a snapshot."""
    codes, tree, terms = structure
    return {**named(codes, "code_"), **named(tree, "tree_"), **named(terms, "term_")}


def structure_of(layout: Layout) -> Structure:
    """A structure back from the arrays of a snapshot."""
    return Structure(
        restored(Codes, layout, "code_"),
        restored(Tree, layout, "tree_"),
        restored(Terms, layout, "term_"),
    )


def check_structure(table: ExpressionTable, slots: np.ndarray, layout: Layout) -> None:
    """Raise a FormatError unless a layout holds these slots, and nothing else."""
    sizes = check(layout, _COLUMNS)
    n, n_leaves, n_groups = sizes["A"], sizes["L"], sizes["g"] - 1
    expect(sizes["a"] == n + 1, "code_dense_start", f"{n + 1} offsets")
    expect(n_groups >= 0, "term_group", "a row or more")
    rest = layout["term_group"][:-1, REST]
    is_inside = not len(rest) or (int(rest.min()) >= 0 and int(rest.max()) < sizes["steps"])
    expect(is_inside, "term_group", "rests")
    expect(n >= table.needed_by(slots)["A"] or not len(slots), "code_n", "each attribute")
    check_offsets("tree_base", layout["tree_base"], sizes["n"] - 1)
    for name, start, end in (
        ("code_dense_start", layout["code_dense_start"], sizes["D"]),
        ("code_cut_start", layout["code_cut_start"], sizes["C"]),
        ("code_guide_start", layout["code_guide_start"], sizes["G"]),
        ("tree_start", layout["tree_start"], sizes["R"]),
        ("term_group", layout["term_group"][:, SLOTS], sizes["T"]),
    ):
        check_offsets(name, start, end)
    codes, tree, terms = structure_of(layout)
    check_codes(codes)
    expect(check_steps(terms.step, n_leaves), "term_step", "steps that end")
    seen = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
    for name, found in (("term_sure", terms.sure), ("term_slot", terms.slot)):
        is_inside = not len(found) or (int(found.min()) >= 0 and int(found.max()) < len(seen))
        expect(is_inside, name, "slots")
        seen[found] = True
    check_members("term_slot", np.flatnonzero(seen), slots, len(seen))
    expect(check_tree(codes, tree, terms, seen), "tree_piece", "leaves, groups, slots of a node")
