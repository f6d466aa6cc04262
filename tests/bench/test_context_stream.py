"""Streams of messages and updates: answers are compared, work is counted."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.bench.answers import pairs
from matchwood.bench.context_arena import Filter, Stream, warm_up_stream
from matchwood.workload import find_workload

pytestmark = pytest.mark.slow  # it compiles every filter


def run(index: str, updates: float) -> tuple[list[list[int]], dict[str, int]]:
    """Answers to 24 messages, and the work that they and their updates were."""
    workload = find_workload(
        "context:smoke", n_subscriptions=1500, updates_per_profile=updates, n_events=24
    )
    filter_ = Filter(index, {}, workload)
    stream = Stream(workload, filter_.attributes, filter_.store)
    warm_up_stream(filter_, stream, workload)
    before = filter_.index.work.copy()
    _, hits = filter_.run(stream.stretch(0, 24))
    done = filter_.index.work - before
    work = {"candidates": int(np.sum([each.counters[2] for each in hits]))}
    work |= {"index_updates": int(done[0]), "updates": int(done[2])}
    return [pairs(each, 1).tolist() for each in hits], work


def test_agile_gives_the_answers_of_the_others_and_bothers_its_indexes_less_than_eager():
    found = {index: run(index, 2000.0) for index in ("no_index", "eager", "agile")}
    assert any(found["no_index"][0])
    assert found["no_index"][0] == found["eager"][0] == found["agile"][0]
    eager, agile = found["eager"][1], found["agile"][1]
    assert eager["index_updates"] > 1.5 * agile["index_updates"] > 0
    assert eager["candidates"] < agile["candidates"] < 24 * 1500 / 2
    assert agile["updates"] > 4_000
    assert run("agile", 1.0)[1]["candidates"] < agile["candidates"]


def test_updates_in_one_call_are_those_one_by_one():
    workload = find_workload("context:smoke", n_subscriptions=400, updates_per_profile=500.0)
    one, other = (Filter("agile", {}, workload) for _ in range(2))
    stretch = Stream(workload, one.attributes, one.store).stretch(0, 10)
    one.run(stretch)
    for rows, cols, keys in stretch.updates:
        for i in range(len(keys)):
            other.store.write(rows[i : i + 1], cols[i : i + 1], keys[i : i + 1])
    assert (one.store.cells[:, :, 0] == other.store.cells[:, :, 0]).all()
