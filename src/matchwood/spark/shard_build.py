"""Building shards: rows go to the tasks of their shards, and a task keeps to the cap.

    rows ──► home key, shard ──► by shard, sorted by home ──► a task: part after part
                                                               │
                                     weight reached ───────────┤ build, save, measure
                                     took more than the cap ───┘ in two halves instead

Cap.     `max_bytes` is what a task may take beyond what its process had before its first shard,
         rows included.  A part is cut at the weight that was planned; what it takes is measured,
         the peak of the whole process.  A part that took more is thrown away and built in two, and
         the parts after it are cut smaller.  So no shard that is kept took more than the cap,
         however wrong the sample was; only one subscription alone cannot be cut.
Order.   A part is a range of home keys, so events are not sent to more shards than need be.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.engine.routing import AUTO
from matchwood.errors import EventError, MatchwoodError, SchemaError, SubscriptionError
from matchwood.lang.names import is_context
from matchwood.spark.build_tasks import add_rows, write_refused
from matchwood.spark.choices import FILTER, is_tested
from matchwood.spark.columns import error_table, in_order, with_readable_attributes
from matchwood.spark.context_frames import VALUES, beside_subscriptions, set_values_beside
from matchwood.spark.errors import error_row
from matchwood.spark.increments import REFUSED
from matchwood.spark.memory import forget_peak, give_back, peak, resident
from matchwood.spark.shard_homes import HOMES, MANIFEST, ROUTE_FILES, make_shards
from matchwood.spark.shard_plan import (
    HOME,
    SOURCE,
    Plan,
    Sampled,
    draw_sample,
    joined,
    look_at,
    make_plan,
    weigh_buckets,
    weights_of,
    whole_ids,
    with_homes,
)
from matchwood.spark.stores import inside, is_address, put_tree
from matchwood.spark.unknown_names import UsedNames, unknown_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

LEAST = 64 << 20
"""The smallest cap: below, a process's own noise is most of what is measured."""

SHARD = "matchwood_shard"
CONTEXT = "ctx"
"""In texts that may name a value of a context."""
REPORT = "report string"
_before: int | None = None


@dataclass(frozen=True)
class Shard:
    """One shard as it was built."""

    number: int
    count: int
    """Subscriptions in it; one with several homes is in several shards."""
    bytes: int
    peak: int
    """The most that the task took, while it built this shard, beyond what its process had before
    its first one; in bytes."""
    refused: int
    folder: str
    """Its name in the folder of all shards."""


@dataclass(frozen=True)
class BuildJob:
    """What the tasks that assign and build need to know."""

    home: str
    plan: Plan
    sampled: Sampled
    index: str
    config: dict[str, Any]
    max_bytes: int
    known: frozenset[str] | None = None
    """Names that subscriptions may use; None: any."""

    def matcher(self) -> Matcher:
        """An empty one with the types of all shards."""
        return Matcher(
            index=self.index, schema=Schema(self.sampled.types),
            column_types=self.sampled.column_types, **self.config,
        )  # fmt: skip


def build_shards(
    table: DataFrame, n_rows: int | None, home: str, shards: int | None, max_bytes: int,
    grouped: bool, index: str, config: Mapping[str, Any] | None, schema: Schema,
    column_types: Mapping[str, str], id_type: str, contexts: DataFrame | None = None,
    known: frozenset[str] | None = None, check: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Build all shards of a table of subscriptions at the path or address `home`.

    check  called when they are built; what it raises keeps them from being published
    """
    table, unreadable, _ = with_readable_attributes(table)
    sampled = look_at(draw_sample(table, n_rows), index, config, schema, column_types)
    repeated: list[dict[str, Any]] = []
    if not grouped:
        table, repeated = _side_by_side(table)
    weights = weigh_buckets(table, sampled)
    plan = make_plan(weights, max_bytes / sampled.bytes, shards)
    job = BuildJob(home, plan, sampled, index, dict(config or {}), max_bytes, known)
    columns = ", ".join([f"`{name}` {kind}" for name, kind in table.dtypes])
    added = f"{HOME} bigint, {SOURCE} bigint, {SHARD} int"
    assigned = table.mapInArrow(partial(assign, job), f"{columns}, {added}")
    if contexts is not None:
        assigned = beside_subscriptions(assigned, contexts)
    placed = assigned.repartitionById(plan.n_shards, SHARD).sortWithinPartitions(HOME, "id")
    refused = unreadable.to_pylist() + repeated

    def build(where: str) -> list[dict[str, Any]]:
        function = partial(build_parts, replace(job, home=where))
        return [json.loads(row.report) for row in placed.mapInArrow(function, REPORT).collect()]

    def end(folder: Path, reports: list[dict[str, Any]], name: str) -> None:
        finish(folder, reports, id_type, refused, sampled.types, name)
        check()

    make_shards(home, build, end)


def _side_by_side(table: DataFrame) -> tuple[DataFrame, list[dict[str, Any]]]:
    """The rows of an id in one partition, one after the other; and texts whose id came before.

    Shards know nothing of each other, so an id that comes twice has to be found here.
    """
    from pyspark.sql import functions as f

    if "attribute" in table.columns:
        return table.repartition("id").sortWithinPartitions("id"), []
    whole = f.struct(*table.columns)
    first = f.min_by(whole, f.struct(*in_order(table))).alias("first")
    by_id = table.groupBy("id").agg(first, f.count("*").alias("n"))
    repeated = [
        error_row("subscription", row.id, SubscriptionError(
            f"expected an id once, found {row.id!r} {row.n} times: one of its texts is taken"))
        for row in by_id.where("n > 1").toLocalIterator()
    ]  # fmt: skip
    if not repeated:
        return table, []
    return by_id.select("first.*"), repeated


def assign(job: BuildJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the home key and the shard to every row; a row for every home."""
    may_divide = _Divisible(job)
    for table in whole_ids(batches):
        table = with_homes(table, job.sampled, may_divide)
        home = table.column(HOME).to_numpy().view(np.uint64)
        shard = job.plan.shards_of(home, table.column("id"))
        table = table.append_column(SHARD, pa.array(shard))
        yield from table.combine_chunks().to_batches()


class _Divisible:
    """Which texts may be divided into the branches of their OR: those that would be taken whole.

    Otherwise a branch could be taken while another is refused.  A text that would be refused stays
    whole, so every shard refuses it for the same reason.
    """

    def __init__(self, job: BuildJob) -> None:
        self._job = job
        self._matcher: Matcher | None = None

    def __call__(self, texts: list[str]) -> set[str]:
        job = self._job
        if job.index != AUTO:  # it may refuse trees of a certain size
            return set()
        self._matcher = self._matcher or job.matcher()
        unknown = unknown_names(texts, job.known)
        return {
            text
            for row, text in enumerate(texts)
            if row not in unknown and CONTEXT not in text and self._is_taken(text)
        }

    def _is_taken(self, text: str) -> bool:
        assert self._matcher is not None
        try:
            self._matcher.validate(text)
        except MatchwoodError:
            return False
        return True


def build_parts(job: BuildJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Build the parts of one shard, one after the other; yields a report of each."""
    builder = _Builder(job)
    for table in whole_ids(batches):
        yield from map(_row, builder.take(table))
    yield from map(_row, builder.end())


def _row(report: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], names=["report"])


class _Builder:
    """Gathers rows to the planned weight, then builds; less at a time once that was too much."""

    def __init__(self, job: BuildJob) -> None:
        self._job = job
        self._most = job.max_bytes / job.sampled.bytes
        self._held: list[pa.Table] = []
        self._weight = 0.0
        global _before
        if _before is None:
            _warm_up(job)
            give_back()
            _before = resident()
        self._before = _before
        self._folder = Path(tempfile.gettempdir() if is_address(job.home) else job.home)
        forget_peak()

    def take(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        weight = float(weights_of(table).sum())
        if self._held and self._weight + weight > self._most:
            yield from self.end()
        self._held.append(table)
        self._weight += weight

    def end(self) -> Iterator[dict[str, Any]]:
        if not self._held:
            return
        table = pa.concat_tables(self._held).combine_chunks()
        self._held, weight, self._weight = [], self._weight, 0.0
        yield from self._build(table, weight)

    def _build(self, table: pa.Table, weight: float) -> Iterator[dict[str, Any]]:
        report, halves = self._try(table)
        if report is not None:
            yield report
            return
        self._most = min(self._most, 0.8 * weight / 2)
        del table
        while halves:
            half = halves.pop(0)
            yield from self._build(half, weight / 2)
            del half

    def _try(self, table: pa.Table) -> tuple[dict[str, Any] | None, list[pa.Table]]:
        """Build; what it holds, or the halves that it is to be built in instead."""
        folder = self._folder / f"shard-{uuid.uuid4().hex}"
        report = _save(self._job, table, folder)
        took = max(0, peak() - self._before)
        halves = _halves(table) if took > self._job.max_bytes else []
        give_back()
        forget_peak()
        if halves:
            shutil.rmtree(folder, ignore_errors=True)
            return None, halves
        report["shard"]["peak"] = took
        if is_address(self._job.home):
            put_tree(folder, inside(self._job.home, folder.name))
            shutil.rmtree(folder, ignore_errors=True)
        return report, []


def _save(job: BuildJob, table: pa.Table, folder: Path) -> dict[str, Any]:
    """Build and save the index of some rows."""
    homes = np.unique(table.column(HOME).to_numpy().view(np.uint64))
    order = ["id"] if "attribute" in table.column_names else ["id", "expr"]
    table = table.drop_columns([HOME, SHARD]).sort_by([(name, "ascending") for name in order])
    is_copied = table.column(SOURCE).null_count < table.num_rows
    table = (joined(table) if is_copied else table).drop_columns([SOURCE])
    matcher = job.matcher()
    errors = add_rows(matcher, table, job.known, 0)
    failed = None
    if VALUES in table.column_names:
        try:
            set_values_beside(matcher, table)
        except EventError as error:  # the driver raises it: here Spark would try again
            failed = str(error)
    del table
    matcher.save(folder / "snapshot")
    np.save(folder / HOMES, homes)
    names = UsedNames()
    matcher.encode(names)
    size = sum(file.stat().st_size for file in folder.rglob("*.npy"))
    shard = Shard(0, len(matcher), size, 0, len(errors), folder.name)
    return {"shard": asdict(shard), "schema": dict(matcher.schema), "errors": errors,
            "folder": folder.name, "failed": failed, "is_copied": is_copied,
            "used": sorted(names.found), "tests_filter": is_tested(matcher, FILTER)}  # fmt: skip


def _halves(table: pa.Table) -> list[pa.Table]:
    """Two tables of whole ids, about equal; none if there is one id alone."""
    ids = table.column("id").combine_chunks()
    before, after = ids.slice(0, len(ids) - 1), ids.slice(1)
    differ = pa.compute.not_equal(before, after).fill_null(False)
    changes = np.flatnonzero(differ.to_numpy(zero_copy_only=False)) + 1
    if not len(changes):
        return []
    at = int(changes[np.argmin(np.abs(changes - len(ids) // 2))])
    # copies: a slice would keep the whole alive
    whole = [table.slice(0, at), table.slice(at)]
    return [each.take(pa.array(np.arange(each.num_rows))) for each in whole]


def _warm_up(job: BuildJob) -> None:
    """Load the kernels, which are no part of a shard."""
    matcher = Matcher(index=job.index, **job.config)
    matcher.add_many([(0, "a = 1 AND b < 2 AND c BETWEEN 1 AND 2")])


def finish(
    home: Path, reports: list[dict[str, Any]], id_type: str, repeated: list[dict[str, Any]],
    sampled: Mapping[str, str], build: str,
) -> None:  # fmt: skip
    """Number the shards, join their routes, then the manifest: without it nothing counts as built.

    home   a folder that has the folders of all shards, or of each the file HOMES alone
    build  a name for the whole
    """
    types: dict[str, str] = dict(sampled)
    for each in reports:
        if each["failed"] is not None:
            raise EventError(each["failed"])
        for name, kind in each["schema"].items():
            if is_context(name):  # no event has it, so shards need not agree
                continue
            if types.setdefault(name, kind) != kind:
                raise SchemaError(
                    f"attribute {name!r}: expected one type, found {types[name]} in one shard and "
                    f"{kind} in another: declare it with schema="
                )
    keys, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    for number, each in enumerate(reports):
        each["shard"]["number"] = number
        keys.append(np.load(home / each["folder"] / HOMES))
        numbers.append(np.full(len(keys[-1]), number, np.int32))
    made = {each["folder"] for each in reports}
    for left in home.glob("shard-*"):
        if left.name not in made:  # of an attempt that Spark gave up
            shutil.rmtree(left, ignore_errors=True)
    key, shard = np.concatenate(keys), np.concatenate(numbers)
    order = np.argsort(key, kind="stable")
    np.save(home / ROUTE_FILES[0], key[order])
    np.save(home / ROUTE_FILES[1], shard[order])
    errors = repeated + [error for each in reports for error in each["errors"]]
    once = {(error["id"], error["message"]): error for error in errors}  # copies are refused alike
    write_refused(home / REFUSED, error_table(list(once.values())))
    shards = [each["shard"] for each in reports]
    manifest = {
        "build": build, "id_type": id_type, "types": types, "shards": shards,
        "routes": [checksum(home / name) for name in ROUTE_FILES],
        "tests_filter": any(each["tests_filter"] for each in reports),
        "is_copied": any(each["is_copied"] for each in reports),
        "used": sorted({name for each in reports for name in each["used"]}),
    }  # fmt: skip
    aside = home / f".{uuid.uuid4().hex}"
    aside.write_text(json.dumps(manifest))
    aside.replace(home / MANIFEST)


def checksum(file: Path) -> int:
    return zlib.crc32(file.read_bytes())
