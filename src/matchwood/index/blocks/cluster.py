"""Kernels that divide the members of a space into blocks, each behind a gate.

A space that has many members is divided by a second predicate.  Its attributes are ranked by how
many members they exclude from an average event; a member belongs to the best of its attributes.
The members of one attribute are sorted by the keys that they accept, and every run of them becomes
a block.  Its *gate* is the hull of what the members of the run accept:

    space  x in 20..29     gate y in 3..9      17 members, all with a predicate on y
                           gate y in 7..40     16 members
                           gate z in 1..5      20 members, none with one on y
                           no gate             the others

An event that lacks y, or has y = 50, reads two gates instead of 33 members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.codes import hull
from matchwood.index.blocks.pack import gather, is_for_columns
from matchwood.index.blocks.words import (
    MOST_CODE,
    MOST_MEMBERS,
    NO_GATE,
    cell_attr,
    gate,
)
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import sort_words

INDEX_BITS, CODE_BITS = 27, 18
"""Bits of a key that members of a group are sorted by: low code, high code, position."""

REST = -1
"""The group of members that no gate is for."""

SHARE, NO_USE = 2, -1.0
"""A gate is for an attribute that one in 2^SHARE of the members of a space have, or more: the
others are what excludes members by their signatures, and would make many small blocks."""


class Clusters(NamedTuple):
    """The blocks of all spaces, before they have words; and scratch."""

    attr: np.ndarray  # int64[N], the attribute of a space: all members have it, so it is no gate
    block: np.ndarray  # int64[N + 1], blocks of a space
    bound: np.ndarray  # int64[B + 1], where the members of a block begin in members.listed
    gate: np.ndarray  # int64[B]
    key: np.ndarray  # int64[members of the largest space]
    moved: np.ndarray  # int32[the same]


@part
def _find_gates(n_attrs, n, most, subscription_attrs, plan):
    """Attributes that enough members have: plan.loss is 0 for these, else NO_USE; how many."""
    found = np.int64(0)
    for i in range(n_attrs):
        attr = plan.attr[i]
        plan.rows[attr] = 0
        is_often = plan.count[attr] >= max(most, n >> SHARE) and attr != subscription_attrs
        plan.loss[attr] = 0.0 if is_often else NO_USE
        found += np.int64(is_often)
    return found


@part
def _rank_attributes(expressions, coded, pool, codes, members, first, end, plan):
    """plan.loss[attribute]: how many members its predicates exclude from an average event."""
    for i in range(first, end):
        m = members.listed[i]
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = expressions.code[k]
            attr = cell_attr(coded.cell[pred])
            if pred != members.skipped[m] and plan.loss[attr] != NO_USE:
                low, high = hull(coded, pool, pred)
                share = plan.presence[attr] * (high - low + 1) / codes.n[attr]
                plan.loss[attr] += 1.0 - min(share, 1.0)


@part
def _choose_groups(expressions, coded, members, first, end, plan, clusters):
    """clusters.key: for each member its predicate on the best of its attributes, -1 for none.

    plan.rows[attribute] counts the members of each group.
    """
    for i in range(first, end):
        m = members.listed[i]
        begin, best, most = expressions.start[members.slot[m]], np.int64(REST), 0.0
        chosen = np.int64(-1)
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = np.int64(expressions.code[k])
            if pred == members.skipped[m]:
                continue
            attr = cell_attr(coded.cell[pred])
            if plan.loss[attr] > most:
                best, most, chosen = attr, plan.loss[attr], pred
        clusters.key[i - first] = chosen
        if best != REST:
            plan.rows[best] += 1


@part
def _cut_group(first, from_, to, attr, most, clusters, n_blocks):
    """Make blocks of the sorted keys from_ .. to - 1 of a group; returns the number of blocks."""
    n = to - from_
    parts = (n + most - 1) // most
    for b in range(parts):
        begin, end = from_ + n * b // parts, from_ + n * (b + 1) // parts
        low, high = np.int64(MOST_CODE), np.int64(0)
        for i in range(begin, end):
            key = clusters.key[i]
            low = min(low, key >> (INDEX_BITS + CODE_BITS))
            high = max(high, (key >> INDEX_BITS) & MOST_CODE)
            clusters.key[i] = key & ((1 << INDEX_BITS) - 1)
        sort_words(clusters.key, begin, end)  # members of one shape lie side by side again
        clusters.bound[n_blocks] = first + begin
        clusters.gate[n_blocks] = gate(attr, low, high)
        n_blocks += 1
    return n_blocks


@part
def _cut_rest(first, end, most, clusters, n_blocks):
    """Make blocks without gates; returns the number of blocks."""
    n = end - first
    parts = (n + most - 1) // most
    for b in range(parts):
        clusters.bound[n_blocks] = first + n * b // parts
        clusters.gate[n_blocks] = NO_GATE
        n_blocks += 1
    return n_blocks


@part
def _lay_groups(n_attrs, least, plan):
    """Write where each group begins (plan.zero) and empty small ones; returns the end of all."""
    at = np.int64(0)
    for i in range(n_attrs):
        attr = plan.attr[i]
        plan.zero[attr] = at
        if plan.rows[attr] < least:
            plan.rows[attr] = 0
        at += plan.rows[attr]
    return at


@part
def _place_keys(coded, pool, n, rest, plan, clusters):
    """Replace the predicates in clusters.key by keys, group after group, the rest behind them."""
    for i in range(n):
        clusters.moved[i] = clusters.key[i]
    for i in range(n):
        pred = np.int64(clusters.moved[i])
        attr = cell_attr(coded.cell[pred]) if pred >= 0 else np.int64(REST)
        if attr == REST or plan.rows[attr] == 0:
            clusters.key[rest] = i
            rest += 1
            continue
        low, high = hull(coded, pool, pred)
        low, high = min(low, np.int64(MOST_CODE)), min(high, np.int64(MOST_CODE))  # as `is_open`
        key = (low << (INDEX_BITS + CODE_BITS)) | (high << INDEX_BITS) | i
        clusters.key[plan.zero[attr]] = key
        plan.zero[attr] += 1


@part
def _cut_groups(n_attrs, first, most, plan, clusters, n_blocks):
    """Sort the keys of every group and make blocks of them; returns the number of blocks."""
    for i in range(n_attrs):
        attr = plan.attr[i]
        if plan.rows[attr] > 0:
            to = plan.zero[attr]
            begin = to - plan.rows[attr]
            sort_words(clusters.key, begin, to)
            n_blocks = _cut_group(first, begin, to, attr, most, clusters, n_blocks)
    return n_blocks


@part
def _move(members, first, n, clusters):
    """List the members in the order of their keys."""
    for i in range(n):
        clusters.moved[i] = members.listed[first + clusters.key[i]]
    for i in range(n):
        members.listed[first + i] = clusters.moved[i]


@kernel
def cluster_spaces(expressions, coded, pool, codes, members, plan, shares, clusters):
    """Divide the members of every space into blocks; returns how many there are."""
    n_blocks = np.int64(0)
    for space in range(len(members.start) - 1):
        clusters.block[space] = n_blocks
        first, end = members.start[space], members.start[space + 1]
        n = end - first
        if n <= shares.ungated:
            n_blocks = _cut_rest(first, end, np.int64(MOST_MEMBERS), clusters, n_blocks)
            continue
        n_attrs = gather(expressions, coded, members, first, end, plan)
        has_columns = is_for_columns(codes, n_attrs, (n + 63) >> 6, plan, shares)
        most = np.int64(MOST_MEMBERS) if has_columns else np.int64(shares.gated)
        if n <= most or _find_gates(n_attrs, n, most, clusters.attr[space], plan) == 0:
            n_blocks = _cut_rest(first, end, np.int64(MOST_MEMBERS), clusters, n_blocks)
        else:
            _rank_attributes(expressions, coded, pool, codes, members, first, end, plan)
            _choose_groups(expressions, coded, members, first, end, plan, clusters)
            rest = _lay_groups(n_attrs, most >> 1, plan)
            _place_keys(coded, pool, n, rest, plan, clusters)
            n_blocks = _cut_groups(n_attrs, first, most, plan, clusters, n_blocks)
            n_blocks = _cut_rest(first + rest, end, np.int64(MOST_MEMBERS), clusters, n_blocks)
            _move(members, first, n, clusters)
        for i in range(n_attrs):
            plan.count[plan.attr[i]] = 0
            plan.cells[plan.attr[i]] = 0
    clusters.block[len(members.start) - 1] = n_blocks
    clusters.bound[n_blocks] = members.start[len(members.start) - 1]
    return n_blocks
