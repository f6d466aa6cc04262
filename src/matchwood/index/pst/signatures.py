"""Kernels of signatures: a few bits that tell what an expression needs of an event.

    expression   one bit for each predicate but the access predicate
    event        one bit for each attribute that it has
    candidate    bits(expression) & ~bits(event) == 0

A bit stands for an attribute.  Where nearly every event has the attribute that would tell nothing;
there it stands for one eighth of the attribute's keys, and only predicates that stay inside one
eighth have a bit.  Which of the two is decided when the structure is made, for each attribute once.

Layout   (A attributes, W words of 64 bits)
         low    int64[A]     first key of the first eighth
         scale  float64[A]   eighths per key; 0: the attribute's bit stands for its presence
         absent int64[W]     scratch: the bits that the event at hand does not have
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import part

CELLS = 8
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Signatures(NamedTuple):
    """See the module's docstring for the arrays."""

    low: np.ndarray
    scale: np.ndarray


@part
def _cell(signatures, attr, key):
    """Which eighth a key falls into; never falls when keys rise, so it needs no exact bounds."""
    at = (np.float64(key) - np.float64(signatures.low[attr])) * signatures.scale[attr]
    return np.int64(min(max(at, 0.0), CELLS - 1.0))


@part
def _bit(attr, cell, n_bits):
    """Neighbouring attributes have neighbouring bits, which spreads them evenly."""
    if cell < 0:
        return attr % n_bits
    h = np.uint64(attr * CELLS + cell) * _ODD
    return np.int64((h >> np.uint64(32)) % np.uint64(n_bits))


@part
def sign(signatures, expressions, predicates, slot, access, mark, at):
    """Write the signature of an expression to mark[at]."""
    n_words = mark.shape[1]
    for w in range(n_words):
        mark[at, w] = 0
    if n_words == 0:
        return
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = expressions.code[k]
        if pred == access:
            continue
        attr = np.int64(predicates.attr[pred])
        cell = np.int64(-1)
        if signatures.scale[attr] != 0.0:
            cell = _cell(signatures, attr, predicates.lo[pred])
            if cell != _cell(signatures, attr, predicates.hi[pred]):
                continue
        bit = _bit(attr, cell, 64 * n_words)
        mark[at, bit >> 6] |= np.int64(1) << (bit & 63)


@part
def sign_event(signatures, events, e, absent):
    """Fill `absent` for an event: the bits that it does not have."""
    n_bits = 64 * len(absent)
    for w in range(len(absent)):
        absent[w] = -1
    if n_bits == 0:
        return
    for i in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[i])
        if attr >= len(signatures.scale):
            continue
        first, last = np.int64(-1), np.int64(-1)
        if signatures.scale[attr] != 0.0:
            first, last = (
                _cell(signatures, attr, events.lo[i]),
                _cell(signatures, attr, events.hi[i]),
            )
        for cell in range(first, last + 1):
            bit = _bit(attr, cell, n_bits)
            absent[bit >> 6] &= ~(np.int64(1) << (bit & 63))
