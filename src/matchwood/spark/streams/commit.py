"""Output of a micro-batch: written to a folder of its own, then committed; never replaced.

    a folder    out/.writing-7-2-5f3a/matches ──rename──► out/matches/batch=7      the batch is done
                                     /errors  ──rename──► out/errors/batch=7       before that

    a store     out/.writing-7-2-5f3a/matches/part-*.parquet        put by tasks
                out/_commits/0000000007       created, names these files: the batch is decided
                out/errors/batch=7, out/matches/batch=7             copies of them
                out/matches/batch=7/_SUCCESS                        put last: the batch is done

A store does not rename folders.  Of two drivers one creates the file in `_commits`; the driver that
finds a batch decided and not done makes the copies, which are the same however often they are made.
So all that is below `matches` and `errors` comes from one attempt, but a reader that looks while
copies are made may see some of them: `_SUCCESS` says that a batch is whole.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.errors import StorageError
from matchwood.spark.storage import Folder, Storage, Store
from matchwood.spark.streams.owner import Fence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPT = ".writing-"
_DONE = "_SUCCESS"
_KINDS = ("errors", "matches")
"""What a batch consists of, in the order in which it appears."""


def is_done(out: Storage, batch: int) -> bool:
    """Whether a batch was committed before; copies that a killed driver did not make are made."""
    if isinstance(out, Folder):
        return out.exists(f"matches/batch={batch}")
    if out.exists(f"matches/batch={batch}/{_DONE}"):
        return True
    record = out.read(_record(batch))
    if record is not None:
        _copy(out, batch, json.loads(record))
    return record is not None


def remove_old_attempts(out: Storage) -> None:
    """Remove what killed drivers left behind a day ago."""
    for name in out.names(""):
        if not name.startswith(_ATTEMPT) or not out.is_old(name):
            continue
        batch = int(name.removeprefix(_ATTEMPT).partition("-")[0])
        if isinstance(out, Folder) or is_done(out, batch) or out.read(_record(batch)) is None:
            out.remove(name)


class Attempt:
    """The output of one attempt at a batch; gone at the end unless it was committed."""

    def __init__(self, out: Storage, batch: int, fence: Fence) -> None:
        self._out, self._batch, self._fence = out, batch, fence
        self._name = f"{_ATTEMPT}{batch}-{fence.epoch}-{uuid.uuid4().hex}"
        self._files: dict[str, list[str]] = {}
        self._is_decided = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if not self._is_decided or kind is None:
            self._out.remove(self._name)

    def write(self, frame: DataFrame, kind: str) -> None:
        """Write the matches or errors of the batch."""
        if isinstance(self._out, Folder):
            frame.write.parquet(self._out.spark(f"{self._name}/{kind}"))
            self._files[kind] = []
            return
        put = partial(_put_parts, self._out, f"{self._name}/{kind}")
        rows = frame.mapInArrow(put, "file STRING").collect()
        self._files[kind] = [str(row.file) for row in rows]

    def commit(self) -> None:
        """Make the attempt the output of the batch; StorageError if there is one already."""
        self._fence.check()
        if isinstance(self._out, Folder):
            self._rename(Path(self._out.path))
            return
        content = {"attempt": self._name, "files": self._files}
        try:
            self._out.create(_record(self._batch), json.dumps(content).encode())
        except FileExistsError:
            raise _committed(self._out, self._batch) from None
        self._is_decided = True
        _copy(self._out, self._batch, content)

    def _rename(self, out: Path) -> None:
        for kind in _KINDS:
            target = out / kind / f"batch={self._batch}"
            if kind not in self._files:
                continue
            if kind == "errors" and not is_done(self._out, self._batch):
                shutil.rmtree(target, ignore_errors=True)  # of an attempt that was not committed
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                (out / self._name / kind).rename(target)
            except OSError as error:
                if not target.exists():
                    raise
                raise _committed(self._out, self._batch) from error


def _record(batch: int) -> str:
    return f"_commits/{batch:010}"


def _committed(out: Storage, batch: int) -> StorageError:
    return StorageError(
        f"expected no output of batch {batch} in {str(out)!r}, found some: another driver has "
        "committed this batch; stop one of the two"
    )


def _copy(out: Store, batch: int, record: dict[str, Any]) -> None:
    """Give the files of the attempt that was decided on their names."""
    for kind in _KINDS:
        for file in record["files"].get(kind, ()):
            target = f"{kind}/batch={batch}/{file}"
            try:
                out.copy(f"{record['attempt']}/{kind}/{file}", target)
            except FileNotFoundError:
                if not out.exists(target):  # otherwise another driver was here and has cleaned up
                    raise StorageError(
                        f"expected {file} of batch {batch} in {str(out)!r}, found none: restore "
                        "it from a copy"
                    ) from None
    out.put(f"matches/batch={batch}/{_DONE}", b"")
    with suppress(StorageError):
        out.remove(record["attempt"])


def _put_parts(
    out: Store, folder: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Put the rows of a task as one file of a name of its own; `mapInArrow`'s function."""
    first = next(batches, None)
    if first is None:
        return
    name, sink = f"part-{uuid.uuid4().hex}.parquet", pa.BufferOutputStream()
    with pq.ParquetWriter(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    out.put(f"{folder}/{name}", sink.getvalue())
    yield pa.RecordBatch.from_pydict({"file": [name]})
