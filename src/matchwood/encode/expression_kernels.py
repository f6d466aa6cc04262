"""The expression table's kernels: merge, intern and store expressions, and take some back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.merge_kernels import (
    AND,
    FALSE,
    FULL,
    LEAF,
    NODE,
    POOL,
    TRUE,
    merge_expression,
)
from matchwood.encode.predicate_kernels import has_room, intern, release
from matchwood.kernel.jit import kernel, part

UNUSED, CONJUNCTION, TREE, ALWAYS, NEVER = range(5)
"""What a slot of the expression table holds."""

DONE, WORKSPACE_FULL, PREDICATES_FULL, CODE_FULL = range(4)
"""How a batch ended; after growing what was full, the owner goes on where it stopped."""

N_CODE, WASTED = range(2)
"""Positions in `ExpressionLayout.count`."""


class ExpressionLayout(NamedTuple):
    """See `expressions.py` for the table of arrays."""

    kind: np.ndarray
    start: np.ndarray
    size: np.ndarray
    code: np.ndarray
    count: np.ndarray


@part
def _is_conjunction(ws, root):
    if ws.node_kind[root] == LEAF:
        return True
    if ws.node_kind[root] != AND:
        return False
    last = ws.child[ws.node_start[root] + ws.node_n[root] - 1]
    return ws.node_kind[last] == LEAF  # leaves stand first, so one look is enough


@part
def _intern_leaf(ws, node, predicates):
    return intern(
        predicates,
        ws.node_attr[node],
        ws.pool_lo,
        ws.pool_hi,
        ws.node_start[node],
        ws.node_n[node],
    )


@part
def _write_conjunction(ws, root, predicates, code, at):
    if ws.node_kind[root] == LEAF:
        code[at] = _intern_leaf(ws, root, predicates)
        return at + 1
    for k in range(ws.node_start[root], ws.node_start[root] + ws.node_n[root]):
        code[at] = _intern_leaf(ws, ws.child[k], predicates)
        at += 1
    return at


@part
def _write_tree(ws, root, predicates, code, at):
    """Prefix code again, leaves now being predicate ids."""
    ws.stack[0] = root
    top = 1
    while top > 0:
        top -= 1
        node = ws.stack[top]
        if ws.node_kind[node] == LEAF:
            code[at] = _intern_leaf(ws, node, predicates)
        else:
            n = ws.node_n[node]
            code[at] = -2 * n - 1 if ws.node_kind[node] == AND else -2 * n - 2
            for k in range(n - 1, -1, -1):
                ws.stack[top] = ws.child[ws.node_start[node] + k]
                top += 1
        at += 1
    return at


@kernel
def encode_batch(leaves, expr_start, expr_code, slots, first, ws, predicates, expressions):
    """Encode expressions first.. into their slots; returns how many are done, and a status."""
    for e in range(first, len(slots)):
        root = merge_expression(leaves, expr_code, expr_start[e], expr_start[e + 1], ws)
        if root == FULL:
            return e, WORKSPACE_FULL
        n_nodes = ws.used[NODE]
        if not has_room(predicates, n_nodes, ws.used[POOL]):
            return e, PREDICATES_FULL
        at = expressions.count[N_CODE]
        if at + n_nodes > len(expressions.code):
            return e, CODE_FULL
        slot = slots[e]
        end = at
        kind = ws.node_kind[root]
        if kind == TRUE or kind == FALSE:
            expressions.kind[slot] = ALWAYS if kind == TRUE else NEVER
        elif _is_conjunction(ws, root):
            expressions.kind[slot] = CONJUNCTION
            end = _write_conjunction(ws, root, predicates, expressions.code, at)
        else:
            expressions.kind[slot] = TREE
            end = _write_tree(ws, root, predicates, expressions.code, at)
        expressions.start[slot] = at
        expressions.size[slot] = end - at
        expressions.count[N_CODE] = end
    return len(slots), DONE


@kernel
def release_batch(slots, predicates, expressions):
    """Empty slots: drop their references and count the code they leave behind."""
    for slot in slots:
        start, size = expressions.start[slot], expressions.size[slot]
        for k in range(start, start + size):
            if expressions.code[k] >= 0:
                release(predicates, expressions.code[k])
        expressions.kind[slot] = UNUSED
        expressions.size[slot] = 0
        expressions.count[WASTED] += size


@kernel
def compact_code(expressions, order, fresh):
    """Copy the code of slots in `order` to a fresh array, without the waste; returns its length."""
    at = 0
    for slot in order:
        start, size = expressions.start[slot], expressions.size[slot]
        for k in range(size):
            fresh[at + k] = expressions.code[start + k]
        expressions.start[slot] = at
        at += size
    return at


@kernel
def count_uses(start, size, code, pred_attr, slots, uses, by):
    """Add `by` to the uses of an attribute for every leaf of slots that tests it."""
    for slot in slots:
        for k in range(start[slot], start[slot] + size[slot]):
            if code[k] >= 0:
                uses[pred_attr[code[k]]] += by


class Tested(NamedTuple):
    """Code of expressions, and the attribute of each operand that is not an operator."""

    start: np.ndarray
    code: np.ndarray
    attr: np.ndarray  # by leaf, or by predicate


@kernel
def merged_away(leaves, held, size, slots, mark, stamp, out):
    """Attributes that leaves of an expression have and its code has not: merging left them out.

    leaves  Tested, of the expressions as they were given: expression e has start[e]:start[e + 1]
    held    Tested, of the table: slot s has `size[s]` words from start[s] on
    mark    by attribute: scratch whose values are below `stamp`
    out     gets pairs of slot and attribute; returns how many
    """
    n = 0
    for e in range(len(slots)):
        slot = slots[e]
        for k in range(held.start[slot], held.start[slot] + size[slot]):
            if held.code[k] >= 0:
                mark[held.attr[held.code[k]]] = stamp + e
        for k in range(leaves.start[e], leaves.start[e + 1]):
            if leaves.code[k] >= 0 and mark[leaves.attr[leaves.code[k]]] != stamp + e:
                attr = leaves.attr[leaves.code[k]]
                mark[attr] = stamp + e
                out[n, 0] = slot
                out[n, 1] = attr
                n += 1
    return n
