"""The kernel of columns: numbers to the keys of their places among an attribute's constants."""

from __future__ import annotations

from matchwood.kernel.jit import kernel


@kernel
def place_numbers(values, ceil, exact, labels, keys):
    """The label of an equal constant, else the gap above the last lower one (see NumberLabels)."""
    for i in range(len(values)):
        value = values[i]
        low, high = -1, len(ceil)
        while high - low > 1:  # ceil[low] <= value < ceil[high]
            middle = (low + high) >> 1
            if ceil[middle] <= value:
                low = middle
            else:
                high = middle
        if low < 0:
            keys[i] = labels[0] - 1
        elif exact[low] and ceil[low] == value:
            keys[i] = labels[low]
        else:
            keys[i] = labels[low] + 1
