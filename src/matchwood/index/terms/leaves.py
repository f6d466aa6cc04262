"""Kernels that put leaves on the nodes of segment trees, as runs of neighbours."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import code_of
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.index.stabbing.span_kernels import next_node
from matchwood.index.terms.words import END, FIRST
from matchwood.kernel.jit import kernel, part

NO_LEAF = -2


@part
def _put(node, leaf, last, count, run):
    """A leaf on a node: it makes the node's run longer, or begins another one.

    count  of the runs of each node; where they end, if `run` is to be written
    """
    if last[node] != leaf - 1:
        if len(run) > 0:
            run[count[node], FIRST] = leaf
        count[node] += 1
    last[node] = leaf
    if len(run) > 0:
        run[count[node] - 1, END] = leaf + 1


@kernel
def put_leaves(codes, base, predicates, preds, last, count, run):
    """Put leaf i, the predicate preds[i], on the nodes that make up its intervals.

    last   by node, NO_LEAF at the beginning: the leaf that came last
    count  by node: how many runs are added; where they begin, if `run` has room for them
    """
    for leaf in range(len(preds)):
        pred = preds[leaf]
        attr = np.int64(predicates.attr[pred])
        n, first = np.int64(codes.n[attr]), base[attr]
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            node, left, right = next_node(
                n + code_of(codes, attr, lo) - 1, n + code_of(codes, attr, hi)
            )
            while node > 0:
                _put(first + node, leaf, last, count, run)
                node, left, right = next_node(left, right)
