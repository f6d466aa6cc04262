"""Building shards: rows go to the tasks of their shards, and a task keeps to the cap.

    rows ──► home key, shard ──► by shard, sorted by home ──► a task: part after part
                                                               │
                                     weight reached ───────────┤ build, save, measure
                                     took more than the cap ───┘ in two halves instead

Cap.     `max_bytes` is what a task may take beyond what its process had before it, rows included;
         shards that the process keeps mapped for matching are closed first.  A part is cut at the
         weight that was planned; what it takes is measured, the peak of the whole process.  A part
         that took more is thrown away and built in two, and the parts after it are cut smaller.  So
         no shard that is kept took more than the cap, however wrong the sample was; only one
         subscription alone cannot be cut.
Order.   A part is a range of home keys, so events are not sent to more shards than need be.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshots.versions import save_version
from matchwood.engine.stores.routing import AUTO
from matchwood.errors import EventError, MatchwoodError, SubscriptionError
from matchwood.spark.build_tasks import TASK, add_rows
from matchwood.spark.columns import (
    both,
    error_table,
    id_type_of,
    in_order,
    own_types,
    with_readable_attributes,
)
from matchwood.spark.context_frames import VALUES, beside_subscriptions, set_values_beside
from matchwood.spark.errors import error_row
from matchwood.spark.fingerprints import BUCKET, Digests, with_buckets
from matchwood.spark.increments import SNAPSHOT
from matchwood.spark.memory import forget_peak, give_back, peak, resident
from matchwood.spark.shards.locations import HOMES, make_shards
from matchwood.spark.shards.manifest import Kept, Told, finish
from matchwood.spark.shards.mapped import mapped
from matchwood.spark.shards.plan import (
    HOME,
    SOURCE,
    Plan,
    Sampled,
    draw_sample,
    look_at,
    make_plan,
    weigh_buckets,
    weights_of,
    whole_ids,
    with_homes,
)
from matchwood.spark.shards.save import (
    REPORT,
    SHARD,
    folder_of_tasks,
    hand_over,
    report_of,
    report_row,
    rows_of_shard,
    write_rows,
)
from matchwood.spark.unknown_names import unknown_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

LEAST = 64 << 20
"""The smallest cap: below, a process's own noise is most of what is measured."""

CONTEXT = "ctx"
"""In texts that may name a value of a context."""


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


@dataclass(frozen=True)
class Wanted:
    """What shards are built of, and how.

    n_rows    of the table, if that is known
    home      the path or address of all shards
    grouped   the rows of an id lie side by side in one partition
    contexts  values of contexts
    known     names that subscriptions may use; None: any
    check     called when shards are built; what it raises keeps them from being published
    key, digests   what the next version is found by; None where there will be none
    """

    table: DataFrame
    n_rows: int | None
    home: str
    shards: int | None
    max_bytes: int
    grouped: bool
    index: str
    config: Mapping[str, Any]
    schema: Schema
    column_types: Mapping[str, str]
    contexts: DataFrame | None = None
    known: frozenset[str] | None = None
    check: Callable[[], None] = lambda: None
    key: str | None = None
    digests: Digests | None = None

    def job(self, plan: Plan, sampled: Sampled) -> BuildJob:
        return BuildJob(
            self.home, plan, sampled, self.index, dict(self.config), self.max_bytes, self.known
        )

    def facts(self, refused: pa.Table, plan: Plan, sampled: Sampled) -> Told:
        kept = None
        if self.key is not None and self.digests is not None:
            kept = Kept(self.key, self.digests, plan, sampled)
        id_type, attribute_types = id_type_of(self.table), own_types(self.table)
        return Told(id_type, sampled.types, refused, attribute_types, kept=kept)


def build_shards(wanted: Wanted) -> None:
    """Build all shards of a table of subscriptions."""
    table, unreadable, _ = with_readable_attributes(wanted.table)
    index, config = wanted.index, wanted.config
    sample = draw_sample(table, wanted.n_rows)
    sampled = look_at(sample, index, config, wanted.schema, wanted.column_types)
    if wanted.key is not None:
        table = with_buckets(table)
    repeated: list[dict[str, Any]] = []
    if not wanted.grouped:
        table, repeated = side_by_side(table)
    weights = weigh_buckets(table, sampled)
    plan = make_plan(weights, wanted.max_bytes / sampled.bytes, wanted.shards)
    job = wanted.job(plan, sampled)
    columns = ", ".join([f"`{name}` {kind}" for name, kind in table.dtypes])
    added = f"{HOME} bigint, {SOURCE} bigint, {SHARD} int"
    assigned = table.mapInArrow(partial(assign, job), f"{columns}, {added}")
    if wanted.contexts is not None:
        assigned = beside_subscriptions(assigned, wanted.contexts)
    placed = assigned.repartitionById(plan.n_shards, SHARD).sortWithinPartitions(HOME, "id")
    facts = wanted.facts(both(unreadable, error_table(repeated)), plan, sampled)

    def build(where: str) -> list[dict[str, Any]]:
        function = partial(build_parts, replace(job, home=where))
        return [json.loads(row.report) for row in placed.mapInArrow(function, REPORT).collect()]

    def end(folder: Path, reports: list[dict[str, Any]], name: str) -> None:
        finish(folder, reports, facts, name)
        wanted.check()

    make_shards(wanted.home, build, end)


def side_by_side(table: DataFrame) -> tuple[DataFrame, list[dict[str, Any]]]:
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
        yield from map(report_row, builder.take(table))
    yield from map(report_row, builder.end())


class _Builder:
    """Gathers rows to the planned weight, then builds; less at a time once that was too much."""

    def __init__(self, job: BuildJob) -> None:
        self._job = job
        self._most = job.max_bytes / job.sampled.bytes
        self._held: list[pa.Table] = []
        self._weight = 0.0
        self._before = memory_before(job)
        self._folder = folder_of_tasks(job.home)
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
        hand_over(folder, self._job.home)
        return report, []


def _save(job: BuildJob, table: pa.Table, folder: Path) -> dict[str, Any]:
    """Build and save the index of some rows."""
    matcher = job.matcher()
    planned = int(table.column(SHARD)[0].as_py())
    rows, is_copied = rows_of_shard(table)
    errors = add_rows(matcher, rows, job.known, TASK)
    failed = None
    if VALUES in rows.column_names:
        try:
            set_values_beside(matcher, rows)
        except EventError as error:  # the driver raises it: here Spark would try again
            failed = str(error)
    del rows
    save_version(matcher, folder / SNAPSHOT)
    if BUCKET in table.column_names:
        write_rows(folder, table)
    np.save(folder / HOMES, np.unique(table.column(HOME).to_numpy().view(np.uint64)))
    facts = report_of(matcher, folder, planned, len(errors))
    return {**facts, "errors": errors, "failed": failed, "is_copied": is_copied}


def memory_before(job: BuildJob) -> int:
    """What the process has before a task builds: kernels, and perhaps indexes of other work.

    Shards that it has matched with are closed: what they and a shard that is built take together
    has no limit.
    """
    mapped.close()
    _warm_up(job)
    give_back()
    return resident()


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
