"""Kernels that sort short runs of an array in place, ascending, and search sorted ones.

    sort_words        the words of one array
    sort_rows         rows of two arrays, by the first
    sort_ids          the same where the first has small numbers, each once
    sort_by           ids of one array, by what another array holds for each id
    first_not_below   where a word is in a sorted run, or would be
    last_not_above    the last word of a sorted run that is not greater

Sorting is Shell sort: no memory, and a few passes over a run that is sorted already.  Equal
keys may change their order.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import either, lowest_bit, part


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
def sort_ids(id_, value, begin, end, held, marks):
    """Sort the pairs (id_[i], value[i]) of begin <= i < end by their id; each id occurs once.

    held   int64[n], ids being below n: any content
    marks  int64[n / 64 + 1], 0 everywhere before and after

    Each id is marked by a bit and the bits are read in order: without guesses, several times as
    fast as comparing, unless the ids are far apart.
    """
    low, high, is_sorted = np.int64(len(marks)), np.int64(-1), True
    for i in range(begin, end):
        low, high = min(low, np.int64(id_[i]) >> 6), max(high, np.int64(id_[i]) >> 6)
        is_sorted &= i == begin or id_[i - 1] < id_[i]
    if is_sorted:
        return
    if high - low > 4 * (end - begin):
        sort_rows(id_, value, begin, end)
        return
    for i in range(begin, end):
        held[id_[i]] = value[i]
        marks[id_[i] >> 6] |= np.int64(1) << np.int64(id_[i] & 63)
    n = begin
    for word in range(low, high + 1):
        left = marks[word]
        marks[word] = 0
        while left != 0:
            bit = lowest_bit(left)
            left ^= np.int64(1) << bit
            found = (word << 6) + bit
            id_[n], value[n] = found, held[found]
            n += 1


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
