"""Increments: the next version of an index from the one before, at the cost of what has changed.

    one pass over the table ──► digests by bucket ──► buckets that differ from the version before
                            └─► its few new rows (`known_rows`) ──► ids whose rows differ
    version before, mapped  ──► these ids removed and added     ──► next version

Where the new rows do not tell all (several of a bucket are gone, an id has several rows, many rows
are new), the buckets that differ are read again.

The new version has the segments of the one before, marks of what is gone from them, and a small
segment of its own; the engine merges small segments (`engine.segments.tiers`).  Its name is that of
the rows that it holds: rows of other buckets are the same as before, and the digests of these
buckets are those of the rows that were read.

Order.   Lists are in the order of ids.  A new id gets a number between those of its neighbours
         (`numbers_between`); when there is none left the index is built as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshots.versions import Neighbours, load_version, near, save_version
from matchwood.spark.build_tasks import GAP, TASK, add_rows, write_refused
from matchwood.spark.columns import (
    ATTRIBUTES,
    both,
    error_table,
    in_order,
    order_names,
    with_readable_attributes,
)
from matchwood.spark.fingerprints import (
    BUCKET,
    HASHES,
    MARKS,
    XOR,
    Digests,
    digests_of,
    with_buckets,
)
from matchwood.spark.known_rows import KNOWN, Known, Seen, advance_known, known_of, parts_of
from matchwood.spark.row_files import advance_rows, changed_ids, read_rows
from matchwood.spark.unknown_names import Names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DIGESTS, ROWS, REFUSED, SNAPSHOT, SETTINGS = (
    "digests.npy", "rows", "refused.arrow", "snapshot", "settings",
)  # fmt: skip
"""What the folder of a version has."""

MOST = 0.5
"""The part of all rows that is read again at most; of more the index is built as a whole."""


TOLD = 0.1
"""The part of all rows that may lie in buckets that differ from the version whose new rows are
known already, for no nearer version to be looked for."""


_PLAIN = frozenset(("string", "bigint", "int", "smallint", "tinyint", "boolean"))
"""Types of columns that Arrow sorts as Spark does: strings by their bytes, null before all."""

STEP = 1 << 14
"""Between new ids that have neighbours, at most: ids that come in ascending order all find room."""


@dataclass(frozen=True)
class Difference:
    """A version, and the buckets in which a table differs from it."""

    folder: Path
    digests: Digests
    buckets: np.ndarray


def nearest(home: Path, key: str, seen: Seen) -> Difference | None:
    """The version of the same settings that differs least from a table, or the one whose few new
    rows are known already; None if it differs much.
    """
    found: list[tuple[int, int, Difference]] = []
    n_all = seen.digests.total().n_rows
    for _, folder in versions_of(home, key):
        try:
            before = read_digests(folder)
        except (OSError, ValueError):
            continue  # it is being removed
        buckets = seen.digests.differing(before)
        n_rows = seen.digests.n_rows(buckets) + before.n_rows(buckets)
        is_told = folder == seen.version and seen.new is not None and n_rows <= TOLD * n_all
        found.append((0 if is_told else n_rows, n_rows, Difference(folder, before, buckets)))
    _, n_rows, best = min(found, key=lambda each: each[0], default=(0, 0, None))
    return best if n_rows <= MOST * n_all else None


def versions_of(home: Path, key: str) -> list[tuple[float, Path]]:
    """The versions of some settings, and when they were used last; the last one at the end."""
    found: list[tuple[float, Path]] = []
    for folder in home.iterdir() if home.exists() else ():
        with suppress(OSError):  # no version, or one that is being removed
            if not folder.name.startswith(".") and (folder / SETTINGS).read_text() == key:
                found.append((folder.stat().st_mtime, folder))
    return sorted(found)


def known_before(table: DataFrame, home: Path, key: str) -> Known | None:
    """The rows of the version that was used last, which a table is likely to be near; None where
    an id has several rows by design, or a text of each row has to be looked at.
    """
    if "attribute" in table.columns or dict(table.dtypes).get(ATTRIBUTES) == "string":
        return None
    versions = versions_of(home, key)
    return known_of(table.sparkSession, versions[-1][1]) if versions else None


def read_digests(folder: Path) -> Digests:
    """The digests of a version."""
    values = np.load(folder / DIGESTS, allow_pickle=False)
    return Digests(values[:, 0], values[:, 1:])


def write_digests(folder: Path, digests: Digests) -> None:
    np.save(folder / DIGESTS, digests.rows())


@dataclass(frozen=True)
class Read:
    """The rows of buckets that differ, as they are now."""

    rows: pa.Table
    """In the order of ids, with MARKS."""
    unreadable: pa.Table
    marks: pa.Table
    """Id and MARKS of all rows, those that cannot be read among them."""
    old: pa.Table
    """Id and MARKS of the rows of the version before."""

    @property
    def digests(self) -> Digests:
        return digests_of(self.marks)


def read_of(seen: Seen, difference: Difference) -> Read | None:
    """The buckets that differ, from the pass that has found that they do; None if that does not
    tell all of their rows.
    """
    if seen.new is None or seen.version != difference.folder:
        return None
    old = read_rows(difference.folder / ROWS, difference.buckets)
    buckets = pa.array(difference.buckets, pa.int32())
    new = seen.new.filter(pc.is_in(seen.new.column(BUCKET), buckets)).combine_chunks()
    ids = new.column("id").combine_chunks()
    is_replaced = pc.is_in(old.column("id"), ids)
    replaced = old.column("id").filter(is_replaced)
    if ids.null_count or not (_are_distinct(ids) and _are_distinct(replaced)):
        return None
    marks = new.select(["id", *MARKS])
    kept = old.filter(pc.invert(is_replaced)).cast(marks.schema)
    left = _without_gone(kept, marks, seen.digests, difference.buckets)
    if left is None:
        return None
    rows = new.take(pc.sort_indices(ids)).combine_chunks()
    return Read(rows, error_table([]), left, old)


def _are_distinct(ids: pa.Array | pa.ChunkedArray) -> bool:
    return len(ids.unique()) == len(ids)


def _without_gone(
    kept: pa.Table, new: pa.Table, now: Digests, buckets: np.ndarray
) -> pa.Table | None:
    """Rows that may be there still, and new ones, without the rows that are gone; None where the
    digests of a bucket do not tell which these are.

    They tell one: it is what is too much.
    """
    both = pa.concat_tables([kept, new]).combine_chunks()
    found = digests_of(both)
    here, there = found.rows_of(buckets), now.rows_of(buckets)
    is_one = here[:, 0] - there[:, 0] == 1
    gone = (here ^ there)[is_one][:, XOR]
    is_gone = np.isin(both.column(BUCKET).to_numpy(), buckets[is_one])
    is_gone &= np.isin(both.column(HASHES[0]).to_numpy(), gone)
    left = both.filter(pa.array(~is_gone))
    is_told = not len(digests_of(left).differing(now.of_buckets(buckets)))
    return left if is_told else None


def read_again(table: DataFrame, difference: Difference) -> Read:
    """Read the buckets that differ."""
    buckets = ", ".join(map(str, difference.buckets.tolist()))
    chosen = with_buckets(table).where(f"{BUCKET} IN ({buckets or 'NULL'})")
    readable = with_readable_attributes(chosen)
    rows = _sorted(readable.table)
    marks = rows.select(["id", *MARKS])
    if readable.rows is not None:
        marks = pa.concat_tables([marks, readable.rows.cast(marks.schema)])
    old = read_rows(difference.folder / ROWS, difference.buckets)
    return Read(rows, readable.refused, marks.combine_chunks(), old)


def _sorted(table: DataFrame) -> pa.Table:
    """Rows in the order of `in_order`: by Arrow where it has the same order, in one Spark job; by
    Spark, which takes two, where columns are lists, maps, structs or collated strings.
    """
    if all(kind in _PLAIN for _, kind in table.dtypes):
        rows = table.toArrow().combine_chunks()
        keys: dict[str, pa.ChunkedArray] = {}
        for n, name in enumerate(order_names(table)):  # null before all: False before True
            keys[f"{n} is there"], keys[f"{n}"] = pc.is_valid(rows[name]), rows[name]
        by = [(name, "ascending") for name in keys]
        return rows.take(pc.sort_indices(pa.table(keys), by)).combine_chunks()
    return table.repartition(1).sortWithinPartitions(*in_order(table)).toArrow().combine_chunks()


def advance(
    difference: Difference,
    read: Read,
    aside: Path,
    types: Mapping[str, str],
    known: Names,
    verify: bool = True,
) -> Matcher | None:
    """Write the next version to a folder; None if the index has to be built as a whole.

    Returns the matcher of the version.  What it takes in memory depends on what has changed, not on
    how many subscriptions there are.

    verify  check the files of the version before; not needed if this process has done so
    """
    before = difference.folder
    changed = changed_ids(read.old, read.marks)
    matcher = load_version(before / SNAPSHOT, verify=verify, column_types=types)
    rows = _of_ids(read.rows, changed)
    wanted = sorted(set(rows.column("id").drop_null().to_pylist()))
    numbers = numbers_between(near(matcher, wanted), wanted)
    if numbers is None:
        return None
    matcher.remove_many([id_ for id_ in changed if id_ is not None and id_ in matcher])
    refused = error_table(add_rows(matcher, rows, known, 0, numbers))
    save_version(matcher, aside / SNAPSHOT, before / SNAPSHOT)
    names = pa.array([None if id_ is None else str(id_) for id_ in changed], pa.string())
    refused = both(_of(read.unreadable, names), refused)
    write_refused(aside / REFUSED, both(_without(read_refused(before), names), refused))
    advance_rows(before / ROWS, aside / ROWS, read.marks, difference.buckets)
    new, old = (parts_of(_of_ids(each, changed)) for each in (read.marks, read.old))
    advance_known(before / KNOWN, aside / KNOWN, new, old)
    write_digests(aside, difference.digests.with_buckets_of(difference.buckets, read.digests))
    return matcher


def read_refused(folder: Path) -> pa.Table:
    """Error rows of what a version refused."""
    with pa.memory_map(str(folder / REFUSED)) as file:
        return pa.ipc.open_file(file).read_all()


def _of_ids(rows: pa.Table, ids: Sequence[Any]) -> pa.Table:
    """The rows of some ids."""
    return rows.filter(pc.is_in(rows.column("id"), pa.array(ids, rows.schema.field("id").type)))


def _of(rows: pa.Table, names: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows.column("id"), names))


def _without(rows: pa.Table, names: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column("id"), names)))


def numbers_between(known: Neighbours, wanted: Sequence[Any]) -> dict[Any, int] | None:
    """Numbers in the order of addition for ids, ascending, such that all ids ascend with them.

    known  the numbers of the ids that there are, at and beside each of these; one that is among
           them keeps its number
    Returns None where too many lie between two neighbours.
    """
    found: dict[Any, int] = {}
    gaps: dict[tuple[int, int], list[Any]] = {}
    rows = zip(wanted, *[each.tolist() for each in known], strict=True)
    for id_, at, before, after in rows:
        if at >= 0:
            found[id_] = at
        else:
            gaps.setdefault((before, after), []).append(id_)
    for (before, after), new in gaps.items():
        n = len(new) + 1
        low, high, most = before, after, STEP
        if after < 0:
            low, most = max(before, TASK if before < 0 else 0), GAP
            high = low + n * GAP
        elif before < 0:
            low, most = max(0, high - n * GAP), GAP
        step = min(most, (high - low) // n)
        if step < 1 or high >= 1 << 62:
            return None
        found |= {id_: low + step * (i + 1) for i, id_ in enumerate(new)}
    return found
