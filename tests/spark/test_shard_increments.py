"""A changed subscription writes the shards of its homes and no others; answers are as if anew."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import matchwood as mw
from matchwood.spark import match_sharded
from matchwood.spark.shards import increments as shard_increments
from matchwood.spark.shards import match_sharded as sharded
from spark.bookshop_frames import events_frame, lists, shop

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(150, 40)
TEXTS = [f"({a}) OR ({b})" if n % 5 == 0 else a
         for n, (a, b) in enumerate(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True))]  # fmt: skip


def table(spark, model: dict):
    rows = [(id_, expr, id_ % 3) for id_, expr in model.items()]
    random.Random(len(rows)).shuffle(rows)
    return spark.createDataFrame(rows, "id bigint, expr string, priority bigint")


def expected(model: dict, limit: int | None = None) -> dict[int, list]:
    matcher = mw.Matcher()
    for id_, expr in sorted(model.items()):
        if "<<" not in expr:
            matcher.add(id_, expr, priority=id_ % 3)
    return {n: matcher.match(event, limit=limit) for n, event in enumerate(EVENTS)}


def folders(found) -> set[str]:
    return {each.folder for each in found.shards}


def test_a_change_writes_the_shards_of_its_homes(spark, tmp_path: Path, monkeypatch) -> None:
    built = []
    build = sharded.build_shards
    monkeypatch.setattr(sharded, "build_shards", lambda wanted: built.append(build(wanted)))
    events = events_frame(spark, EVENTS, "wide").cache()
    model = {3 * n: text for n, text in enumerate(TEXTS)}
    before = match_sharded(events, table(spark, model), str(tmp_path), shards=6)
    inodes = {file.stat().st_ino for file in tmp_path.rglob("shard-*/**/*.npy")}
    either = f"({TEXTS[1]}) OR ({TEXTS[2]}) OR rating IS NULL"
    for step, changes in enumerate((
        {300: "price = 5 AND genre = 'drama'"},  # another text
        {10**6: TEXTS[0], 301: TEXTS[7], 9: None, 12: "price <<", 15: either},
    )):  # fmt: skip
        model = {id_: expr for id_, expr in (model | changes).items() if expr is not None}
        found = match_sharded(events, table(spark, model), str(tmp_path), shards=6)
        assert lists(found.matches) == expected(model)
        assert not found.reused
        assert [row.id for row in found.errors.collect()] == ["12"] * step
        if step == 0:  # one text, at most three homes before and after
            assert len(folders(found) & folders(before)) >= 3
        before = found
    assert len(built) == 1, "shards were built as a whole"
    top = match_sharded(events, table(spark, model), str(tmp_path), shards=6, limit=2)
    assert lists(top.matches) == expected(model, 2)
    assert top.reused
    same = [f for f in before.folder.rglob("shard-*/**/*.npy") if f.stat().st_ino in inodes]
    assert len(same) > 10, "segments of unchanged shards are linked"
    # a shard that is damaged, or too much that changes, builds all of them
    damaged = before.folder / before.shards[0].folder / "snapshot" / "checkpoint.json"
    damaged.write_text("{}")
    model = {id_: (TEXTS[0] if id_ % 2 else text) for id_, text in model.items()}
    whole = match_sharded(events, table(spark, model), str(tmp_path), shards=6)
    assert lists(whole.matches) == expected(model)
    assert len(built) == 2


def test_shards_come_and_go_with_their_subscriptions(spark, tmp_path: Path, monkeypatch) -> None:
    events = spark.sql("SELECT id AS event_id, CAST(id AS INT) AS a FROM range(8)").cache()
    build, built = sharded.build_shards, []
    monkeypatch.setattr(sharded, "build_shards", lambda wanted: built.append(build(wanted)))

    def matched(model: dict):
        rows = [(id_, "a", "=", value) for id_, values in model.items() for value in values]
        kinds = "id bigint, attribute string, operator string, value int"
        found = match_sharded(events, spark.createDataFrame(rows, kinds), str(tmp_path), shards=5)
        wanted = {n: sorted(i for i, v in model.items() if set(v) == {n}) for n in range(8)}
        assert lists(found.matches) == wanted
        return found

    model = {n: [n % 4] for n in range(40)}
    first = matched(model)
    model |= {100: [6]}
    second = matched(model)  # a home that no shard has
    del model[100]
    assert folders(matched(model)) >= folders(first) & folders(second)
    model[7] = [3, 3]  # the same row twice; and a predicate that never holds beside
    matched(model)
    model[7] = [3, 2]
    matched(model)
    for id_ in range(0, 40, 4):
        model[id_] = [1]
    monkeypatch.setattr(shard_increments, "MOST", 2)
    last = matched(model)  # a shard is empty now
    assert all(each.count for each in last.shards)
    assert len(built) == 1
    monkeypatch.setattr(shard_increments, "MOST_CHANGED", 1)
    model |= {201: [1], 202: [2]}
    matched(model)
    assert len(built) == 2, "more than an increment takes"
    shutil.rmtree(tmp_path)
