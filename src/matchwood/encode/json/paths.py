"""The paths that are read out of JSON documents, and the walk over a buffer of documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchwood.encode.json.token_kernels import N_NUMBER
from matchwood.encode.json.walk_kernels import (
    COPIED_BYTES,
    ENTRIES,
    MAX_DEPTH,
    NONE,
    Paths,
    Tape,
    WalkScratch,
    fill_table,
    walk_documents,
)
from matchwood.kernel.arrays import grown, offsets_of
from matchwood.kernel.byte_kernels import PADDING


def make_paths(names: Sequence[str]) -> Paths:
    """The tree of dotted names; path i is `names[i]`, each of them once."""
    nodes: dict[tuple[int, bytes], int] = {}
    parent, encoded, path, inner = [NONE], [b""], [NONE], [False]
    for number, name in enumerate(names):
        node = 0
        for step in name.encode().split(b"."):
            inner[node] = True
            if (node, step) not in nodes:
                nodes[node, step] = len(parent)
                parent.append(node)
                encoded.append(step)
                path.append(NONE)
                inner.append(False)
            node = nodes[node, step]
        path[node] = number
    paths = Paths(
        np.array(parent, np.int32),
        np.array(path, np.int32),
        np.array(inner, np.bool_),
        offsets_of(np.array([len(each) for each in encoded])),
        np.frombuffer(bytearray(b"".join(encoded) + bytes(PADDING)), np.uint8),  # not read-only
        np.full(1 << (2 * len(parent)).bit_length(), NONE, np.int32),
    )
    fill_table(paths)
    return paths


def new_scratch(paths: Paths) -> WalkScratch:
    """Memory of one walk."""
    double = np.zeros(1)
    return WalkScratch(
        np.full(MAX_DEPTH + 1, NONE, np.int32),
        np.zeros(MAX_DEPTH + 1, np.bool_),
        np.full(MAX_DEPTH + 1, NONE, np.int64),
        np.zeros(MAX_DEPTH + 1, np.int64),
        np.full(2 * len(paths.parent), NONE, np.int32),
        np.full(len(paths.parent), -1, np.int64),
        np.zeros(N_NUMBER, np.int64),
        double,
        double.view(np.int64),
        np.zeros(2, np.int64),
    )


def walk(data: np.ndarray, begin: np.ndarray, end: np.ndarray, paths: Paths) -> Tape:
    """What `data[begin[i]:end[i]]`, one document each, has at the paths."""
    n = len(begin)
    scratch = new_scratch(paths)
    room = len(paths.path) * min(max(n, 1), 64)
    tape = Tape(
        np.zeros(n + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.uint8),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(len(data), np.uint8),
        np.zeros(n, np.bool_),
    )
    done = 0
    while True:
        done = walk_documents(data, begin, end, paths, done, tape, scratch)
        if done == n:
            break
        room *= 2
        tape = tape._replace(
            path=grown(tape.path, room),
            kind=grown(tape.kind, room),
            value=grown(tape.value, room),
            end=grown(tape.end, room),
        )
    used = int(scratch.used[ENTRIES])
    return tape._replace(
        path=tape.path[:used],
        kind=tape.kind[:used],
        value=tape.value[:used],
        end=tape.end[:used],
        copied=tape.copied[: int(scratch.used[COPIED_BYTES])],
    )
