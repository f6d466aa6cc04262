"""Ranking and recycling in `be_tree`: section 5 of the paper."""

from __future__ import annotations

import numpy as np

from matchwood.index.be_tree.nodes import (
    ATTR,
    BELOW,
    HEAD,
    HOME,
    OWNER,
    P_HIGH,
    TOP_BUCKET,
    free_p_node,
    push_halves,
    push_p_nodes,
)
from matchwood.index.be_tree.takedown import count_below, take_down
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.posting_cell_kernels import cell_words
from matchwood.kernel.posting_kernels import START, USED, N, entry_slot, entry_words

WATCH = 8
"""Every so many events the work at each c-node is written down, for ranking."""

MIN_VISITS = 4
"""Watched events that must have reached an l-node before its loss counts."""


@part
def _gain(tree, expressions, c, n_used, rules):
    """Gain of an l-node: n_used attributes on its path, subsumed (not inline) or only covered."""
    postings = tree.postings
    subsumed = np.int64(0)
    entry = np.int64(postings.lists[c, START])
    end_of_list = entry + postings.lists[c, USED]
    while entry < end_of_list:
        end = entry + entry_words(postings.word[entry])
        subsumed += expressions.size[entry_slot(postings.word[entry])]
        at = entry + 1
        while at < end:
            subsumed -= 1
            at += cell_words(postings.word[at])
        entry = end
    covered = n_used * postings.lists[c, N] - subsumed
    return rules.alpha_s * subsumed + rules.alpha_c * covered


@part
def _loss(scratch, c):
    """Loss of an l-node: predicate evaluations spent in vain per event that reached it."""
    if scratch.visits[c] < MIN_VISITS:
        return 0.0
    return scratch.discarded[c] / scratch.visits[c]


@part
def _rank_p_node(tree, expressions, p, scratch, rules):
    """Rank and loss of a p-node: over all l-nodes below it.

    And its own loss: predicates evaluated in vain below it, for each event that reached it.  The
    most events that reached one l-node stand for those; returned as well.
    """
    stack = scratch.stack
    n_above = np.int64(0)
    q = p
    while q >= 0:
        n_above += 1
        q = tree.c[tree.p[q, HOME], OWNER]
    rank, loss = 0.0, 0.0
    discarded, reached = np.int64(0), np.int64(0)
    stack[0] = tree.p[p, TOP_BUCKET]
    top = np.int64(1)
    while top > 0:
        top -= 1
        c = stack[top]
        if c < 0:  # comes back from the p-nodes of a bucket
            n_above -= 1
            continue
        rank += rules.beta * _gain(tree, expressions, c, n_above, rules)
        rank -= rules.gamma * _loss(scratch, c)
        loss += _loss(scratch, c)
        discarded += scratch.discarded[c]
        reached = max(reached, scratch.visits[c])
        top = push_halves(tree, c, stack, top)
        if tree.c[c, HEAD] >= 0:
            stack[top] = -1
            top += 1
            n_above += 1
            top = push_p_nodes(tree, c, stack, top)
    return rank, loss, discarded / max(reached, 1), reached


@part
def _begin_windows(tree, p, scratch):
    """Forget what events have done below a p-node."""
    stack = scratch.stack
    stack[0] = tree.p[p, TOP_BUCKET]
    top = np.int64(1)
    while top > 0:
        top -= 1
        c = stack[top]
        scratch.visits[c], scratch.discarded[c] = 0, 0
        top = push_halves(tree, c, stack, top)
        top = push_p_nodes(tree, c, stack, top)


@kernel
def recycle(tree, expressions, scratch, rules):
    """Rank every p-node; take down those below theta, and use losses in the scores of later
    insertions.  With `node_window`, only p-nodes whose own window is over.

    Returns how many were taken down; their expressions are pending.
    """
    chosen = 0
    for a in range(len(scratch.blame)):
        scratch.blame[a] *= 0.5  # exploration: an attribute gets another chance
    for p in range(tree.count[P_HIGH]):
        if tree.p[p, ATTR] < 0:
            continue
        rank, loss, own_loss, reached = _rank_p_node(tree, expressions, p, scratch, rules)
        if rules.node_window > 0.0:
            if WATCH * reached < max(WATCH * MIN_VISITS, rules.node_window * tree.p[p, BELOW]):
                continue
            rank -= rules.gamma * own_loss
            _begin_windows(tree, p, scratch)
        scratch.score[p] = -rules.gamma * loss
        if rank >= rules.theta or tree.p[p, BELOW] == 0:
            continue
        scratch.blame[tree.p[p, ATTR]] = min(1.0, loss / tree.p[p, BELOW])
        count_below(tree, tree.p[p, HOME], -tree.p[p, BELOW])
        take_down(tree, tree.p[p, TOP_BUCKET], scratch.stack)
        free_p_node(tree, p)
        chosen += 1
    if rules.node_window == 0.0:
        scratch.visits[:] = 0
        scratch.discarded[:] = 0
    return chosen
