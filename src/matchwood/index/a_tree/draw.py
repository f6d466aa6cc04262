"""An A-Tree for people: its graph as text or for Graphviz, and how much is shared on each level."""

from __future__ import annotations

import numpy as np

from matchwood.encode.predicates import PredicateTable
from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    HIGH,
    LEAF,
    MAX_LEVEL,
    NO_SLOT,
    SLOT,
    ATreeLayout,
)
from matchwood.index.a_tree.share import count_occurrences
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

MOST_ROOTS, MOST_LINES = 10, 60
"""Expressions and lines that a drawing shows."""


def sharing_by_level(x: ATreeLayout) -> dict[int, float]:
    """Occurrences in all expressions of a node of each level, on average (Figure 7)."""
    high = int(x.count[HIGH])
    level = x.level[:high]
    occurrences = np.zeros(high, np.float64)
    live = np.flatnonzero(level > 0)
    order = live[np.argsort(-level[live], kind="stable")].astype(np.int32)
    count_occurrences(x, order, occurrences)
    n = np.bincount(level[live], minlength=int(x.count[MAX_LEVEL]) + 1)
    total = np.bincount(level[live], occurrences[live], minlength=len(n))
    return {i: round(float(total[i] / n[i]), 2) for i in range(1, len(n)) if n[i]}


def draw_text(x: ATreeLayout, predicates: PredicateTable) -> str:
    """The first expressions, each as a tree; a node that was drawn already is only named."""
    roots = np.flatnonzero(x.hot[: x.count[HIGH], SLOT] != NO_SLOT)
    roots = roots[x.level[roots] > 0]
    n_levels = int(x.level[: x.count[HIGH]].max(initial=0))
    lines = [f"a_tree, {len(roots)} expressions that differ, {n_levels} levels"]
    drawn: set[int] = set()
    for root in roots[:MOST_ROOTS].tolist():
        _draw_node(x, predicates, root, "", lines, drawn)
    if len(roots) > MOST_ROOTS or len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "..."]
    return "\n".join(lines)


def _draw_node(
    x: ATreeLayout, predicates: PredicateTable, v: int, indent: str, lines: list[str],
    drawn: set[int],
) -> None:  # fmt: skip
    if len(lines) > MOST_LINES:
        return
    is_leaf = x.op[v] == LEAF
    again = " (see above)" if v in drawn and not is_leaf else ""
    lines.append(f"{indent}{_label(x, predicates, v)}{again}")
    if is_leaf or again:
        return
    drawn.add(v)
    for child in children_of(x, v):
        _draw_node(x, predicates, child, indent + "    ", lines, drawn)


def draw_dot(x: ATreeLayout, predicates: PredicateTable) -> str:
    """The graph for Graphviz.

    Solid lines lead from a child to the parents that it queues, dotted ones to children that an AND
    tests.
    """
    lines = ["digraph a_tree {", "  rankdir=BT;"]
    for v in np.flatnonzero(x.level[: x.count[HIGH]] > 0).tolist():
        shape = "box" if x.op[v] == LEAF else "ellipse"
        lines.append(f'  {v} [shape={shape}, label="{_label(x, predicates, v)}"];')
        for i, child in enumerate(children_of(x, v)):
            style = " [style=dotted]" if x.op[v] == AND and i > 0 else ""
            lines.append(f"  {child} -> {v}{style};")
    return "\n".join([*lines, "}"])


def children_of(x: ATreeLayout, v: int) -> list[int]:
    """The children of a node, the one that gives access first."""
    if x.op[v] == LEAF:
        return []
    down = int(x.node[v, DOWN])
    children: list[int] = x.word[down + 1 : down + 1 + x.word[down]].tolist()
    return children


def slots_of(x: ATreeLayout, v: int) -> list[int]:
    """The expressions that a node stands for."""
    slot = int(x.hot[v, SLOT])
    if slot >= NO_SLOT:
        return [slot] if slot >= 0 else []
    at = ~slot - 1
    slots: list[int] = x.word[at + 1 : at + 1 + x.word[at]].tolist()
    return slots


def _label(x: ATreeLayout, predicates: PredicateTable, v: int) -> str:
    slots = slots_of(x, v)
    more = f" and {len(slots) - 1} more" if len(slots) > 1 else ""
    suffix = f" S{slots[0]}{more}" if slots else ""
    if x.op[v] != LEAF:
        return f"{v} {'AND' if x.op[v] == AND else 'OR'} level {x.level[v]}{suffix}"
    pred = int(x.node[v, DOWN])
    keys = predicates.intervals(pred)
    shown = ", ".join(_interval(lo, hi) for lo, hi in keys[:3]) + (", ..." if keys[3:] else "")
    return f"{v} attribute {predicates.layout.attr[pred]} in {{{shown}}}{suffix}"


def _interval(lo: int, hi: int) -> str:
    if lo == hi:
        return str(lo)
    return f"{'' if lo == MIN_KEY else lo}..{'' if hi == MAX_KEY else hi}"
