"""Dicts to entries in one step: names are looked up, values become keys, entries are sorted.

What a value becomes is planned as for JSON documents (`json/key_kernels`).  An event that is not
decided here is left to exact code (`events`): names that are no strings, values of other types than
Python's own, whole numbers beyond 64 bits, NaN and infinity, a path that occurs twice, deep
nesting, and what the plan leaves to it.

Layout of the names   (N nodes of the tree of dotted names, see `json/walk_kernels`; E ways to reach
                       one: below node `user`, `home.city` leads to the same node as `home` and then
                       `city`; 2^k places)
    parent, node  int32[E]    from which node to which
    text          int64[E]    address of the str, which the owner keeps
    hash          int64[E]    its hash
    place         int32[2^k]  ways by hash of (parent, name), see id_table_kernels
    path          int32[N]    which path ends here, NONE
    is_inner      bool[N]     whether a path goes on below
    types         int64[]     addresses of types, by NAMED; from FLAT on, types without fields

Layout of the memory of one walk   (P paths)
    dict, position, node      int64, int64, int32 [MAX_DEPTH + 1]  dicts that are open
    node_seen     int64[N]    the event that last had a node
    seen          int64[P]    the event that last had a path
    path kind value end       the tape of one event; P of each
    copied        uint8[]     its strings, in UTF-8
    double, bits  one number, as a float64 and as an int64
    unknown       int64[P]    predicates that values of other kinds left unknown, since last emptied
    held, marks               for `sort_ids`
    stamp         int64[1]    the number of the last event
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from matchwood.encode.added_kernels import Adding, add_from
from matchwood.encode.json.key_kernels import CLASS_OF, Plan, encode_values
from matchwood.encode.json.walk_kernels import (
    COPIED,
    DOUBLE,
    FALSE,
    INTEGER,
    LIST,
    MAX_DEPTH,
    NODE_FACTOR,
    NONE,
    OBJECT,
    ROOT,
    TRUE,
)
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell, put_id
from matchwood.kernel.jit import inlined, kernel, part
from matchwood.kernel.objects import (
    byte_at,
    dict_next,
    double,
    kernel_with_gil,
    list_item,
    same_text,
    text,
    text_hash,
    type_of,
    whole_number,
)
from matchwood.kernel.sort_kernels import sort_ids

NONE_TYPE, STR, INT, FLOAT, BOOL, LIST_TYPE, DICT, TRUE_ITSELF, FLAT = range(9)
"""Places in `types`; TRUE_ITSELF has the address of True."""

LEFT, FULL = -1, -2
"""The event is left to Python; or `copied` is too short for it."""

HAS_UNKNOWN = 1 << 40
"""Added to the number of entries of an event whose values left predicates unknown."""


class Names(NamedTuple):
    """See the module's docstring."""

    parent: np.ndarray
    node: np.ndarray
    text: np.ndarray
    hash: np.ndarray
    cell: np.ndarray
    path: np.ndarray
    is_inner: np.ndarray
    types: np.ndarray


class Walk(NamedTuple):
    """Memory of one walk; see the module's docstring."""

    dict: np.ndarray
    position: np.ndarray
    node: np.ndarray
    node_seen: np.ndarray
    seen: np.ndarray
    path: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    end: np.ndarray
    copied: np.ndarray
    double: np.ndarray
    bits: np.ndarray
    unknown: np.ndarray
    held: np.ndarray
    marks: np.ndarray
    stamp: np.ndarray


class View(NamedTuple):
    """What a walk reads."""

    names: Names
    plan: Plan


class Output(NamedTuple):
    """Entries of many events: `start`, `attr` and `key` as in `events.EventBatch`."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray
    is_left: np.ndarray


PLAN = Layout(
    Plan, presence="int32", action="uint8[2]", target="int32[2]", table="int32[2]",
    n_unknown="int32[2]", absent="int32", absence="int32", number_start="int64", label="int64",
    float_ceil="float64", is_float="bool", int_ceil="int64", is_int="bool", int_count="int64",
    gap="int64", string_start="int64", string_label="int64", text_start="int64", texts="uint8",
    shared="int64", word="int64", cell="int32",
)  # fmt: skip
VIEW = Layout(
    View,
    names=Layout(
        Names, parent="int32", node="int32", text="int64", hash="int64", cell="int32",
        path="int32", is_inner="bool", types="int64",
    ),
    plan=PLAN,
)  # fmt: skip
WALK = Layout(
    Walk, dict="int64", position="int64", node="int32", node_seen="int64", seen="int64",
    path="int32", kind="uint8", value="int64", end="int64", copied="uint8", double="float64",
    bits="int64", unknown="int64", held="int64", marks="int64", stamp="int64",
)  # fmt: skip
view_of = VIEW.reader()
walk_of = WALK.reader()


class Reading(NamedTuple):
    """What reads one dict after the other."""

    by: View
    walk: Walk
    attr: np.ndarray  # int32, with room for all entries of an event
    key: np.ndarray  # int64
    start: np.ndarray  # int64[2], that of the event


READING = Layout(Reading, by=VIEW, walk=WALK, attr="int32", key="int64", start="int64")
reading_of = READING.reader()
READING_WORDS = READING.n_words


@inlined
def _way_hash(parent, value):
    mixed = np.uint64(np.int64(value)) ^ np.uint64(parent) * NODE_FACTOR
    return mixed ^ mixed >> np.uint64(29)


@kernel
def fill_ways(names):
    """Enter all ways into the table of places, which is empty."""
    for way in range(len(names.parent)):
        put_id(names.cell, _way_hash(names.parent[way], names.hash[way]), way)


@inlined
def _node_of(names, parent, key):
    """The node that a name leads to from another one, or NONE."""
    value = text_hash(key)
    at = first_cell(names.cell, _way_hash(parent, value))
    while names.cell[at] != EMPTY:
        way = names.cell[at]
        if names.hash[way] == value and names.parent[way] == parent:
            if names.text[way] == key or same_text(names.text[way], key):
                return np.int64(names.node[way])
        at = next_cell(names.cell, at)
    return np.int64(NONE)


@inlined
def _is_flat(types, kind):
    """Whether values of a type have no fields, so that an unused one says nothing."""
    for i in range(STR, len(types)):
        if types[i] == kind:
            return True
    return False


@inlined
def _copy_text(walk, used, value):
    """Copy the UTF-8 of a str behind `used`; its end, LEFT where it has none, or FULL."""
    begin, size = text(value)
    if begin == 0:
        return np.int64(LEFT)
    if used + size > len(walk.copied):
        return np.int64(FULL)
    for k in range(size):
        walk.copied[used + k] = byte_at(begin + k)
    return np.int64(used + size)


@inlined
def _scalar(types, walk, kind, value, n, used):
    """Put a value on the tape at n; the end of the copied strings, or LEFT, or FULL."""
    if kind == types[STR]:
        end = _copy_text(walk, used, value)
        walk.kind[n], walk.value[n], walk.end[n] = COPIED, used, end
        return end
    if kind == types[INT]:
        number, side = whole_number(value)
        walk.kind[n], walk.value[n] = INTEGER, number
        return np.int64(used if side == 0 else LEFT)
    if kind == types[FLOAT]:
        walk.double[0] = double(value)
        walk.kind[n], walk.value[n] = DOUBLE, walk.bits[0]
        return np.int64(used if math.isfinite(walk.double[0]) else LEFT)
    if kind == types[BOOL]:
        walk.kind[n] = TRUE if value == types[TRUE_ITSELF] else FALSE
        return np.int64(used)
    walk.kind[n] = LIST
    return np.int64(used if kind == types[LIST_TYPE] else LEFT)


@inlined
def _tape_of(names, walk, event, stamp):
    """List the values of an event at the paths; their number, or LEFT, or FULL."""
    types = names.types
    depth = 0
    n = used = np.int64(0)
    walk.dict[0], walk.position[0], walk.node[0] = event, 0, ROOT
    while depth >= 0:
        position, key, value = dict_next(walk.dict[depth], walk.position[depth])
        if position < 0:
            depth -= 1
            continue
        walk.position[depth] = position
        kind = type_of(value)
        if kind == types[NONE_TYPE]:
            continue
        if type_of(key) != types[STR]:
            return np.int64(LEFT)
        node = np.int64(walk.node[depth])
        if node != NONE:
            node = _node_of(names, node, key)
        is_used = node != NONE and names.path[node] != NONE
        if is_used:
            if walk.node_seen[node] == stamp:
                return np.int64(LEFT)
            walk.node_seen[node] = stamp
            walk.path[n] = names.path[node]
        if kind == types[DICT]:
            if depth == MAX_DEPTH:
                return np.int64(LEFT)
            if is_used:
                walk.kind[n] = OBJECT
                n += 1
            depth += 1
            walk.dict[depth], walk.position[depth] = value, 0
            walk.node[depth] = node if node != NONE and names.is_inner[node] else NONE
        elif is_used:
            used = _scalar(types, walk, kind, value, n, used)
            if used < 0:
                return used
            n += 1
        elif not _is_flat(types, kind):
            return np.int64(LEFT)
    return n


@inlined
def entries_of(view, walk, event, attr, key, begin):
    """Write the entries of an event from `begin` on; their number, or LEFT, or FULL."""
    plan = view.plan
    walk.stamp[0] += 1
    stamp = walk.stamp[0]
    n = _tape_of(view.names, walk, event, stamp)
    if n < 0:
        return n
    entries = Target(attr, key, walk.seen)
    end = encode_values(plan, walk, (0, n, stamp), walk.copied, entries, begin, walk)
    if end == NONE:
        return np.int64(LEFT)
    sort_ids(attr, key, begin, end, walk.held, walk.marks)
    found = end - begin
    for i in range(n):
        more = plan.n_unknown[walk.path[i], CLASS_OF[walk.kind[i]]]
        if more > 0:
            walk.unknown[walk.path[i]] += more
            found |= HAS_UNKNOWN
    return found


class Target(NamedTuple):
    """Where `encode_values` writes entries; `seen` tells which event last had a path."""

    attr: np.ndarray
    key: np.ndarray
    seen: np.ndarray


@part
def read_for(words, event):
    """Write the entries of a dict as `words`, a bound `Reading`, say; returns as `read_dict`."""
    x = reading_of(words)
    found = entries_of(x.by, x.walk, event, x.attr, x.key, np.int64(0))
    if found >= 0:
        x.start[1] = found & (HAS_UNKNOWN - 1)
    return found


@part
def add_for(words, at):
    """Add the entries from an address on to those that `read_for` wrote; see `added_kernels`."""
    x = reading_of(words)
    return add_from(at, Adding(x.start, x.attr, x.key, x.walk.held, x.walk.marks))


@kernel_with_gil
def read_dict(bound, mine, event, attr, key):
    """Write the entries of one dict; their number (and HAS_UNKNOWN), LEFT or FULL."""
    return entries_of(view_of(bound), walk_of(mine), event, attr, key, np.int64(0))


@kernel_with_gil
def read_dicts(bound, mine, events, first, most, output):
    """Write the entries of the events first.. of a list; returns how many events are done.

    Fewer than all: there is no room for `most` more entries, or `copied` is too short.
    """
    view, walk = view_of(bound), walk_of(mine)
    for i in range(first, len(output.is_left)):
        n = output.start[i]
        if n + most > len(output.attr):
            return i
        event = list_item(events, i)
        found = np.int64(LEFT)
        if type_of(event) == view.names.types[DICT]:
            found = entries_of(view, walk, event, output.attr, output.key, n)
            if found == FULL:
                return i
        output.is_left[i] = found == LEFT
        output.start[i + 1] = n + (0 if found == LEFT else found & (HAS_UNKNOWN - 1))
    return len(output.is_left)
