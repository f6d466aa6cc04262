"""GBU: boxes that are looked for from where an entry is are those from the top, in fewer steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from matchwood import IndexBuildError, Matcher
from matchwood.bench.answers import pairs
from matchwood.bench.context_arena import Filter, Stream
from matchwood.index.stabbing.interval_skip_list_kernels import BACK, FIRST_EDGE, N_LEVELS, TARGET
from matchwood.index.stabbing.marker_kernels import NODES
from matchwood.workload import find_workload
from matchwood.workload.context import Context


def run(updates: str, delta: float) -> tuple[Any, list[list[int]]]:
    """A filter after 40 messages, with ten updates a subscription before each, and the answers."""
    work = find_workload(
        "context:smoke",
        n_subscriptions=600,
        n_events=40,
        updates_per_profile=1e5,
        delta=delta,
        selectivity=(0.05, 0.1, *[0.9] * 6),
    )
    assert isinstance(work, Context)
    filter_ = Filter("gbu", {"updates": updates}, work)
    stream = Stream(work, filter_.attributes, filter_.store)
    _, hits = filter_.run(stream.stretch(0, 40))
    return filter_.index, [pairs(each, 1).tolist() for each in hits]


@pytest.mark.parametrize("delta", [20.0, 2500.0])
def test_bottom_up_and_top_down_come_to_the_same_boxes(delta: float) -> None:
    (up, found), (down, same) = run("bottom_up", delta), run("top_down", delta)
    assert found == same
    assert any(found)
    assert (up.structure.range == down.structure.range).all()
    assert up.work.tolist() == down.work.tolist()
    assert up.work[0] > 300  # entries that left their boxes
    if delta < 100:
        visited = up.stats()["visited"] / down.stats()["visited"]
        assert visited < 0.85  # 0.64 to 0.72: levels of the list are random


def test_levels_are_linked_in_both_directions() -> None:
    s = run("bottom_up", 150.0)[0].structure
    n = int(s.count[NODES])
    for node in range(n):
        for level in range(int(s.node[node, N_LEVELS])):
            at = int(s.node[node, FIRST_EDGE]) + level
            target = int(s.edge[at, TARGET])
            if target != node:  # the last node of a list leads to itself
                assert s.edge[int(s.node[target, FIRST_EDGE]) + level, BACK] == node
    assert len(np.unique(s.node[:n, FIRST_EDGE])) == n


def test_a_wrong_way_of_updates_is_refused() -> None:
    with pytest.raises(
        IndexBuildError, match="expected bottom_up or top_down for updates, found 'sideways'"
    ):
        Matcher("gbu", updates="sideways")
