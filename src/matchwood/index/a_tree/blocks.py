"""What an A-Tree node has: blocks of words, parents in three classes, expressions.

    hot[v]     TELL  parents to visit when true: NOTHING, a block of parents, or the one parent,
                     as ~(1 + 4 link + kind)
               SLOT  its expression            NO_SLOT, a slot, or ~(1 + block) of [n, slots ...]
    node[v]    UP    block of its parents      [n_or, n_active, n, parents ...]
               DOWN  block of its children     [n, access child, other children ...]
                     (a leaf: its predicate)
               ID    hash of operator and elements

`hot` is all that matching reads of a node that is true, eight nodes to a line of cache.  Parents
stand in the order in which matching needs them:

    [n_or, n_active, n | OR parents | AND parents that this node gives access to | other ANDs]
                          '----------------- matching reads these --------------'

An OR that has one expression and no parents is a *top*.  In a graph that has just been numbered
links to a top are ~slot, so that matching gives its expression out and never looks at the node;
`make_plain` puts the node's number back before anything changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part

TELL, SLOT = range(2)
"""Columns of `hot`."""

UP, DOWN, ID = range(3)
"""Columns of `node`."""

FREE, LEAF, AND, OR = range(4)
"""Operators of nodes; more in `levels`."""

N_OR, N_ACTIVE, N_ALL, PARENTS = range(4)
"""Words of a block of parents; the parents begin at PARENTS."""

NOTHING = -1
NO_SLOT = -1

HIGH, NEXT_FREE, N_NODES, N_LEAVES, TOP, FREED, MAX_LEVEL, HAS_TOPS, SEED = range(9)
"""Positions in `count`: node ids handed out, first free one, nodes and leaves among them; words
handed out, those of them in free blocks; no level was ever higher; whether links to tops are
slots; what ids begin with."""

TO_OR, TO_AND, TO_TOP = range(3)
"""Kinds of TELL."""

N_CLASSES = 128
_EXACT = 16


class ATreeLayout(NamedTuple):
    """The arrays of the index; see the page of this folder (`__init__`)."""

    hot: np.ndarray
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
def tell_of(x, up):
    """TELL for a block of parents: matching reads no block where there is one parent to tell."""
    n_active = np.int64(x.word[up + N_ACTIVE]) if up >= 0 else np.int64(0)
    if n_active == 0:
        return np.int64(NOTHING)
    if n_active > 1:
        return np.int64(up)
    link, kind = np.int64(x.word[up + PARENTS]), np.int64(TO_OR)
    if x.word[up + N_OR] == 0:
        kind = np.int64(TO_AND)
    elif link < 0:
        link, kind = ~link, np.int64(TO_TOP)
    return ~(1 + 4 * link + kind)


@part
def parent_at(x, i):
    """The parent that a word of a block of parents stands for."""
    link = x.word[i]
    return np.int64(link) if link >= 0 else np.int64(x.root_of[~link])


@part
def _know_whom_to_tell(x, v):
    x.hot[v, TELL] = tell_of(x, x.node[v, UP])


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
    _know_whom_to_tell(x, v)


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
    _know_whom_to_tell(x, v)


@part
def is_used(x, v):
    """Whether an expression, or a parent that could not do without it, uses a node.

    An AND inside an AND is there to share work; its parent could hold its children instead.
    """
    if x.hot[v, SLOT] != NO_SLOT:
        return True
    up = x.node[v, UP]
    if up < 0:
        return False
    if x.op[v] == AND:
        return x.word[up + N_OR] > 0
    if x.op[v] == OR:
        return x.word[up + N_ALL] > x.word[up + N_OR]
    return x.word[up + N_ALL] > 0


# ── expressions of a node ───────────────────────────────────────────────────────────────────────


@part
def n_slots(x, v):
    slot = x.hot[v, SLOT]
    if slot == NO_SLOT:
        return np.int64(0)
    return np.int64(1) if slot >= 0 else np.int64(x.word[~slot - 1])


@part
def add_slot(x, v, slot):
    """One more expression; there are words for it."""
    before, n = x.hot[v, SLOT], n_slots(x, v)
    if n == 0:
        x.hot[v, SLOT] = slot
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
    x.hot[v, SLOT] = ~(at + 1)


@part
def remove_slot(x, v, slot):
    before, n = x.hot[v, SLOT], n_slots(x, v)
    if n == 1:
        x.hot[v, SLOT] = NO_SLOT
        return
    at = np.int64(~before - 1)
    i = at + 1
    while x.word[i] != slot:
        i += 1
    x.word[i] = x.word[at + n]
    x.word[at] = n - 1
    if n == 2:
        x.hot[v, SLOT] = x.word[at + 1]
        give_block(x, at, 3)
    else:
        shrink_block(x, at, n + 1, n)


# ── tops ────────────────────────────────────────────────────────────────────────────────────────


@part
def _is_top(x, p):
    return x.op[p] == OR and x.hot[p, SLOT] >= 0 and x.node[p, UP] == NOTHING


@kernel
def make_tops(x):
    """Links to tops become slots."""
    for v in range(x.count[HIGH]):
        if x.op[v] != FREE and x.node[v, UP] != NOTHING:
            first = np.int64(x.node[v, UP]) + PARENTS
            for i in range(first, first + x.word[first - PARENTS + N_OR]):
                if _is_top(x, x.word[i]):
                    x.word[i] = ~x.hot[x.word[i], SLOT]
            _know_whom_to_tell(x, v)
    x.count[HAS_TOPS] = 1


@kernel
def make_plain(x):
    """Links to tops become nodes again."""
    for v in range(x.count[HIGH]):
        if x.op[v] != FREE and x.node[v, UP] != NOTHING:
            first = np.int64(x.node[v, UP]) + PARENTS
            for i in range(first, first + x.word[first - PARENTS + N_OR]):
                x.word[i] = parent_at(x, i)
            _know_whom_to_tell(x, v)
    x.count[HAS_TOPS] = 0
