"""JSON documents to entries in one step: the walk over a document, then the keys of its values.

Layout of the memory of one reader   (P paths)
    tape     of one document at a time (`json/walk_kernels`); `copied` is as long as the longest
    walk     the memory of its walk
    seen     int64[P]   the document that last had a path
    unknown  int64[P]   predicates that values of other kinds left unknown, since last emptied
    held, marks         for `sort_ids`
    count    int64[2]   STAMP, the number of the last document; UNKNOWN, whether `unknown` has any

Computed attributes read values of K paths, which are noted for each document (`json/inputs`)
    place    int32[P]   which of these a path is, NONE
    input    int64[n x K x 2]  for each document: `value` of the tape, and N_KINDS x `end` + `kind`;
                        -1 twice where there is no value
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.dicts.walk_kernels import PLAN, Target
from matchwood.encode.json.key_kernels import CLASS_OF, Plan, encode_values
from matchwood.encode.json.walk_kernels import (
    COPIED_BYTES,
    ENTRIES,
    NONE,
    Paths,
    Tape,
    WalkScratch,
    walk_document,
)
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import inlined, kernel, prefetch
from matchwood.kernel.sort_kernels import sort_ids

STAMP, UNKNOWN = range(2)
N_KINDS = 8

LINE, MOST_ASKED = 64, 4096
"""Bytes of a cache line, and of a document that are asked for while the one before is read."""


class View(NamedTuple):
    """What a reader reads; see the module's docstring."""

    paths: Paths
    plan: Plan
    position: np.ndarray


class Memory(NamedTuple):
    """What it writes to; see the module's docstring."""

    tape: Tape
    walk: WalkScratch
    seen: np.ndarray
    unknown: np.ndarray
    held: np.ndarray
    marks: np.ndarray
    count: np.ndarray


class Documents(NamedTuple):
    """Entries of documents, as in `event_batch`, and the values that computed attributes read."""

    start: np.ndarray
    attr: np.ndarray
    key: np.ndarray
    is_left: np.ndarray
    input: np.ndarray


VIEW = Layout(
    View,
    paths=Layout(
        Paths, parent="int32", path="int32", is_inner="bool", name_start="int64", names="uint8",
        table="int32",
    ),
    plan=PLAN,
    position="int32",
)  # fmt: skip
MEMORY = Layout(
    Memory,
    tape=Layout(
        Tape, start="int64", path="int32", kind="uint8", value="int64", end="int64",
        copied="uint8", is_odd="bool",
    ),
    walk=Layout(
        WalkScratch, node="int32", is_list="bool", entry="int64", last="int64", after="int32",
        seen="int64", number="int64", double="float64", bits="int64", used="int64",
    ),
    seen="int64", unknown="int64", held="int64", marks="int64", count="int64",
)  # fmt: skip
OUTPUT = Layout(Documents, start="int64", attr="int32", key="int64", is_left="bool", input="int64")
_view_of, _memory_of, _output_of = VIEW.reader(), MEMORY.reader(), OUTPUT.reader()


@inlined
def _ask_for_text(data, begin, end):
    """Ask for the text of the document that comes next."""
    for at in range(begin, min(end, begin + MOST_ASKED), LINE):
        prefetch(data, at)


@kernel
def read_documents(bound, bound_memory, data, begin, end, first, bound_output):
    """Write the entries of documents first.., `data[begin[i]:end[i]]`; returns how many are done.

    Fewer than all: the output may have no room for one more, or `copied` is shorter than the text.
    """
    view, memory, output = _view_of(bound), _memory_of(bound_memory), _output_of(bound_output)
    paths, plan, tape, walk = view.paths, view.plan, memory.tape, memory.walk
    entries = Target(output.attr, output.key, memory.seen)
    most = 2 * len(plan.presence) + len(plan.absent)
    n_inputs = len(output.input) // len(begin)
    for i in range(first, len(begin)):
        n = output.start[i]
        if n + most > len(output.attr) or end[i] - begin[i] > len(tape.copied):
            return i
        if i + 1 < len(begin):
            _ask_for_text(data, begin[i + 1], end[i + 1])
        memory.count[STAMP] += 1
        stamp = memory.count[STAMP]
        walk.used[ENTRIES] = walk.used[COPIED_BYTES] = 0
        stop = np.int64(NONE)
        if walk_document(data, begin[i], end[i], paths, stamp, tape, walk):
            values = (np.int64(0), walk.used[ENTRIES], stamp)
            stop = encode_values(plan, tape, values, data, entries, n, walk)
        output.is_left[i] = stop == NONE
        if stop == NONE:
            output.start[i + 1] = n
            continue
        sort_ids(output.attr, output.key, n, stop, memory.held, memory.marks)
        output.start[i + 1] = stop
        for k in range(walk.used[ENTRIES]):
            path = tape.path[k]
            more = plan.n_unknown[path, CLASS_OF[tape.kind[k]]]
            if more > 0:
                memory.unknown[path] += more
                memory.count[UNKNOWN] = 1
            if view.position[path] != NONE:
                at = i * n_inputs + 2 * view.position[path]
                output.input[at] = tape.value[k]
                output.input[at + 1] = N_KINDS * tape.end[k] + tape.kind[k]
    return len(begin)
