"""Laws of every generator in the registry; a new one adds no test code here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from matchwood.errors import MatchwoodError
from matchwood.workload import (
    Workload,
    event_dicts,
    find_workload,
    list_workloads,
    load_events,
    load_subscriptions,
    wide_events,
)

NAMES = [
    pytest.param(f"{each.name}:{preset}", marks=[] if preset == "smoke" else [pytest.mark.slow])
    for each in list_workloads()
    for preset in each.presets
]


@pytest.fixture(params=NAMES)
def workload(request: pytest.FixtureRequest) -> Workload:
    return find_workload(request.param)


def rows(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


@pytest.mark.slow
def test_chunks_do_not_change_the_rows(workload: Workload) -> None:
    for make in (workload.subscriptions, workload.events):
        parts = [*rows(make(1, 2)), *rows(make(2, 30)), *rows(make(30, 50))]
        assert rows(make(1, 50)) == parts


@pytest.mark.slow
def test_the_seed_changes_the_rows(workload: Workload) -> None:
    other = workload.with_parameters(seed=workload.seed + 1)
    assert rows(workload.subscriptions(0, 50)) != rows(other.subscriptions(0, 50))
    assert rows(workload.events(0, 50)) != rows(other.events(0, 50))


@pytest.mark.slow
def test_an_empty_slice_has_the_same_columns(workload: Workload) -> None:
    for make in (workload.subscriptions, workload.events):
        assert make(7, 7).schema.equals(make(0, 7).schema)


def test_it_loads_and_every_row_has_a_slot(workload: Workload) -> None:
    few = workload.with_parameters(n_subscriptions=500, n_events=20)
    loaded = load_subscriptions(few)
    assert (loaded.table.layout.kind[:500] != 0).all()
    assert load_events(few, loaded.attributes).n_events == 20
    assert set(loaded.attributes.by_name) == set(few.schema())


def test_events_have_three_forms_of_the_same_values(workload: Workload) -> None:
    table = workload.events(3, 9)
    wide = wide_events(table, 3, 9).to_pylist()
    assert event_dicts(table, 3, 9) == [
        {name: value for name, value in row.items() if value is not None} for row in wide
    ]


def test_presets_smoke_and_small_exist_everywhere() -> None:
    for each in list_workloads():
        assert {"smoke", "small"} <= set(each.presets)
        assert each.description


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("nothing", {}, "expected a workload among .*uniform.*found 'nothing'"),
        ("uniform:huge", {}, "expected a preset of 'uniform' among smoke, small, found 'huge'"),
        ("uniform", {"colour": 3}, "expected parameters among .*found colour"),
        ("uniform", {"width": "x"}, "expected values of the types of its parameters"),
        ("uniform", {"width": 2}, "expected a share of values as width, from 0 to 1"),
    ],
)
def test_a_wrong_name_or_parameter_is_explained(
    name: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(MatchwoodError, match=message):
        find_workload(name, **changes)
