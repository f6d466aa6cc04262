"""Kernels of `a_tree` that take expressions in: algorithms 1 to 4 of the paper."""

from __future__ import annotations

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    HIGH,
    ID,
    LEAF,
    MAX_LEVEL,
    N_LEAVES,
    N_NODES,
    NEXT_FREE,
    NO_SLOT,
    NOTHING,
    OR,
    SLOT,
    TELL,
    UP,
    add_parent,
    add_slot,
    has_words,
    is_used,
    most_words,
    n_slots,
    remove_parent,
    words_for_parent,
)
from matchwood.index.a_tree.links import (
    access_position,
    change_children,
    inner_rarity,
    leaf_rarity,
    most_for_parent,
    settle_levels,
    write_children,
)
from matchwood.index.a_tree.nodes import (
    CHANGED,
    WAITING,
    elements_of,
    expression_id,
    find_node,
    gather_elements,
    next_mark,
    put_node,
)
from matchwood.index.a_tree.search import MOST_LEVELS, find_around, reorganise
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import sort_words

DONE, NODES_FULL, WORDS_FULL, TABLE_FULL = range(4)
"""How a batch ended; after growing what was full, the owner goes on where it stopped."""

_FULL = -2

MOST_PAIRED = 1024
"""Elements of a node that a binary tree holds: each is a level, and levels are 16 bits wide."""


@part
def _new_node(x, op):
    """A free node id; NOTHING when there is none."""
    v = x.count[NEXT_FREE]
    if v != NOTHING:
        x.count[NEXT_FREE] = x.node[v, ID]
    elif x.count[HIGH] < len(x.node):
        v = x.count[HIGH]
        x.count[HIGH] = v + 1
    else:
        return np.int64(NOTHING)
    x.node[v, UP], x.hot[v, TELL], x.hot[v, SLOT] = NOTHING, NOTHING, NO_SLOT
    x.op[v] = op
    x.count[N_NODES] += 1
    return np.int64(v)


@part
def _has_node(x):
    return x.count[NEXT_FREE] != NOTHING or x.count[HIGH] < len(x.node)


@part
def _leaf(x, pred, predicates, hull, scratch, changed):
    """The node of a predicate, made if need be; NOTHING when there is no room."""
    v = np.int64(x.leaf_of[pred])
    if v != NOTHING:
        return v
    v = _new_node(x, LEAF)
    if v == NOTHING:
        return v
    x.node[v, DOWN] = pred
    x.level[v] = 1
    x.count[MAX_LEVEL] = max(x.count[MAX_LEVEL], 1)
    x.rarity[v] = leaf_rarity(predicates, pred, hull)
    x.leaf_of[pred] = v
    x.count[N_LEAVES] += 1
    changed[scratch.used[CHANGED]] = pred
    scratch.used[CHANGED] += 1
    return v


@part
def _adjust(x, p, v, scratch, mark, settings):
    """Let a node around a new one hold it instead of its elements, if that saves links."""
    down = np.int64(x.node[p, DOWN])
    n, kept = np.int64(x.word[down]), np.int64(1)
    scratch.other[0] = v
    for i in range(down + 1, down + 1 + n):
        c = x.word[i]
        inside = (
            elements_of(x, c, scratch, mark) > 0 if x.op[c] == x.op[p] else scratch.mark[c] == mark
        )
        if not inside:
            scratch.other[kept] = c
            kept += 1
    if n - (kept - 1) < 2:
        return
    k = np.int64(1)
    for i in range(down + 1, down + 1 + n):  # those kept stand in the same order
        if k < kept and x.word[i] == scratch.other[k]:
            k += 1
        else:
            remove_parent(x, x.word[i], p)
    change_children(x, p, scratch, kept, (np.int64(1), kept), settings.random_access)


@part
def _words_needed(x, n_child, n_found, scratch):
    words = most_words(1 + n_child) + 8
    for i in range(n_child):
        words += words_for_parent(x, scratch.child[i])
    for i in range(n_found):  # other children, and a new node's list of parents grows
        p = scratch.found[i]
        down = x.node[p, DOWN]
        words += most_words(2 + np.int64(x.word[down])) + 12
        words += 2 * most_for_parent(x, p)
    return words + (200 if n_found > 0 else 0)


@part
def _find_or_make(x, op, n, before, scratch, mark, settings):
    """The node for the n marked elements: found, or made; _FULL and a status when there is no room.

    Nothing changes before it is known that all changes fit.  With a node `before`, which stands for
    all elements but the last, the children are that node and the last element.
    """
    id_ = expression_id(x, op, scratch.element, n, settings.id_bits)
    if settings.share:
        v = find_node(x, op, id_, n, scratch, mark)
        if v != NOTHING:
            return v, DONE
    if not _has_node(x):
        return np.int64(_FULL), NODES_FULL
    if 4 * (x.count[N_NODES] - x.count[N_LEAVES] + 1) > 3 * len(x.table):
        return np.int64(_FULL), TABLE_FULL
    n_child, n_found = n, np.int64(0)
    if before != NOTHING:
        scratch.child[0], scratch.child[1], n_child = before, scratch.element[n - 1], np.int64(2)
    elif settings.reorganise and n > 2:
        n_child = reorganise(x, op, n, scratch, mark, settings.search_limit)
    else:
        for i in range(n):
            scratch.child[i] = scratch.element[i]
    if settings.self_adjust:
        n_found = find_around(x, op, n, n_child, scratch, mark, settings.search_limit)
    if not has_words(x, _words_needed(x, n_child, n_found, scratch)):
        return np.int64(_FULL), WORDS_FULL
    v = _new_node(x, op)
    x.node[v, ID] = id_ if settings.share else np.int32(v)  # equal ones would crowd the table
    x.rarity[v] = inner_rarity(x, op, scratch.child, n_child)
    access = access_position(x, v, scratch.child, n_child, settings.random_access)
    write_children(x, v, scratch.child, n_child, access)
    for i in range(n_child):
        add_parent(x, scratch.child[i], v, i == access)
    x.level[v] = 0
    settle_levels(x, v, scratch)
    put_node(x, v)
    for i in range(n_found):
        _adjust(x, scratch.found[i], v, scratch, mark, settings)
    return v, DONE


@part
def _pairs(x, op, n, scratch, settings):
    """A binary tree for n elements: the first two, then one more at a time."""
    sort_words(scratch.element, np.int64(0), n)
    v, status = np.int64(NOTHING), DONE
    for size in range(2, n + 1):
        mark = next_mark(scratch)
        for i in range(size):
            scratch.mark[scratch.element[i]] = mark
        v, status = _find_or_make(x, op, np.int64(size), v, scratch, mark, settings)
        if status != DONE:
            break
    return v, status


@part
def _operator(x, op, first, last, scratch, settings):
    """The node of an operator whose operands are operand[first:last]."""
    mark = next_mark(scratch)
    n = np.int64(0)
    for i in range(first, last):
        n = gather_elements(x, scratch.operand[i], op, scratch, mark, n)
    if n == 1:
        return np.int64(scratch.element[0]), DONE
    if settings.binary and 2 < n <= MOST_PAIRED and x.count[MAX_LEVEL] + n < MOST_LEVELS:
        v, status = _pairs(x, op, n, scratch, settings)
    else:
        v, status = _find_or_make(x, op, n, np.int64(NOTHING), scratch, mark, settings)
    if status == DONE:
        for i in range(first, last):  # an operand of the same operator was there for its elements
            c = scratch.operand[i]
            if x.op[c] == op and not is_used(x, c) and not scratch.waits[c]:
                scratch.waits[c] = 1
                scratch.waiting[scratch.used[WAITING]] = c
                scratch.used[WAITING] += 1
    return v, status


@part
def _abandon(x, top, scratch, settings):
    """Nodes that are not shared will not be found again: let them go before the next attempt."""
    for i in range(top if not settings.share else 0):
        c = scratch.operand[i]
        if x.op[c] != LEAF and not scratch.waits[c] and not is_used(x, c):
            scratch.waits[c] = 1
            scratch.waiting[scratch.used[WAITING]] = c
            scratch.used[WAITING] += 1


@part
def _root(x, expressions, slot, predicates, hull, scratch, changed, settings):
    """The node of an expression; its code is read backwards, so operands come first."""
    top, begin = np.int64(0), expressions.start[slot]
    for k in range(begin + expressions.size[slot] - 1, begin - 1, -1):
        token = expressions.code[k]
        if token >= 0:
            v = _leaf(x, token, predicates, hull, scratch, changed)
            status = DONE if v != NOTHING else NODES_FULL
            n = np.int64(0)
        else:
            n = np.int64(token_operands(token))
            op = np.int64(AND if token_is_and(token) else OR)
            v, status = _operator(x, op, top - n, top, scratch, settings)
        if status != DONE:
            _abandon(x, top, scratch, settings)
            return v, status
        top -= n
        scratch.operand[top] = v
        top += 1
    if expressions.kind[slot] == CONJUNCTION and top > 1:
        # of leaves: none to abandon
        return _operator(x, np.int64(AND), np.int64(0), top, scratch, settings)
    return np.int64(scratch.operand[0]), DONE


@kernel
def insert_batch(expressions, predicates, slots, x, scratch, settings, hull, changed):
    """Insert expressions; returns how many are done, and a status.

    What a stopped expression has made is found again when it is inserted once more.
    """
    for i in range(len(slots)):
        slot = slots[i]
        root, status = _root(x, expressions, slot, predicates, hull, scratch, changed, settings)
        if status == DONE and not has_words(x, most_words(n_slots(x, root) + 2) + 3):
            status = WORDS_FULL
        if status != DONE:
            return i, status
        add_slot(x, root, slot)
        x.root_of[slot] = root
    return len(slots), DONE
