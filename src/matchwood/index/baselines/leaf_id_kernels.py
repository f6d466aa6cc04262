"""Kernels of `interval_id` and `dewey_id`: annotate leaves, gather satisfied ones, evaluate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import sort_words
from matchwood.kernel.verify_kernels import finish_event

LAST = 1
"""Bit of a Dewey component: the last child of an AND, the * of the paper."""


class Gathering(NamedTuple):
    """Scratch of one matcher: the satisfied leaves of every expression, as lists."""

    stamp: np.ndarray  # int64[slots]: the event that last touched an expression
    first: np.ndarray  # int32[slots]: its list, for that event
    touched: np.ndarray  # int32[slots]
    next: np.ndarray  # int32[leaves]
    word: np.ndarray  # int32[leaves]: what was found
    sorted: np.ndarray  # int32[leaves of the longest expression]
    reached: np.ndarray  # int64[points, or levels, of the longest expression, 2]
    clock: np.ndarray  # int64[1]


@part
def _token_sizes(code, begin, end, size):
    for k in range(end - 1, begin - 1, -1):
        at = k + 1
        for _ in range(token_operands(code[k]) if code[k] < 0 else 0):
            at += size[at - begin]
        size[k - begin] = at - k


@kernel
def annotate_intervals(expressions, slots, words, word_start, scratch):
    """Two words a leaf: its expression, and its interval as first << 16 | last.

    An AND lays its operands end to end, all of an OR's have the same ends; what is inside two
    operands of an OR never has a point in common.  Every subtree has as many points as tokens.
    """
    size, source, target, offset = scratch
    for i in range(len(slots)):
        slot = slots[i]
        begin = expressions.start[slot]
        n = np.int64(expressions.size[slot])
        at = word_start[i]
        if expressions.kind[slot] == CONJUNCTION:
            for k in range(n):
                words[at], words[at + 1] = slot, (k + 1) << 16 | (k + 1)
                at += 2
            words[at - 1] = n << 16 | (n + 1 + np.int64(n > 1))
            continue
        _token_sizes(expressions.code, begin, begin + n, size)
        source[0], target[0], offset[0] = 0, n + 1, 0
        for k in range(n):
            token = expressions.code[begin + k]
            if token >= 0:
                words[at], words[at + 1] = slot, (source[k] + 1) << 16 | target[k]
                at += 2
                continue
            child, here, inside = k + 1, source[k], offset[k]
            operands = token_operands(token)
            for j in range(operands):
                source[child], target[child], offset[child] = here, target[k], inside
                inside += size[child]
                if token_is_and(token) and j + 1 < operands:
                    target[child] = inside
                    here = inside
                child += size[child]


@kernel
def annotate_dewey(expressions, slots, words, word_start, scratch):
    """Two words a leaf, its expression and the offset of its path; then the paths.

    A path: its length, then 2 * number + LAST on every level; levels are AND and OR in turn.  With
    `words` empty only the number of words is found, into word_start.
    """
    size, depth, parent, component = scratch
    at = np.int64(0)
    for i in range(len(slots)):
        slot = slots[i]
        begin = expressions.start[slot]
        n = np.int64(expressions.size[slot])
        is_conjunction = expressions.kind[slot] == CONJUNCTION
        n_leaves = np.int64(0)
        for k in range(n):
            n_leaves += expressions.code[begin + k] >= 0
        leaf, path = at, at + 2 * n_leaves
        if is_conjunction:
            for k in range(n):
                if len(words) > 0:
                    words[leaf], words[leaf + 1] = slot, path - at
                    words[path], words[path + 1] = 1, 2 * (k + 1) + np.int64(k + 1 == n)
                leaf += 2
                path += 2
        else:
            code = expressions.code
            _token_sizes(code, begin, begin + n, size)
            is_or = not token_is_and(code[begin])
            depth[0], parent[0], component[0] = 1 if is_or else 0, -1, 2 + LAST
            for k in range(n):
                token = code[begin + k]
                if token >= 0:
                    length = np.int64(depth[k])
                    if len(words) > 0:
                        words[leaf], words[leaf + 1] = slot, path - at
                        words[path] = length
                        up = k
                        for d in range(length, 0, -1):
                            words[path + d] = component[up]
                            up = parent[up]
                    leaf += 2
                    path += 1 + length
                    continue
                child, operands = k + 1, token_operands(token)
                for j in range(operands):
                    is_last = token_is_and(token) and j + 1 == operands
                    depth[child], parent[child] = depth[k] + 1, k
                    component[child] = 2 * (j + 1) + np.int64(is_last)
                    child += size[child]
        at = path
        word_start[i + 1] = at


@part
def _gather(posts, words, found, n_found, gathering, now):
    """Lists of satisfied leaves by expression; returns the expressions touched, and the leaves."""
    n_touched, n = np.int64(0), np.int64(0)
    for f in range(n_found):
        for i in range(posts.start[found[f]], posts.start[found[f] + 1]):
            leaf = posts.item[i]
            slot = words.item[leaf]
            if gathering.stamp[slot] != now:
                gathering.stamp[slot] = now
                gathering.first[slot] = -1
                gathering.touched[n_touched] = slot
                n_touched += 1
            gathering.word[n] = words.item[leaf + 1]
            gathering.next[n] = gathering.first[slot]
            gathering.first[slot] = n
            n += 1
    return n_touched, n


@part
def _sort_leaves(gathering, slot):
    """The leaves of an expression, ascending; returns how many."""
    n, at = np.int64(0), gathering.first[slot]
    while at >= 0:
        gathering.sorted[n] = gathering.word[at]
        n += 1
        at = gathering.next[at]
    sort_words(gathering.sorted, np.int64(0), n)
    return n


@part
def _covers(gathering, n, last, now):
    """Whether intervals, ascending by their beginning, lead from 0 to the last point."""
    reached = gathering.reached
    reached[0, 0] = now
    for i in range(n):
        first, end = gathering.sorted[i] >> 16, gathering.sorted[i] & 0xFFFF
        if reached[first - 1, 0] == now:
            reached[end, 0] = now
    return reached[last, 0] == now


@part
def _report(state, level, component):
    """A child is true: AND counts children that follow each other, OR needs one."""
    if level % 2 == 1:
        state[level, 1] = 1
    elif component >> 1 == state[level, 0] + 1:
        state[level, 0] += 1
        state[level, 1] = component & LAST


@part
def _is_true(words, block, gathering, n):
    """Evaluate an expression from the paths of its satisfied leaves, which ascend."""
    state, item = gathering.reached, words.item
    before, length = np.int64(0), np.int64(0)
    state[0, 0], state[0, 1] = 0, 0
    for i in range(n + 1):
        path = block + gathering.sorted[min(i, n - 1)]
        common = np.int64(0)
        if i < n and i > 0:
            while (
                common < min(length, np.int64(item[path])) - 1
                and item[path + 1 + common] == item[before + 1 + common]
            ):
                common += 1
        for level in range(length - 1, common, -1):  # operators that the path leaves
            if state[level, 1] == 1:
                _report(state, level - 1, item[before + level])
        if i == n:
            break
        fresh = np.int64(item[path])
        for level in range(max(common, np.int64(0)) + 1, fresh):
            state[level, 0], state[level, 1] = 0, 0
        _report(state, fresh - 1, item[path + fresh])
        before, length = path, fresh
    return state[0, 1] == 1


@kernel
def match_leaf_ids(posts, words, last_point, is_dewey, gathering, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        gathering.clock[0] += 1
        n_touched, n_leaves = _gather(
            posts, words, finder.scratch.found, n_found, gathering, gathering.clock[0]
        )
        n = offsets[e]
        if n + n_touched > len(out):
            return e
        for i in range(n_touched):
            slot = gathering.touched[i]
            m = _sort_leaves(gathering, slot)
            gathering.clock[0] += 1
            if is_dewey:
                is_match = _is_true(words, words.start[slot], gathering, m)
            else:
                is_match = _covers(gathering, m, last_point[slot], gathering.clock[0])
            out[n] = slot
            n += np.int64(is_match)
        finish_event(e, n, n_nodes + n_leaves, n_touched, n_found + n_tested, output)
    return len(events.start) - 1
