"""The arrays of terms, and the steps that a rest is made of.

    step   leaf    the leaf to look at
           jump    offset << 2 | is last << 1 | sense

A step whose leaf is as its sense says (1: true, 0: not true) goes on `offset` steps further, or
ends if the offset is 0; any other step goes on with the next one, or ends if it is the last.  Where
it ends the rest is what the leaf was.

    (a OR b) AND c      a: true -> c, else next     b: else the end     c: the end

What follows from a node of a segment tree is one piece of `Tree.piece`, so that a search waits for
memory once a node, not once a leaf:

    [runs n][ranges n][slices n][copies n][runs][ranges][slices][copies]

    run      FIRST, END      leaves that hold here, if a rest looks at one of them
    range    FIRST, END      groups of these leaves
    slice    FIRST, END      in `sure`: slots that the leaves of a run alone satisfy, if many
    copy     slot            the same of all other runs
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.words import Codes
from matchwood.kernel.jit import part

LEAF, JUMP = range(2)
"""Columns of `step`."""

REST, SLOTS = range(2)
"""Columns of `group`; the last row ends the slots."""

FIRST, END = range(2)
"""Columns of runs, and positions in a pair of a piece."""

N_RUNS, N_RANGES, N_SLICES, N_COPIES, HEAD = range(5)
"""Positions in a piece; HEAD is where its pairs begin."""


class Tree(NamedTuple):
    """Which leaves hold for a code: a segment tree over the codes of every attribute.

    Attribute a with n codes has the nodes base[a] + 1 .. base[a] + 2n - 1: 1 is the root, 2k and
    2k + 1 are below k, code c is n + c - 1.
    """

    base: np.ndarray  # int64[A + 1]
    start: np.ndarray  # int64[nodes + 1], slice of `piece` that belongs to a node, or none
    piece: np.ndarray  # int32[], see above
    leaf: np.ndarray  # int32[L], the attribute of each leaf


class Terms(NamedTuple):
    """What pieces refer to."""

    sure: np.ndarray  # int32[], slots that a leaf alone satisfies, by leaf
    group: np.ndarray  # int64[G + 1, 2], first step of its REST, where its SLOTS begin in `slot`
    slot: np.ndarray  # int32[], slots that a leaf and a rest satisfy
    step: np.ndarray  # int32[C, 2], see above


class Structure(NamedTuple):
    """What a search reads."""

    codes: Codes
    tree: Tree
    terms: Terms


@part
def jump_of(offset, is_last, sense):
    return (np.int64(offset) << 2) | (np.int64(is_last) << 1) | np.int64(sense)


@part
def offset_of(jump):
    return np.int64(jump) >> 2


@part
def is_last(jump):
    return (np.int64(jump) & 2) != 0


@part
def sense_of(jump):
    return np.int64(jump) & 1


@part
def low_bits(last):
    """A word with the bits 0 .. last, last being 63 at most."""
    return ~(np.int64(-2) << np.int64(last))


@part
def high_bits(first):
    """A word with the bits first .. 63."""
    return np.int64(-1) << np.int64(first)
