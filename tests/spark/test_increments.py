"""A changed table costs what has changed: versions share segments and answer as if built anew."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.engine import background
from matchwood.spark import Index, increments, indexes, match, segment_build
from matchwood.spark.increments import numbers_between
from matchwood.spark.row_files import MOST_FILES
from spark.bookshop_frames import lists

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {"event_id": list(range(12)), "a": [n % 5 for n in range(12)], "b": list(range(12))}
)
TEXTS = ["a = {n}", "b > {n}", "a = {n} OR b < 3", "a IN (1, {n}) AND b >= 2"]


def text(n: int) -> str:
    return TEXTS[n % len(TEXTS)].format(n=n % 7)


def table(spark, model: dict):
    rows = [(id_, expr) for id_, (expr, _) in model.items()]
    random.Random(len(rows)).shuffle(rows)
    kind = "bigint" if not model or isinstance(next(iter(model)), int) else "string"
    frame = spark.createDataFrame(rows, f"id {kind}, expr string")
    ranks = pa.table({"id": list(model), "priority": [rank for _, rank in model.values()]})
    return (
        frame.join(spark.createDataFrame(ranks), "id")
        if model
        else frame.selectExpr("*", "0L AS priority")
    )


def expected(model: dict) -> dict[int, list]:
    matcher = mw.Matcher()
    good = {id_: expr for id_, (expr, _) in sorted(model.items()) if "<<" not in expr}
    matcher.add_many(list(good.items()))
    return dict(zip(range(12), matcher.match_many(EVENTS), strict=True))


def segments(index) -> set[str]:
    return {each.name for each in (index.folder / "segments").iterdir() if each.is_dir()}


@pytest.mark.parametrize("kind", [int, lambda n: f"s{n:04}"], ids=["int", "str"])
def test_random_changes_give_what_a_table_built_anew_gives(
    spark, tmp_path: Path, monkeypatch, kind
) -> None:
    merges = kind is not int
    monkeypatch.setattr(background, "IS_ON", merges)
    rng = random.Random(7)
    events = spark.createDataFrame(EVENTS)
    model = {kind(n): (text(n), n % 3) for n in range(10, 400, 2)}
    kept = str(tmp_path / "kept")
    before: set[str] = set()
    for turn in range(6):
        found = match(events, table(spark, model), snapshots=kept)
        assert lists(found.matches) == expected(model)
        bad = {str(id_) for id_, (expr, _) in model.items() if "<<" in expr}
        assert {row.id for row in found.errors.collect()} == bad
        assert len(found.index.refused) == len(bad)
        assert found.index.count == len(model) - len(bad)
        now = segments(found.index)
        if turn and not merges:
            assert before & now, "no segment of the version before is left"
            assert len(now - before) <= 1, "more than what has changed was written"
        before = now
        for id_ in rng.sample(list(model), 3):
            del model[id_]
        for id_ in rng.sample(list(model), 3):
            model[id_] = (text(rng.randrange(100)), rng.randrange(3))
        model[rng.choice(list(model))] = ("b << 3", 1)
        model |= {kind(rng.randrange(1000)): (text(n), 1) for n in range(turn)}
    whole = match(events, table(spark, model), snapshots=str(tmp_path / "other")).index
    last = match(events, table(spark, model), snapshots=kept).index
    assert last.name == whole.name
    top = match(events, table(spark, model), snapshots=kept, limit=2)
    assert lists(top.matches) == lists(match(events, str(whole.folder), limit=2).matches)


def test_one_change_reads_one_bucket_and_writes_one_small_segment(spark, tmp_path: Path) -> None:
    model = {n: (text(n), 0) for n in range(3000)}
    first = Index.build(
        table(spark, model), path=str(tmp_path / "published"), snapshots=str(tmp_path)
    )
    old = {file: file.stat().st_ino for file in (tmp_path / "published").rglob("*.npy")}
    model[1234] = ("a = 4", 0)
    second = first.refresh(table(spark, model))
    assert not second.reused
    assert len(second) == 3000
    fresh = [f for f in (tmp_path / "published").rglob("*.npy") if f not in old]
    assert all(file.stat().st_ino == ino for file, ino in old.items())
    assert sum(file.stat().st_size for file in fresh) < 40_000 < sum(f.stat().st_size for f in old)
    events = spark.createDataFrame(EVENTS)
    assert lists(match(events, str(tmp_path / "published")).matches) == expected(model)
    assert first.refresh(table(spark, model)).reused


def test_ids_between_others_are_in_the_order_of_ids() -> None:
    ids, order = np.array([10, 20, 30]), np.array([100, 108, 2**20])
    assert numbers_between(ids, order, [20]) == {20: 108}
    found = numbers_between(ids, order, [1, 11, 12, 20, 25, 40, 41])
    assert found is not None
    both = dict(zip(ids.tolist(), order.tolist(), strict=True)) | found
    assert sorted(both, key=both.__getitem__) == sorted(both)
    assert numbers_between(ids, order, list(range(11, 20))) is None, "no room"
    assert numbers_between(ids[:0], order[:0], ["a"]) is not None
    names, numbers = np.array([0, 10**6]), np.array([2**40, 2**40 + 2**28])
    for id_ in range(1, 5000):  # one after the other, below an id that is far above them
        found = numbers_between(names, numbers, [id_])
        assert found is not None, f"no room after {id_}"
        names = np.insert(names, -1, id_)
        numbers = np.insert(numbers, -1, found[id_])


def test_ids_that_lie_too_close_make_the_index_be_built_anew(spark, monkeypatch) -> None:
    monkeypatch.setattr(increments, "numbers_between", lambda *given: None)
    events, model = spark.createDataFrame(EVENTS), {n: (text(n), 5) for n in range(100)}
    match(events, table(spark, model))
    model[50] = ("b = 7", 5)
    assert lists(match(events, table(spark, model)).matches) == expected(model)


def test_tasks_build_segments_of_ranges(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(segment_build, "SMALL", 40)
    model = {n: (text(n), 2) for n in range(-50, 250)} | {300: ("b <<", 1)}
    events = spark.createDataFrame(EVENTS)
    found = match(events, table(spark, model), snapshots=str(tmp_path))
    assert len(segments(found.index)) == 2
    assert lists(found.matches) == expected({k: v for k, v in model.items() if k != 300})
    assert [row.id for row in found.errors.collect()] == ["300"]
    del model[-50]
    again = match(events, table(spark, model), snapshots=str(tmp_path))
    assert len(segments(again.index)) == 2
    assert lists(again.matches) == expected({k: v for k, v in model.items() if k != 300})
    empty = dict.fromkeys(range(150), ("b <<", 1)) | dict.fromkeys(range(150, 200), ("a = 1", 1))
    half = match(events, table(spark, empty), snapshots=str(tmp_path / "half"))
    assert len(segments(half.index)) == 1, "a task that refused all of its rows has no segment"
    assert half.index.count == 50
    assert half.errors.count() == 150


def test_old_versions_and_files_of_rows_are_removed(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(indexes, "_KEPT", 2)
    monkeypatch.setattr(indexes, "_HOUR", -1)
    model = {n: (text(n), 2) for n in range(200)}
    rows = lambda: table(spark, model)  # noqa: E731
    assert MOST_FILES > 4
    monkeypatch.setattr("matchwood.spark.row_files.MOST_FILES", 2)
    built = []
    for turn in range(5):
        model[turn * 7] = ("b = 1", turn)
        built.append(indexes.build_index(rows(), snapshots=str(tmp_path)))
    assert {each.name for each in tmp_path.iterdir()} == {each.name for each in built[-2:]}
    files = list((tmp_path / built[-1].name / "rows").iterdir())
    assert len(files) <= 4
    assert mw.Matcher.load(built[-1].folder).ids() == list(range(200))
