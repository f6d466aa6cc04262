"""One shard as files, and what the driver gets to know of it.

shard-5f3a.../
├── snapshot/     its index, a version (`engine.snapshots.versions`)
├── homes.npy     the home keys of its subscriptions
└── rows.arrow    id, MARKS and home of its rows, by bucket, where versions are kept
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchwood.engine.matcher import Matcher
from matchwood.spark.choices import FILTER, is_tested
from matchwood.spark.fingerprints import BUCKET, MARKS
from matchwood.spark.increments import SNAPSHOT
from matchwood.spark.shards.plan import HOME, SOURCE, joined
from matchwood.spark.stores import inside, is_address, put_tree
from matchwood.spark.unknown_names import UsedNames, computes

SHARD = "matchwood_shard"
REPORT = "report string"
ROWS = "rows.arrow"


@dataclass(frozen=True)
class Shard:
    """One shard as it was built."""

    number: int
    count: int
    """Subscriptions in it; one with several homes is in several shards."""
    bytes: int
    peak: int
    """The most that the task took, while it built this shard, beyond what its process had before;
    in bytes."""
    refused: int
    folder: str
    """Its name in the folder of all shards."""
    planned: int = -1
    """The number that rows were sent to it by; several shards have the same where one would have
    been too large."""
    at: str | None = None
    """The address of all shards that it was built with, where that is another one."""


def folder_of_tasks(home: str) -> Path:
    """Where a task makes a shard that `hand_over` puts to a path or an address."""
    return Path(tempfile.gettempdir() if is_address(home) else home)


def hand_over(folder: Path, home: str) -> None:
    """Put a shard where it belongs, if it is not there."""
    if is_address(home):
        put_tree(folder, inside(home, folder.name))
        shutil.rmtree(folder, ignore_errors=True)


def rows_of_shard(table: pa.Table) -> tuple[pa.Table, bool]:
    """Assigned rows as they are added, in the order of ids; whether some are copies or branches."""
    order = ["id"] if "attribute" in table.column_names else ["id", "expr"]
    rows = table.drop_columns([HOME, SHARD]).sort_by([(name, "ascending") for name in order])
    is_copied = rows.column(SOURCE).null_count < rows.num_rows
    return (joined(rows) if is_copied else rows).drop_columns([SOURCE]), is_copied


def report_of(matcher: Matcher, folder: Path, planned: int, n_refused: int) -> dict[str, Any]:
    """What the driver gets to know of a shard that was saved."""
    names = UsedNames()
    matcher.encode(names)
    size = sum(file.stat().st_size for file in (folder / SNAPSHOT).rglob("*.npy"))
    shard = Shard(0, len(matcher), size, 0, n_refused, folder.name, planned)
    return {"shard": asdict(shard), "schema": dict(matcher.schema), "folder": folder.name,
            "used": sorted(names.found), "mixed": sorted(names.mixed),
            "tests_filter": is_tested(matcher, FILTER), "computes": computes(matcher)}  # fmt: skip


def report_row(report: dict[str, Any]) -> pa.RecordBatch:
    """A report as a row of REPORT."""
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], names=["report"])


def write_rows(folder: Path, table: pa.Table) -> None:
    """Which rows a shard was built of, and their homes: what the next version is compared with."""
    rows = table.select(["id", *MARKS, HOME]).sort_by(BUCKET).combine_chunks()
    with pa.ipc.new_file(str(folder / ROWS), rows.schema.remove_metadata()) as writer:
        writer.write_table(rows.replace_schema_metadata(None))
