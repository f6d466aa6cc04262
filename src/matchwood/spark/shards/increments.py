"""The next version of shards: a changed subscription writes the shards of its homes, no others.

    digests by bucket (one pass over the table) ──► buckets that differ
    rows of these buckets: of the table, and of all shards (a task per shard, mapped)
                                          ──► ids whose rows differ, and the shards that have them
    rows of these ids ──► homes and shards by the plan of the version before
    a task per shard that has or gets one ──► the shard with these ids removed and added
    all other shards, routes joined       ──► the next version

Cost.    One pass over the table for the digests, one that reads the buckets that differ and one
         that sees whether the table has changed meanwhile; then the work of the changed ids.  The
         driver holds the changed ids and their rows, MOST_CHANGED at most.
Whole.   All shards are built anew where more has changed, where a shard would take more than the
         cap, where types would not agree or no number is left between two ids, and where contexts
         or an index chosen by name are used.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.engine.snapshots.versions import link_tree
from matchwood.engine.stores.routing import AUTO
from matchwood.errors import FormatError, SchemaError, StorageError
from matchwood.spark.columns import (
    CONTEXT,
    both,
    error_table,
    in_order,
    with_readable_attributes,
)
from matchwood.spark.executors import parallelism
from matchwood.spark.fingerprints import BUCKET, HASHES, with_buckets
from matchwood.spark.increments import MOST, read_digests, read_refused
from matchwood.spark.shards.advance import AdvanceJob, Piece, advance_pieces, read_buckets
from matchwood.spark.shards.build import BuildJob, Wanted, assign, side_by_side
from matchwood.spark.shards.locations import (
    MANIFEST,
    PLAN,
    ROUTE_FILES,
    base_of,
    file_of,
    files_of,
    make_shards,
)
from matchwood.spark.shards.manifest import finish, read_plan
from matchwood.spark.shards.plan import HOME
from matchwood.spark.shards.save import REPORT, ROWS, SHARD
from matchwood.spark.stores import is_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

MOST_CHANGED = 100_000
"""Ids that an increment takes at most."""


class _NotPossibleError(Exception):
    """All shards have to be built anew."""


def advance_shards(wanted: Wanted, before: str) -> bool:
    """Make the shards of a table from those of an earlier version; False if that is not possible.

    before  the path or address of that version, of the same settings
    """
    if wanted.index != AUTO or wanted.contexts is not None or CONTEXT in wanted.table.columns:
        return False
    try:
        advance = _Advance(wanted, before)
    except (FormatError, StorageError, OSError, KeyError, ValueError, pa.ArrowException):
        return False  # it is damaged, or was removed meanwhile
    try:
        advance.run()
    except (_NotPossibleError, SchemaError):
        return False
    return True


class _Advance:
    """One increment, as the driver sees it."""

    def __init__(self, wanted: Wanted, before: str) -> None:
        files = files_of(before)
        self._wanted, self._before = wanted, before
        self._manifest: dict[str, Any] = json.loads((files / MANIFEST).read_text())
        self._shards: list[dict[str, Any]] = self._manifest["shards"]
        self._plan, self._sampled = read_plan(files / PLAN)
        self._digests = read_digests(files)
        self._refused = read_refused(files)
        keys, numbers = (np.load(files / name) for name in ROUTE_FILES)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(self._shards) + 1))
        self._homes = [keys[order[a:b]] for a, b in pairwise(ends)]

    def run(self) -> None:
        """Find what has changed, write the shards that it concerns, publish the next version."""
        wanted, now = self._wanted, self._wanted.digests
        assert now is not None
        buckets = now.differing(self._digests)
        n_rows = now.n_rows(buckets) + self._digests.n_rows(buckets)
        if n_rows > MOST * now.total().n_rows:
            raise _NotPossibleError
        new = with_buckets(wanted.table).where(f"{BUCKET} IN ({_listed(buckets)})")
        changed = self._changed(new, buckets)
        rows, refused = _rows_of(new, changed.column("id"))
        job = wanted.job(self._plan, self._sampled)
        pieces = self._pieces(changed, rows, job)
        touched = {each.number for each in pieces if each.number is not None}
        names = changed.column("id").cast(pa.string())
        kept = self._refused.filter(pc.invert(pc.is_in(self._refused.column("id"), names)))
        if changed.column("id").null_count:
            kept = kept.filter(kept.column("id").is_valid())
        facts = wanted.facts(both(kept, refused), self._plan, self._sampled)
        types, used = self._manifest["types"], self._manifest["used"]
        facts = replace(facts, types=types, used=used, mixed=self._manifest.get("mixed", ()))

        def build(where: str) -> list[dict[str, Any]]:
            made = _run(wanted.table, AdvanceJob(replace(job, home=where), tuple(pieces)))
            others = [n for n in range(len(self._shards)) if n not in touched]
            return [self._as_before(n, where) for n in others] + made

        def end(folder: Path, reports: list[dict[str, Any]], name: str) -> None:
            empty = [each for each in reports if each["folder"] is None]
            errors = both(facts.refused, error_table([e for each in empty for e in each["errors"]]))
            full = [each for each in reports if each["folder"] is not None]
            finish(folder, full, replace(facts, refused=errors), name)
            wanted.check()

        make_shards(wanted.home, build, end)

    def _changed(self, new: DataFrame, buckets: np.ndarray) -> pa.Table:
        """Ids whose rows are not the same, and the shards that have them."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        spark, id_type = new.sparkSession, new.schema["id"].dataType
        files = tuple(
            file_of(self._before, self._manifest["build"], each, ROWS) for each in self._shards
        )
        n = len(files)
        fields = [("id", id_type), *[(name, LongType()) for name in HASHES], (SHARD, IntegerType())]
        columns = StructType([StructField(name, kind) for name, kind in fields])
        numbers = spark.range(0, n, 1, max(1, min(n, 4 * parallelism(spark))))
        old = numbers.mapInArrow(partial(read_buckets, files, buckets.tolist()), columns)
        one = f.lit(1)
        rows = new.select("id", *HASHES, f.lit(None).cast("int").alias(SHARD)).union(old)
        is_new = f.col(SHARD).isNull()
        # a text has a row in every shard of its homes; a row of a table of predicates is in one
        n_old = f.count(SHARD) if "attribute" in new.columns else f.max(f.when(~is_new, one))
        per_row = rows.groupBy("id", *HASHES).agg(
            (f.count(f.when(is_new, one)) - f.coalesce(n_old, f.lit(0))).alias("n"),
            f.collect_set(SHARD).alias("shards"),
        )
        per_id = per_row.groupBy("id").agg(
            f.bool_or(f.col("n") != 0).alias("differs"),
            f.array_distinct(f.flatten(f.collect_list("shards"))).alias("shards"),
        )
        found = per_id.where("differs").drop("differs").limit(MOST_CHANGED + 1).toArrow()
        if found.num_rows > MOST_CHANGED:
            raise _NotPossibleError
        return found.combine_chunks()

    def _pieces(self, changed: pa.Table, rows: pa.Table, job: BuildJob) -> list[Piece]:
        """What goes from and what comes to each shard that is concerned."""
        gone: dict[int, list[Any]] = {}
        for id_, shards in zip(*[column.to_pylist() for column in changed.columns], strict=True):
            for number in shards:
                gone.setdefault(number, []).append(id_)
        assigned = list(assign(job, iter(rows.to_batches())))
        added: dict[int, pa.Table] = {}
        fresh: dict[int, pa.Table] = {}
        if assigned:
            table = pa.Table.from_batches(assigned).combine_chunks()
            planned = table.column(SHARD).to_numpy()
            homes = table.column(HOME).to_numpy().view(np.uint64)
            shard = np.array([self._shard_of(*each) for each in zip(planned, homes, strict=True)])
            for number in np.unique(shard).tolist():
                part = table.filter(pa.array(shard == number))
                if number >= 0:
                    added[number] = part
                else:
                    fresh[-1 - number] = part
        build = self._manifest["build"]
        pieces = [
            Piece(
                number,
                self._shards[number]["planned"],
                self._shards[number]["count"],
                file_of(self._before, build, self._shards[number]),
                file_of(self._before, build, self._shards[number], ROWS),
                tuple(gone.get(number, ())),
                added.get(number),
            )
            for number in sorted(gone.keys() | added.keys())
        ]
        return pieces + [Piece(None, planned, 0, "", "", (), part)
                         for planned, part in fresh.items()]  # fmt: skip

    def _shard_of(self, planned: int, home: np.uint64) -> int:
        """The shard for a row: the one that has its home, else the smallest; -1 - planned: none."""
        fit = [n for n, each in enumerate(self._shards) if each["planned"] == planned]
        if not fit:
            return -1 - int(planned)
        at = [n for n in fit if home in self._homes[n]] if len(fit) > 1 else fit
        return min(at or fit, key=lambda n: self._shards[n]["count"])

    def _as_before(self, number: int, where: str) -> dict[str, Any]:
        """The report of a shard that stays."""
        shard = dict(self._shards[number])
        if is_address(where):
            shard["at"] = shard.get("at") or base_of(self._before, self._manifest["build"])
        else:
            try:
                link_tree(Path(self._before, shard["folder"]), Path(where, shard["folder"]))
            except StorageError as error:
                raise _NotPossibleError from error
        return {
            "shard": shard, "schema": {}, "folder": shard["folder"], "failed": None, "errors": [],
            "used": (), "mixed": (), "tests_filter": number in self._manifest["filters"],
            "is_copied": self._manifest["is_copied"], "homes": self._homes[number],
            "computes": self._manifest.get("computes", True),
        }  # fmt: skip


def _listed(buckets: np.ndarray) -> str:
    return ", ".join(map(str, buckets.tolist())) or "NULL"


def _rows_of(new: DataFrame, ids: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
    """The rows of some ids, those of an id side by side; and error rows of what is refused."""
    from pyspark.sql import functions as f

    spark = new.sparkSession
    kind: DataType = new.schema["id"].dataType
    wanted = spark.createDataFrame(pa.table({"changed": ids}))
    wanted = wanted.select(f.col("changed").cast(kind).alias("changed"))
    is_same = new["id"].eqNullSafe(wanted["changed"])
    chosen = new.join(f.broadcast(wanted), is_same, "left_semi").select(*new.columns)
    table, unreadable, _ = with_readable_attributes(chosen)
    table, repeated = side_by_side(table)
    rows = table.repartition(1).sortWithinPartitions(*in_order(table)).toArrow().combine_chunks()
    return rows, both(unreadable, error_table(repeated))


def _run(table: DataFrame, job: AdvanceJob) -> list[dict[str, Any]]:
    if not job.pieces:
        return []
    numbers = table.sparkSession.range(0, len(job.pieces), 1, len(job.pieces))
    rows = numbers.mapInArrow(partial(advance_pieces, job), REPORT).collect()
    reports = [json.loads(row.report) for row in rows]
    if any(each["failed"] is not None for each in reports):
        raise _NotPossibleError
    return reports
