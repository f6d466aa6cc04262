"""The local job behind `matchwood match`: read, match and write, a batch at a time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.cli.event_ids import EventIds
from matchwood.cli.explain import is_snapshot
from matchwood.cli.problems import (
    Problem,
    in_one_line,
    problem,
    subscription_problems,
    unreadable,
)
from matchwood.cli.screen import complain, progress, refuse
from matchwood.engine.files import (
    EVENT_ID,
    EventRows,
    count_rows,
    read_events,
    read_stream,
    read_stream_subscriptions,
    read_subscriptions,
)
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Matches
from matchwood.engine.result_files import (
    TEXTS,
    WriteTexts,
    check_result,
    open_result,
    open_text_result,
)
from matchwood.errors import StorageError
from matchwood.kernel.jit import compile_seconds

Report = dict[str, Any]


STREAM = "-"
"""Stands for standard input or standard output."""


class NeedsSpark(Exception):
    """The subscriptions have something that only Spark takes."""


def run(subscriptions: str, events: str, out: str, index: str, lists: bool) -> Report:
    """Match files or streams; returns what the closing lines show.

    NeedsSpark is raised before anything is written.
    """
    target = None if out == STREAM else Path(out)
    errors = None if target is None else target.with_name(f"{target.name}.errors.jsonl")
    for source in (subscriptions, events):
        if source == STREAM:
            continue
        if not Path(source).exists():
            refuse(f"expected a file or folder, found nothing at {source!r}")
        if target is not None and Path(source).resolve() in (target.resolve(), errors.resolve()):  # type: ignore[union-attr]
            refuse(f"expected another file to write to, found an input: {source!r}")
    if target is not None:
        check_result(target, lists)
    before = compile_seconds()
    matcher, added, found = _add(subscriptions, index)
    with _Problems(errors) as problems:
        problems.write(found)
        matched = _match(matcher, events, target, lists, problems)
    return {
        "subscriptions": added,
        "events": {key: matched[key] for key in ("used", "bad", "seconds", "per_second")},
        "matches": matched["matches"],
        "out": out,
        "problems": problems.count,
        "errors": str(errors) if errors is not None and problems.count else None,
        "compile_seconds": round(compile_seconds() - before, 3),
    }


class _Clock:
    """Seconds of work, without those spent compiling."""

    def __init__(self) -> None:
        self._start, self._compiled = time.perf_counter(), compile_seconds()

    def report(self, n: int) -> Report:
        spent = time.perf_counter() - self._start - (compile_seconds() - self._compiled)
        seconds = max(spent, 1e-9)
        return {"seconds": round(seconds, 3), "per_second": round(n / seconds, 1)}


class _Problems:
    """The side file, there only when there is something to say; standard error beside a stream."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stack = ExitStack()
        self._file: Any = None
        self.count = 0

    def __enter__(self) -> _Problems:
        try:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot replace {str(self._path)!r}: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, found: list[Problem]) -> None:
        self.count += len(found)
        if self._path is None:
            for each in found:
                complain(in_one_line(each))
            return
        if found and self._file is None:
            try:
                # a lone surrogate in an id is written as JSON escapes it
                file = self._path.open("w", encoding="utf-8", errors="backslashreplace")
                self._file = self._stack.enter_context(file)
            except OSError as error:
                raise StorageError(f"cannot write {str(self._path)!r}: {error}") from None
        for each in found:
            self._file.write(json.dumps(each, ensure_ascii=False, default=str) + "\n")


def _add(source: str, index: str) -> tuple[Matcher, Report, list[Problem]]:
    clock = _Clock()
    path = Path(source)
    if source != STREAM and is_snapshot(path):
        if index != "auto":
            refuse("expected no --index beside a snapshot: it has its own")
        matcher, found = Matcher.load(path), []
    else:
        matcher = Matcher(index=index)
        rows = (
            read_stream_subscriptions(sys.stdin.buffer)
            if source == STREAM
            else read_subscriptions(path)
        )
        others = [name for name in rows.optional() if name != "context"]
        if others:
            raise NeedsSpark(f"column {', '.join(others)} in the subscriptions")
        with progress("subscriptions") as advance:
            refused = matcher.add_many(rows.rows, progress=advance).errors
        found = subscription_problems(rows, refused)
    used = {"used": len(matcher), "refused": len(found)}
    return matcher, used | clock.report(len(matcher) + len(found)), found


def _match(
    matcher: Matcher, events: str, target: Path | None, lists: bool, problems: _Problems
) -> Report:
    first, n_bad, n_matches = 0, 0, 0
    clock = _Clock()
    is_stream = events == STREAM
    total = None if is_stream else count_rows(events)
    if is_stream:
        batches = read_stream(sys.stdin.buffer, matcher.schema)
    else:
        batches = read_events(events, matcher.schema)
    head = next(batches, EventRows([], None, []))
    ids = EventIds(head, as_they_are=is_stream)
    with ExitStack() as stack:
        advance = stack.enter_context(progress("events"))
        write = stack.enter_context(_result(target, lists, ids))
        for batch in _chain(head, batches):
            found = matcher.match_many(_shaped(batch.events))
            keep = ids.check(batch, first, found)
            bad = _event_problems(batch, first, found)
            problems.write(bad)
            write(ids.values(batch, first, len(found)), found, keep)
            n_bad += len(bad)
            n_matches += int(np.diff(found.offsets)[keep].sum())
            first += len(found)
            advance(first, total)
    counts = {"used": first - n_bad, "bad": n_bad, "matches": n_matches}
    return counts | clock.report(first)


@contextmanager
def _result(target: Path | None, lists: bool, ids: EventIds) -> Iterator[WriteTexts]:
    if target is None or check_result(target, lists) in TEXTS:
        with open_text_result(target, lists) as write_texts:
            yield write_texts
        return
    with ExitStack() as stack:
        write_table: Any = None

        def write(events: list[Any], found: Matches, keep: np.ndarray) -> None:
            nonlocal write_table
            table = _table(found, pa.array(events, ids.type), keep, lists)
            if write_table is None:
                write_table = stack.enter_context(open_result(target, table.schema))
            write_table(table)

        yield write


def _shaped(events: Any) -> Any:
    """Events of a table in the shape that its column `attributes` tells, as on Spark."""
    if not isinstance(events, pa.Table) or "attributes" not in events.column_names:
        return events
    from matchwood.spark.shapes import read_events as read_shape

    beside = set(events.column_names) - {EVENT_ID, "filter", "attributes"}
    first = events.schema.field("attributes").type
    if beside == {"values"} and pa.types.is_list(first):
        shape = "arrays"
    elif beside:
        return events
    elif pa.types.is_map(first):
        shape = "map"
    elif pa.types.is_struct(first):
        shape = "struct"
    else:
        shape = "json" if pa.types.is_string(first) else "wide"
    batches = events.combine_chunks().to_batches()
    return read_shape(batches[0], shape) if batches else events


def _chain(head: EventRows, rest: Iterator[EventRows]) -> Iterator[EventRows]:
    yield head
    yield from rest


def _event_problems(batch: EventRows, first: int, found: Matches) -> list[Problem]:
    bad = {each.row: unreadable("event", each, first + each.row) for each in batch.unreadable}
    for row, error in found.errors.items():
        if row not in bad:
            id_ = batch.ids[row] if batch.ids is not None else None
            bad[row] = problem("event", first + row, None, id_, error)
    return [bad[row] for row in sorted(bad)]


def _schema(event: pa.DataType, subscription: pa.DataType, lists: bool) -> pa.Schema:
    if lists:
        return pa.schema([("event", event), ("subscriptions", pa.large_list(subscription))])
    return pa.schema([("event", event), ("subscription", subscription)])


def _table(found: Matches, events: pa.Array, keep: np.ndarray, lists: bool) -> pa.Table:
    """Pairs, or lists of all good events."""
    ids = found.arrow_ids()
    schema = _schema(events.type, ids.type, lists)
    if lists:
        columns = [events, pa.LargeListArray.from_arrays(found.offsets, ids)]
        return pa.table(columns, schema=schema).filter(pa.array(keep))
    event = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    pairs = pa.table([events.take(pa.array(event)), ids], schema=schema)
    return pairs if keep.all() else pairs.filter(pa.array(keep[event]))
