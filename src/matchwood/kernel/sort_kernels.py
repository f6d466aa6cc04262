"""Kernels that sort short runs of an array in place, ascending, and search sorted ones.

    sort_words        the words of one array
    sort_rows         rows of two arrays, by the first
    sort_by           ids of one array, by what another array holds for each id
    first_not_below   where a word is in a sorted run, or would be
    last_not_above    the last word of a sorted run that is not greater

Sorting is Shell sort: no memory, and a few passes over a run that is sorted already.  Equal
keys may change their order.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import either, part


@part
def _first_gap(n):
    gap = np.int64(1)
    while gap < n // 3:
        gap = 3 * gap + 1
    return gap


@part
def sort_words(word, begin, end):
    """Sort word[begin:end]."""
    gap = _first_gap(end - begin)
    while gap > 0:
        for i in range(begin + gap, end):
            item = word[i]
            j = i - gap
            while j >= begin and word[j] > item:
                word[j + gap] = word[j]
                j -= gap
            word[j + gap] = item
        gap //= 3


@part
def sort_rows(key, value, begin, end):
    """Sort the pairs (key[i], value[i]) of begin <= i < end by their key."""
    gap = _first_gap(end - begin)
    while gap > 0:
        for i in range(begin + gap, end):
            moved_key, moved_value = key[i], value[i]
            j = i - gap
            while j >= begin and key[j] > moved_key:
                key[j + gap], value[j + gap] = key[j], value[j]
                j -= gap
            key[j + gap], value[j + gap] = moved_key, moved_value
        gap //= 3


@part
def sort_by(item, rank, begin, end):
    """Sort the ids item[begin:end] by rank[id]."""
    gap = _first_gap(end - begin)
    while gap > 0:
        for i in range(begin + gap, end):
            moved = item[i]
            j = i - gap
            while j >= begin and rank[item[j]] > rank[moved]:
                item[j + gap] = item[j]
                j -= gap
            item[j + gap] = moved
        gap //= 3


@part
def first_not_below(word, low, high, key):
    """The first position of low..high - 1 whose word is key or greater; high when there is none."""
    n = high - low + 1
    while n > 1:
        half = n >> 1
        low = either(word[low + half - 1] < key, low + half, low)
        n -= half
    return low


@part
def last_not_above(word, low, high, key):
    """The last position of low + 1..high - 1 whose word is key or smaller; low if there is none."""
    n = high - low
    while n > 1:
        half = n >> 1
        low = either(word[low + half] <= key, low + half, low)
        n -= half
    return low
