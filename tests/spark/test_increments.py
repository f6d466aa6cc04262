"""A changed table costs what has changed: versions share segments and answer as if built anew."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from inside import view_of
from matchwood.engine.durable import segment_files
from matchwood.engine.matcher import Matcher
from matchwood.engine.segments import background
from matchwood.engine.snapshots.versions import Neighbours, load_version, near, save_version
from matchwood.engine.stores.subscriptions import Subscriptions
from matchwood.spark import Index, fingerprints, increments, indexes, match, segment_build
from matchwood.spark.build_tasks import add_rows
from matchwood.spark.increments import numbers_between
from matchwood.spark.row_files import MOST_FILES
from matchwood.spark.worker import Location, opened
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
    known = {10: 100, 20: 108, 30: 2**20}
    assert numbers_between(beside(known, [20]), [20]) == {20: 108}
    wanted = [1, 11, 12, 20, 25, 40, 41]
    found = numbers_between(beside(known, wanted), wanted)
    assert found is not None
    both = known | found
    assert sorted(both, key=both.__getitem__) == sorted(both)
    wanted = list(range(11, 20))
    assert numbers_between(beside(known, wanted), wanted) is None, "no room"
    assert numbers_between(beside({}, ["a"]), ["a"]) is not None
    last, high = 2**40, 2**40 + 2**28
    for id_ in range(1, 5000):  # one after the other, below an id that is far above them
        found = numbers_between(Neighbours(*np.array([[-1], [last], [high]])), [id_])
        assert found is not None, f"no room after {id_}"
        assert last < found[id_] < high
        last = found[id_]


def beside(known: dict[Any, int], wanted: list[Any]) -> Neighbours:
    """The numbers at and beside ids, by looking at all of them."""
    at = [known.get(id_, -1) for id_ in wanted]
    before = [max([n for each, n in known.items() if each < id_], default=-1) for id_ in wanted]
    after = [min([n for each, n in known.items() if each > id_], default=-1) for id_ in wanted]
    return Neighbours(np.array(at), np.array(before), np.array(after))


@pytest.mark.parametrize("name", [int, "id-{:05}".format])
def test_neighbours_are_found_without_a_list_of_all_ids(tmp_path: Path, monkeypatch, name) -> None:
    """What the driver holds for a change may not grow with the number of subscriptions."""
    matcher, known = Matcher(), {}
    ids = [list(range(0, 9_000, 3)), list(range(1, 9_000, 900)), [2, 8_999]]
    for some in ids:
        table = pa.table({"id": [name(i) for i in some], "expr": ["a = 1"] * len(some)})
        order = {name(i): 1_000 * (i + 1) for i in some}
        assert not add_rows(matcher, table, None, 0, order)
        known |= order
    gone = [name(i) for i in (0, 3, 600, 603, 606, 901, 8_997)]
    matcher.remove_many(gone)
    known = {id_: number for id_, number in known.items() if id_ not in gone}
    save_version(matcher, tmp_path / "v")
    version = load_version(tmp_path / "v")
    asked: list[int] = []
    ids_of = Subscriptions.ids_of
    monkeypatch.setattr(
        Subscriptions, "ids_of", lambda self, slots: asked.append(len(slots)) or ids_of(self, slots)
    )
    wanted = [name(i) for i in (0, 1, 2, 3, 4, 598, 600, 604, 605, 901, 8_996, 8_997, 8_999, 9_500)]
    found = near(version, wanted)
    assert [each.tolist() for each in found] == [x.tolist() for x in beside(known, wanted)]
    assert sum(asked) < len(wanted) * 40
    assert near(version, []).at.tolist() == []


def test_versions_that_a_worker_has_open_share_their_segments(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add_many([(n, f"a = {n % 5}") for n in range(5_000)])
    save_version(matcher, tmp_path / "1")
    changed = load_version(tmp_path / "1")
    changed.remove(7)
    add_rows(changed, pa.table({"id": [7], "expr": ["a = 0"]}), None, 0, {7: 7})
    save_version(changed, tmp_path / "2", tmp_path / "1")
    first, _ = opened(Location(str(tmp_path / "1")))
    second, _ = opened(Location(str(tmp_path / "2")))
    stores = [[part.store for part in view_of(each).segments] for each in (first, second)]
    assert stores[0][0] is stores[1][0]
    assert len(stores[1]) == 2
    assert [7 in each.match({"a": 2}) for each in (first, second)] == [True, False]
    assert [7 in each.match({"a": 0}) for each in (first, second)] == [False, True]


def test_a_change_reads_the_version_before_once(spark, tmp_path: Path, monkeypatch) -> None:
    events, model = spark.createDataFrame(EVENTS), {n: (text(n), 5) for n in range(100)}
    match(events, table(spark, model), snapshots=str(tmp_path))
    read: list[Path] = []
    load = segment_files.load
    monkeypatch.setattr(
        segment_files, "load", lambda home, **how: read.append(home.name) or load(home, **how)
    )
    model[50] = ("b = 7", 5)
    found = match(events, table(spark, model), snapshots=str(tmp_path))
    assert len(read) == len(set(read)) > 0
    assert lists(found.matches) == expected(model)


def test_ids_that_lie_too_close_make_the_index_be_built_anew(spark, monkeypatch) -> None:
    monkeypatch.setattr(increments, "numbers_between", lambda *given: None)
    events, model = spark.createDataFrame(EVENTS), {n: (text(n), 5) for n in range(100)}
    match(events, table(spark, model))
    model[50] = ("b = 7", 5)
    assert lists(match(events, table(spark, model)).matches) == expected(model)


def test_tasks_build_segments_of_ranges(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(segment_build, "LARGE", 200)
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


@pytest.mark.parametrize(
    ("n", "expected"), [(0, 1), (1_000_000, 1), (1_400_000, 1), (1_600_000, 2), (4_000_000, 3)]
)
def test_an_index_has_as_few_segments_as_building_allows(n, expected) -> None:
    assert segment_build.n_segments(n) == expected


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


def test_a_change_is_one_job_without_a_shuffle(spark, tmp_path: Path, monkeypatch) -> None:
    """The digests, and the rows of the buckets that differ; an unchanged table is the first job."""
    monkeypatch.setattr(fingerprints, "MOST_TASKS", 3)
    model = {n: (text(n), 5) for n in range(300)}
    found = []
    for turn in range(3):
        model[50] = ("b = 7", turn // 2)
        file = str(tmp_path / f"rules-{turn}")
        table(spark, model).repartition(5).write.parquet(file)
        rules = spark.read.parquet(file).union(spark.read.parquet(file).where("id < 0"))
        n_tasks = rules.rdd.getNumPartitions()
        before = jobs(spark)
        built = indexes.build_index(rules, snapshots=str(tmp_path / "kept"))
        new = sorted(jobs(spark) - before)
        found.append((built.reused, [stages(spark, job) for job in new]))
    assert n_tasks > 3
    assert found[1] == (True, [[3]]), "each task sends digests to the driver"
    assert found[2] == (False, [[3]]), "and the row that is new"


def jobs(spark) -> set[int]:
    """The jobs that there were, of no group."""
    context, group = spark.sparkContext, uuid4().hex
    context.setJobGroup(group, "the last one: what was before it is known when it is")
    spark.range(1).toArrow()
    context.setLocalProperty("spark.jobGroup.id", None)
    tracker = context.statusTracker()
    while not tracker.getJobIdsForGroup(group):
        time.sleep(0.01)
    return set(tracker.getJobIdsForGroup())


def stages(spark, job: int) -> list[int]:
    """How many tasks each stage of a job has, in order."""
    tracker = spark.sparkContext.statusTracker()
    return [
        tracker.getStageInfo(each).numTasks for each in sorted(tracker.getJobInfo(job).stageIds)
    ]
