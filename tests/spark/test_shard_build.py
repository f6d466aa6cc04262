"""Packing keys into shards, and building them under a cap; no Spark needed."""

from __future__ import annotations

import json
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.schema import Schema
from matchwood.spark.columns import error_table
from matchwood.spark.memory import forget_peak, give_back, peak, resident
from matchwood.spark.shards import build as shard_build
from matchwood.spark.shards.build import LEAST, BuildJob, assign, build_parts
from matchwood.spark.shards.homes import Costs
from matchwood.spark.shards.manifest import Told, finish
from matchwood.spark.shards.mapped import mapped
from matchwood.spark.shards.plan import (
    BUCKETS,
    Plan,
    Sampled,
    look_at,
    make_plan,
    weights_of,
    whole_ids,
)
from matchwood.workload import find_workload, plain_tables


def loads(plan: Plan, weights: np.ndarray) -> np.ndarray:
    load = np.zeros(plan.n_shards)
    for bucket in np.flatnonzero(weights).tolist():
        over = int(plan.spread[bucket])
        load[(plan.start[bucket] + np.arange(over)) % plan.n_shards] += weights[bucket] / over
    return load


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 10_000), min_size=1, max_size=60),
    st.integers(1, 20_000),
)
def test_no_shard_is_planned_heavier_than_asked(found: dict[int, int], most: int) -> None:
    weights = np.zeros(BUCKETS, np.int64)
    weights[list(found)] = list(found.values())
    plan = make_plan(weights, most, None)
    load = loads(plan, weights)
    assert load.max() <= most * (1 + 1e-9)
    assert load.sum() == pytest.approx(sum(found.values()))


def test_shards_are_even_whatever_the_keys() -> None:
    weights = (1000 / (1 + np.arange(BUCKETS))).astype(np.int64)
    plan = make_plan(weights, 0, 16)
    assert plan.n_shards == 16
    assert plan.spread.max() > 1  # the first key has a seventh of everything
    assert loads(plan, weights).max() < 1.1 * weights.sum() / 16


def test_frequent_keys_go_by_id_and_others_by_key_alone() -> None:
    plan = Plan(8, np.full(BUCKETS, 6, np.int64), np.where(np.arange(BUCKETS) == 3, 4, 1))
    home = np.array([3, 3, 3, 3, 3, 4, 4], np.uint64)
    ids = pa.chunked_array([[0, 1, 2, 3, -1, 1, 2]])
    assert plan.shards_of(home, ids).tolist() == [6, 7, 0, 1, 1, 6, 6]
    names = pa.chunked_array([["a", "b", "c", "d", "a", "b", "c"]])
    found = plan.shards_of(home, names)
    assert found[0] == found[4]
    assert set(found.tolist()) <= {6, 7, 0, 1}


def test_rows_weigh_what_they_hold() -> None:
    kind = pa.list_(pa.string())
    table = pa.table({"id": [1, 1, 2], "attribute": ["a"] * 3, "operator": ["IN"] * 3,
                      "values": pa.array([["x", "yyy"], None, ["zz"]], kind)})  # fmt: skip
    assert (weights_of(table) - weights_of(table)[1]).tolist() == [4, 0, 2]
    ints = table.set_column(3, "values", pa.array([[1, 2], [], [3]], pa.list_(pa.int64())))
    assert (weights_of(ints) - weights_of(ints)[1]).tolist() == [16, 0, 8]
    texts = pa.table({"id": ["a", "bb"], "expr": ["price < 5", "x"]})
    assert (weights_of(texts) - weights_of(texts)[1]).tolist() == [7, 0]


def test_rows_of_an_id_stay_together() -> None:
    ids = [1, 1, 2, 3, 3, 3, 3, 4]
    for size in (1, 2, 3, 8):
        batches = (
            pa.RecordBatch.from_pydict({"id": ids[at : at + size], "attribute": ["a"] * len(
                ids[at : at + size])})
            for at in range(0, len(ids), size)
        )  # fmt: skip
        tables = [each.column("id").to_pylist() for each in whole_ids(batches)]
        assert list(chain.from_iterable(tables)) == ids
        assert all(set(a).isdisjoint(b) for a, b in pairwise(tables))


N = 3000


def built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: Any, n: int = N
) -> list[dict[str, Any]]:
    """All parts of one shard, where a part of some rows is said to take `took(rows)`."""
    rows = {"n": 0}
    save = shard_build._save

    def counted(job: BuildJob, table: pa.Table, folder: Path) -> dict[str, Any]:
        rows["n"] = table.num_rows
        return save(job, table, folder)

    monkeypatch.setattr(shard_build, "resident", lambda: 0)
    monkeypatch.setattr(shard_build, "_save", counted)
    monkeypatch.setattr(shard_build, "peak", lambda: took(rows["n"]))
    return parts(tmp_path, n, 1000)


def parts(tmp_path: Path, n: int, max_bytes: int) -> list[dict[str, Any]]:
    """All parts of one shard."""
    workload = find_workload("begen:smoke", n_attributes=40)
    table = plain_tables.predicates(workload, 0, n)
    sampled = Sampled(Costs(np.empty(0, np.uint64), np.empty(0)), dict(workload.schema()), 1e-9)
    whole = Plan(1, np.zeros(BUCKETS, np.int64), np.ones(BUCKETS, np.int64))
    job = BuildJob(str(tmp_path), whole, sampled, "scan", {}, max_bytes)
    assigned = assign(job, iter(table.to_batches(max_chunksize=10_000)))
    placed = pa.Table.from_batches(assigned).sort_by([(shard_build.HOME, "ascending"),
                                                       ("id", "ascending")])  # fmt: skip
    made = build_parts(job, iter(placed.combine_chunks().to_batches(max_chunksize=2000)))
    return [json.loads(each.column(0)[0].as_py()) for each in made]


@pytest.mark.slow
def test_a_shard_that_took_more_than_the_cap_is_built_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = built(tmp_path, monkeypatch, lambda rows: rows // 3)
    assert max(each["shard"]["peak"] for each in told) <= 1000
    assert sum(each["shard"]["count"] for each in told) == N
    assert len(told) > 5  # 21,000 rows, 3,000 of which are at the cap
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {each["folder"] for each in told}  # nothing stays of the failed ones
    finish(tmp_path, told, Told("long", {}, error_table([])), "build")
    found: set[int] = set()
    homes = []
    for each in told:
        matcher = mw.Matcher.load(tmp_path / each["folder"] / "snapshot")
        ids = set(matcher.arrow_ids().to_pylist())
        assert found.isdisjoint(ids)
        found |= ids
        homes.append(np.load(tmp_path / each["folder"] / "homes.npy"))
    assert found == set(range(N))
    # a part is a range of homes: two parts share one at most
    shared = [len(np.intersect1d(a, b)) for a in homes for b in homes if a is not b]
    assert max(shared) <= 1


@pytest.mark.slow
def test_a_plan_that_fits_is_built_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = built(tmp_path, monkeypatch, lambda rows: rows // 1000)
    assert [each["shard"]["count"] for each in told] == [N]
    assert told[0]["shard"]["peak"] < 1000


@pytest.mark.slow
def test_one_subscription_that_is_too_large_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = built(tmp_path, monkeypatch, lambda rows: 2000, 5)
    assert [each["shard"]["count"] for each in told] == [1] * 5


@pytest.mark.slow
def test_what_a_process_takes_is_seen() -> None:
    give_back()
    before = resident()
    forget_peak()
    block = np.ones(8 << 20)  # 64 MiB
    assert peak() - before > 60 << 20
    assert resident() - before > 60 << 20
    del block


def test_what_a_process_has_for_other_work_is_not_what_building_took(tmp_path: Path) -> None:
    # before: an index that was opened between two builds counted, and a shard was cut into ids
    give_back()
    forget_peak()
    if peak() - resident() > 16 << 20:
        pytest.skip("this system does not let a peak be forgotten")
    assert [each["shard"]["count"] for each in parts(tmp_path / "a", 20, LEAST)] == [20]
    index = np.ones(16 << 20)  # 128 MiB
    assert [each["shard"]["count"] for each in parts(tmp_path / "b", 20, LEAST)] == [20]
    assert index[-1]


def test_a_task_that_builds_closes_the_shards_that_were_matched_with(tmp_path: Path) -> None:
    (each,) = parts(tmp_path, 20, LEAST)
    mapped.shard(str(tmp_path / each["folder"] / "snapshot"), "build", 1)
    assert len(mapped) == 1
    parts(tmp_path, 20, LEAST)
    assert len(mapped) == 0


def test_a_sample_tells_bytes_and_types() -> None:
    table = plain_tables.predicates(find_workload("begen:smoke", n_attributes=40), 0, 3000)
    found = look_at(table, "scan", None, Schema({}))
    assert set(found.types.values()) == {"number"}
    assert 1 < found.bytes < 100
    assert len(found.costs.keys) > 40
