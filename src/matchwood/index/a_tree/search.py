"""Searches in the A-Tree: existing nodes inside a set of elements, and nodes around it."""

from __future__ import annotations

import numpy as np

from matchwood.index.a_tree.blocks import (
    AND,
    N_ACTIVE,
    N_ALL,
    N_OR,
    NOTHING,
    OR,
    PARENTS,
    UP,
)
from matchwood.index.a_tree.nodes import count_marked, elements_of, next_mark
from matchwood.kernel.jit import part

MOST_FOUND = 64
"""Existing nodes that one expression chooses from."""

MOST_LEVELS = 20_000
"""Nodes as high as this are not built upon: levels are 16 bits wide."""


@part
def _n_or(x, v):
    up = x.node[v, UP]
    return np.int64(0) if up == NOTHING else np.int64(x.word[up + N_OR])


@part
def _most_ors(x, element, n):
    """The element with the most OR parents: a node inside the set has another element, too."""
    most = np.int64(0)
    for i in range(1, n):
        if _n_or(x, element[i]) > _n_or(x, element[most]):
            most = i
    return most


@part
def find_inside(x, op, n, scratch, mark, limit):
    """Nodes of an operator whose elements are all marked, into `found`; returns how many.

    An AND is found from the child that gives access to it, an OR from any child.  A node that was
    found may be a child of another one.
    """
    n_found, i = np.int64(0), np.int64(0)
    skipped = _most_ors(x, scratch.element, n) if op == OR else np.int64(-1)
    while i < n + n_found and n_found < MOST_FOUND:
        w = scratch.element[i] if i < n else scratch.found[i - n]
        up = x.node[w, UP]
        if up != NOTHING and i != skipped:
            begin = np.int64(0) if op == OR else np.int64(x.word[up + N_OR])
            end = np.int64(x.word[up + N_OR] if op == OR else x.word[up + N_ACTIVE])
            begin = max(begin, end - limit)
            for k in range(up + PARENTS + begin, up + PARENTS + end):
                p = x.word[k]
                if scratch.mark[p] != mark and n_found < MOST_FOUND:
                    scratch.mark[p] = mark
                    if x.level[p] < MOST_LEVELS and elements_of(x, p, scratch, mark) > 0:
                        scratch.found[n_found] = p
                        n_found += 1
        i += 1
    return n_found


@part
def _cover(x, v, scratch):
    """Take the mark from the elements of a node."""
    for i in range(elements_of(x, v, scratch, 0)):
        scratch.mark[scratch.walked[i]] = 0


@part
def _best(x, n_found, scratch, mark):
    """The found node that covers most marked elements, if it covers two."""
    best, most = np.int64(NOTHING), np.int64(1)
    for f in range(n_found):
        covered = count_marked(x, scratch.found[f], scratch, mark)
        if covered > most:
            best, most = np.int64(scratch.found[f]), covered
    return best


@part
def reorganise(x, op, n, scratch, mark, limit):
    """Children for n marked elements: greedily the nodes that cover most, then the elements left.

    Algorithm 2.  All elements are marked again at the end; returns the number of children.
    """
    n_found = find_inside(x, op, n, scratch, mark, limit)
    n_child = np.int64(0)
    best = _best(x, n_found, scratch, mark)
    while best != NOTHING:
        scratch.child[n_child] = best
        n_child += 1
        _cover(x, best, scratch)
        best = _best(x, n_found, scratch, mark)
    for i in range(n):
        if scratch.mark[scratch.element[i]] == mark:
            scratch.child[n_child] = scratch.element[i]
            n_child += 1
        scratch.mark[scratch.element[i]] = mark
    return n_child


@part
def _same_parents(x, v, op):
    """Where the parents of an operator begin and end among a node's parents."""
    up = x.node[v, UP]
    if up == NOTHING:
        return np.int64(0), np.int64(0)
    first = np.int64(up + PARENTS)
    if op == AND:
        return first + x.word[up + N_OR], first + x.word[up + N_ALL]
    return first, first + x.word[up + N_OR]


@part
def find_around(x, op, n, n_child, scratch, mark, limit):
    """Nodes of an operator that hold all n marked elements and more, into `found`.

    Algorithm 3 looks at the parents of all children; here at those of the child that has the
    fewest, and of all children with few.
    """
    fewest, best = np.int64(-1), np.int64(2**62)
    for i in range(n_child):
        begin, end = _same_parents(x, scratch.child[i], op)
        if end - begin < best:
            fewest, best = np.int64(i), end - begin
    n_found, visited = np.int64(0), next_mark(scratch)
    for i in range(n_child):
        begin, end = _same_parents(x, scratch.child[i], op)
        if i != fewest and end - begin > 16:
            continue
        begin = max(begin, end - limit)
        for k in range(begin, end):
            p = x.word[k]
            if scratch.mark[p] == visited or n_found == limit:
                continue
            scratch.mark[p] = visited
            if x.level[p] < MOST_LEVELS and count_marked(x, p, scratch, mark) == n:
                scratch.found[n_found] = p
                n_found += 1
    return n_found
