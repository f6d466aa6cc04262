"""The state of a stream on disk, and replicas of it in memory.

    state/
    ├── log.json                    what the log looks like and how the index is built
    ├── checkpoint/                 Spark's own: which records belong to which batch
    ├── changes/0000000007.arrow    the changes of batch 7, in order, as they were decided
    └── snapshots/0000000007/       the state before batch 7: snapshot/, which shares segments with
                                    the one before, and versions.arrow, there if all of it is

    state before batch b  =  the newest snapshot up to b  +  the changes from there to b - 1

Idea.    Every subscription that ever comes is a *version* with a number of its own.  A change ends
         a version, adds one, or both, at an offset.  During batch b the index holds all versions of
         before and all that batch b adds; an event at offset o then matches the versions that began
         before o and did not end before it.  So the events of a batch can be matched in any order,
         on any worker, and mean what they mean one after the other.  Values of contexts have no
         versions: see `streams/contexts` for how they change during a batch.
Once.    Changes are decided by the driver alone and written before they are used.  What is written
         is never decided again, so every replica, and every replay after a crash, does the same.
Equal.   A replica may start from any snapshot up to its batch, and go on past later ones: the types
         of values of contexts, which changes are read with, depend on what is there and not on how
         it came (`tests/spark/test_replicas.py`).
Beside.  A snapshot is written while batches go on (`streams/snapshots`).  It counts once it is
         complete; the changes since the one before stay until then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshots.versions import Frozen, frozen, n_unmapped, write_frozen
from matchwood.errors import FormatError, StorageError
from matchwood.spark.storage import Storage
from matchwood.spark.streams.contexts import ADD, Timeline, carry_out

END = "end"
VERSIONS = "versions.arrow"
CHANGE = pa.schema(
    [("op", pa.string()), ("version", pa.int64()), ("offset", pa.int64()), ("expr", pa.string()),
     ("values", pa.string())]
)  # fmt: skip
BEFORE, AFTER = -(2**63), 2**63 - 1
"""Offsets of versions that were there before a batch, and that are still there after it."""
UNMAPPED_LEAST, UNMAPPED_MOST = 10_000, 4
"""Subscriptions in a worker's own memory, and the part of all of them, from which it maps a newer
snapshot."""


@dataclass
class Changes:
    """What was decided about the changes of one batch.

    rows         op, version, offset, expr, values (of a context, see `streams/contexts`), the
                 public id of an added version or the context that is set, and the context of an
                 added version
    next_version the first number that is free afterwards
    last_offset  the highest offset of this and all earlier batches
    errors       records that were refused, as rows of errors
    """

    rows: pa.Table
    next_version: int
    last_offset: int
    errors: list[dict[str, Any]] = field(default_factory=list)


class StateFolder:
    """Reads and writes the state; every file appears whole."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def has_changes(self, batch: int) -> bool:
        return self.storage.exists(_changes(batch))

    def write_changes(self, batch: int, changes: Changes) -> None:
        record = {
            "next_version": changes.next_version,
            "last_offset": changes.last_offset,
            "errors": changes.errors,
        }
        rows = changes.rows.replace_schema_metadata({"matchwood": json.dumps(record)})
        try:
            self.storage.create(_changes(batch), arrow_bytes(rows))
        except FileExistsError:
            raise StorageError(
                f"expected no decided changes of batch {batch} in {str(self.storage)!r}, "
                "found some: another driver runs this stream; stop one of the two"
            ) from None

    def read_changes(self, batch: int) -> Changes:
        rows = read_arrow(self.storage, _changes(batch))
        record = json.loads(rows.schema.metadata[b"matchwood"])
        return Changes(rows, record["next_version"], record["last_offset"], record["errors"])

    def snapshots(self) -> list[int]:
        """Batches before which there is a snapshot, ascending."""
        names = [name for name in self.storage.names("snapshots") if name.isdecimal()]
        return [int(n) for n in names if self.storage.exists(f"snapshots/{n}/{VERSIONS}")]

    def drop_snapshot(self, batch: int) -> None:
        self.storage.remove(_snapshot(batch))

    def base_of(self, batch: int) -> int:
        """The newest snapshot up to a batch."""
        before = [each for each in self.snapshots() if each <= batch]
        if not before:
            raise StorageError(
                f"expected a snapshot of the stream's state up to batch {batch} in "
                f"{str(self.storage)!r}, found none: restore the folder from a copy"
            )
        return before[-1]

    def write_snapshot(
        self,
        batch: int,
        state: FrozenReplica,
        pause: Callable[[], None] = lambda: None,
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        """Write the state before a batch.

        pause     called after every small step; may raise to give up
        complete  called when all files are written, before they count as a snapshot
        """
        if self.storage.exists(f"{_snapshot(batch)}/{VERSIONS}"):
            return
        with self.storage.made(_snapshot(batch), VERSIONS) as aside:
            state.save(aside, pause)
            complete()

    def index(self, batch: int) -> Path:
        """A folder of this machine with the index of a snapshot."""
        return self.storage.index(f"{_snapshot(batch)}/snapshot")

    def clean(self) -> None:
        """Keep the last two snapshots, because one may be damaged and a slow worker may be behind,
        and the changes since; remove what is older, snapshots that were given up among it.
        """
        kept = self.snapshots()[-2:]
        for name in self.storage.names("snapshots"):
            if name.isdecimal() and int(name) < kept[0]:
                self.drop_snapshot(int(name))
            elif name.startswith(".") and self.storage.is_old(f"snapshots/{name}"):
                self.storage.remove(f"snapshots/{name}")
        for name in self.storage.names("changes"):
            number = name.removesuffix(".arrow")
            if number.isdecimal() and int(number) < kept[0]:
                self.storage.remove(f"changes/{name}")


def _changes(batch: int) -> str:
    return f"changes/{batch:010}.arrow"


def _snapshot(batch: int) -> str:
    return f"snapshots/{batch:010}"


class FrozenReplica(NamedTuple):
    """The state between two batches, to be written while the replica goes on."""

    matcher: Frozen
    versions: pa.Table
    before: Path | None
    """The index of a snapshot, of which segments are linked."""

    def save(self, path: Path, pause: Callable[[], None]) -> None:
        """Write it to a folder: segments that are new, and links to the others."""
        before = self.before if self.before is not None and self.before.exists() else None
        write_frozen(self.matcher, path / "snapshot", before, pause)
        (path / VERSIONS).write_bytes(arrow_bytes(self.versions))


class Replica:
    """The state before, and then during, one batch.

    matcher   its ids are versions
    base      the snapshot that it started from
    in_batch  the batch that it is in; None between two, before `next_batch`
    """

    def __init__(
        self,
        matcher: Matcher,
        versions: np.ndarray,
        ids: pa.Array,
        base: int,
        path: Path | None = None,
    ) -> None:
        self.matcher = matcher
        self.base = base
        self.path = path
        """The index of the newest snapshot that is known to have segments of the matcher."""
        self.next_batch = base
        self.next_version = int(versions[-1]) + 1 if len(versions) else 0
        self.last_offset = BEFORE
        self._versions, self._ids = versions, ids
        self._ended: list[int] = []
        self.in_batch: int | None = None
        self._touched = self._began = self._over = np.empty(0, np.int64)
        self.contexts = Timeline(matcher)

    @classmethod
    def load(cls, folder: StateFolder, base: int, verify: bool) -> Replica:
        path = folder.index(base)
        matcher = Matcher.load(path, mmap=True, verify=verify)
        table = read_arrow(folder.storage, f"{_snapshot(base)}/{VERSIONS}")
        versions = table.column("version").to_numpy()
        replica = cls(matcher, versions, _whole(table.column("id")), base, path)
        record = json.loads(table.schema.metadata[b"matchwood"])
        replica.next_version, replica.last_offset = record["next_version"], record["last_offset"]
        if len(matcher) != len(versions):
            raise FormatError(
                f"{str(path)!r}: expected {len(versions)} subscriptions, found {len(matcher)}"
            )
        return replica

    def frozen(self) -> FrozenReplica:
        """The state between two batches, to be written."""
        assert self.in_batch is None
        record = {"next_version": self.next_version, "last_offset": self.last_offset}
        table = pa.table({"version": self._versions, "id": self._ids})
        table = table.replace_schema_metadata({"matchwood": json.dumps(record)})
        return FrozenReplica(frozen(self.matcher), table, self.path)

    @property
    def is_mostly_mapped(self) -> bool:
        """Whether most of it is in files of a snapshot, which the workers of a machine share."""
        return n_unmapped(self.matcher) <= max(UNMAPPED_LEAST, len(self.matcher) // UNMAPPED_MOST)

    def live(self) -> dict[Any, int]:
        """The version of every public id."""
        return dict(zip(self._ids.to_pylist(), self._versions.tolist(), strict=True))

    # -- going on ----------------------------------------------------------------------------

    def enter(self, batch: int, changes: Changes, is_added: bool = False) -> None:
        """Begin a batch: take what it adds (unless the matcher has it), note when versions end.

        Contexts have their values of after the batch then; `contexts` goes back.
        """
        if self.in_batch == batch:
            return
        self.leave()
        assert batch == self.next_batch, (batch, self.next_batch)
        rows = changes.rows
        is_new = pc.equal(rows.column("op"), ADD)
        added, ended = rows.filter(is_new), rows.filter(pc.equal(rows.column("op"), END))
        new = added.column("version").to_numpy()
        if not is_added:
            self.contexts = carry_out(self.matcher, rows, batch)
        self._versions = np.concatenate([self._versions, new])
        self._ids = pa.concat_arrays([self._ids, _whole(added.column("id")).cast(self._ids.type)])
        self._note(new, added.column("offset").to_numpy(), ended)
        self._ended = ended.column("version").to_pylist()
        self.next_version, self.last_offset = changes.next_version, changes.last_offset
        self.in_batch = batch

    def _note(self, new: np.ndarray, began: np.ndarray, ended: pa.Table) -> None:
        over = dict(
            zip(
                ended.column("version").to_pylist(), ended.column("offset").to_pylist(), strict=True
            )
        )
        start = dict(zip(new.tolist(), began.tolist(), strict=True))
        touched = sorted(over.keys() | start.keys())
        self._touched = np.array(touched, np.int64)
        self._began = np.array([start.get(version, BEFORE) for version in touched], np.int64)
        self._over = np.array([over.get(version, AFTER) for version in touched], np.int64)

    def leave(self) -> None:
        """End the batch: versions that ended in it go."""
        if self.in_batch is None:
            return
        self.contexts.end()
        self.contexts = Timeline(self.matcher)
        if self._ended:
            self.matcher.remove_many(self._ended)
            keep = ~np.isin(self._versions, self._ended)
            self._versions, self._ids = self._versions[keep], self._ids.filter(pa.array(keep))
        self._ended = []
        self.next_batch, self.in_batch = self.in_batch + 1, None

    def bring(self, folder: StateFolder, batch: int) -> None:
        """Go on to the beginning of a batch, through the changes of those before."""
        self.leave()
        while self.next_batch < batch:
            self.enter(self.next_batch, folder.read_changes(self.next_batch))
            self.leave()

    # -- asking ------------------------------------------------------------------------------

    def held(self, versions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Which pairs of a matched version and an event's offset hold at that offset."""
        if not len(self._touched):
            return np.ones(len(versions), bool)
        at = np.searchsorted(self._touched, versions)
        at[at == len(self._touched)] = 0
        is_touched = self._touched[at] == versions
        inside = (self._began[at] < offsets) & (offsets < self._over[at])
        held: np.ndarray = ~is_touched | inside
        return held

    def public(self, versions: np.ndarray) -> pa.Array:
        """The public ids of versions."""
        return self._ids.take(pa.array(np.searchsorted(self._versions, versions)))


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as a file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_arrow(storage: Storage, name: str) -> pa.Table:
    """The table that a file has.  StorageError if there is none, FormatError if it is damaged."""
    found = storage.read(name)
    if found is None:
        raise StorageError(
            f"expected {name} in {str(storage)!r}, found none: restore it from a copy"
        )
    try:
        return pa.ipc.open_file(pa.BufferReader(found)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise FormatError(
            f"{name} in {str(storage)!r} is damaged ({error}): restore it from a copy"
        ) from error


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
