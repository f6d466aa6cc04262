"""Files that tasks write: those that count come out, whatever else was left aside."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchwood.spark.storage import open_storage
from matchwood.spark.streams.commit import Attempt
from matchwood.spark.streams.owner import Fence, next_epoch
from matchwood.spark.streams.parts import ERRORS, MATCHES, Part, put_rows
from matchwood.spark.streams.worker import matches_schema

SCHEMA = matches_schema("bigint")


def rows(*events: int) -> pa.Table:
    columns = [list(events), list(events), [[1]] * len(events)]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def events_of(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder, partitioning=None)["event_id"].to_pylist())


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return begun(tmp_path)


def begun(tmp_path: Path) -> Attempt:
    state = open_storage(str(tmp_path / "state"), "state")
    fence = Fence(state, next_epoch(state))
    return Attempt(open_storage(str(tmp_path / "out"), "out"), 7, fence)


def test_files_that_no_task_reported_do_not_come_out(tmp_path: Path, attempt: Attempt) -> None:
    with attempt:
        (kept,) = put_rows(attempt.parts, MATCHES, iter(rows(1, 2).to_batches()))
        list(put_rows(attempt.parts, MATCHES, iter(rows(1, 2).to_batches())))  # of a lost task
        attempt.take(MATCHES, kept.column("file").to_pylist())
        attempt.commit()
    folder = tmp_path / "out" / "matches" / "batch=7"
    assert events_of(folder) == [1, 2]
    assert (folder / "_SUCCESS").exists()
    assert not [each for each in (tmp_path / "out").iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("has_errors", [True, False])
def test_errors_of_an_attempt_that_was_killed_before_its_matches_do_not_stay(
    tmp_path: Path, attempt: Attempt, monkeypatch, has_errors: bool
) -> None:
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if Path(target).parent.name == MATCHES:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", killed)
    for kind in (MATCHES, ERRORS):
        attempt.take(kind, [attempt.parts.put(rows(1))])
    with pytest.raises(KeyboardInterrupt):
        attempt.commit()
    monkeypatch.undo()
    folder = tmp_path / "out" / "errors" / "batch=7"
    assert events_of(folder) == [1]
    with begun(tmp_path) as again:
        for kind in (MATCHES, ERRORS) if has_errors else (MATCHES,):
            again.take(kind, [again.parts.put(rows(1))])
        again.commit()
    assert events_of(tmp_path / "out" / "matches" / "batch=7") == [1]
    assert folder.exists() == has_errors
    if has_errors:
        assert events_of(folder) == [1]


def test_a_task_that_goes_on_after_the_attempt_writes_nothing(
    tmp_path: Path, attempt: Attempt
) -> None:
    with attempt:
        parts = attempt.parts
        attempt.take(MATCHES, [parts.put(rows(3))])
        attempt.commit()
    with pytest.raises(FileNotFoundError):
        parts.put(rows(3))
    assert events_of(tmp_path / "out" / "matches" / "batch=7") == [3]


def test_parts_without_rows_have_no_file_unless_columns_are_to_be_shown(
    tmp_path: Path, attempt: Attempt
) -> None:
    with attempt:
        assert list(put_rows(attempt.parts, MATCHES, iter(SCHEMA.empty_table().to_batches()))) == []
        attempt.take(MATCHES, [attempt.parts.put(SCHEMA.empty_table())])
        attempt.commit()
    found = pq.read_table(tmp_path / "out" / "matches" / "batch=7", partitioning=None)
    assert found.schema.equals(SCHEMA)
    assert not len(found)


def test_many_rows_are_written_in_several_steps(attempt: Attempt, monkeypatch) -> None:
    monkeypatch.setattr("matchwood.spark.streams.parts._AT_ONCE", 100)
    with attempt:
        with Part(attempt.parts) as part:
            for event in range(20):
                part.write(rows(event).to_batches()[0])
        attempt.take(MATCHES, [part.name])
        path = Path(attempt.parts.out.path, attempt.parts.folder, part.name)
        assert pq.ParquetFile(path).num_row_groups > 1
        assert events_of(path) == list(range(20))
