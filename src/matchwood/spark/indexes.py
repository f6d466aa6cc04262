"""Indexes of subscription tables: built once, kept as versions, found again by fingerprint.

    <snapshots>/<fingerprint>/
    ├── snapshot/        segments (`engine.snapshots.versions`); workers map them
    ├── refused.arrow    subscriptions that could not be taken, as rows of errors
    └── rows/, known/, digests.npy, settings    what a table is compared with (`increments`)

The fingerprint is computed by Spark from the rows that are let in (`columns`; in any order), the
index, its settings and the types of the events' columns.  So an unchanged table is not indexed
twice until something expires, and a changed one never meets an old index.  A version gets the
fingerprint of the rows that were read for it, which are others if the table has changed since it
was looked up.  The folder is made aside and renamed: it is whole or not there.

Segments are built by tasks (`build_tasks`), and a table that has changed a little since an earlier
version is not built again (`increments`).  Subscriptions with contexts, and an index that was
chosen by name, are one segment, which the driver builds each time.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.input.loading import BatchReport, Chunk
from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshots.snapshot import VERSION
from matchwood.engine.snapshots.versions import generation_of, save_version
from matchwood.engine.stores.routing import AUTO
from matchwood.errors import FormatError, StorageError
from matchwood.spark.build_tasks import write_refused
from matchwood.spark.choices import FILTER, is_tested
from matchwood.spark.column_types import types_of_contexts
from matchwood.spark.columns import (
    CONTEXT,
    OPTIONAL,
    admit,
    both,
    error_table,
    id_type_of,
    in_order,
    own_types,
    with_readable_attributes,
)
from matchwood.spark.context_frames import context_frame, read_values, set_values
from matchwood.spark.errors import error_row
from matchwood.spark.fingerprints import (
    MARKS,
    Digest,
    digest_of,
    fingerprint,
    name_of,
    with_buckets,
)
from matchwood.spark.folders import Checked, local_folder, made_aside
from matchwood.spark.gather import PACKED, bring, gather
from matchwood.spark.increments import (
    REFUSED,
    SETTINGS,
    SNAPSHOT,
    advance,
    known_before,
    nearest,
    read_again,
    read_of,
    read_refused,
    versions_of,
)
from matchwood.spark.known_rows import Seen, look_at
from matchwood.spark.segment_build import built_by_tasks
from matchwood.spark.stores import (
    exists,
    inside,
    is_address,
    local_copy,
    read_beside,
    upload,
)
from matchwood.spark.unknown_names import Names, UsedNames, columns_of, without_unknown
from matchwood.spark.worker import parse_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_KEPT = 8
"""Versions of the same settings that a folder keeps; those that were used in the last hour stay."""
_HOUR = 3600
_session_folder: str | None = None
_checked = Checked()


@dataclass(frozen=True)
class Built:
    """A snapshot and how it came about."""

    folder: Path
    """The snapshot itself, on this machine."""
    name: str
    count: int
    id_type: str
    refused: pa.Table
    reused: bool
    attributes: dict[str, str] | None
    """Types that the subscriptions' own attributes declare, where they have some."""
    tests_filter: bool
    """Whether a subscription tests an attribute of events that is called `filter`."""
    matcher: Matcher = field(repr=False, compare=False)
    """The snapshot, mapped."""
    address: str | None = None
    """Where the snapshot is on a store that workers can read, if it is on one."""


def build_index(
    subscriptions: DataFrame,
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    snapshots: str | None = None,
    contexts: Any = None,
    now: datetime | None = None,
    takes: Sequence[str] = OPTIONAL,
    column_types: Mapping[str, str] | None = None,
    names: frozenset[str] | None = None,
) -> Built:
    """The index of a table of subscriptions, built unless there is one of the same rows.

    contexts  values of contexts, a DataFrame or an Arrow table, as for Matcher.set_context_many
    now       the moment for which it is built: what has expired then is left out
    takes     the optional columns that the table may have
    column_types  types of events' attributes (module `column_types`); those of contexts are added
    names     attributes that events have (`unknown_names`), if that is known
    """
    table, refused = admit(subscriptions, now, takes)
    id_type = id_type_of(table)
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    settings: dict[str, Any] = {
        "index": index,
        "config": dict(config or {}),
        "schema": dict(declared),
    }
    values = None if contexts is None else context_frame(table, contexts)
    types = dict(column_types or {})
    if values is not None:
        types |= types_of_contexts(values.schema)
        settings["contexts"], _ = fingerprint(values, {})
    settings["column_types"] = types
    known = None if names is None else names | declared.keys()
    settings["names"] = None if known is None else sorted(known)
    settings["format"] = VERSION
    store = snapshots if snapshots and is_address(snapshots) else None
    home = local_folder(_own_folder() if store else snapshots or _own_folder(), "snapshots")
    job = _Build(table, settings, home, id_type, declared, types, known)
    is_whole = index != AUTO or values is not None or CONTEXT in table.columns
    seen = look_at(table, None if is_whole else known_before(table, home, job.key))
    name = name_of(table, seen.digests.total(), settings)
    if store is not None:
        _bring(store, home, name)
    found = _find(home / name, id_type)
    reused = found is not None
    if found is None:
        if is_whole:
            found = _build_whole(job, values)
        else:
            found = _advance(job, seen) or _build_segments(job, seen.digests.total().n_rows)
        prune(home, job.key)
    if store is not None:
        if not reused or not exists(inside(store, found.name)):
            _put(found.folder.parent, inside(store, found.name))
        found = replace(found, address=inside(store, found.name))
    return replace(
        found,
        refused=both(refused, found.refused),
        reused=reused,
        attributes=own_types(table),
    )


@dataclass(frozen=True)
class _Build:
    """What an index is built of."""

    table: DataFrame
    settings: dict[str, Any]
    home: Path
    id_type: str
    declared: Schema
    types: Mapping[str, str]
    known: Names

    @property
    def key(self) -> str:
        """The same for all tables that differ in their rows alone."""
        return name_of(self.table, Digest(), self.settings)

    def folder(self, rows: Digest) -> Path:
        return self.home / name_of(self.table, rows, self.settings)

    @contextmanager
    def version(self, rows: Digest) -> Iterator[Path]:
        """A folder to make the version of some rows in."""
        with made_aside(self.folder(rows), lambda found: _find(found, "") is not None) as aside:
            yield aside

    def made(self, rows: Digest) -> Built:
        """The version of some rows, which was just made of files that need no check."""
        found = _find(self.folder(rows), self.id_type, is_fresh=True)
        assert found is not None
        return found


def _advance(job: _Build, seen: Seen) -> Built | None:
    """The next version of an index that is there; None if none is near enough."""
    difference = nearest(job.home, job.key, seen)
    if difference is None:
        return None
    try:
        read = read_of(seen, difference) or read_again(job.table, difference)
        rows = difference.digests.with_buckets_of(difference.buckets, read.digests).total()
        with job.version(rows) as aside:
            (aside / SETTINGS).write_text(job.key)
            is_known = difference.folder / SNAPSHOT in _checked
            matcher = advance(difference, read, aside, job.types, job.known, not is_known)
            if matcher is None:
                raise _NoRoomError
    except (_NoRoomError, FormatError, StorageError, OSError, ValueError, pa.ArrowException):
        return None  # the version is damaged or was removed meanwhile, or ids lie too close
    folder = job.folder(rows)
    _checked.add(folder / SNAPSHOT)  # its segments were, and the new one is ours
    return _opened(folder / SNAPSHOT, folder.name, matcher, job.id_type, read_refused(folder))


class _NoRoomError(Exception):
    """No numbers are left between two ids."""


def _build_segments(job: _Build, n_rows: int) -> Built:
    """Segments from tasks, as one version."""
    building = built_by_tasks(job.table, n_rows, job.home, job.declared, job.types, job.known)
    with building as (made, rows), job.version(rows) as aside:
        (aside / SETTINGS).write_text(job.key)
        made.put_together(aside)
    return job.made(rows)


def _build_whole(job: _Build, values: DataFrame | None) -> Built:
    """One segment, built here."""
    s = job.settings
    matcher = Matcher(index=s["index"], schema=job.declared, column_types=job.types, **s["config"])
    table, unreadable, left_out = with_readable_attributes(with_buckets(job.table))
    report, unknown, read = _fill(matcher, table, job.known)
    if left_out is not None:
        read = read.plus(digest_of(left_out))
    if values is not None:
        rows, of_values = read_values(values)
        set_values(matcher, rows)
        s["contexts"] = name_of(values, of_values, {})
    errors = [error_row("subscription", each.id, each.error) for each in report.errors]
    with job.version(read) as aside:
        save_version(matcher, aside / SNAPSHOT)
        write_refused(aside / REFUSED, both(unreadable, error_table(unknown + errors)))
    return job.made(read)


def open_index(path: str) -> Built:
    """A snapshot from a path; every file is verified here, once for all workers."""
    is_remote = is_address(path)
    folder = local_copy(path) if is_remote else local_folder(path, "a snapshot")
    matcher = _verified(folder)
    kind = matcher.arrow_ids().type
    if pa.types.is_struct(kind):
        raise FormatError(
            f"expected ids of one kind in {folder.name!r}, found ints and strings, which no column "
            "of Spark holds: save a matcher whose ids are all ints or all strings"
        )
    id_type = "long" if pa.types.is_integer(kind) else "string"
    name = f"{folder.name}-{generation_of(folder)}"
    found = _opened(folder, name, matcher, id_type, error_table([]))
    return replace(found, address=path) if is_remote else found


def used_columns(index: Built, events: StructType, others: Sequence[str]) -> list[str]:
    """Columns of wide events that a subscription tests, itself or a field inside; and others."""
    names = UsedNames()
    index.matcher.encode(names)
    return columns_of(names.found, events, others)


def _opened(folder: Path, name: str, matcher: Matcher, id_type: str, refused: pa.Table) -> Built:
    kind = matcher.own_types()
    tested = is_tested(matcher, FILTER)
    return Built(folder, name, len(matcher), id_type, refused, True, kind, tested, matcher)


def _fill(
    matcher: Matcher, table: DataFrame, known: Names
) -> tuple[BatchReport, list[dict[str, Any]], Digest]:
    """Add a table with MARKS; returns also error rows, and the digest of the rows that were read.

    Read in the order of ids, so that the result does not depend on partitioning.
    """
    if "attribute" in table.columns:
        rows = gather(table)
        good, unknown = without_unknown(rows.drop_columns(list(MARKS)), known)
        return matcher.add_many(good), unknown, digest_of(rows)
    ordered = table.orderBy(*in_order(table))
    parts: list[Digest] = []
    packed = bring(ordered.mapInArrow(partial(parse_batches, known), PACKED))
    report = matcher.add_chunks(_chunks(packed, parts))
    return report, [], reduce(Digest.plus, parts, Digest())


def _chunks(pickled: Iterable[bytes], found: list[Digest]) -> Iterator[Chunk]:
    """Chunks as workers made them; their digests are put into a list."""
    first = 0
    for data in pickled:
        marks, ids, texts, contexts, fields, leaves, rows, refused = pickle.loads(data)  # noqa: S301 - our workers'
        found.append(digest_of(marks))
        last = first + len(ids)
        yield Chunk(first, ids, texts, leaves, rows, refused, last, last, contexts, fields)
        first = last


def _put(folder: Path, address: str) -> None:
    """A version on a store: its segments, and with them what else its folder has."""
    upload(folder / SNAPSHOT, address, folder)


def _bring(store: str, home: Path, name: str) -> None:
    """Make a folder of this machine from the version of a name on a store, if there is one."""
    address = inside(store, name)
    if (home / name).exists() or not exists(address):
        return
    with made_aside(home / name, lambda found: _find(found, "") is not None) as aside:
        shutil.copytree(local_copy(address), aside / SNAPSHOT)
        read_beside(address, aside)


def _find(folder: Path, id_type: str, is_fresh: bool = False) -> Built | None:
    """An index that is there and whole; a damaged one counts as absent and is built anew.

    is_fresh  its files were just written, and need no check
    """
    if not folder.exists():
        return None
    try:
        matcher = _verified(folder / SNAPSHOT, is_fresh)
        found = _opened(folder / SNAPSHOT, folder.name, matcher, id_type, read_refused(folder))
        os.utime(folder)
        return found
    except (FormatError, StorageError, OSError, pa.ArrowException):
        return None


def _verified(folder: Path, is_fresh: bool = False) -> Matcher:
    """A snapshot whose every file was checked, once for all workers and as long as none changes.

    A first event is matched, so that what workers will run is compiled before they all begin to.
    """
    known = folder in _checked
    matcher = Matcher.load(folder, verify=not known and not is_fresh)
    if not known:
        matcher.match_many(pa.table({"": pa.nulls(1)}))
        _checked.add(folder)
    return matcher


def prune(home: Path, key: str) -> None:
    """Remove versions of the same settings, but the last ones and what was used lately."""
    for used, folder in versions_of(home, key)[:-_KEPT]:
        if time.time() - used > _HOUR:
            shutil.rmtree(folder, ignore_errors=True)


def _own_folder() -> str:
    """Indexes of this process, gone with it."""
    global _session_folder
    if _session_folder is None:
        _session_folder = tempfile.mkdtemp(prefix="matchwood-indexes-")
        atexit.register(shutil.rmtree, _session_folder, ignore_errors=True)
    return _session_folder
