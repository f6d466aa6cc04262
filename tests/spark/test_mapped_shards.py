"""A worker opens a shard once, as long as there is room, whichever tasks Spark gives it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from matchwood.spark import match_sharded
from matchwood.spark.shards import match as match_module
from matchwood.spark.shards.mapped import OPEN_BYTES, Mapped, n_mapped
from matchwood.spark.shards.match import VISITS, RouteJob, match_shard, read_manifest, snapshots_of
from matchwood.spark.shards.save import SHARD, Shard
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

TEXTS, EVENTS = shop(600, 60)
K = 5


def job_of(home: Path, n: int) -> RouteJob:
    manifest = read_manifest(str(home))
    snapshots = snapshots_of(str(home), manifest)
    return RouteJob(
        str(home), manifest["build"], snapshots, "wide", "event_id", K, True, "long",
        ("event_id", *sorted({name for each in EVENTS for name in each})), n,
    )  # fmt: skip


def run(job: RouteJob, events: pa.RecordBatch) -> list[list[int]]:
    """All events in every shard, a task each; lists by event."""
    found: list[set[int]] = [set() for _ in range(events.num_rows)]
    for number in range(K):
        n = events.num_rows
        part = events.append_column(SHARD, pa.array([number] * n, pa.int32()))
        part = part.append_column(VISITS, pa.array([K] * n, pa.int32()))
        rows = pa.Table.from_batches(list(match_shard(job, iter([part])))).to_pylist()
        for row in rows:
            found[row["event_id"]].update(row["subscription_ids"])
    return [sorted(each) for each in found]


@pytest.mark.spark
def test_shards_stay_open_between_tasks_and_between_versions(
    spark, tmp_path: Path, monkeypatch
) -> None:
    frame = events_frame(spark, EVENTS, "wide")
    first = match_sharded(frame, texts_frame(spark, TEXTS), str(tmp_path), shards=K)
    expected = [ids for _, ids in sorted(lists(first.matches).items())]
    changed = [*TEXTS[:-1], "price = 1 AND genre = 'poetry'"]
    second = match_sharded(frame, texts_frame(spark, changed), str(tmp_path), shards=K)
    after = [ids for _, ids in sorted(lists(second.matches).items())]
    names = job_of(first.folder, K).names
    (events,) = frame.select(*names).toArrow().combine_chunks().to_batches()
    for room, opened_first, opened_again in ((K, K, 0), (3, K, K - 2), (1, K, K)):
        worker = Mapped()
        monkeypatch.setattr(match_module, "mapped", worker)
        job = job_of(first.folder, room)
        assert run(job, events) == expected
        assert worker.n_opened == opened_first
        for call in (1, 2):
            assert run(job, events) == expected
            assert worker.n_opened == opened_first + call * opened_again
        assert len(worker) <= room
        if room == K:  # the shards of the change alone are opened
            n_touched = sum(each.folder not in folders(first) for each in second.shards)
            assert 0 < n_touched < K
            assert run(job_of(second.folder, room), events) == after
            assert worker.n_opened == K + n_touched
            assert len(worker) == K


def folders(found) -> set[str]:
    return {each.folder for each in found.shards}


def test_open_shards_take_no_more_than_building_one_did() -> None:
    def shards(*sizes: int, peak: int) -> list[Shard]:
        return [Shard(n, 1, size, peak, 0, f"shard-{n}") for n, size in enumerate(sizes)]

    assert n_mapped([]) == 1
    assert n_mapped(shards(10 * OPEN_BYTES, peak=0)) == 1
    assert n_mapped(shards(OPEN_BYTES, OPEN_BYTES, OPEN_BYTES, peak=4 * OPEN_BYTES)) == 2
    assert n_mapped(shards(*[0] * 16, peak=100 * OPEN_BYTES)) == 16
