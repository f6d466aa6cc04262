"""Blocks event by event, and block by block: one is tested for all events of a group that reach it.

    python benchmarks/batches_by_block.py [subscriptions] [workload:events,...]

`visits` are blocks that all events reach, `different` those of them that are not the same.  `again`
is a second search of the same event right after the first: everything is in a cache, so it is what
a search would take that waits for no memory.  `groups of 64` and so on collect (block, event) of
so many events, sort them by block, test, and copy what each event has found to one place.  Times
are those of the thread in µs an event, the least of some rounds that take turns.  Decision 0026.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from matchwood.bench.speed.index_cases import distinct
from matchwood.encode.events import EventBatch
from matchwood.index.blocks.index import BlockIndex, _new_memory
from matchwood.index.blocks.match import Memory
from matchwood.index.blocks.reach import clear_codes, find_spaces
from matchwood.index.blocks.verify import NO_BLOCK, ask_for_rows, test_block, test_entries
from matchwood.index.blocks.words import is_open
from matchwood.index.core.query_kernels import Events
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.jit import kernel, part, prefetch
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

WORKLOADS = "pstree:200,pstree:2000,begen:zipf:200"
GROUPS, ROUNDS, DIGIT = (64, 256, 1024), 7, 11
EVENT, FAR_AHEAD, AHEAD = 10, 8, 2
"""Bits of the event in a pair; blocks ahead whose header, and rows, are asked for."""


class Room(NamedTuple):
    """Memory of a group."""

    code: np.ndarray  # int32[events, A]
    fold_code: np.ndarray  # uint8[events, A]
    pair: np.ndarray  # int64[], block << EVENT | event
    other: np.ndarray  # int64[], the same size
    count: np.ndarray  # int64[2 ** DIGIT]
    run: np.ndarray  # int64[, 2], what each pair has found in `found`
    found: np.ndarray  # int32[]


@part
def memory_of(scratch, code, fold_code):
    return Memory(
        code, fold_code, scratch.found, scratch.block, scratch.row, scratch.pending, scratch.work,
        scratch.seen, scratch.clock,
    )  # fmt: skip


@part
def sort_pairs(room, n, bits):
    """Sort by block; pairs of one block stay in the order of events."""
    pair, other, count = room.pair, room.other, room.count
    for shift in range(EVENT, EVENT + bits, DIGIT):
        for i in range(len(count)):
            count[i] = 0
        for i in range(n):
            count[(pair[i] >> shift) & (len(count) - 1)] += 1
        end = np.int64(0)
        for i in range(len(count)):
            end, count[i] = end + count[i], end
        for i in range(n):
            digit = (pair[i] >> shift) & (len(count) - 1)
            other[count[digit]] = pair[i]
            count[digit] += 1
        for i in range(n):
            pair[i] = other[i]


@part
def find_pairs(codes, places, blocks, events, first, last, scratch, room):
    n = np.int64(0)
    for e in range(first, last):
        g = e - first
        mine = memory_of(scratch, room.code[g], room.fold_code[g])
        n_spaces = find_spaces(codes, places, events, e, mine)
        for i in range(n_spaces):
            space = scratch.found[i]
            for b in range(places.block[space], places.block[space + 1]):
                room.pair[n] = (np.int64(b) << EVENT) | g
                n += is_open(blocks.gate[b], mine.code)
    return n


@part
def test_pairs(blocks, n_pairs, scratch, room):
    pair, end, event = room.pair, np.int64(0), (1 << EVENT) - 1
    for i in range(n_pairs):
        if i + FAR_AHEAD < n_pairs:
            prefetch(blocks.word, blocks.at[pair[i + FAR_AHEAD] >> EVENT])
        if i + AHEAD < n_pairs and pair[i + AHEAD] >> EVENT != pair[i + AHEAD - 1] >> EVENT:
            code = room.code[pair[i + AHEAD] & event]
            ask_for_rows(blocks.word, blocks.at[pair[i + AHEAD] >> EVENT], code)
        g, at = pair[i] & event, blocks.at[pair[i] >> EVENT]
        mine = memory_of(scratch, room.code[g], room.fold_code[g])
        room.run[i, 0] = end
        end, n = test_block(
            blocks, at, np.int64(NO_BLOCK), mine, room.found, end, np.int64(0)
        )  # fmt: skip
        end = test_entries(blocks, mine, n, room.found, end)
        room.run[i, 1] = end


@kernel
def match_groups(structure, events, scratch, group, bits, room, offsets, out):
    """Write what holds to `out`, which has room for all; returns the number of pairs."""
    codes, places, blocks = structure
    n_all, end, event = np.int64(0), np.int64(0), (1 << EVENT) - 1
    for first in range(0, len(events.start) - 1, group):
        last = min(first + group, len(events.start) - 1)
        n = find_pairs(codes, places, blocks, events, first, last, scratch, room)
        sort_pairs(room, n, bits)
        test_pairs(blocks, n, scratch, room)
        for g in range(last - first):
            room.count[g] = 0
        for i in range(n):
            room.count[room.pair[i] & event] += room.run[i, 1] - room.run[i, 0]
        for g in range(last - first):
            end, room.count[g] = end + room.count[g], end
            offsets[first + g + 1] = end
        for i in range(n):
            g = room.pair[i] & event
            for k in range(room.run[i, 0], room.run[i, 1]):
                out[room.count[g]] = room.found[k]
                room.count[g] += 1
        for e in range(first, last):
            g = e - first
            clear_codes(events, e, memory_of(scratch, room.code[g], room.fold_code[g]))
        n_all += n
    return n_all


def twice(events: EventBatch) -> EventBatch:
    """Every event two times in a row."""
    each = [slice(a, b) for a, b in pairwise(events.start.tolist())]
    each = [at for at in each for _ in range(2)]
    attr = np.concatenate([events.attr[at] for at in each])
    keys = np.concatenate([events.lo[at] for at in each])
    return EventBatch(np.cumsum([0, *[at.stop - at.start for at in each]]), attr, keys, keys)


def run(name: str, n: int, n_events: int) -> None:
    workload = find_workload(name, n_subscriptions=n, n_events=n_events)
    loaded = load_subscriptions(workload)
    events = distinct(load_events(workload, loaded.attributes))
    index, scratch = BlockIndex.build(loaded.table, loaded.slots), Scratch()
    hits, n_attributes = index.search(events, scratch), len(index._built.codes.n)
    most = 64 * 1024 + int(hits.counters[1])
    room = Room(
        np.zeros((max(GROUPS), n_attributes), np.int32),
        np.zeros((max(GROUPS), n_attributes), np.uint8),
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(2**DIGIT, np.int64),
        np.empty((most, 2), np.int64), np.empty(len(hits.slots) + 4096, np.int32),
    )  # fmt: skip
    offsets = np.zeros(events.n_events + 1, np.int64)
    out, memory = np.empty(len(hits.slots) + 512, np.int32), _new_memory(n_attributes)
    bits = len(index._built.blocks.gate).bit_length()
    given = Events(*[getattr(events, field) for field in Events._fields])

    def grouped(group: int) -> int:
        return match_groups(index._built, given, memory, group, bits, room, offsets, out)

    n_visits = grouped(max(GROUPS))
    assert np.array_equal(offsets, hits.offsets)
    for a, b in pairwise(offsets.tolist()):
        assert np.array_equal(np.sort(out[a:b]), np.sort(hits.slots[a:b])), "answers differ"
    in_group = room.pair[: n_visits if events.n_events <= max(GROUPS) else 0] >> EVENT
    two = twice(events)
    ways: dict[str, Callable[[], object]] = {
        "one by one": lambda: index.search(events, scratch),
        "twice": lambda: index.search(two, scratch),
        **{f"groups of {group}": lambda group=group: grouped(group) for group in GROUPS},
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, call in ways.items():
            began = time.thread_time()
            call()
            took[way].append((time.thread_time() - began) / events.n_events * 1e6)
    micros = {way: min(each) for way, each in took.items()}
    micros["again"] = micros.pop("twice") - micros["one by one"]
    unique = f", {len(np.unique(in_group)):,} different" if len(in_group) else ""
    print(f"{name}, {n:,}, {events.n_events} events: {n_visits:,} visits{unique}")
    print("   ", ", ".join([f"{way} {value:.1f}" for way, value in micros.items()]), flush=True)


def main(n: str = "1000000", workloads: str = WORKLOADS) -> None:
    for each in workloads.split(","):
        name, n_events = each.rsplit(":", 1)
        run(name, int(n), int(n_events))


if __name__ == "__main__":
    main(*sys.argv[1:])
