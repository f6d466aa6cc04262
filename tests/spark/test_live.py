"""A stream of events beside a table of subscriptions that changes: one version per micro-batch."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import matchwood as mw
from matchwood.spark import match_live
from matchwood.spark.streams import live
from spark.logs import Crash, dead_letters

pytestmark = pytest.mark.spark

NOW = {"availableNow": True}


class Shop:
    """Folders of events and subscriptions, and a stream over them."""

    def __init__(self, spark, work: Path) -> None:
        self._spark, self.work = spark, work
        for name in ("events", "rules"):
            (work / name).mkdir()
        self._n = 0

    def rules(self, **texts: str) -> None:
        rows = [{"id": id_, "expr": text} for id_, text in texts.items()]
        (self.work / "rules" / "all.json").write_text("".join(json.dumps(r) + "\n" for r in rows))

    def event(self, **values: int) -> None:
        row = {"event_id": self._n, **values}
        (self.work / "events" / f"{self._n:04}.json").write_text(json.dumps(row))
        self._n += 1

    def run(self, **options) -> None:
        path = str(self.work / "rules")
        reader = self._spark.readStream.schema("event_id BIGINT, a BIGINT, b BIGINT")
        events = reader.option("maxFilesPerTrigger", 1).json(str(self.work / "events"))
        match_live(
            events,
            lambda spark: spark.read.schema("id STRING, expr STRING").json(path),
            str(self.work / "out"),
            str(self.work / "state"),
            trigger=NOW,
            **options,
        ).awaitTermination()

    def found(self) -> dict[int, tuple[list[str], str]]:
        rows = [
            row
            for folder in sorted((self.work / "out" / "matches").glob("batch=*"))
            for row in pq.read_table(folder, partitioning=None).to_pylist()
        ]
        assert len({row["event_id"] for row in rows}) == len(rows)
        return {row["event_id"]: (row["subscription_ids"], row["version"]) for row in rows}


def test_every_batch_uses_one_version_and_says_which(spark, tmp_path: Path, monkeypatch) -> None:
    shop = Shop(spark, tmp_path)
    shop.rules(x="a = 1", bad="prise < 3")
    shop.event(a=1, b=1)
    shop.event(a=2, b=1)
    shop.run()
    shop.rules(x="a = 1", y="b = 1")
    shop.event(a=1, b=1)

    def crash(point: str) -> None:
        if point == "written":
            raise Crash(point)

    monkeypatch.setattr(live, "reached", crash)
    with pytest.raises(StreamingQueryException, match="Crash: written"):
        shop.run()
    monkeypatch.undo()
    shop.rules(z="b = 1")  # the attempt that crashed has recorded the version before
    shop.event(a=1, b=1)
    shop.run()
    found = shop.found()
    assert [found[n][0] for n in range(4)] == [["x"], [], ["x", "y"], ["z"]]
    versions = [found[n][1] for n in range(4)]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3
    assert [row["id"] for row in dead_letters(tmp_path / "out")] == []
    refused = (tmp_path / "state" / "refused" / f"{versions[0]}.json").read_text()
    assert "'prise'" in refused
    kept = {each.name for each in (tmp_path / "state" / "indexes").iterdir()}
    assert set(versions[1:]) == kept
    events = spark.readStream.schema("event_id BIGINT, a BIGINT").json(str(tmp_path / "events"))
    rules = spark.createDataFrame([("x", "a = 1")], "id string, expr string")
    with pytest.raises(mw.StorageError, match="expected output of the stream that has this state"):
        match_live(events, rules, str(tmp_path / "out"), str(tmp_path / "other"))


def test_shards_are_versions_too_and_a_change_writes_some_of_them(
    spark, tmp_path: Path, monkeypatch
) -> None:
    shop = Shop(spark, tmp_path)
    rules = {f"r{n}": f"a = {n}" for n in range(20)}
    shop.rules(**rules, bad="prise < 3", any="b IS NULL OR a = 3")
    shop.event(a=3)
    shop.run(shards=4)
    shop.rules(**{**rules, "r3": "a = 5 AND b = 1"}, any="b IS NULL OR a = 3")
    shop.event(a=5, b=1)

    def crash(point: str) -> None:
        if point == "written":
            raise Crash(point)

    monkeypatch.setattr(live, "reached", crash)
    with pytest.raises(StreamingQueryException, match="Crash: written"):
        shop.run(shards=4)
    monkeypatch.undo()
    shop.rules(none="a = 5")  # the attempt that crashed has recorded the version before
    shop.run(shards=4)
    found = shop.found()
    assert [sorted(found[n][0]) for n in range(2)] == [["any", "r3"], ["r3", "r5"]]
    first, second = (
        {each.name for each in (tmp_path / "state" / "indexes" / found[n][1]).glob("shard-*")}
        for n in range(2)
    )
    assert len(second) >= 4 > len(second - first) >= 1, "shards that did not change are linked"
    assert dead_letters(tmp_path / "out") == []
    assert "'prise'" in (tmp_path / "state" / "refused" / f"{found[0][1]}.json").read_text()
