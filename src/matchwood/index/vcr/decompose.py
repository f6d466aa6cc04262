"""Kernels of `vcr` that number rectangles and decompose them into VCRs; see the folder's page."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part


@kernel
def vcr_id(x, y, i, j, range_x, kx, ky):
    """Equation 1: the number of VCR (x, y, 2^i, 2^j)."""
    return (kx + 1) * (ky + 1) * (x + y * range_x) + j * (kx + 1) + i


@part
def _longest(size, k):
    """log2 of the longest side, up to 2^k, that fits into a size."""
    i = np.int64(0)
    while i < k and np.int64(2) << i <= size:
        i += 1
    return i


@part
def _n_pieces(size, k, overlapped):
    """Into how many sides a size is cut."""
    if overlapped:
        i = _longest(size, k)
        return (size + (np.int64(1) << i) - 1) >> i
    n, rest = size >> k, size & ((np.int64(1) << k) - 1)
    while rest:
        n += rest & 1
        rest >>= 1
    return n


@kernel
def n_vcrs(w, h, kx, ky, overlapped):
    """How many VCRs a decomposition has."""
    return _n_pieces(w, kx, overlapped) * _n_pieces(h, ky, overlapped)


@kernel
def simple_decomposition(a, b, w, h, kx, ky, out):
    """SD, Figure 2: strips from the bottom, each cut from the left, each piece as long as fits.

    Writes (x, y, i, j) for every VCR (x, y, 2^i, 2^j); returns how many.
    """
    n = np.int64(0)
    bottom, height = b, h
    while height > 0:
        j = _longest(height, ky)
        left, width = a, w
        while width > 0:
            i = _longest(width, kx)
            out[n, 0], out[n, 1], out[n, 2], out[n, 3] = left, bottom, i, j
            n += 1
            left += np.int64(1) << i
            width -= np.int64(1) << i
        bottom += np.int64(1) << j
        height -= np.int64(1) << j
    return n


@kernel
def overlapped_decomposition(a, b, w, h, kx, ky, out):
    """OD, Figure 4: one size for all; the last of a strip, and the last strip, shift back."""
    n = np.int64(0)
    i, j = _longest(w, kx), _longest(h, ky)
    length, height = np.int64(1) << i, np.int64(1) << j
    for row in range((h + height - 1) >> j):
        bottom = b + min(row << j, h - height)
        for column in range((w + length - 1) >> i):
            left = a + min(column << i, w - length)
            out[n, 0], out[n, 1], out[n, 2], out[n, 3] = left, bottom, i, j
            n += 1
    return n
