from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from matchwood.workload import Uniform

N = 20_000


def columns(table: pa.Table) -> dict[str, np.ndarray]:
    plain = table.select([name for name in table.column_names if name != "values"])
    return {name: np.array(plain.column(name).to_pylist()) for name in plain.column_names}


@pytest.mark.slow
def test_numbers_of_predicates_are_even_between_their_bounds() -> None:
    table = Uniform(min_predicates=2, max_predicates=5).subscriptions(0, N)
    sizes = np.bincount(columns(table)["id"], minlength=N)
    counts = np.bincount(sizes)
    assert counts[:2].tolist() == [0, 0]
    assert np.abs(counts[2:] - N / 4).max() < 5 * np.sqrt(N / 4)


@pytest.mark.slow
def test_a_subscription_names_an_attribute_once() -> None:
    found = columns(Uniform().subscriptions(0, N))
    named = set(zip(found["id"].tolist(), found["attribute"].tolist(), strict=True))
    assert len(named) == len(found["id"])
    counts = np.unique(found["attribute"], return_counts=True)[1]
    assert np.abs(counts - 5 * N / 20).max() < 5 * np.sqrt(5 * N / 20)


@pytest.mark.slow
def test_operators_and_widths_are_as_told() -> None:
    table = Uniform(equality=0.3, width=0.1, cardinality=50).subscriptions(0, N)
    operators = columns(table)["operator"]
    assert abs((operators == "=").mean() - 0.3) < 0.01
    ranges = table.filter(pc.equal(table.column("operator").cast("string"), "BETWEEN"))
    ends = np.array(ranges.column("values").to_pylist())
    assert set((ends[:, 1] - ends[:, 0]).tolist()) == {4}
    assert (ends.min(), ends.max()) == (0, 49)


@pytest.mark.slow
def test_events_are_of_one_size_with_even_values() -> None:
    found = columns(Uniform(cardinality=10).events(0, N))
    assert set(np.bincount(found["event"]).tolist()) == {15}
    counts = np.bincount(found["value"])
    assert len(counts) == 10
    assert np.abs(counts - 15 * N / 10).max() < 5 * np.sqrt(15 * N / 10)
