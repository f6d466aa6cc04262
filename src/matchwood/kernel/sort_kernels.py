"""Kernels that sort short runs of an array in place, without memory of their own."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part


@part
def sort_words(word, begin, end):
    """Shell sort of word[begin:end], ascending."""
    gap = np.int64(1)
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            item = word[i]
            j = i - gap
            while j >= begin and word[j] > item:
                word[j + gap] = word[j]
                j -= gap
            word[j + gap] = item
        gap //= 3
