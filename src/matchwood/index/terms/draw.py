"""Terms as text, for people."""

from __future__ import annotations

import numpy as np

from matchwood.index.terms.words import REST, SLOTS, Structure

MOST = 40
"""Leaves, and slots of a leaf, that are drawn."""


def draw_terms(name: str, n: int, structure: Structure) -> str:
    """A line for each leaf: the slots that it satisfies, and those that need a rest, too."""
    terms = structure.terms
    n_leaves = len(terms.start) - 1
    attrs = _attributes(structure)
    lines = [f"{name}: {n} expressions, {n_leaves} leaves, {len(terms.group) - 1} groups"]
    for leaf in range(min(n_leaves, MOST)):
        (sure, group), (sure_end, group_end) = terms.start[leaf], terms.start[leaf + 1]
        parts = []
        if sure < sure_end:
            parts.append(f"sure {_listed(terms.sure[sure:sure_end])}")
        for g in range(int(group), min(int(group_end), int(group) + MOST)):
            slots = terms.slot[terms.group[g, SLOTS] : terms.group[g + 1, SLOTS]]
            parts.append(f"rest at {int(terms.group[g, REST])}: {_listed(slots)}")
        lines.append(f"  leaf {leaf} (attribute {attrs[leaf]}) {', '.join(parts) or '-'}")
    if n_leaves > MOST:
        lines.append(f"  ... {n_leaves - MOST} more")
    return "\n".join(lines)


def _attributes(structure: Structure) -> np.ndarray:
    """The attribute of each leaf."""
    _, tree, terms = structure
    found = np.zeros(len(terms.start) - 1, np.int64)
    for attr in range(len(tree.base) - 1):
        runs = tree.run[tree.start[tree.base[attr]] : tree.start[tree.base[attr + 1]]]
        if len(runs):
            found[int(runs[:, 0].min()) : int(runs[:, 1].max())] = attr
    return found


def _listed(slots: np.ndarray) -> str:
    more = f" ... {len(slots) - MOST} more" if len(slots) > MOST else ""
    return " ".join(map(str, slots[:MOST].tolist())) + more
