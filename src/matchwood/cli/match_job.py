"""The local job behind `matchwood match`: read, match and write, a batch at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.cli.explain import is_snapshot
from matchwood.cli.problems import Problem, problem, subscription_problems, unreadable
from matchwood.cli.screen import progress, refuse
from matchwood.engine.files import EventRows, count_rows, format_of, read_events, read_subscriptions
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Matches
from matchwood.engine.result_files import check_result, open_result
from matchwood.errors import EventError, StorageError
from matchwood.kernel.jit import compile_seconds

Report = dict[str, Any]


def run(subscriptions: Path, events: Path, out: Path, index: str, lists: bool) -> Report:
    """Match files; returns what the closing lines show."""
    errors = out.with_name(f"{out.name}.errors.jsonl")
    for source in (subscriptions, events):
        if not source.exists():
            refuse(f"expected a file or folder, found nothing at {str(source)!r}")
        if source.resolve() in (out.resolve(), errors.resolve()):
            refuse(f"expected another file to write to, found an input: {str(source)!r}")
    check_result(out, _schema(pa.int64(), pa.int64(), lists))
    before = compile_seconds()
    matcher, added, found = _add(subscriptions, index)
    with _Problems(errors) as problems:
        problems.write(found)
        matched = _match(matcher, events, out, lists, problems)
    return {
        "subscriptions": added,
        "events": {key: matched[key] for key in ("used", "bad", "seconds", "per_second")},
        "matches": matched["matches"],
        "out": str(out),
        "problems": problems.count,
        "errors": str(errors) if problems.count else None,
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
    """The side file; there only when there is something to say."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()
        self._file: Any = None
        self.count = 0

    def __enter__(self) -> _Problems:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot replace {str(self._path)!r}: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, found: list[Problem]) -> None:
        if found and self._file is None:
            try:
                # a lone surrogate in an id is written as JSON escapes it
                file = self._path.open("w", encoding="utf-8", errors="backslashreplace")
                self._file = self._stack.enter_context(file)
            except OSError as error:
                raise StorageError(f"cannot write {str(self._path)!r}: {error}") from None
        for each in found:
            self._file.write(json.dumps(each, ensure_ascii=False, default=str) + "\n")
        self.count += len(found)


def _add(path: Path, index: str) -> tuple[Matcher, Report, list[Problem]]:
    clock = _Clock()
    if is_snapshot(path):
        if index != "auto":
            refuse("expected no --index beside a snapshot: it has its own")
        matcher, found = Matcher.load(path), []
    else:
        matcher = Matcher(index=index)
        rows = read_subscriptions(path)
        others = [name for name in rows.optional() if name != "context"]
        if others:
            refuse(
                f"expected no column {', '.join(others)} in the subscriptions with --local: "
                "leave --local out to match on Spark, or drop it if it may be ignored"
            )
        with progress("subscriptions") as advance:
            refused = matcher.add_many(rows.rows, progress=advance).errors
        found = subscription_problems(rows, refused)
    used = {"used": len(matcher), "refused": len(found)}
    return matcher, used | clock.report(len(matcher) + len(found)), found


def _match(matcher: Matcher, events: Path, out: Path, lists: bool, problems: _Problems) -> Report:
    total, first, n_bad, n_matches = count_rows(events), 0, 0, 0
    clock = _Clock()
    batches = read_events(events, matcher.schema)
    head = next(batches, EventRows([], None, []))
    ids = _EventIds(head)
    with ExitStack() as stack:
        advance = stack.enter_context(progress("events"))
        write: Any = None
        for batch in _chain(head, batches):
            found = matcher.match_many(batch.events)
            keep = ids.check(batch, first, found)
            bad = _event_problems(batch, first, found)
            problems.write(bad)
            table = _table(
                found, ids.column(batch, first, len(found)), keep, lists, format_of(out) == "csv"
            )
            if write is None:
                write = stack.enter_context(open_result(out, table.schema))
            write(table)
            n_bad += len(bad)
            n_matches += int(np.diff(found.offsets)[keep].sum())
            first += len(found)
            advance(first, total)
    counts = {"used": first - n_bad, "bad": n_bad, "matches": n_matches}
    return counts | clock.report(first)


def _chain(head: EventRows, rest: Iterator[EventRows]) -> Iterator[EventRows]:
    yield head
    yield from rest


class _EventIds:
    """What stands for an event in the output: its `event_id`, or its number from 0.

    The first batch decides whether there are ids, and whether they are whole numbers or texts; an
    event whose id is missing or of the other type is bad.
    """

    def __init__(self, head: EventRows) -> None:
        bad = {each.row for each in head.unreadable}
        ids = [id_ for row, id_ in enumerate(head.ids or []) if row not in bad]
        present = [id_ for id_ in ids if id_ is not None]
        self._kind = None if not present else int if _all_whole(present) else str
        self._reads_text = self._kind is int and isinstance(present[0], str)
        self.type = pa.string() if self._kind is str else pa.int64()

    def check(self, batch: EventRows, first: int, found: Matches) -> np.ndarray:
        """Which events are good; adds errors for ids that are not."""
        if self._kind is not None:
            for row, id_ in enumerate(self._read(batch, len(found))):
                if not self._is_id(id_):
                    wanted = "a whole number of 64 bits" if self._kind is int else "a text"
                    message = f"expected {wanted} as event_id, found {id_!r}"
                    found.errors.setdefault(row, EventError(message))
        keep = np.ones(len(found), bool)
        keep[list(found.errors)] = False
        return keep

    def column(self, batch: EventRows, first: int, n: int) -> pa.Array:
        if self._kind is None:
            return pa.array(np.arange(first, first + n))
        ids = self._read(batch, n)
        return pa.array([id_ if self._is_id(id_) else None for id_ in ids], self.type)

    def _is_id(self, id_: Any) -> bool:
        """Whether an id is of the type of all others, and can be written."""
        if type(id_) is not self._kind:
            return False
        if isinstance(id_, str):
            return id_.isascii() or not any("\ud800" <= each <= "\udfff" for each in id_)
        return bool(-(2**63) <= id_ < 2**63)

    def _read(self, batch: EventRows, n: int) -> list[Any]:
        ids = batch.ids or [None] * n
        if self._reads_text:
            return [int(id_) if isinstance(id_, str) and _is_whole(id_) else id_ for id_ in ids]
        if self._kind is str:
            return [str(id_) if type(id_) is int else id_ for id_ in ids]
        return ids


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, written in the one way that prints as itself."""
    return text.lstrip("-").isdecimal() and len(text) < 19 and str(int(text)) == text


def _all_whole(ids: list[Any]) -> bool:
    return all(type(id_) is int or (isinstance(id_, str) and _is_whole(id_)) for id_ in ids)


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


def _table(
    found: Matches, events: pa.Array, keep: np.ndarray, lists: bool, as_texts: bool
) -> pa.Table:
    """Pairs, or lists of all good events.

    as_texts  whether ids of both kinds are written as texts: CSV knows no other
    """
    ids = found.arrow_ids()
    if as_texts and pa.types.is_struct(ids.type):
        ids = pa.array([str(id_) for id_ in found.ids.tolist()], pa.string())
    schema = _schema(events.type, ids.type, lists)
    if lists:
        columns = [events, pa.LargeListArray.from_arrays(found.offsets, ids)]
        return pa.table(columns, schema=schema).filter(pa.array(keep))
    event = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    pairs = pa.table([events.take(pa.array(event)), ids], schema=schema)
    return pairs if keep.all() else pairs.filter(pa.array(keep[event]))
