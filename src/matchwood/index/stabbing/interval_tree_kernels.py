"""Kernels of `interval_tree`: a balanced search tree that lies in the sorted array itself."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel


@kernel
def fill_highest(hi, highest, stack):
    """highest[m]: the largest end in the subtree whose root is the middle m of its slice."""
    top = np.int64(0)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, len(hi), 0
    top = 1
    while top > 0:
        first, last, is_back = stack[top - 1]
        middle = (first + last) >> 1
        if is_back == 0:
            stack[top - 1, 2] = 1
            if first < middle:
                stack[top, 0], stack[top, 1], stack[top, 2] = first, middle, 0
                top += 1
            if middle + 1 < last:
                stack[top, 0], stack[top, 1], stack[top, 2] = middle + 1, last, 0
                top += 1
            continue
        top -= 1
        most = hi[middle]
        if first < middle:
            most = max(most, highest[(first + middle) >> 1])
        if middle + 1 < last:
            most = max(most, highest[(middle + 1 + last) >> 1])
        highest[middle] = most


@kernel
def stab_tree(lo, hi, highest, number, keys, stack, offsets, out):
    """The intervals of every key; with an empty `out` only their numbers, in offsets[i + 1]."""
    for i in range(len(keys)):
        key, at, total = keys[i], offsets[i], np.int64(0)
        stack[0, 0], stack[0, 1] = 0, len(lo)
        top = np.int64(1 if len(lo) > 0 else 0)
        while top > 0:
            top -= 1
            first, last = stack[top, 0], stack[top, 1]
            middle = (first + last) >> 1
            if highest[middle] < key:
                continue
            if lo[middle] <= key:
                if hi[middle] >= key:
                    if len(out) > 0:
                        out[at + total] = number[middle]
                    total += 1
                if middle + 1 < last:
                    stack[top, 0], stack[top, 1] = middle + 1, last
                    top += 1
            if first < middle:
                stack[top, 0], stack[top, 1] = first, middle
                top += 1
        if len(out) == 0:
            offsets[i + 1] = offsets[i] + total
