"""One walk over JSON documents: the values at the paths in use are listed, the rest is skipped.

Every byte is checked as `json.loads` checks it, but nothing is made of what no path names.  What
this walk does not decide is marked ODD and read by `json.loads` (see `json/events`): wrong text,
keys with escapes, a path that occurs twice, deep nesting, rare numbers at a path in use.

Layout of the paths   (a tree of name parts: `user.age` is `age` below `user`; N nodes, 2^k places)
    parent     int32[N]    the node above; the root is node 0
    path       int32[N]    which path ends here, NONE
    is_inner   bool[N]     whether a path goes on below
    name_start int64[N+1]  slice of `names` that is the node's own part
    names      uint8[]     UTF-8, and PADDING of `byte_kernels`
    table      int32[2^k]  nodes by hash of (parent, name), see id_table_kernels

Layout of the tape    (what was found, in the order of the text)
    start  int64[n+1]  slice of entries that belongs to a document
    path   int32[m]    which path
    kind   uint8[m]    FALSE, TRUE, INTEGER, DOUBLE, STRING, COPIED, LIST, OBJECT
    value  int64[m]    an INTEGER; the bits of a DOUBLE; else where the token begins
    end    int64[m]    where the token ends: in the text, or in `copied` for COPIED, a string
                       without its escapes
    copied uint8[]     as long as the text
    is_odd bool[n]     leave this document to exact code; its slice is empty

null is an absent value: it is not listed.

Positions that are known not to be NONE are unsigned: a signed one is compared with 0 at every
access.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.json.token_kernels import (
    BRACE,
    BRACE_END,
    BRACKET,
    BRACKET_END,
    COLON,
    COMMA,
    DOT,
    IS_DOUBLE,
    LOWER_F,
    LOWER_N,
    LOWER_T,
    MINUS,
    NINE,
    ODD,
    QUOTE,
    ZERO,
    byte_at,
    double_of,
    integer_of,
    is_exact,
    read_integer,
    read_number,
    skip_space,
    skip_string,
    skip_word,
    unescape,
)
from matchwood.kernel.byte_kernels import are_same, hash_bytes
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell, put_id
from matchwood.kernel.jit import inlined, kernel

NONE = -1
ROOT = 0
MAX_DEPTH = 48
"""Deepest nesting that this walk follows; the rest is left to exact code."""

FALSE, TRUE, INTEGER, DOUBLE, STRING, COPIED, LIST, OBJECT = range(8)

NODE_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Paths(NamedTuple):
    """See the module's docstring."""

    parent: np.ndarray
    path: np.ndarray
    is_inner: np.ndarray
    name_start: np.ndarray
    names: np.ndarray
    table: np.ndarray


class Tape(NamedTuple):
    """See the module's docstring."""

    start: np.ndarray
    path: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    end: np.ndarray
    copied: np.ndarray
    is_odd: np.ndarray


class WalkScratch(NamedTuple):
    """Memory of one walk.

    node    int32[MAX_DEPTH + 1]   per open container: its node, NONE inside lists and elsewhere
    is_list bool[MAX_DEPTH + 1]    whether it is a list
    entry   int64[MAX_DEPTH + 1]   its entry of the tape, NONE
    last    int64[MAX_DEPTH + 1]   its last key in use: 2 x node + 1; 2 x its own node before that
    after   int32[2N]              by such a number: the node of the key that came next, last time
    seen    int64[N]               the document that last had a node
    number  int64[N_NUMBER]        see `json/token_kernels`
    double  float64[1]             a number that is being read ...
    bits    int64[1]               ... and the same memory as an integer
    used    int64[2]               entries of the tape, bytes of `copied`
    """

    node: np.ndarray
    is_list: np.ndarray
    entry: np.ndarray
    last: np.ndarray
    after: np.ndarray
    seen: np.ndarray
    number: np.ndarray
    double: np.ndarray
    bits: np.ndarray
    used: np.ndarray


ENTRIES, COPIED_BYTES = range(2)


@inlined
def name_hash(parent, value):
    """Where a name below a node is looked for; `value` is the hash of its bytes."""
    mixed = value ^ np.uint64(parent) * NODE_FACTOR
    return mixed ^ mixed >> np.uint64(29)


@kernel
def fill_table(paths):
    """Enter all nodes but the root into the table, which is empty."""
    for node in range(1, len(paths.parent)):
        value = hash_bytes(paths.names, paths.name_start[node], paths.name_start[node + 1])
        put_id(paths.table, name_hash(paths.parent[node], value), node)


@inlined
def _length(paths, node):
    """Bytes of the name of a node."""
    return paths.name_start[np.uint64(node + 1)] - paths.name_start[np.uint64(node)]


@inlined
def _has_name(paths, node, data, begin, n):
    """Whether the name of a node is the n bytes of the text from `begin` on."""
    return _length(paths, node) == n and are_same(
        paths.names, paths.name_start[np.uint64(node)], data, np.int64(begin), n
    )


@inlined
def child_of(paths, parent, data, begin, end):
    """The node of `data[begin:end]` below another one, or NONE."""
    at = first_cell(paths.table, name_hash(parent, hash_bytes(data, begin, end)))
    while paths.table[at] != EMPTY:
        node = np.int64(paths.table[at])
        if paths.parent[np.uint64(node)] == parent and _has_name(
            paths, node, data, begin, end - begin
        ):
            return node
        at = next_cell(paths.table, at)
    return np.int64(NONE)


@inlined
def _is_guessed(paths, guess, parent, data, begin, end):
    """Whether the text from `begin` on is the name of a node below another one, and a quote.

    A guess is a node that was found by a key without quotes, escapes and control characters.
    """
    if guess == NONE or paths.parent[np.uint64(guess)] != parent:
        return False
    n = _length(paths, guess)
    if begin + n >= end or byte_at(data, begin + n) != QUOTE:
        return False
    return are_same(paths.names, paths.name_start[np.uint64(guess)], data, begin, n)


@inlined
def _read_key(data, at, end, paths, node, depth, scratch):
    """The byte after a key, and the node that it leads to; a dot in a key is a step down.

    Documents often have the same keys in the same order: the key that followed the last time is
    compared first.
    """
    if at >= end or byte_at(data, at) != QUOTE:
        return np.int64(ODD), np.int64(NONE)
    begin = np.int64(at + 1)
    if node != NONE:
        guess = np.int64(scratch.after[np.uint64(scratch.last[np.uint64(depth)])])
        if _is_guessed(paths, guess, node, data, begin, end):
            scratch.last[np.uint64(depth)] = 2 * guess + 1
            return begin + _length(paths, guess) + 1, guess
    stop, has_escapes = skip_string(data, at, end)
    if node == NONE or stop == ODD:
        return stop, np.int64(NONE)
    if has_escapes:
        return np.int64(ODD), np.int64(NONE)
    parent, step = node, begin
    for k in range(begin, stop - 1):
        if byte_at(data, k) == DOT and node != NONE:
            node = child_of(paths, node, data, step, np.int64(k))
            step = np.int64(k + 1)
    if node != NONE:
        node = child_of(paths, node, data, step, stop - 1)
    if node != NONE:
        if paths.parent[np.uint64(node)] == parent:
            scratch.after[np.uint64(scratch.last[np.uint64(depth)])] = node
        scratch.last[np.uint64(depth)] = 2 * node + 1
    return stop, node


@inlined
def _find_value(data, at, end, paths, depth, scratch):
    """The node of a key at `at`, and where its value begins."""
    at, node = _read_key(
        data, at, end, paths, np.int64(scratch.node[np.uint64(depth)]), depth, scratch
    )
    if at == ODD:
        return at, node
    at = skip_space(data, at, end)
    if at >= end or byte_at(data, at) != COLON:
        return np.int64(ODD), node
    return np.int64(skip_space(data, at + 1, end)), node


@inlined
def _list_value(paths, node, kind, value, end, tape, scratch):
    """Put a value on the tape, if a path ends at its node."""
    if node == NONE or paths.path[np.uint64(node)] == NONE:
        return
    n = np.uint64(scratch.used[ENTRIES])
    tape.path[n] = paths.path[np.uint64(node)]
    tape.kind[n] = kind
    tape.value[n] = value
    tape.end[n] = end
    scratch.used[ENTRIES] += 1


@inlined
def _read_string(data, at, end, paths, node, tape, scratch):
    stop, has_escapes = skip_string(data, at, end)
    if stop == ODD or node == NONE or paths.path[np.uint64(node)] == NONE:
        return stop
    if has_escapes:
        begin = scratch.used[COPIED_BYTES]
        n = unescape(data, at + 1, stop - 1, tape.copied, begin)
        scratch.used[COPIED_BYTES] = n
        _list_value(paths, node, COPIED, begin, n, tape, scratch)
    else:
        _list_value(paths, node, STRING, at + 1, stop - 1, tape, scratch)
    return stop


@inlined
def _read_number(data, at, end, paths, node, tape, scratch):
    stop, whole = read_integer(data, at, end)
    if stop != ODD:
        _list_value(paths, node, INTEGER, whole, stop, tape, scratch)
        return stop
    number = scratch.number
    stop = read_number(data, at, end, number)
    if stop == ODD or node == NONE or paths.path[np.uint64(node)] == NONE:
        return stop
    if not is_exact(number):
        return np.int64(ODD)
    if number[IS_DOUBLE]:
        scratch.double[0] = double_of(number)
        _list_value(paths, node, DOUBLE, scratch.bits[0], stop, tape, scratch)
    else:
        _list_value(paths, node, INTEGER, integer_of(number), stop, tape, scratch)
    return stop


@inlined
def _read_scalar(data, at, end, paths, node, tape, scratch):
    """The end of a value that is no container, or ODD."""
    byte = byte_at(data, at)
    if byte == QUOTE:
        return _read_string(data, at, end, paths, node, tape, scratch)
    if byte == MINUS or ZERO <= byte <= NINE:
        return _read_number(data, at, end, paths, node, tape, scratch)
    if byte == LOWER_T or byte == LOWER_F or byte == LOWER_N:
        stop = skip_word(data, at, end)
        if stop != ODD and byte != LOWER_N:
            _list_value(paths, node, TRUE if byte == LOWER_T else FALSE, at, stop, tape, scratch)
        return stop
    return np.int64(ODD)


@inlined
def walk_document(data, at, end, paths, document, tape, scratch):
    """List the values of one document; False where it is odd."""
    at = skip_space(data, at, end)
    if at >= end or byte_at(data, at) != BRACE:
        return False
    depth = 0
    node = np.int64(ROOT)
    while True:  # a value begins at `at`; `node` is where its path stands
        byte = byte_at(data, at)
        if byte == BRACE or byte == BRACKET:
            depth += 1
            if depth > MAX_DEPTH:
                return False
            is_list = byte == BRACKET
            scratch.entry[np.uint64(depth)] = NONE
            if depth > 1 and node != NONE and paths.path[np.uint64(node)] != NONE:
                scratch.entry[np.uint64(depth)] = scratch.used[ENTRIES]
                _list_value(paths, node, LIST if is_list else OBJECT, at, at, tape, scratch)
            is_followed = not is_list and node != NONE and paths.is_inner[np.uint64(node)]
            scratch.node[np.uint64(depth)] = node if is_followed else NONE
            scratch.last[np.uint64(depth)] = 2 * node if is_followed else 0
            scratch.is_list[np.uint64(depth)] = is_list
            at = skip_space(data, at + 1, end)
            if at >= end:
                return False
            if byte_at(data, at) != (BRACKET_END if is_list else BRACE_END):
                node = np.int64(NONE)
                if not is_list:
                    at, node = _find_value(data, at, end, paths, depth, scratch)
                    if at == ODD or at >= end or _is_repeated(node, document, scratch):
                        return False
                continue
        else:
            at = _read_scalar(data, at, end, paths, node, tape, scratch)
            if at == ODD:
                return False
            at = skip_space(data, at, end)
        while True:  # a value has ended before `at`, or an empty container ends at `at`
            if at >= end:
                return False
            if byte_at(data, at) == COMMA:
                break
            if byte_at(data, at) != (
                BRACKET_END if scratch.is_list[np.uint64(depth)] else BRACE_END
            ):
                return False
            if scratch.entry[np.uint64(depth)] != NONE:
                tape.end[scratch.entry[np.uint64(depth)]] = at + 1
            depth -= 1
            at = skip_space(data, at + 1, end)
            if depth == 0:
                return at == end
        at = skip_space(data, at + 1, end)
        if at >= end:
            return False
        node = np.int64(NONE)
        if not scratch.is_list[np.uint64(depth)]:
            at, node = _find_value(data, at, end, paths, depth, scratch)
            if at == ODD or at >= end or _is_repeated(node, document, scratch):
                return False


@inlined
def _is_repeated(node, document, scratch):
    """Whether a node of the paths occurs for the second time in a document."""
    if node == NONE:
        return False
    if scratch.seen[np.uint64(node)] == document:
        return True
    scratch.seen[np.uint64(node)] = document
    return False


@kernel
def walk_documents(data, begin, end, paths, first, tape, scratch):
    """List documents first.., which are `data[begin[i]:end[i]]`; returns the number done.

    Fewer than all: the tape has no room for one more document, which lists a path once at most.
    """
    for i in range(first, len(begin)):
        n, copied = scratch.used[ENTRIES], scratch.used[COPIED_BYTES]
        if n + len(paths.path) > len(tape.path):
            return i
        tape.is_odd[i] = not walk_document(data, begin[i], end[i], paths, i, tape, scratch)
        if tape.is_odd[i]:
            scratch.used[ENTRIES], scratch.used[COPIED_BYTES] = n, copied
        tape.start[i + 1] = scratch.used[ENTRIES]
    return len(begin)
