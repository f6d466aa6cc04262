"""Drawings of a `be_tree`: as text and for Graphviz.

be_tree: 9 expressions
├── l-node: 2
└── p-node a: 5 expressions
    └── bucket ..
        ├── l-node: 4 7
        └── bucket .. 23
            └── l-node: 1 8
"""

from __future__ import annotations

from collections.abc import Iterator

from matchwood.index.be_tree.nodes import (
    ATTR,
    BELOW,
    HI,
    LO,
    N_HELD,
    ROOT,
    TOP_BUCKET,
    TreeLayout,
)
from matchwood.index.be_tree.shape import buckets, held, p_nodes
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

_MOST_SLOTS, _MOST_LINES = 12, 200

Node = tuple[str, int]
"""What a line stands for: 'c' and a c-node, 'p' and a p-node, 'l' and the c-node of an l-node."""


def _below(tree: TreeLayout, node: Node) -> list[Node]:
    kind, number = node
    if kind == "l":
        return []
    if kind == "p":
        return [("c", int(tree.p[number, TOP_BUCKET]))]
    leaf: list[Node] = [("l", number)] if held(tree, number) else []
    return [
        *leaf,
        *[("p", p) for p in p_nodes(tree, number)],
        *[("c", child) for child in buckets(tree, number)],
    ]


def _label(tree: TreeLayout, node: Node) -> str:
    kind, number = node
    if kind == "p":
        return f"p-node {tree.p[number, ATTR]}: {tree.p[number, BELOW]} expressions"
    if kind == "l":
        slots = sorted(held(tree, number))
        shown = " ".join(map(str, slots[:_MOST_SLOTS]))
        more = f" and {len(slots) - _MOST_SLOTS} more" if len(slots) > _MOST_SLOTS else ""
        return f"l-node: {shown}{more}"
    if number == ROOT:
        return f"be_tree: {tree.count[N_HELD]} expressions"
    lo, hi = int(tree.span[number, LO]), int(tree.span[number, HI])
    low = "" if lo == MIN_KEY else f"{lo} "
    return f"bucket {low}..{'' if hi == MAX_KEY else f' {hi}'}"


def draw_text(tree: TreeLayout) -> str:
    """The tree as lines, attributes and expressions by their numbers; long ones are cut."""
    lines: list[str] = []
    for line in _lines(tree, ("c", int(ROOT)), "", ""):
        if len(lines) == _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(tree: TreeLayout, root: Node, lead: str, indent: str) -> Iterator[str]:
    waiting = [(root, lead, indent)]
    while waiting:
        node, lead, indent = waiting.pop()
        yield lead + _label(tree, node)
        children = _below(tree, node)
        for i, child in reversed(list(enumerate(children))):
            is_last = i + 1 == len(children)
            stem, further = ("└── ", "    ") if is_last else ("├── ", "│   ")
            waiting.append((child, indent + stem, indent + further))


def draw_dot(tree: TreeLayout) -> str:
    """The tree for Graphviz: `dot -Tsvg`."""
    shapes = {"c": "box", "p": "ellipse", "l": "note"}
    lines = ["digraph be_tree {"]
    waiting: list[Node] = [("c", int(ROOT))]
    while waiting and len(lines) < 2 * _MOST_LINES:
        node = waiting.pop()
        name = f"{node[0]}{node[1]}"
        lines.append(f'  {name} [shape={shapes[node[0]]}, label="{_label(tree, node)}"];')
        for child in _below(tree, node):
            lines.append(f"  {name} -> {child[0]}{child[1]};")
            waiting.append(child)
    return "\n".join([*lines, "}"])
