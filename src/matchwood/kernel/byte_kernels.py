"""Parts that hash and compare runs of bytes, eight at a time.

Arrays are uint8.  Where eight bytes would reach behind an array, its last ones are read one by one;
names and constants have PADDING behind them, so that this happens at the end of a text alone.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import inlined, word_at

PADDING = 8
"""Bytes behind the last run of an array, so that each can be read in words."""

_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ONE, _THREE, _HALF = np.uint64(1), np.uint64(3), np.uint64(32)


@inlined
def tail_word(data, begin, n):
    """The bytes `data[begin:begin + n]`, fewer than 8, as the low bytes of a word."""
    if begin + 8 <= len(data):
        return word_at(data, begin) & ((_ONE << (np.uint64(n) << _THREE)) - _ONE)
    word = np.uint64(0)
    for k in range(n):
        word |= np.uint64(data[begin + k]) << (np.uint64(k) << _THREE)
    return word


@inlined
def _mixed(value, word):
    value = (value ^ word) * _FACTOR
    return value ^ (value >> _HALF)


@inlined
def hash_bytes(data, begin, end):
    """A hash of `data[begin:end]`, uint64."""
    value = _SEED ^ np.uint64(end - begin)
    while begin + 8 <= end:
        value = _mixed(value, word_at(data, begin))
        begin += 8
    if begin < end:
        value = _mixed(value, tail_word(data, begin, end - begin))
    return value


@inlined
def are_same(one, first, other, second, n):
    """Whether n bytes of two arrays, from `first` and `second` on, are the same."""
    while n >= 8:
        if word_at(one, first) != word_at(other, second):
            return False
        first += 8
        second += 8
        n -= 8
    return n == 0 or tail_word(one, first, n) == tail_word(other, second, n)
