"""Terms as text, for people."""

from __future__ import annotations

import numpy as np

from matchwood.index.terms.words import (
    HEAD,
    N_COPIES,
    N_RANGES,
    N_RUNS,
    N_SLICES,
    REST,
    SLOTS,
    Structure,
)

MOST = 40
"""Nodes, and slots of a node, that are drawn."""


def draw_terms(name: str, n: int, structure: Structure) -> str:
    """A line for each node: the slots that it satisfies, and those that need a rest, too."""
    _, tree, terms = structure
    lines = [f"{name}: {n} expressions, {len(tree.leaf)} leaves, {len(terms.group) - 1} groups"]
    nodes = np.flatnonzero(np.diff(tree.start))
    for node in nodes[:MOST].tolist():
        _, ranges, slices, copies = pieces_of(structure, node)
        sure = np.concatenate([copies, *[terms.sure[a:b] for a, b in slices]])
        parts = [f"sure {_listed(sure)}"] if len(sure) else []
        for g in [g for a, b in ranges for g in range(a, b)][:MOST]:
            slots = terms.slot[terms.group[g, SLOTS] : terms.group[g + 1, SLOTS]]
            parts.append(f"rest at {int(terms.group[g, REST])}: {_listed(slots)}")
        attr = int(np.searchsorted(tree.base, node, side="right")) - 1
        lines.append(
            f"  attribute {attr}, node {node - int(tree.base[attr])}: {', '.join(parts) or '-'}"
        )
    if len(nodes) > MOST:
        lines.append(f"  ... {len(nodes) - MOST} more")
    return "\n".join(lines)


def pieces_of(structure: Structure, node: int) -> tuple[np.ndarray, ...]:
    """Runs, ranges and slices of a node, each int32[, 2], and its copies."""
    _, tree, _ = structure
    piece = tree.piece[tree.start[node] : tree.start[node + 1]]
    if not len(piece):
        pairs = piece.reshape(0, 2)
        return pairs, pairs, pairs, piece
    sizes = [2 * int(piece[i]) for i in (N_RUNS, N_RANGES, N_SLICES)]
    runs, ranges, slices, copies = np.split(piece[HEAD:], np.cumsum(sizes))
    assert len(copies) == piece[N_COPIES]
    return runs.reshape(-1, 2), ranges.reshape(-1, 2), slices.reshape(-1, 2), copies


def _listed(slots: np.ndarray) -> str:
    more = f" ... {len(slots) - MOST} more" if len(slots) > MOST else ""
    return " ".join(map(str, slots[:MOST].tolist())) + more
