"""The cases of the suite `engine` that use a whole `Matcher`."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from matchwood import Matcher
from matchwood.bench.engine.sizes import Sizes
from matchwood.bench.goals import AnswersDiffer, Measured, agree
from matchwood.bench.speed.user_cases import line, matcher_of, two_fields
from matchwood.workload import Workload, find_workload
from matchwood.workload.tables import wide_events

RATE, BATCH, SMALL_BATCH = 5_100, 100, 20
"""Changes a second that the writer tries to make; changes of one batch, and of a smaller one."""
SWITCH_INTERVAL = 0.0001
"""Seconds after which a thread that runs Python code gives the interpreter up."""
EDGES = [2.0**k for k in range(-4, 8)]
"""Upper ends of the histogram's bins, in milliseconds."""
FEW = 100
"""Changes before the second checkpoint."""


class Histogram(NamedTuple):
    """How many searches took how long: up to each of `edges` in ms, and longer."""

    case: str
    edges: list[float]
    quiet: list[int]
    changing: list[int]


def live_case(sizes: Sizes, index: str) -> Iterator[Measured | Histogram]:
    """One thread searches, another one changes subscriptions, in a folder that is not synced.

    The process is set as docs/engine.md advises for services; the rows tell the switch interval.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield from _live(sizes, index)
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()


def _live(sizes: Sizes, index: str) -> Iterator[Measured | Histogram]:
    rng = Random(1)
    model = {i: two_fields(rng) for i in range(sizes.subscriptions)}
    events = [json.loads(line(rng)) for _ in range(200)]
    with TemporaryDirectory() as home, Matcher.open(home, index, sync=False) as matcher:
        matcher.add_many(model)
        _timed(matcher, events, sizes.seconds / 10)
        gc.collect()
        gc.freeze()
        quiet = _timed(matcher, events, sizes.seconds)
        rate, changing = _beside_changes(matcher, model, events, sizes.seconds, BATCH)
        small, _ = _beside_changes(matcher, model, events, sizes.seconds, SMALL_BATCH)
        if matcher.ids() != list(model) or not matcher.verify(events[:50]):
            raise AnswersDiffer("suite engine, live: the matcher does not hold what was changed")
    apart = {f"/s, {SMALL_BATCH} in a batch": small, "switch interval ms": SWITCH_INTERVAL * 1000}
    yield Measured("changes", rate, apart)
    p99 = [float(np.percentile(each, 99)) for each in (quiet, changing)]
    extra = {"quiet p50": float(np.percentile(quiet, 50)), "quiet p99": p99[0]}
    extra |= {"changing p50": float(np.percentile(changing, 50)), "changing p99": p99[1]}
    yield Measured("p99", p99[1] - p99[0], {**extra, "longest": max(changing)})
    yield Histogram("live", EDGES, _counts(quiet), _counts(changing))


def _timed(matcher: Matcher, events: list[dict[str, Any]], seconds: float) -> list[float]:
    """Milliseconds of every search in some time, by the clock."""
    took: list[float] = []
    clock = time.perf_counter
    until, i = clock() + seconds, 0
    while clock() < until or not took:
        event = events[i % len(events)]
        began = clock()
        matcher.match(event)
        took.append((clock() - began) * 1000)
        i += 1
    return took


def _beside_changes(
    matcher: Matcher, model: dict[int, str], events: list[dict[str, Any]], seconds: float, size: int
) -> tuple[float, list[float]]:
    """Changes a second, in batches of a size, and what searches took meanwhile."""
    is_over, failed = threading.Event(), []

    def write() -> None:
        try:
            _change(matcher, model, size, is_over)
        except BaseException as error:
            failed.append(error)
            raise

    writer = threading.Thread(target=write)
    first, n_before, began = next(iter(model)), len(model), time.monotonic()
    writer.start()
    try:
        took = _timed(matcher, events, seconds)
    finally:
        is_over.set()
        writer.join()
    if failed:
        raise failed[0]
    assert len(model) == n_before
    return 2 * (next(iter(model)) - first) / (time.monotonic() - began), took


def _change(matcher: Matcher, model: dict[int, str], size: int, is_over: threading.Event) -> None:
    """Remove the oldest and add new ones, batch by batch, until `is_over` is set."""
    oldest = next(iter(model))  # once: after removals a dict has to look for its first key
    last = oldest + len(model) - 1
    rng, began, n = Random(last), time.monotonic(), 0
    while not n or not is_over.is_set():
        with matcher.batch() as batch:
            for _ in range(size // 2):
                batch.remove(oldest)
                del model[oldest]
                oldest, last = oldest + 1, last + 1
                model[last] = two_fields(rng)
                batch.add(last, model[last])
        n += size
        is_over.wait(max(0.0, began + n / RATE - time.monotonic()))


def _counts(took: list[float]) -> list[int]:
    bins = np.searchsorted(EDGES, took)
    return np.bincount(bins, minlength=len(EDGES) + 1).tolist()


def open_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """Open a folder; write a checkpoint after few changes."""
    workload = _begen(sizes)
    events = wide_events(workload.events(0, sizes.events), 0, sizes.events)
    with TemporaryDirectory() as home:
        with Matcher.open(home, index, schema=workload.schema(), sync=False) as matcher:
            _load(matcher, workload)
            before = matcher.match_many(events).to_pylist()
            matcher.checkpoint()
        cpu, clock = [], []
        for _ in range(sizes.rounds):
            began = time.process_time(), time.perf_counter()
            matcher = Matcher.open(home, sync=False)
            cpu.append(time.process_time() - began[0])
            clock.append(time.perf_counter() - began[1])
            agree("suite engine, open", before, matcher.match_many(events).to_pylist())
            matcher.close()
        n = workload.n_subscriptions
        by_clock = {"s by the clock, not scaled": min(clock)}
        yield Measured("open", min(cpu) * 1e6 / n, by_clock)
        with Matcher.open(home, sync=False) as matcher:
            texts = [matcher[i].text for i in range(FEW // 2)]
            for i, text in enumerate(texts):
                matcher.remove(i)
                matcher.add(n + i, text)
            kept = _files(home)
            began_at = time.perf_counter()
            matcher.checkpoint()
            took = time.perf_counter() - began_at
            files = _files(home)
            written = sum(size for name, size in files.items() if kept.get(name) != size)
            after = matcher.match_many(events).to_pylist()
        with Matcher.open(home, sync=False) as matcher:
            agree("suite engine, checkpoint", after, matcher.match_many(events).to_pylist())
        share = 100 * written / sum(files.values())
        yield Measured("checkpoint", share, {"KB": written / 1024, "s by the clock": took})


def _files(home: str) -> dict[str, int]:
    """The sizes of all files of segments."""
    found = [each for each in Path(home, "segments").rglob("*") if each.is_file()]
    return {str(each): each.stat().st_size for each in found}


def add_cases(sizes: Sizes, index: str) -> Iterator[Measured]:
    """Additions one by one, to a folder."""
    rng = Random(2)
    texts = [two_fields(rng) for _ in range(sizes.adds)]
    event = json.loads(line(rng))

    def rate(key: str, **options: Any) -> Measured:
        found = {}
        for name, is_synced in (("synced", True), ("not synced", False)):
            with TemporaryDirectory() as home:
                with Matcher.open(home, index, sync=is_synced, **options) as matcher:
                    matcher.add("first", "field_02 = 1")
                    began = time.perf_counter(), time.thread_time()
                    for i, text in enumerate(texts):
                        matcher.add(i, text)
                    matcher.flush()
                    found[name] = len(texts) / (time.perf_counter() - began[0])
                    found[f"{name}, CPU alone"] = len(texts) / (time.thread_time() - began[1])
                    before = [matcher.ids(), matcher.match(event)]
                with Matcher.open(home) as matcher:
                    agree(f"suite engine, {key}", before, [matcher.ids(), matcher.match(event)])
        return Measured(key, found.pop("synced"), found)

    rate("warm up")
    yield rate("adds")
    yield rate("adds group", commit_every=0.1)


def thread_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """The same batch of distinct events with one thread and with two, in turn."""
    n = min(sizes.events * 100, sizes.subscriptions // 20)
    # BEGen has as many distinct events as base expressions; equal ones would be searched once
    workload = _begen(sizes, n_events=n, match_probability=1 / n)
    matcher = matcher_of(workload, index)
    events = wide_events(workload.events(0, workload.n_events), 0, workload.n_events)
    calls: list[Callable[[], Any]] = [
        lambda: matcher.match_many(events, threads=1),
        lambda: matcher.match_many(events, threads=2),
    ]
    agree("suite engine, threads", *[call().to_pylist() for call in calls])
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(4 * sizes.rounds):  # short calls, the least of which count
        for call, times in zip(calls, took, strict=True):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    one, two = min(took[0]), min(took[1])
    began = time.perf_counter()
    matcher.encode(events)
    encoding = time.perf_counter() - began  # by one thread in either case
    extra = {"events": n, "s one": one, "s two": two, "s encoding": encoding}
    yield Measured("threads", one / two, extra)


def memory_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """What `stats` counts, without texts."""
    workload = _begen(sizes)
    matcher = matcher_of(workload, index)
    stats = matcher.stats()["bytes"]
    each = {name: size / workload.n_subscriptions for name, size in stats.items()}
    text = each.pop("texts")
    yield Measured("memory", sum(each.values()), {**each, "text apart": text})


def _begen(sizes: Sizes, **changes: Any) -> Workload:
    given = {"n_subscriptions": sizes.subscriptions, "n_events": sizes.events, **changes}
    return find_workload("begen", **given)


def _load(matcher: Matcher, workload: Workload) -> None:
    for first in range(0, workload.n_subscriptions, 200_000):
        last = min(first + 200_000, workload.n_subscriptions)
        matcher.add_many(workload.subscriptions(first, last))
