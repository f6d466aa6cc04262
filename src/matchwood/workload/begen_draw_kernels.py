"""Draws inside kernels: counter-based as in `draws`, one number at a time.

stream      mix(key + row * ODD), and mixed once more with the attempt where there are several
draw i, c   mix(stream + (i * DRAWS + c + 1) * ODD)       for use c of item i
"""

import numpy as np

from matchwood.kernel.jit import kernel, part

_ODD = np.uint64(0x9E3779B97F4A7C15)
_ODD_ATTEMPT = np.uint64(0xD1342543DE82EF95)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_DRAWS = np.uint64(64)
_QUICK = 32


@part
def mix(x):
    """splitmix64's finaliser."""
    x ^= x >> np.uint64(30)
    x *= _MIX_1
    x ^= x >> np.uint64(27)
    x *= _MIX_2
    return x ^ (x >> np.uint64(31))


@part
def stream_of(key, row, attempt):
    """Where the draws of one row, at one attempt, begin."""
    return mix(mix(key + np.uint64(row) * _ODD) + np.uint64(attempt) * _ODD_ATTEMPT)


@part
def draw(stream, i, c):
    """64 random bits."""
    return mix(stream + (np.uint64(i) * _DRAWS + np.uint64(c + 1)) * _ODD)


@part
def unit(stream, i, c):
    """Even in [0, 1)."""
    return np.float64(draw(stream, i, c) >> np.uint64(11)) * 2.0**-53


@part
def below(stream, i, c, n):
    """Even in 0 .. n - 1, for n up to 2^31."""
    return np.int64((draw(stream, i, c) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))


@part
def _first_above(rising, x):
    low, high = np.int64(0), np.int64(len(rising) - 1)
    while low < high:
        middle = (low + high) >> 1
        if rising[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@part
def _is_among(chosen, k, n, item):
    for j in range(n):
        if chosen[k, j] == item:
            return True
    return False


@part
def _pick_slowly(rising, x, chosen, k, n):
    """By weight among the items that are left; x in [0, 1)."""
    left = rising[len(rising) - 1]
    for j in range(n):
        item = chosen[k, j]
        left -= rising[item] - (rising[item - 1] if item > 0 else 0.0)
    goal, passed, last = x * left, 0.0, np.int64(0)
    for item in range(len(rising)):
        if not _is_among(chosen, k, n, item):
            last = np.int64(item)
            passed += rising[item] - (rising[item - 1] if item > 0 else 0.0)
            if passed > goal:
                break
    return last


@kernel
def draw_distinct(key, rows, rising, chosen):
    """Different items for each row, one after the other, by weight; rising sums up the weights.

    Draw until the item is new, which is soon unless few popular items hold nearly all weight; then
    look at what is left.  Both ways give an item the same chance.
    """
    for k in range(len(rows)):
        stream = stream_of(key, rows[k], np.int64(0))
        for n in range(chosen.shape[1]):
            item = np.int64(-1)
            for c in range(_QUICK):
                item = _first_above(rising, unit(stream, n, c) * rising[len(rising) - 1])
                if not _is_among(chosen, k, n, item):
                    break
                item = np.int64(-1)
            if item < 0:
                item = _pick_slowly(rising, unit(stream, n, _QUICK), chosen, k, n)
            chosen[k, n] = item
