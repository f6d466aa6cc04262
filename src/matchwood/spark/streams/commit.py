"""Output of a micro-batch: written to a folder of its own, then committed; never replaced.

    a folder    out/.writing-7-2-5f3a/aside/part-*.parquet           written by tasks (`parts`)
                                     /matches ──rename──► out/matches/batch=7      the batch is done
                                     /errors  ──rename──► out/errors/batch=7       before that

    a store     out/.writing-7-2-5f3a/aside/part-*.parquet          put by tasks
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
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from matchwood.errors import StorageError
from matchwood.spark.storage import Folder, Storage, Store
from matchwood.spark.streams.owner import Fence
from matchwood.spark.streams.parts import ERRORS, FILES, MATCHES, Parts, put_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPT = ".writing-"
_DONE = "_SUCCESS"
_ASIDE = "aside"
_KINDS = (ERRORS, MATCHES)
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

    @cached_property
    def parts(self) -> Parts:
        """Where tasks put files of this attempt, and report them to `take`."""
        if isinstance(self._out, Folder):  # tasks do not make it: late ones find none
            Path(self._out.path, self._name, _ASIDE).mkdir(parents=True, exist_ok=True)
        return Parts(self._out, f"{self._name}/{_ASIDE}")

    def take(self, kind: str, files: Iterable[str]) -> None:
        """Take files that tasks have reported into the output of the batch."""
        self._files.setdefault(kind, []).extend(files)

    def write(self, frame: DataFrame, kind: str) -> None:
        """Write the matches or errors of the batch, as one job."""
        if isinstance(self._out, Folder):
            frame.write.parquet(self._out.spark(f"{self._name}/{kind}"))
            self.take(kind, ())
            return
        rows = frame.mapInArrow(partial(put_rows, self.parts, kind), FILES).collect()
        self.take(kind, [str(row.file) for row in rows])

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
            if kind == ERRORS and not is_done(self._out, self._batch):
                shutil.rmtree(target, ignore_errors=True)  # of an attempt that was not committed
            if kind not in self._files:
                continue
            self._gather(out / self._name, kind)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                (out / self._name / kind).rename(target)
            except OSError as error:
                if not target.exists():
                    raise
                raise _committed(self._out, self._batch) from error

    def _gather(self, attempt: Path, kind: str) -> None:
        """Give files that tasks reported the folder of their kind; others stay aside."""
        if not self._files[kind]:
            return  # Spark has written the folder
        (attempt / kind).mkdir()
        for file in self._files[kind]:
            (attempt / _ASIDE / file).rename(attempt / kind / file)
        (attempt / kind / _DONE).touch()


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
                out.copy(f"{record['attempt']}/{_ASIDE}/{file}", target)
            except FileNotFoundError:
                if not out.exists(target):  # otherwise another driver was here and has cleaned up
                    raise StorageError(
                        f"expected {file} of batch {batch} in {str(out)!r}, found none: restore "
                        "it from a copy"
                    ) from None
    out.put(f"matches/batch={batch}/{_DONE}", b"")
    with suppress(StorageError):
        out.remove(record["attempt"])
