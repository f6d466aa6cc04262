"""Kernels of columns: values to the keys of their places among an attribute's constants."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import inlined, kernel
from matchwood.kernel.sort_kernels import last_not_above


@kernel
def place_numbers(values, ceil, exact, labels, keys):
    """The label of an equal constant, else the gap above the last lower one (see NumberLabels)."""
    for i in range(len(values)):
        value = values[i]
        low = last_not_above(ceil, np.int64(-1), np.int64(len(ceil)), value)
        if low < 0:
            keys[i] = labels[0] - 1
        elif exact[low] and ceil[low] == value:
            keys[i] = labels[low]
        else:
            keys[i] = labels[low] + 1


@inlined
def _is_above(texts, first, last, data, begin, end):
    """1, 0 or -1 as the constant `texts[first:last]` is above, at or below `data[begin:end]`."""
    shorter = min(last - first, end - begin)
    for k in range(shorter):
        if texts[first + k] != data[begin + k]:
            return 1 if texts[first + k] > data[begin + k] else -1
    return np.sign((last - first) - (end - begin))


@kernel
def place_strings(data, start, texts, text_start, labels, keys):
    """The same for texts in UTF-8, `data[start[i]:start[i + 1]]`, among constants, ascending."""
    for i in range(len(keys)):
        begin, end = start[i], start[i + 1]
        low, high = np.int64(-1), np.int64(len(labels))
        keys[i] = labels[0] - 1 if high > 0 else 0
        while high - low > 1:  # constant low <= text < constant high
            middle = (low + high) >> 1
            above = _is_above(texts, text_start[middle], text_start[middle + 1], data, begin, end)
            if above > 0:
                high = middle
                continue
            low = middle
            keys[i] = labels[low] + (above != 0)
            if above == 0:
                break
