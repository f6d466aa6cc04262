"""Top k: of the matches of each event those of the highest priority, without sorting all of them.

Per event a heap of at most k positions, the worst at its root.  A match that is better than the
root takes its place; at the end the heap is sorted, best first.  O(matches * log k).
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part


@part
def _is_worse(slots, priority, a, b):
    """Whether the match at position a is worse than that at b: lower priority, or added later."""
    first, second = priority[slots[a]], priority[slots[b]]
    return first < second or (first == second and a > b)


@part
def _sift_down(slots, priority, heap, base, n):
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= n:
            return
        if child + 1 < n and _is_worse(slots, priority, heap[base + child + 1], heap[base + child]):
            child += 1
        if not _is_worse(slots, priority, heap[base + child], heap[base + at]):
            return
        heap[base + at], heap[base + child] = heap[base + child], heap[base + at]
        at = child


@part
def _sift_up(slots, priority, heap, base, at):
    while at > 0:
        parent = (at - 1) // 2
        if not _is_worse(slots, priority, heap[base + at], heap[base + parent]):
            return
        heap[base + at], heap[base + parent] = heap[base + parent], heap[base + at]
        at = parent


@kernel
def top_k(offsets, slots, priority, limit, heap, out_offsets):
    """Fill `heap` with the positions in `slots` that are kept, event by event, best first.

    heap         int64, room for min(limit, matches) of each event
    out_offsets  int64[events + 1]
    """
    base = np.int64(0)
    out_offsets[0] = 0
    for event in range(len(offsets) - 1):
        n = np.int64(0)
        for i in range(offsets[event], offsets[event + 1]):
            if n < limit:
                heap[base + n] = i
                _sift_up(slots, priority, heap, base, n)
                n += 1
            elif _is_worse(slots, priority, heap[base], i):
                heap[base] = i
                _sift_down(slots, priority, heap, base, n)
        for end in range(n - 1, 0, -1):
            heap[base], heap[base + end] = heap[base + end], heap[base]
            _sift_down(slots, priority, heap, base, end)
        base += n
        out_offsets[event + 1] = base
    return base
