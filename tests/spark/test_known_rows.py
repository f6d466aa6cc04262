"""One pass over a changed table tells its new rows, or buckets that have to be read again."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import matchwood as mw
from matchwood.engine.snapshots.versions import save_version
from matchwood.spark import indexes, known_rows, memory, worker
from matchwood.spark.fingerprints import BUCKET, HASHES, digests, digests_of, with_buckets
from matchwood.spark.increments import ROWS, Difference, read_digests, read_of
from matchwood.spark.known_rows import KNOWN, Seen, advance_known, read_known, write_known
from matchwood.spark.row_files import read_rows
from matchwood.spark.worker import Location, opened

pytestmark = pytest.mark.spark

EVENTS = pa.table({"a": [n % 5 for n in range(12)], "b": list(range(12))})


def text(n: int) -> str:
    return ["a = {n}", "b > {n}", "a = {n} OR b < 3"][n % 3].format(n=n % 7)


def frame(spark, rows: list[tuple[Any, str]]):
    ids, texts = zip(*rows, strict=True)
    table = spark.createDataFrame(pa.table({"id": list(ids), "expr": list(texts)}))
    return table.repartition(3)


@pytest.fixture
def readings(monkeypatch) -> list[int]:
    """How often buckets were read again."""
    found: list[int] = []
    real = indexes.read_again
    monkeypatch.setattr(indexes, "read_again", lambda *given: found.append(1) or real(*given))
    return found


def answers(rows: list[tuple[Any, str]]) -> list[list[Any]]:
    matcher = mw.Matcher()
    matcher.add_many(sorted(rows))
    return matcher.match_many(EVENTS).to_pylist()


@pytest.mark.parametrize("kind", [int, "id-{:05}".format], ids=["int", "str"])
def test_new_rows_and_digests_tell_what_has_changed(
    spark, tmp_path: Path, readings: list[int], kind
) -> None:
    model = {kind(n): text(n) for n in range(0, 3_000, 2)}
    kept = str(tmp_path / "kept")

    def built(folder: str = kept):
        found = indexes.build_index(frame(spark, list(model.items())), snapshots=folder)
        assert found.matcher.match_many(EVENTS).to_pylist() == answers(list(model.items()))
        assert found.count == len(model)
        assert not readings, len(readings)
        return found

    built()
    model[kind(100)] = "b = 7"
    built()
    model[kind(101)] = "b = 7"
    built()
    del model[kind(200)]
    built()
    model[kind(100)] = text(100)  # as it was at first
    built()
    model |= {kind(n): text(n + 1) for n in range(500, 600)}
    del model[kind(300)]
    last = built()
    assert not last.reused
    assert not readings
    assert built(str(tmp_path / "other")).name == last.name
    assert built().reused


def test_where_new_rows_do_not_tell_all_buckets_are_read_again(
    spark, tmp_path: Path, readings: list[int], monkeypatch
) -> None:
    rows = [(n, text(n)) for n in range(3_000)]
    kept = str(tmp_path / "kept")

    def built(table) -> Any:
        del readings[:]
        return indexes.build_index(table, snapshots=kept)

    built(frame(spark, rows))
    at = with_buckets(frame(spark, rows)).toArrow()
    counts = np.bincount(at[BUCKET].to_numpy())
    gone = at.filter(pc.equal(at[BUCKET], int(counts.argmax())))["id"].to_pylist()
    rows = [each for each in rows if each[0] not in gone[:2]]
    found = built(frame(spark, rows))
    assert readings == [1], "two rows of one bucket are gone"
    assert found.matcher.match_many(EVENTS).to_pylist() == answers(rows)
    found = built(frame(spark, [*rows, (7, "b = 2"), (7, "b = 1")]))
    assert readings == [1], "an id has several rows"
    assert len(found.refused) == 2
    monkeypatch.setattr(known_rows, "MOST_NEW", 4)
    rows = [(n, "b = 9" if n < 20 else each) for n, each in rows]
    found = built(frame(spark, rows))
    assert readings == [1], "more rows are new than a task may send"
    assert found.matcher.match_many(EVENTS).to_pylist() == answers(rows)


def test_a_new_row_that_is_taken_for_a_known_one_is_noticed(spark, tmp_path: Path) -> None:
    """The pass knows rows by 32 bits of a hash; the digests have all of two."""
    rows = [(n, text(n)) for n in range(200)]
    found = indexes.build_index(frame(spark, rows), snapshots=str(tmp_path))
    folder = tmp_path / found.name
    rows[50], rows[60] = (50, "b = 7"), (60, "b = 8")
    table = with_buckets(frame(spark, rows)).toArrow()
    new = table.filter(pc.is_in(table["id"], pa.array([50, 60]))).combine_chunks()
    now, before = digests_of(table.combine_chunks()), read_digests(folder)
    seen = Seen(now, new, folder)
    difference = Difference(folder, before, now.differing(before))
    read = read_of(seen, difference)
    assert read is not None
    assert read.rows["id"].to_pylist() == [50, 60]
    assert not len(read.digests.differing(now.of_buckets(difference.buckets)))
    assert read.old.equals(read_rows(folder / ROWS, difference.buckets))
    assert read_of(replace(seen, new=new.slice(0, 1)), difference) is None
    assert read_of(replace(seen, new=new.slice(0, 0)), difference) is None
    assert read_of(replace(seen, version=tmp_path), difference) is None
    twice = pa.concat_tables([new, new.slice(0, 1)]).combine_chunks()
    assert read_of(replace(seen, new=twice), difference) is None
    at = new.schema.get_field_index(HASHES[1])
    other = new.set_column(at, new.schema.field(at), pa.array([1, 2], pa.int64()))
    assert read_of(replace(seen, new=other), difference) is None


def test_small_files_are_written_as_one_and_what_is_gone_is_new_again(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(known_rows, "SMALL", 10)
    monkeypatch.setattr(known_rows, "MOST_SMALL", 3)
    part = lambda *numbers: np.array(numbers, np.uint32)  # noqa: E731
    write_known(tmp_path / "0", part(*range(100, 0, -1)))
    for n in range(8):
        advance_known(
            tmp_path / str(n), tmp_path / str(n + 1), part(1_000 + n), part(999 + n, n + 1)
        )
    files, few, gone = read_known(tmp_path / "8")
    assert [len(np.load(file)) for file in files] == [100]
    assert set(few.tolist()) - set(gone.tolist()) == {1_007}
    assert len(few) < 5
    assert len(list((tmp_path / "8").iterdir())) <= 5
    assert set(gone.tolist()) == {*range(1, 9), *range(999, 1_007)}, "in files or not"
    advance_known(tmp_path / "8", tmp_path / "9", part(3), part(1_007))
    assert 3 not in read_known(tmp_path / "9")[2].tolist()
    advance_known(tmp_path / "nothing", tmp_path / "10", part(3), part(1))
    assert not (tmp_path / "10").exists(), "an earlier release wrote the version"


def test_a_version_links_the_rows_that_are_known(spark, tmp_path: Path) -> None:
    rows = [(n, text(n)) for n in range(5_000)]
    first = indexes.build_index(frame(spark, rows), snapshots=str(tmp_path))
    rows[7] = (7, "b = 7")
    second = indexes.build_index(frame(spark, rows), snapshots=str(tmp_path))
    old, new = (
        {file.name: file.stat() for file in (tmp_path / each.name / KNOWN).iterdir()}
        for each in (first, second)
    )
    assert sum(each.st_size for each in old.values()) < 5_000 * 4 + 200
    assert all(new[name].st_ino == each.st_ino for name, each in old.items())
    fresh = [each.st_size for name, each in new.items() if name not in old]
    assert sum(fresh) < 400


class _Task:
    @staticmethod
    def get() -> str:
        return "a task"


def test_what_modules_have_made_is_spared_while_nothing_is_open(
    tmp_path: Path, monkeypatch
) -> None:
    """An index that is spared would never be freed: its parts refer to each other."""
    matcher = mw.Matcher()
    matcher.add(1, "a = 1")
    save_version(matcher, tmp_path / "v")
    held: dict[Any, Any] = {}
    monkeypatch.setattr(worker, "_opened", held)
    monkeypatch.setattr(memory, "_spared", [])
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(held)))
    where = Location(str(tmp_path / "v"))
    opened(where)
    assert not frozen, "no worker"
    monkeypatch.setattr("pyspark.TaskContext", _Task)
    for n in range(5):
        opened(where)
        assert len(held) == 1
        for each in range(60 * n, 60 * n + 60):
            monkeypatch.setitem(sys.modules, f"made_{each}", sys)
        for _ in range(2):
            opened(where)
    assert frozen == [0] * memory.MOST_TIMES


def test_workers_do_not_collect_what_modules_have_made(spark) -> None:
    """PySpark collects after each task; 93 ms of CPU each, before."""
    rules, events = frame(spark, [(1, "a = 1")]), EVENTS.append_column("event_id", EVENTS["b"])
    from matchwood.spark import match

    for _ in range(3):
        match(spark.createDataFrame(events).repartition(4), rules).matches.toArrow()

    def probe(batches):
        list(batches)
        is_ours = "matchwood.spark.worker" in sys.modules
        yield pa.record_batch({"n": [gc.get_freeze_count() if is_ours else -1]})

    rows = spark.range(0, 4, 1, 4).mapInArrow(probe, "n bigint").collect()
    counts = [row.n for row in rows if row.n >= 0]
    assert counts
    assert min(counts) > 50_000


def test_a_table_that_was_not_read_before_sends_no_texts_to_python(
    spark, tmp_path: Path, monkeypatch
) -> None:
    """Without a version to compare with, the pass carries hashes alone."""
    asked: list[Any] = []
    monkeypatch.setattr(known_rows, "digests", lambda given: asked.append(given) or digests(given))
    rows = [(n, text(n)) for n in range(50, 90)]
    indexes.build_index(frame(spark, rows), snapshots=str(tmp_path))
    assert len(asked) == 1
    rows[0] = (50, "a = 4")
    indexes.build_index(frame(spark, rows), snapshots=str(tmp_path))
    assert len(asked) == 1
