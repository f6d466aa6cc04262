"""A search reads its index and writes to its scratch: several at once, after growth and errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encode.world import World, found, shared_world
from matchwood.encode.events import EventBatch
from matchwood.index.be_tree.index import BETree
from matchwood.index.core.protocol import Hits
from matchwood.index.core.registry import REGISTRY, find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.pst.bloom import PSTBloom
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.lang.nodes import Between, Comparison


def searched_at_once(index: Any, events: EventBatch, n_threads: int = 2) -> list[list[Hits]]:
    """The answers of threads that begin together, each with a scratch of its own."""
    barrier = threading.Barrier(n_threads)
    answers: list[list[Hits]] = [[] for _ in range(n_threads)]

    def run(which: int) -> None:
        scratch = Scratch()
        barrier.wait()
        answers[which] += [index.search(events, scratch) for _ in range(5)]

    threads = [threading.Thread(target=run, args=(which,)) for which in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_threads_search_at_once(index_class):
    world, encoded, raw = shared_world(3)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    index.settle()
    for answers in searched_at_once(index, encoded):
        assert [found(each) for each in answers] == [world.expected(held, raw)] * 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
def test_no_index_is_written_by_a_search():
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("read_only_run.py"))],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, f"last index: {run.stdout.split()[-1:]}; {run.stderr[-2000:]}"
    assert run.stdout.split() == [*sorted(REGISTRY), "all"]


def test_a_scratch_outlives_growth_and_rebuilding(index_class):
    world, encoded, raw = shared_world(5)
    held, scratch = world.speaking(index_class.language), Scratch()

    def check(index: Any, here: np.ndarray) -> None:
        index.settle()
        assert found(index.search(encoded, scratch)) == world.expected(here, raw)

    few = held[:2]
    index = index_class.build(world.table, few)
    check(index, few)
    index.insert(held[2:])
    check(index, held)
    index.absorb(scratch)
    index.delete(held[2:])
    check(index, few)
    index.insert(held[2:])
    check(index, held)
    check(index_class.build(world.table, held[::2]), held[::2])
    index.delete(held)
    check(index, held[:0])


def test_one_scratch_serves_several_indexes():
    world, encoded, raw = shared_world(6)
    held = world.speaking("conjunctions")
    scratch = Scratch()
    indexes = [
        find_index(name).build(world.table, held)
        for name in ("scan", "be_tree", "pst_bloom", "pst_hash", "counting", "vcr")
    ]
    for _ in range(3):
        for index in indexes:
            assert found(index.search(encoded, scratch)) == world.expected(held, raw)
            index.absorb(scratch)


def test_hits_stay_as_they_are_when_the_output_is_given_away(monkeypatch):
    monkeypatch.setattr("matchwood.index.core.scratch.COPIED_OUT", 1)
    world, encoded, raw = shared_world(8)
    held, scratch = world.speaking("conjunctions"), Scratch()
    index = find_index("scan").build(world.table, held)
    hits = index.search(encoded, scratch)
    assert len(hits.slots)
    assert not np.shares_memory(hits.slots, scratch.out)
    scratch.out[:] = -1
    assert found(index.search(encoded, scratch)) == world.expected(held, raw)
    assert found(hits) == world.expected(held, raw)


def test_an_output_grows_faster_while_most_events_are_left():
    n_events, each, sizes = 1_000, 100, []
    events = EventBatch(np.zeros(n_events + 1, np.int64), *[np.empty(0, np.int32)] * 3)

    def step(first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, _: Any) -> int:
        sizes.append(len(out))
        done = min(len(out) // each, n_events)
        offsets[first + 1 : done + 1] = np.arange(first + 1, done + 1) * each
        return done

    hits = Scratch().run(events, 0, step)
    assert len(hits.slots) == n_events * each
    assert sizes == [1024, 4096, 16384, 65536, 131072]


def test_what_an_interrupted_search_left_is_thrown_away():
    world, encoded, raw = shared_world(7)
    held = world.speaking("conjunctions")
    for name in ("scan", "be_tree", "pst_bloom", "counting"):
        index, scratch = find_index(name).build(world.table, held), Scratch()
        index.search(encoded, scratch)
        scratch.out = np.empty(0, np.int32)  # cannot be doubled: the step would never end

        def interrupted(*arguments: Any) -> int:
            raise KeyboardInterrupt

        scratch.begin()
        with pytest.raises(KeyboardInterrupt):
            scratch.run(encoded, world.table.n_attributes, interrupted)
        assert scratch.is_busy
        assert found(index.search(encoded, scratch)) == world.expected(held, raw)
        assert not scratch.is_busy


def test_what_events_teach_is_the_same_in_one_batch_and_in_many():
    world = World({"a": "int", "b": "int"})
    slots = world.store([Comparison("a", "=", i % 9) & Between("b", i, i + 5) for i in range(300)])
    events = world.events([{"a": i % 9, "b": i} for i in range(256)])
    for cls in (PSTBloom, BETree):
        taught = []
        for portion in (256, 32, 1):
            index, scratch = cls.build(world.table, slots), Scratch()
            for first in range(0, 256, portion):
                entries = slice(int(events.start[first]), int(events.start[first + portion]))
                part = EventBatch(
                    events.start[first : first + portion + 1] - events.start[first],
                    events.attr[entries], events.lo[entries], events.hi[entries],
                )  # fmt: skip
                index.search(part, scratch)
                index.absorb(scratch)
            taught.append(learned(index))
        assert taught[0] == taught[1] == taught[2]
        assert any(taught[0])


def learned(index: Any) -> list[Any]:
    if isinstance(index, PSTBloom):
        layout = index.layout()
        names = ("statistics_total", "statistics_seen", "home_space_seen")
        return [n for name in names for n in layout[name].tolist()]
    return [index.stats()["recycled"], index._n_operations % 64, len(COUNTERS)]
