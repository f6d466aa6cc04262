"""The workload of AGILE: shares, ranges, digits, walks, and rows that depend on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood import Matcher
from matchwood.errors import MatchwoodError
from matchwood.workload import find_workload
from matchwood.workload.context import TOP, Context, Walk


def small(**changes) -> Context:
    return find_workload("context:smoke", **changes)


def test_profiles_are_those_of_table_2():
    workload = small()
    table = workload.subscriptions(0, 5_000)
    bound = table.column("context").is_valid().to_numpy()
    assert abs(bound.mean() - 0.9) < 0.02
    texts = table.column("expr").to_pylist()
    assert {text.count("BETWEEN") for text in texts} == {8}
    assert len({text for text, is_bound in zip(texts, bound, strict=True) if is_bound}) == 1
    values = workload.values(0, 5_000)
    assert (values >= 0).all()
    assert (values <= TOP).all()
    assert abs(values.mean() / TOP - 0.5) < 0.02


def test_values_have_three_significant_digits():
    values = small().values(0, 1_000)
    digits = values / 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-9))) - 2)
    assert np.allclose(digits, np.round(digits))


def test_rows_do_not_depend_on_how_they_are_cut():
    workload = small()
    whole = workload.subscriptions(0, 100)
    assert workload.subscriptions(37, 61).equals(whole.slice(37, 24))
    assert workload.contexts(37, 61).num_rows == workload.is_bound(37, 61).sum()
    first, last = workload.updates_before(5)[0], workload.updates_before(9)[1]
    everything = workload.updates(first, last)
    for mine, part in zip(everything, workload.updates(first + 3, last), strict=True):
        assert (mine[3:] == part).all()


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_updates_hit_indexed_attributes_as_often_as_asked(share):
    workload = small(indexed_share=share)
    _, attribute, moves = workload.updates(0, 20_000)
    assert abs((attribute < 2).mean() - share) < 0.01
    assert (np.abs(moves) <= 150).all()
    assert len(set(attribute.tolist())) >= 2


def test_the_rate_of_updates_is_per_profile_and_ten_thousand_messages():
    workload = small(updates_per_profile=10.0)
    first, last = workload.updates_before(3)
    assert last - first == 5
    burst = small(burst=((2, 1000.0), (3, 0.0)))
    counts = [b - a for a, b in map(burst.updates_before, range(7))]
    assert counts == [500, 500, 0, 0, 0, 500, 500]


def test_values_walk_by_at_most_delta_and_stay_in_their_range():
    workload = small(delta=50.0)
    walk = Walk(workload)
    before = walk.values.copy()
    profile, attribute, arrived = walk.steps(0, 200)
    assert workload.is_bound(0, 5_000)[profile].all()
    moved = np.abs(walk.values - before)
    assert moved.max() <= 60  # the distance, and what rounding adds
    assert (walk.values >= 0).all()
    assert (walk.values <= TOP).all()
    assert walk.values[profile[-1], attribute[-1]] == arrived[-1]


def test_parameters_are_checked():
    for wrong in ({"context_bound": 2}, {"selectivity": (0.5,)}, {"indexed_share": -1}):
        with pytest.raises(MatchwoodError, match="expected"):
            small(**wrong)


def test_a_matcher_takes_it_as_it_is():
    workload = small(n_subscriptions=300)
    m = Matcher(schema=workload.schema())
    assert m.add_many(workload.subscriptions(0, 300)).count == 300
    m.set_context_many(workload.contexts(0, 300))
    values = workload.values(7, 8)[0]
    event = dict(zip(workload.names, values.tolist(), strict=True))
    assert 7 in m.match(event)
