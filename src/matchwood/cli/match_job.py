"""The local job behind `matchwood match`: read, match and write, a batch at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.cli.event_ids import EventIds
from matchwood.cli.local_search import Search
from matchwood.cli.problems import Problem, in_one_line, problem, unreadable
from matchwood.cli.screen import STREAM, complain, progress, refuse
from matchwood.cli.standard_input import standard_input
from matchwood.cli.subscriptions import open_subscriptions
from matchwood.engine.formats.files import EventRows, count_rows, read_events, read_stream
from matchwood.engine.formats.result_files import (
    LISTS,
    PAIRS,
    PER_EVENT,
    TEXTS,
    PayloadOf,
    WriteTexts,
    check_result,
    json_text,
    open_result,
    open_text_result,
    values_per_event,
)
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Matches
from matchwood.errors import StorageError
from matchwood.kernel.jit import compile_seconds

Report = dict[str, Any]

PAYLOADS_KEPT = 100_000
"""Payloads that are kept while matches are written, by id."""


@dataclass(frozen=True)
class Asked:
    """The options of a match that change what is found or written."""

    index: str = "auto"
    shape: str = PAIRS
    limit: int | None = None
    where: str | None = None
    contexts: str | None = None
    payload: bool = False


def run(subscriptions: str, events: str, out: str, asked: Asked) -> Report:
    """Match files or streams; returns what the closing lines show."""
    target = None if out == STREAM else Path(out)
    errors = None if target is None else target.with_name(f"{target.name}.errors.jsonl")
    for source in (subscriptions, events, asked.contexts):
        if source in (STREAM, None):
            continue
        if not Path(source).exists():
            refuse(f"expected a file or folder, found nothing at {source!r}")
        if target is not None and Path(source).resolve() in (target.resolve(), errors.resolve()):  # type: ignore[union-attr]
            refuse(f"expected another file to write to, found an input: {source!r}")
    if target is not None:
        check_result(target, asked.shape)
    before = compile_seconds()
    matcher, added, found = _add(subscriptions, asked)
    search = Search(matcher, asked.limit, asked.where)
    with _Problems(errors) as problems:
        problems.write(found)
        matched = _match(matcher, search, events, target, asked, problems)
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
    """The file of problems, created with the first one; without a path, standard error."""

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


def _add(source: str, asked: Asked) -> tuple[Matcher, Report, list[Problem]]:
    clock = _Clock()
    matcher, found = open_subscriptions(source, asked.index, asked.contexts)
    used = {"used": len(matcher), "refused": len(found)}
    return matcher, used | clock.report(len(matcher) + len(found)), found


def read_batches(events: str, types: Mapping[str, str]) -> Iterator[EventRows]:
    """Events of a file, a folder of files, or standard input."""
    if events != STREAM:
        yield from read_events(events, types)
        return
    with standard_input() as file:
        yield from read_stream(file, types)


def _match(
    matcher: Matcher, search: Search, events: str, target: Path | None, asked: Asked,
    problems: _Problems,
) -> Report:  # fmt: skip
    first, n_bad, n_matches = 0, 0, 0
    clock = _Clock()
    is_stream = events == STREAM
    total = None if is_stream else count_rows(events)
    batches = read_batches(events, matcher.text_types())
    head = next(batches, EventRows([], None, []))
    ids = EventIds(head, as_they_are=is_stream)
    with ExitStack() as stack:
        advance = stack.enter_context(progress("events"))
        payload_of = _payloads(matcher) if asked.payload else None
        write = stack.enter_context(_result(target, asked.shape, ids, payload_of))
        for batch in _chain(head, batches):
            found = search(batch.events)
            keep = ids.check(batch, first, found)
            bad = _event_problems(batch, first, found)
            problems.write(bad)
            problems.write(_failed(batch, first, found))
            write(ids.values(batch, first, len(found)), found, keep)
            n_bad += len(bad)
            n_matches += int(np.diff(found.offsets)[keep].sum())
            first += len(found)
            advance(first, total)
    counts = {"used": first - n_bad, "bad": n_bad, "matches": n_matches}
    return counts | clock.report(first)


def _payloads(matcher: Matcher) -> PayloadOf:
    return lru_cache(PAYLOADS_KEPT)(lambda id_: matcher[id_].payload)


@contextmanager
def _result(
    target: Path | None, shape: str, ids: EventIds, payload_of: PayloadOf | None
) -> Iterator[WriteTexts]:
    if target is None or check_result(target, shape) in TEXTS:
        with open_text_result(target, shape, payload_of) as write_texts:
            yield write_texts
        return
    with ExitStack() as stack:
        write_table: Any = None

        def write(events: list[Any], found: Matches, keep: np.ndarray) -> None:
            nonlocal write_table
            table = _table(found, pa.array(events, ids.type), keep, shape, payload_of)
            if write_table is None:
                write_table = stack.enter_context(open_result(target, table.schema))
            write_table(table)

        yield write


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


def _failed(batch: EventRows, first: int, found: Matches) -> list[Problem]:
    """Computed attributes that failed for events which were matched."""
    left = {*found.errors, *[each.row for each in batch.unreadable]}
    return [
        problem("attribute", first + row, None, None if batch.ids is None else batch.ids[row], each)
        for row in sorted(found.warnings.keys() - left)
        for each in found.warnings[row]
    ]


def _table(
    found: Matches, events: pa.Array, keep: np.ndarray, shape: str, payload_of: PayloadOf | None
) -> pa.Table:
    """Pairs, or a row for each good event; a payload is its JSON text."""
    if shape in PER_EVENT:
        values = pa.array(values_per_event(found, shape))
        return pa.table({"event": events, shape: values}).filter(pa.array(keep))
    ids = found.arrow_ids()
    if shape == LISTS:
        columns = {"event": events,
                   "subscriptions": pa.LargeListArray.from_arrays(found.offsets, ids)}  # fmt: skip
        return pa.table(columns).filter(pa.array(keep))
    event = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    columns = {"event": events.take(pa.array(event)), "subscription": ids}
    if payload_of is not None:
        payloads = [json_text(payload_of(id_)) for id_ in found.ids.tolist()]
        columns["payload"] = pa.array(payloads, pa.string())
    pairs = pa.table(columns)
    return pairs if keep.all() else pairs.filter(pa.array(keep[event]))
