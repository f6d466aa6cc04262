"""Insertion into `be_tree`: Algorithms 3 and 4; what overflows is left to `cut`.

A step needs a known number of nodes and words.  Where they are missing it changes nothing and says
FULL; the owner grows the arrays and goes on.  What is left to do between steps waits in two stacks:

    todo     c-nodes whose l-node may be too full
    pending  expressions taken out of the tree, to be inserted again from the root
"""

from __future__ import annotations

import numpy as np

from matchwood.index.be_tree.nodes import (
    ATTR,
    CAP,
    HI,
    LEFT,
    LO,
    N_DIR,
    N_HELD,
    OWNER,
    RIGHT,
    ROOT,
    SPLIT,
    TOP_BUCKET,
    UP,
    add_todo,
    cut,
    has_nodes,
    is_outgrown,
    new_c_node,
    search_p_dir,
    smallest_cell,
)
from matchwood.index.be_tree.takedown import count_below, empty_p_node
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.posting_kernels import (
    N,
    push,
)

# ── one expression ──────────────────────────────────────────────────────────────────────────────


@part
def _insert_bucket(tree, c, side, lo, hi, other, cap):
    """Put a bucket lo..hi between a bucket and its half; the half becomes the new one's half."""
    p = tree.c[c, OWNER]
    made = new_c_node(tree, p, c, lo, hi, cap)
    tree.c[made, SPLIT] = 1
    mid, _ = cut(tree, made)
    tree.c[made, LEFT if tree.span[other, HI] <= mid else RIGHT] = other
    tree.c[other, UP] = made
    tree.c[c, side] = made
    return made


@part
def insert_c_dir(tree, p, lo, hi, cap):
    """InsertCDir: the smallest bucket that encloses lo..hi.  May make two buckets."""
    c = tree.p[p, TOP_BUCKET]
    while tree.c[c, SPLIT] == 1:
        mid, _ = cut(tree, c)
        if hi <= mid:
            side, low, high = LEFT, tree.span[c, LO], mid
        elif lo > mid:
            side, low, high = RIGHT, mid + 1, tree.span[c, HI]
        else:
            return c
        child = tree.c[c, side]
        if child < 0:
            child = new_c_node(tree, p, c, low, high, cap)
            tree.c[c, side] = child
        elif lo < tree.span[child, LO] or hi > tree.span[child, HI]:
            both_lo, both_hi = min(lo, tree.span[child, LO]), max(hi, tree.span[child, HI])
            low, high = smallest_cell(tree, p, low, high, both_lo, both_hi)
            child = _insert_bucket(tree, c, side, low, high, child, cap)
        c = child
    return c


@part
def share_of(tree, attr, lo, hi):
    """The part of an attribute's known domain that lo..hi covers."""
    first, last = tree.attr_span[attr, LO], tree.attr_span[attr, HI]
    if first > last:
        return 1.0
    covered = float(min(hi, last)) - float(max(lo, first)) + 1.0
    return max(covered, 1.0) / (float(last) - float(first) + 1.0)


@part
def _best_p_node(tree, c, expressions, predicates, slot, score, path, rules):
    """The p-node of highest score for an attribute of the expression that the path has not used.

    The score is minus the number of expressions that an event is likely to meet in vain there:
    those that test the attribute, times the share of its domain that this one covers.  In the
    optimistic variant it is the number of expressions that test the attribute.  Both are lowered
    by the losses that events have shown.
    """
    best, best_pred, best_score = np.int32(-1), np.int32(-1), -np.inf
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = expressions.code[k]
        attr = predicates.attr[pred]
        if path[attr] >= 0:
            continue
        p = search_p_dir(tree, c, attr)
        if p >= 0:
            mine = score[p] + rules.beta * tree.attr_n[attr]
            if rules.histogram:
                share = share_of(tree, attr, predicates.lo[pred], predicates.hi[pred])
                mine = score[p] - tree.attr_n[attr] * share
            if mine > best_score:
                best, best_pred, best_score = p, pred, mine
    return best, best_pred


@part
def _mark_path(tree, c, expressions, predicates, slot, path, skip):
    """Set skip[attr] for the predicates that buckets above a c-node subsume."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = expressions.code[k]
        bucket = path[predicates.attr[pred]]
        if bucket >= 0:
            skip[predicates.attr[pred]] = (
                predicates.n_intervals[pred] == 1
                and predicates.lo[pred] == tree.span[bucket, LO]
                and predicates.hi[pred] == tree.span[bucket, HI]
            )


@part
def _clear_path(expressions, predicates, slot, path, skip):
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        attr = predicates.attr[expressions.code[k]]
        path[attr], skip[attr] = -1, 0


@part
def insert_expression(tree, expressions, predicates, slot, scratch, rules):
    """InsertBETree, from the root; False when nodes or words are missing."""
    size = np.int64(expressions.size[slot])
    if not has_nodes(tree, 2 * size + 2, 0):
        return False
    path, skip, max_cap = scratch.path, scratch.skip, rules.max_cap
    c = ROOT
    while tree.c[c, N_DIR] > 0:
        p, pred = _best_p_node(tree, c, expressions, predicates, slot, scratch.score, path, rules)
        if p < 0:
            break
        if is_outgrown(tree, p):
            empty_p_node(tree, p, scratch.stack, max_cap)
        c = insert_c_dir(tree, p, predicates.lo[pred], predicates.hi[pred], max_cap)
        path[tree.p[p, ATTR]] = c
    _mark_path(tree, c, expressions, predicates, slot, path, skip)
    done = push(tree.postings, c, expressions, predicates, slot, skip, tree.attr_n)
    _clear_path(expressions, predicates, slot, path, skip)
    if done:
        tree.leaf_of[slot] = c
        count_below(tree, c, 1)
        if tree.postings.lists[c, N] > tree.c[c, CAP]:
            add_todo(tree, c)
    return done


@part
def note_attributes(tree, expressions, predicates, slot):
    """Count an expression's attributes, and widen their domains to its finite interval ends."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = expressions.code[k]
        attr = predicates.attr[pred]
        tree.attr_n[attr] += 1
        for end in (predicates.lo[pred], predicates.hi[pred]):
            if end != MIN_KEY and end != MAX_KEY:
                tree.attr_span[attr, LO] = min(tree.attr_span[attr, LO], end)
                tree.attr_span[attr, HI] = max(tree.attr_span[attr, HI], end)
    tree.count[N_HELD] += 1
