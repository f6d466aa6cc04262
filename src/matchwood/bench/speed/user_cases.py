"""What a user does, through the public verbs: dicts, JSON lines, Arrow tables, texts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import numpy as np

from matchwood import Matcher
from matchwood.bench.goals import AnswersDiffer, Measured, agree, seconds
from matchwood.bench.speed.sizes import Sizes
from matchwood.encode.json.events import JsonLines
from matchwood.errors import MatchwoodError
from matchwood.workload import Workload, event_dicts, find_workload
from matchwood.workload.tables import wide_events

FIELDS = 20
"""Fields of a line of JSON, which also has an array and a note."""


def matcher_of(workload: Workload, index: str) -> Matcher:
    """A matcher with the subscriptions of a workload; row i has id i."""
    matcher = Matcher(index, schema=workload.schema())
    for first in range(0, workload.n_subscriptions, 200_000):
        last = min(first + 200_000, workload.n_subscriptions)
        report = matcher.add_many(workload.subscriptions(first, last))
        if report.errors:
            raise MatchwoodError(f"expected a workload without faults, found {report.errors[0]}")
    matcher.compact()
    return matcher


# -- dicts --------------------------------------------------------------------------------------


def dict_cases(sizes: Sizes, index: str) -> Iterator[Measured]:
    """One event a call, and what its parts take."""
    workload = find_workload(
        "pstree", n_subscriptions=sizes.subscriptions // 10, n_events=sizes.events
    )
    matcher = matcher_of(workload, index)
    table = workload.events(0, sizes.events)
    events = event_dicts(table, 0, sizes.events)
    few = events[:50]
    agree(
        "suite speed, dict",
        [matcher.match(event) for event in few],
        matcher.match_many(few).to_pylist(),
        matcher.match_many(wide_events(table, 0, sizes.events).slice(0, 50)).to_pylist(),
        _scanned(workload, few),
    )
    n, clock = len(events), time.perf_counter_ns
    took = np.empty(3 * n)
    for i, event in enumerate(events * 3):
        began = clock()
        matcher.match(event)
        took[i] = clock() - began
    yield Measured("dict", seconds(lambda: [matcher.match(event) for event in events]) / n * 1e6)
    yield Measured("dict p50", float(np.percentile(took, 50)) / 1000)
    yield Measured("dict p99", float(np.percentile(took, 99)) / 1000)
    encoded = matcher.encode(events)
    yield Measured("dict index", seconds(lambda: matcher.find(encoded)) / n * 1e6)
    n_entries = sum(map(len, events))
    yield Measured("dict keys", seconds(lambda: matcher.encode(events)) / n_entries * 1e6)


def _scanned(workload: Workload, events: list[dict[str, Any]]) -> list[list[Any]]:
    return matcher_of(workload, "scan").match_many(events).to_pylist()


def small_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """Few subscriptions: nothing but the cost of a call."""
    matcher = Matcher(index)
    for i in range(10):
        matcher.add(f"s{i}", f"a = {i % 3} AND b < {i}")
    event = {"a": 1, "b": 2}
    agree("small", matcher.match(event), ["s4", "s7"])
    n = sizes.calls

    def calls() -> None:
        for _ in range(n):
            matcher.match(event)

    yield Measured("small", seconds(calls) / n * 1e6)


def equality_cases(sizes: Sizes, index: str) -> Iterator[Measured]:
    """Equalities alone, about one match: dicts, encoded events, an Arrow table."""
    workload = find_workload(
        "begen", n_subscriptions=sizes.subscriptions // 10, n_events=sizes.many_events,
        n_attributes=100, cardinality=1_000, equality=1.0, predicates=4, min_predicates=3,
        match_probability=None,
    )  # fmt: skip
    matcher = matcher_of(workload, index)
    table = workload.events(0, sizes.many_events)
    events = event_dicts(table, 0, sizes.many_events)
    wide, few = wide_events(table, 0, sizes.many_events), events[:200]
    agree(
        "suite speed, equality",
        [matcher.match(event) for event in few],
        matcher.match_many(few).to_pylist(),
        matcher.match_many(wide)[:200],
        _scanned(workload, few),
    )
    n, encoded = len(events), matcher.encode(events)
    yield Measured("dicts", n / seconds(lambda: matcher.match_many(events), 3))
    yield Measured("equality batch", n / seconds(lambda: matcher.find(encoded)))
    some = events[: sizes.calls]
    one = seconds(lambda: [matcher.match(event) for event in some], 3)
    yield Measured("equality dicts", len(some) / one)
    yield Measured("arrow", n / seconds(lambda: matcher.match_many(wide), 3))


# -- JSON lines -----------------------------------------------------------------------------------


def line(rng: Random) -> bytes:
    """One of distinct events: 20 fields, an array and a note, about 900 bytes."""
    fields: dict[str, Any] = {
        f"field_{k:02}": f"value {rng.randrange(1_000)}" if k % 2 else rng.randrange(1_000)
        for k in range(FIELDS)
    }
    tags = [f"tag{rng.randrange(100)}" for _ in range(12)]
    return json.dumps({**fields, "tags": tags, "note": "x" * 260}).encode()


def two_fields(rng: Random) -> str:
    word, number = 2 * rng.randrange(FIELDS // 2) + 1, 2 * rng.randrange(FIELDS // 2)
    return (
        f"field_{word:02} = 'value {rng.randrange(1_000)}' "
        f"AND field_{number:02} = {rng.randrange(1_000)}"
    )


def field_and_range(rng: Random) -> str:
    low = rng.randrange(1_000)
    return f"field_01 = 'value {rng.randrange(1_000)}' AND field_02 BETWEEN {low} AND {low + 9}"


def _to_keys(matcher: Matcher, buffer: bytes) -> None:
    matcher.encode(JsonLines(buffer))


def json_cases(sizes: Sizes, index: str) -> Iterator[Measured]:
    """A buffer of JSON lines in, ids out."""
    rng = Random(1)
    lines = [line(rng) for _ in range(sizes.lines)]
    buffer = b"\n".join(lines)
    loads = len(lines) / seconds(lambda: [json.loads(each) for each in lines], 3)
    cases = [(f"json {n}K", two_fields, n * 1_000) for n in (1, 10, 100)]
    cases += [(f"json range {n}K", field_and_range, n * 1_000) for n in (1, 10)]
    for key, rule, n in cases:
        matcher = Matcher(index)
        matcher.add_many([(i, rule(rng)) for i in range(n * sizes.subscriptions // 1_000_000)])
        few = lines[:500]
        dicts = [json.loads(each) for each in few]
        agree(key, matcher.match_many_json(few).to_pylist(), matcher.match_many(dicts).to_pylist())
        rate = len(lines) / seconds(partial(matcher.match_many_json, buffer), 3)
        encode = len(lines) / seconds(partial(_to_keys, matcher, buffer), 3)
        yield Measured(key, rate, {"json.loads alone": loads, "to keys alone": encode})


# -- texts ----------------------------------------------------------------------------------------

_SHAPES = (
    "{0} = {2}", "{0} < {2}", "{0} >= {2}.5", "{0} BETWEEN {2} AND {3}", "{0} IN ({2}, {3}, 7)",
    "{1} = 'word {2}'", "{1} <> 'word {2}'", "{1} IN ('word {2}', 'word {3}')", "{1} LIKE 'w{2}%'",
)  # fmt: skip


def texts_of(n: int, seed: int = 1) -> list[str]:
    """Distinct texts of five predicates."""
    rng = Random(seed)
    shapes = cycle(_SHAPES)
    found = []
    for _ in range(n):
        names = rng.sample(range(100), 5)
        parts = [
            next(shapes).format(
                f"number_{k}", f"word_{k}", low := rng.randrange(1_000), low + rng.randrange(100)
            )
            for k in names
        ]
        found.append(" AND ".join(parts))
    return found


def text_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """Texts to the index, in one process."""
    texts = texts_of(sizes.texts)
    Matcher(index).add_many(enumerate(texts[:3_000]), processes=1)

    def add() -> Matcher:
        matcher = Matcher(index)
        matcher.add_many(enumerate(texts), processes=1)
        return matcher

    matcher = add()
    events = [
        {
            name: value
            for k in range(100)
            for name, value in ((f"number_{k}", 30 * i), (f"word_{k}", f"word {i}"))
        }
        for i in range(20)
    ]
    if len(matcher) != len(texts) or not matcher.verify(events):
        raise AnswersDiffer("suite speed, texts: the index does not answer as scan")
    yield Measured("texts", len(texts) / seconds(add, 3))
