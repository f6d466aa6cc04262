"""Indexes of subscription tables: built once, kept as snapshots, found again by fingerprint.

    <snapshots>/<fingerprint>/
    ├── snapshot/        as Matcher.save writes it; workers map it
    └── refused.arrow    subscriptions that could not be taken, as rows of errors

The fingerprint is computed by Spark from the rows (in any order), the index and its settings.  So
an unchanged table is not indexed twice, and a changed one never meets an old index.  The folder is
made aside and renamed: it is whole or not there.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.loading import BatchReport, Chunk
from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshot import VERSION, read_manifest
from matchwood.errors import FormatError, StorageError, SubscriptionError
from matchwood.spark.context_frames import context_frame, set_values
from matchwood.spark.errors import ERROR_TYPE, error_row
from matchwood.spark.folders import local_folder, made_aside
from matchwood.spark.gather import PACKED, bring, gather
from matchwood.spark.worker import parse_batches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

TEXTS = ("id", "expr")
PREDICATES = ("id", "attribute", "operator", "value", "values")
CONTEXT = "context"
RESERVED = (CONTEXT, "priority", "attributes", "expires")
"""Columns that later versions will take; until then they are refused, not ignored."""

_session_folder: str | None = None
_checked: dict[str, tuple[tuple[str, int, int, int], ...]] = {}
"""Snapshots that this process has verified, with the files as they were then."""


@dataclass(frozen=True)
class Index:
    """A snapshot and how it came about."""

    folder: Path
    """The snapshot itself."""
    name: str
    count: int
    id_type: str
    refused: pa.Table
    reused: bool


def build_index(
    subscriptions: DataFrame,
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    snapshots: str | None = None,
    contexts: Any = None,
) -> Index:
    """The index of a table of subscriptions, built unless there is one of the same rows.

    contexts  values of contexts, a DataFrame or an Arrow table, as for Matcher.set_context_many
    """
    table = checked(subscriptions, takes_context=True)
    id_type = id_type_of(table)
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    settings = {"index": index, "config": dict(config or {}), "schema": dict(declared)}
    values = None if contexts is None else context_frame(table, contexts)
    if values is not None:
        settings["contexts"], _ = fingerprint(values, {})
    name, _ = fingerprint(table, settings)
    folder = local_folder(snapshots or _own_folder(), "snapshots") / name
    found = _find(folder, id_type)
    if found is not None:
        return found
    matcher = Matcher(index=index, schema=declared, **(config or {}))
    report = _fill(matcher, table)
    if values is not None:
        set_values(matcher, values)
    refused = [error_row("subscription", each.id, each.error) for each in report.errors]
    _save(folder, matcher, pa.Table.from_struct_array(pa.array(refused, ERROR_TYPE)))
    made = _find(folder, id_type)
    assert made is not None
    return Index(made.folder, name, made.count, id_type, made.refused, reused=False)


def open_index(path: str) -> Index:
    """A snapshot that somebody saved; every file is verified here, once for all workers."""
    folder = local_folder(path, "a snapshot")
    matcher = _verified(folder)
    id_type = "long" if pa.types.is_integer(matcher.arrow_ids().type) else "string"
    none = pa.Table.from_struct_array(pa.array([], ERROR_TYPE))
    generation = str(read_manifest(folder)["generation"])
    return Index(folder, f"{folder.name}-{generation}", len(matcher), id_type, none, reused=True)


def fingerprint(table: DataFrame, settings: Mapping[str, Any]) -> tuple[str, int]:
    """A name for the rows of a table, whatever their order and partitioning; and their number."""
    from pyspark.sql import functions as f

    columns = sorted(table.columns)
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in columns}
    parts = [
        part
        for name in columns
        for part in _parts(f.col(quoted[name]), table.schema[name].dataType)
    ]
    row = f.xxhash64(*parts)
    other = f.hash(*reversed(parts)).cast("bigint")
    # sums of halves: they do not overflow, and a sum of decimals would cost more than the hashes
    low, high = f.col("a").bitwiseAND((1 << 32) - 1), f.shiftright("a", 32)
    counts = table.select(row.alias("a"), other.alias("b")).agg(
        f.count("*"), f.sum(low), f.sum(high), f.bit_xor("a"), f.sum("b"),
        f.bit_xor(f.xxhash64("a", "b")),
    )  # fmt: skip
    first = counts.first()
    assert first is not None
    rows = [str(value) for value in first]
    types = [(name, kind) for name, kind in table.dtypes if name in columns]
    told = json.dumps([VERSION, sorted(types), rows, settings], sort_keys=True, default=str)
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest(), int(first[0])


def _parts(column: Column, kind: DataType) -> Iterator[Column]:
    """What is hashed of a column: its value, and whether it is null, which hashes pass over."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        for each in kind:
            yield from _parts(column.getField(each.name), each.dataType)
    elif isinstance(kind, ArrayType) and kind.containsNull:
        inside = kind.elementType
        yield f.transform(column, lambda item: f.xxhash64(*_parts(item, inside)))
    else:
        yield column
    yield column.isNull()


def checked(subscriptions: DataFrame, takes_context: bool = False) -> DataFrame:
    columns = set(subscriptions.columns)
    taken = {CONTEXT} if takes_context and "attribute" not in columns else set()
    reserved = sorted(columns & set(RESERVED) - taken)
    if reserved:
        raise SubscriptionError(
            f"expected no column {', '.join(reserved)}: matching on Spark cannot take it yet; "
            "drop it if it may be ignored"
        )
    if "attribute" in columns:
        missing = {"id", "attribute", "operator"} - columns
        if missing or not {"value", "values"} & columns:
            raise SubscriptionError(
                "expected columns id, attribute, operator and value or values, found "
                f"{', '.join(subscriptions.columns)}"
            )
        return subscriptions.select(*[name for name in PREDICATES if name in columns])
    if not set(TEXTS) <= columns:
        raise SubscriptionError(
            "expected columns id and expr, or id, attribute, operator and value, found "
            f"{', '.join(subscriptions.columns)}"
        )
    return subscriptions.select(*TEXTS, *sorted(columns & taken))


def id_type_of(table: DataFrame) -> str:
    kind = dict(table.dtypes)["id"]
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return "long"
    if kind == "string":
        return "string"
    raise SubscriptionError(f"expected whole numbers or strings as ids, found {kind}")


def _fill(matcher: Matcher, table: DataFrame) -> BatchReport:
    """Read in the order of ids, so that partitioning decides nothing: not even who came first."""
    if "attribute" in table.columns:
        return matcher.add_many(gather(table))
    ordered = table.orderBy(*table.columns)
    return matcher.add_chunks(_chunks(bring(ordered.mapInArrow(parse_batches, PACKED))))


def _chunks(pickled: Iterable[bytes]) -> Iterator[Chunk]:
    first = 0
    for data in pickled:
        ids, texts, contexts, leaves, rows, refused = pickle.loads(data)  # noqa: S301 - our workers'
        last = first + len(ids)
        yield Chunk(first, ids, texts, leaves, rows, refused, last, last, contexts)
        first = last


def _save(folder: Path, matcher: Matcher, refused: pa.Table) -> None:
    with made_aside(folder, lambda found: _find(found, "") is not None) as aside:
        matcher.save(aside / "snapshot")
        with pa.ipc.new_file(str(aside / "refused.arrow"), refused.schema) as writer:
            writer.write_table(refused)


def _find(folder: Path, id_type: str) -> Index | None:
    """An index that is there and whole; a damaged one counts as absent and is built anew."""
    if not folder.exists():
        return None
    try:
        matcher = _verified(folder / "snapshot")
        with pa.memory_map(str(folder / "refused.arrow")) as file:
            refused = pa.ipc.open_file(file).read_all()
    except (FormatError, StorageError, OSError, pa.ArrowException):
        return None
    return Index(folder / "snapshot", folder.name, len(matcher), id_type, refused, reused=True)


def _verified(folder: Path) -> Matcher:
    """A snapshot whose every file was checked, once for all workers and as long as none changes.

    A first event is matched, so that what workers will run is compiled before they all begin to.
    """
    files = [(str(each), each.stat()) for each in sorted(folder.rglob("*")) if each.is_file()]
    seen = tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in files)
    known = _checked.get(str(folder)) == seen
    matcher = Matcher.load(folder, verify=not known)
    if not known:
        matcher.match_many(pa.table({"": pa.nulls(1)}))
        _checked[str(folder)] = seen
    return matcher


def _own_folder() -> str:
    """Indexes of this process, gone with it."""
    global _session_folder
    if _session_folder is None:
        _session_folder = tempfile.mkdtemp(prefix="matchwood-indexes-")
        atexit.register(shutil.rmtree, _session_folder, ignore_errors=True)
    return _session_folder
