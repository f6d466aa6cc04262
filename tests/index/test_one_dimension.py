"""The one-dimensional structures of PS-Tree's Table 3 find the same intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from matchwood.bench.table_3 import drawn, measure
from matchwood.index.stabbing.interval_tree import IntervalTree
from matchwood.index.stabbing.ps_tree import PSTree
from matchwood.index.stabbing.segment_tree import SegmentTree
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from strategies import seeds


@pytest.mark.parametrize("cls", [PSTree, IntervalTree, SegmentTree])
@given(seed=seeds())
def test_every_structure_finds_the_intervals_of_a_key(cls, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    lo = rng.integers(-20, 20, n)
    hi = lo + rng.integers(0, 15, n)
    lo[rng.random(n) < 0.1] = MIN_KEY
    hi[rng.random(n) < 0.1] = MAX_KEY
    keys = np.array([*range(-25, 40), MIN_KEY, MAX_KEY])
    offsets, ids = cls.of_intervals(lo, hi).stab(keys)
    for i, key in enumerate(keys):
        found = sorted(ids[offsets[i] : offsets[i + 1]].tolist())
        assert found == np.flatnonzero((lo <= key) & (key <= hi)).tolist()


def test_table_3_checks_its_answers_and_draws_what_it_says():
    lo, hi, keys = drawn(2_000, 500, seed=1)
    assert (hi >= lo).all()
    rows = measure(2_000, 500, repetitions=1)
    assert [row.structure for row in rows] == ["scan", "interval_tree", "segment_tree", "ps_tree"]
    assert len({row.found for row in rows}) == 1
    assert len(keys) == 500
