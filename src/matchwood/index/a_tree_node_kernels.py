"""Nodes of the A-Tree: blocks of words, parents in three classes, sets of elements, the hash table.

    node[v]    UP    block of its parents      [n_or, n_active, n, parents ...]
               DOWN  block of its children     [n, access child, other children ...]
                     (a leaf: its predicate)
               SLOT  its expression            NO_SLOT, a slot, or ~(1 + block) of [n, slots ...]
               ID    hash of operator and elements

Parents stand in the order in which matching needs them:

    [n_or, n_active, n | OR parents | AND parents that this node gives access to | other ANDs]
                          '----------------- matching reads these --------------'

The *elements* of an AND are its operands as written: its children, and instead of a child that is
itself an AND that child's elements.  Likewise for OR.  A node is its operator and its elements;
which of the existing nodes stand for some of them is a matter of the children alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.jit import kernel, part

UP, DOWN, SLOT, ID = range(4)
"""Columns of `node`."""

FREE, LEAF, AND, OR = range(4)
"""Operators of nodes; more in `a_tree_level_kernels`."""

N_OR, N_ACTIVE, N_ALL, PARENTS = range(4)
"""Words of a block of parents; the parents begin at PARENTS."""

NOTHING = -1
NO_SLOT = -1

HIGH, NEXT_FREE, N_NODES, N_LEAVES, TOP, FREED, MAX_LEVEL = range(7)
"""Positions in `count`: node ids handed out, first free one, nodes and leaves among them; words
handed out, those of them in free blocks; no level was ever higher."""

N_CLASSES = 128
_EXACT = 16


class ATreeLayout(NamedTuple):
    """See `a_tree.py` for the table of arrays."""

    node: np.ndarray
    level: np.ndarray
    op: np.ndarray
    rarity: np.ndarray
    leaf_of: np.ndarray
    root_of: np.ndarray
    table: np.ndarray
    word: np.ndarray
    free: np.ndarray
    count: np.ndarray


class Scratch(NamedTuple):
    """What changing the tree needs; all as long as `node`, but the last two."""

    mark: np.ndarray  # the elements at hand have the mark `clock[0]`
    seen: np.ndarray  # nodes that a walk has met have its `clock[1]`
    stack: np.ndarray
    element: np.ndarray
    child: np.ndarray
    found: np.ndarray
    other: np.ndarray
    operand: np.ndarray
    waiting: np.ndarray  # nodes that perhaps nobody uses any more
    waits: np.ndarray  # int8: which nodes are among them
    clock: np.ndarray  # int32[2]
    used: np.ndarray  # int64[2]: WAITING, CHANGED


WAITING, CHANGED = range(2)
"""Positions in `Scratch.used`: nodes in `waiting`, predicates that came or went."""


class Settings(NamedTuple):
    """`ATree.Config` for kernels."""

    share: int
    reorganise: int
    self_adjust: int
    rehang: int
    random_access: int
    search_limit: int
    id_bits: int


# ── blocks ──────────────────────────────────────────────────────────────────────────────────────


@part
def block_class(n):
    """The size class for n words: exact up to 16, then four sizes for every power of 2."""
    if n <= _EXACT:
        return np.int64(n)
    k = np.int64(0)
    while np.int64(32) << k < n:
        k += 1
    return 17 + 4 * k + (n - (np.int64(16) << k) - 1) // (np.int64(4) << k)


@part
def class_size(which):
    if which <= _EXACT:
        return np.int64(which)
    k, r = (which - 17) // 4, (which - 17) % 4
    return (np.int64(16) << k) + (r + 1) * (np.int64(4) << k)


@part
def most_words(n):
    """What a block for n words may take."""
    return n + n // 4 + 1


@part
def has_words(x, n):
    """Whether n words can be handed out, without a look at the free blocks."""
    return x.count[TOP] + n <= len(x.word)


@part
def take_block(x, n):
    """A block for n words; the caller has made sure that there is one."""
    which = block_class(n)
    at = np.int64(x.free[which])
    if at >= 0:
        x.free[which] = x.word[at]
        x.count[FREED] -= class_size(which)
    else:
        at = x.count[TOP]
        x.count[TOP] += class_size(which)
    return at


@part
def give_block(x, at, n):
    which = block_class(n)
    x.word[at] = x.free[which]
    x.free[which] = at
    x.count[FREED] += class_size(which)


@part
def shrink_block(x, at, n, fewer):
    """Give the end of a block back that `fewer` words instead of n do not need.

    Classes differ by 1, or by a size that is a class of its own; so nothing has to move, and making
    a list shorter never asks for words.
    """
    before, after = class_size(block_class(n)), class_size(block_class(fewer))
    if before > after:
        give_block(x, at + after, before - after)


# ── parents ─────────────────────────────────────────────────────────────────────────────────────


@part
def n_parents(x, v):
    up = x.node[v, UP]
    return np.int64(0) if up < 0 else np.int64(x.word[up + N_ALL])


@part
def words_for_parent(x, v):
    """Words that one more parent may take."""
    return most_words(PARENTS + n_parents(x, v) + 1)


@part
def add_parent(x, v, parent, is_access):
    """Enter a parent: of its class the last, every later class moves its first to its end."""
    up = np.int64(x.node[v, UP])
    if up < 0:
        up = take_block(x, PARENTS + 1)
        x.node[v, UP] = up
        x.word[up], x.word[up + 1], x.word[up + 2] = 0, 0, 0
    n = np.int64(x.word[up + N_ALL])
    if n > 0 and block_class(PARENTS + n) != block_class(PARENTS + n + 1):
        fresh = take_block(x, PARENTS + n + 1)
        for i in range(PARENTS + n):
            x.word[fresh + i] = x.word[up + i]
        give_block(x, up, PARENTS + n)
        up = fresh
        x.node[v, UP] = up
    first = up + PARENTS
    hole = first + n
    if is_access or x.op[parent] != AND:
        active = first + x.word[up + N_ACTIVE]
        x.word[hole] = x.word[active]
        hole = active
        x.word[up + N_ACTIVE] += 1
    if x.op[parent] != AND:
        ors = first + x.word[up + N_OR]
        x.word[hole] = x.word[ors]
        hole = ors
        x.word[up + N_OR] += 1
    x.word[hole] = parent
    x.word[up + N_ALL] = n + 1


@part
def remove_parent(x, v, parent):
    """Take a parent out: the last of each class closes the hole that the class before it left."""
    up = np.int64(x.node[v, UP])
    first = up + PARENTS
    n = np.int64(x.word[up + N_ALL])
    hole = first if x.op[parent] != AND else first + x.word[up + N_OR]
    while x.word[hole] != parent:
        hole += 1
    for which in range(3):
        if hole < first + x.word[up + which]:
            last = first + x.word[up + which] - 1
            x.word[hole] = x.word[last]
            hole = last
            x.word[up + which] -= 1
    if n == 1:
        give_block(x, up, PARENTS + 1)
        x.node[v, UP] = NOTHING
    else:
        shrink_block(x, up, PARENTS + n, PARENTS + n - 1)


@part
def is_used(x, v):
    """Whether an expression, or a parent that could not do without it, uses a node.

    An AND inside an AND is there to share work; its parent could hold its children instead.
    """
    if x.node[v, SLOT] != NO_SLOT:
        return True
    up = x.node[v, UP]
    if up < 0:
        return False
    if x.op[v] == AND:
        return x.word[up + N_OR] > 0
    if x.op[v] == OR:
        return x.word[up + N_ALL] > x.word[up + N_OR]
    return x.word[up + N_ALL] > 0


# ── sets of elements ────────────────────────────────────────────────────────────────────────────


@part
def next_mark(scratch):
    scratch.clock[0] += 1
    return scratch.clock[0]


@part
def next_walk(scratch):
    scratch.clock[1] += 1
    return scratch.clock[1]


@part
def gather_elements(x, v, op, scratch, mark, n):
    """Append what a child adds to the elements of an operator, each once; returns how many."""
    if x.op[v] != op:
        if scratch.mark[v] != mark:
            scratch.mark[v] = mark
            scratch.element[n] = v
            n += 1
        return n
    walk = next_walk(scratch)
    top = np.int64(1)
    scratch.stack[0] = v
    while top > 0:
        top -= 1
        down = x.node[scratch.stack[top], DOWN]
        for i in range(down + 1, down + 1 + x.word[down]):
            c = x.word[i]
            if x.op[c] == op:
                if scratch.seen[c] != walk:
                    scratch.seen[c] = walk
                    scratch.stack[top] = c
                    top += 1
            elif scratch.mark[c] != mark:
                scratch.mark[c] = mark
                scratch.element[n] = c
                n += 1
    return n


@part
def count_marked(x, v, scratch, mark, all_of_them):
    """How many marked elements a node has; with `all_of_them`, -1 as soon as one is not marked."""
    op = x.op[v]
    walk = next_walk(scratch)
    top, n = np.int64(1), np.int64(0)
    scratch.stack[0] = v
    while top > 0:
        top -= 1
        down = x.node[scratch.stack[top], DOWN]
        for i in range(down + 1, down + 1 + x.word[down]):
            c = x.word[i]
            if x.op[c] == op:
                if scratch.seen[c] != walk:
                    scratch.seen[c] = walk
                    scratch.stack[top] = c
                    top += 1
            elif scratch.mark[c] == mark:
                if scratch.seen[c] != walk:
                    scratch.seen[c] = walk
                    n += 1
            elif all_of_them:
                return np.int64(-1)
    return n


# ── the table from ids to nodes ─────────────────────────────────────────────────────────────────


@part
def _mixed(v):
    h = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(32))


@part
def expression_id(op, element, n, id_bits):
    """A sum over the elements: their order does not matter.  32 bits at most are kept."""
    h = np.uint64(op)
    for i in range(n):
        h += _mixed(np.int64(element[i]))
    h = _mixed(np.int64(h >> np.uint64(1)))
    return np.int32(np.int64(h >> np.uint64(33)) & ((np.int64(1) << id_bits) - 1))


@part
def _home(x, id_):
    h = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(20)) & (len(x.table) - 1)


@part
def find_node(x, op, id_, n, scratch, mark):
    """The node with an operator and the n marked elements, or NOTHING.

    Equal ids are only a hint: the elements are compared.
    """
    at = _home(x, id_)
    while x.table[at] != NOTHING:
        v = x.table[at]
        if x.node[v, ID] == id_ and x.op[v] == op:
            if count_marked(x, v, scratch, mark, True) == n:
                return np.int64(v)
        at = (at + 1) & (len(x.table) - 1)
    return np.int64(NOTHING)


@part
def put_node(x, v):
    at = _home(x, x.node[v, ID])
    while x.table[at] != NOTHING:
        at = (at + 1) & (len(x.table) - 1)
    x.table[at] = v


@part
def drop_node(x, v):
    """Take a node out of the table; later ones of its run move up."""
    mask = len(x.table) - 1
    hole = _home(x, x.node[v, ID])
    while x.table[hole] != v:
        hole = (hole + 1) & mask
    nearby = (hole + 1) & mask
    while x.table[nearby] != NOTHING:
        home = _home(x, x.node[x.table[nearby], ID])
        if ((nearby - home) & mask) >= ((nearby - hole) & mask):
            x.table[hole] = x.table[nearby]
            hole = nearby
        nearby = (nearby + 1) & mask
    x.table[hole] = NOTHING


@kernel
def fill_table(x):
    """Enter all inner nodes into an empty table."""
    for v in range(x.count[HIGH]):
        if x.op[v] >= AND:
            put_node(x, v)


# ── expressions of a node ───────────────────────────────────────────────────────────────────────


@part
def n_slots(x, v):
    slot = x.node[v, SLOT]
    if slot == NO_SLOT:
        return np.int64(0)
    return np.int64(1) if slot >= 0 else np.int64(x.word[~slot - 1])


@part
def add_slot(x, v, slot):
    """One more expression; there are words for it."""
    before, n = x.node[v, SLOT], n_slots(x, v)
    if n == 0:
        x.node[v, SLOT] = slot
        return
    if n == 1:
        at = take_block(x, 3)
        x.word[at + 1] = before
    else:
        at = np.int64(~before - 1)
        if block_class(n + 1) != block_class(n + 2):
            fresh = take_block(x, n + 2)
            for i in range(1, n + 1):
                x.word[fresh + i] = x.word[at + i]
            give_block(x, at, n + 1)
            at = fresh
    x.word[at + n + 1] = slot
    x.word[at] = n + 1
    x.node[v, SLOT] = ~(at + 1)


@part
def remove_slot(x, v, slot):
    before, n = x.node[v, SLOT], n_slots(x, v)
    if n == 1:
        x.node[v, SLOT] = NO_SLOT
        return
    at = np.int64(~before - 1)
    i = at + 1
    while x.word[i] != slot:
        i += 1
    x.word[i] = x.word[at + n]
    x.word[at] = n - 1
    if n == 2:
        x.node[v, SLOT] = x.word[at + 1]
        give_block(x, at, 3)
    else:
        shrink_block(x, at, n + 1, n)
