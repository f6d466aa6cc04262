"""Indexes of subscription tables: built once, kept as snapshots, found again by fingerprint.

    <snapshots>/<fingerprint>/
    ├── snapshot/        as Matcher.save writes it; workers map it
    └── refused.arrow    subscriptions that could not be taken, as rows of errors

The fingerprint is computed by Spark from the rows that are let in (`columns`; in any order), the
index, its settings and the types of the events' columns.  So an unchanged table is not indexed
twice until something expires, and a changed one never meets an old index.  An index that is built
gets the fingerprint of the rows that were read for it, which are others if the table has changed
since it was looked up.  The folder is made aside and renamed: it is whole or not there.
"""

from __future__ import annotations

import atexit
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.loading import BatchReport, Chunk
from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshot import VERSION, read_manifest
from matchwood.errors import FormatError, StorageError
from matchwood.spark.choices import FILTER, is_tested
from matchwood.spark.column_types import types_of_contexts
from matchwood.spark.columns import (
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
    HASHES,
    Digest,
    digest_of,
    fingerprint,
    name_of,
    with_hashes,
)
from matchwood.spark.folders import Checked, local_folder, made_aside
from matchwood.spark.gather import PACKED, bring, gather
from matchwood.spark.stores import (
    exists,
    inside,
    is_address,
    local_copy,
    read_beside,
    upload,
)
from matchwood.spark.unknown_names import Names, UsedNames, without_unknown
from matchwood.spark.worker import parse_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_session_folder: str | None = None
_checked = Checked()
_REFUSED = "refused.arrow"


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
    name, _ = fingerprint(table, settings)
    store = snapshots if snapshots and is_address(snapshots) else None
    home = local_folder(_own_folder() if store else snapshots or _own_folder(), "snapshots")
    if store is not None:
        _bring(store, home, name)
    found = _find(home / name, id_type)
    reused = found is not None
    if found is None:
        matcher = Matcher(index=index, schema=declared, column_types=types, **(config or {}))
        refused_ones, read, of_values = _build(table, matcher, values, known)
        if values is not None:
            settings["contexts"] = name_of(values, of_values, {})
        folder = home / name_of(table, read, settings)
        _save(folder, matcher, refused_ones)
        found = _find(folder, id_type)
        assert found is not None
        if store is not None:
            _put(folder, inside(store, folder.name))
    if store is not None:
        found = replace(found, address=inside(store, found.name))
    return replace(
        found,
        refused=both(refused, found.refused),
        reused=reused,
        attributes=own_types(table),
    )


def _build(
    table: DataFrame, matcher: Matcher, values: DataFrame | None, known: Names
) -> tuple[pa.Table, Digest, Digest]:
    """Fill a matcher; returns error rows of what it refused, and the digests of the subscriptions
    and of the values that were read.
    """
    table, unreadable, left_out = with_readable_attributes(with_hashes(table))
    report, unknown, read = _fill(matcher, table, known)
    of_values = Digest()
    if values is not None:
        rows, of_values = read_values(values)
        set_values(matcher, rows)
    errors = [error_row("subscription", each.id, each.error) for each in report.errors]
    return both(unreadable, error_table(unknown + errors)), read.plus(left_out), of_values


def open_index(path: str) -> Built:
    """A snapshot that somebody saved; every file is verified here, once for all workers."""
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
    generation = str(read_manifest(folder)["generation"])
    found = _opened(folder, f"{folder.name}-{generation}", matcher, id_type, error_table([]))
    return replace(found, address=path) if is_remote else found


def used_columns(index: Built, events: StructType, others: Sequence[str]) -> list[str]:
    """Columns of wide events that a subscription tests, itself or a field inside; and others."""
    names = UsedNames()
    Matcher.load(index.folder, verify=False).encode(names)
    return [
        each.name
        for each in events
        if each.name in others
        or any(name == each.name or name.startswith(f"{each.name}.") for name in names.found)
    ]


def _opened(folder: Path, name: str, matcher: Matcher, id_type: str, refused: pa.Table) -> Built:
    kind = matcher.own_types()
    tested = is_tested(matcher, FILTER)
    return Built(folder, name, len(matcher), id_type, refused, True, kind, tested)


def _fill(
    matcher: Matcher, table: DataFrame, known: Names
) -> tuple[BatchReport, list[dict[str, Any]], Digest]:
    """Add a table with HASHES; returns also error rows, and the digest of the rows that were read.

    Read in the order of ids, so that partitioning decides nothing: not even who came first.
    """
    if "attribute" in table.columns:
        rows = gather(table)
        good, unknown = without_unknown(rows.drop_columns(list(HASHES)), known)
        return matcher.add_many(good), unknown, digest_of(rows)
    ordered = table.orderBy(*in_order(table))
    digests: list[Digest] = []
    packed = bring(ordered.mapInArrow(partial(parse_batches, known), PACKED))
    report = matcher.add_chunks(_chunks(packed, digests))
    return report, [], reduce(Digest.plus, digests, Digest())


def _chunks(pickled: Iterable[bytes], digests: list[Digest]) -> Iterator[Chunk]:
    """Chunks as workers made them; their digests are put into a list."""
    first = 0
    for data in pickled:
        read, ids, texts, contexts, fields, leaves, rows, refused = pickle.loads(data)  # noqa: S301 - our workers'
        digests.append(Digest(*read))
        last = first + len(ids)
        yield Chunk(first, ids, texts, leaves, rows, refused, last, last, contexts, fields)
        first = last


def _save(folder: Path, matcher: Matcher, refused: pa.Table) -> None:
    with made_aside(folder, lambda found: _find(found, "") is not None) as aside:
        matcher.save(aside / "snapshot")
        with pa.ipc.new_file(str(aside / _REFUSED), refused.schema) as writer:
            writer.write_table(refused)


def _put(folder: Path, address: str) -> None:
    """An index on a store: the snapshot, and with it what was refused."""
    refused = folder / _REFUSED
    upload(folder / "snapshot", address, {_REFUSED: refused.read_bytes()})


def _bring(store: str, home: Path, name: str) -> None:
    """Make a folder of this machine from the index of a name on a store, if there is one."""
    address = inside(store, name)
    if (home / name).exists() or not exists(address):
        return
    with made_aside(home / name, lambda found: _find(found, "") is not None) as aside:
        shutil.copytree(local_copy(address), aside / "snapshot")
        (aside / _REFUSED).write_bytes(read_beside(address, _REFUSED))


def _find(folder: Path, id_type: str) -> Built | None:
    """An index that is there and whole; a damaged one counts as absent and is built anew."""
    if not folder.exists():
        return None
    try:
        matcher = _verified(folder / "snapshot")
        with pa.memory_map(str(folder / _REFUSED)) as file:
            refused = pa.ipc.open_file(file).read_all()
        return _opened(folder / "snapshot", folder.name, matcher, id_type, refused)
    except (FormatError, StorageError, OSError, pa.ArrowException):
        return None


def _verified(folder: Path) -> Matcher:
    """A snapshot whose every file was checked, once for all workers and as long as none changes.

    A first event is matched, so that what workers will run is compiled before they all begin to.
    """
    known = folder in _checked
    matcher = Matcher.load(folder, verify=not known)
    if not known:
        matcher.match_many(pa.table({"": pa.nulls(1)}))
        _checked.add(folder)
    return matcher


def _own_folder() -> str:
    """Indexes of this process, gone with it."""
    global _session_folder
    if _session_folder is None:
        _session_folder = tempfile.mkdtemp(prefix="matchwood-indexes-")
        atexit.register(shutil.rmtree, _session_folder, ignore_errors=True)
    return _session_folder
