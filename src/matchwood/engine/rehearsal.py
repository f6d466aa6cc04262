"""Rehearsal: all verbs of a matcher on little data, so that its kernels are compiled.

Where the package has no kernels that fit, they compile at their first use, which takes seconds.  A
change holds the lock of changes, and one of a guarded view those of all its searches (`access`):
others would wait for the compiler.  So a matcher that several threads use rehearses before its
first change: a private matcher of the same index and settings goes through all verbs once, while no
lock is held.

bench/exercise.py, which finds what is compiled ahead, consists of the same calls.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.engine.stores.context_changes import ContextChange
from matchwood.engine.stores.routing import AUTO_FROM, TREES_FROM, attribute_settings
from matchwood.errors import MatchwoodError
from matchwood.lang.parser import parse

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher

_rehearsed: set[tuple[str, str, bool]] = set()
"""Index, settings and whether with contexts: what this process has rehearsed."""


class _Thread(threading.local):
    is_rehearsing = False


_thread = _Thread()


def rehearse(
    kind: type[Matcher], index: str, config: Mapping[str, Any], has_contexts: bool
) -> None:
    """Go through all verbs with a matcher of this index and settings, once in a process.

    Threads that call this at the same time all do it: the compiler works for one at a time, and the
    others load what it has made.
    """
    key = index, repr(sorted(config.items())), has_contexts
    if key in _rehearsed or _thread.is_rehearsing:
        return
    named: dict[str, Any] = {
        name: ("a", "b", "c")[: len(value)] if name in attribute_settings(index) else value
        for name, value in config.items()
    }
    _thread.is_rehearsing = True
    try:
        # no change may fail with it, where no folder for scratch files can be written, for example:
        # what it did not reach compiles at its first use
        with suppress(Exception):
            _rehearse(lambda: kind(index, **named), has_contexts)
    finally:
        _thread.is_rehearsing = False
    _rehearsed.add(key)


def _rehearse(make: Callable[[], Matcher], has_contexts: bool) -> None:
    """All verbs, with fewer and with more trees and conjunctions than get an index of their own."""
    rng = Random(4)
    for n_conjunctions, n_trees in ((400, 60), (AUTO_FROM + 100, TREES_FROM + 50)):
        matcher = make()
        if has_contexts:
            matcher.add("bound", "a < ctx.x", context="user")
        with suppress(MatchwoodError):  # an index may refuse some of this
            whole_life(matcher, conjunctions(n_conjunctions, rng) + tree_texts(n_trees, rng))
    if has_contexts:
        context_life(make(), 200)


EVENTS: list[dict[str, Any]] = [
    {"a": 1, "b": 2, "c": 3.5, "s": "word 7", "t": True, "u": {"v": 3}},
    {"a": 5, "b": 1, "d": date(2026, 5, 4), "m": datetime(2026, 5, 4, 17, tzinfo=UTC)},
    {"a": 2**60, "c": float("nan"), "s": "", "t": None},
    {},
]


def conjunctions(n: int, rng: Random) -> list[str]:
    """Texts of conjunctions, of all types."""
    shapes = (
        "a = {0}", "a = {0} AND b < {1}", "b BETWEEN {0} AND {1} AND a > {2}",
        "s LIKE 'word {0}%' AND c <= {1}.5", "a IN ({0}, {1}, {2}) AND s <> 'word {1}'",
        "a NOT IN ({0}, {2}) AND t", "d > DATE '2026-05-01' AND a <> {0}", "u.v = {0} AND b <> {1}",
        "m < TIMESTAMP '2026-06-01 00:00:00' AND c > {0}", "c IS NULL AND a >= {0}",
        "a BETWEEN {0} AND {1} AND b BETWEEN {1} AND {2}",
    )  # fmt: skip
    return [shapes[i % len(shapes)].format(*sorted(rng.sample(range(60), 3))) for i in range(n)]


def tree_texts(n: int, rng: Random) -> list[str]:
    """Texts of other expressions."""
    parts = conjunctions(3 * n, rng)
    rng.shuffle(parts)
    shapes = ("({0}) OR ({1})", "NOT ({0} AND {1}) OR {2}", "({0}) XOR ({1})",
              "({0} OR {1}) AND ({2} OR t)")  # fmt: skip
    return [shapes[i % len(shapes)].format(*parts[3 * i : 3 * i + 3]) for i in range(n)]


def _columns() -> pa.Table:
    """Events of one table: a column of each type."""
    rows = 70
    return pa.table(
        {
            "a": pa.array(range(rows), pa.int64()),
            "b": pa.array([i % 5 for i in range(rows)], pa.int32()),
            "c": pa.array([i / 2 for i in range(rows)], pa.float64()),
            "s": [f"word {i}" if i % 3 else None for i in range(rows)],
            "t": [i % 2 == 0 for i in range(rows)],
            "d": pa.array([date(2026, 5, 1 + i % 28) for i in range(rows)]),
            "m": pa.array([datetime(2026, 5, 1, i % 24, tzinfo=UTC) for i in range(rows)]),
            "u": pa.array([{"v": i} for i in range(rows)]),
        }
    )


def match(matcher: Matcher) -> None:
    """Search for events in every form."""
    for event in EVENTS:
        matcher.match(event)
    matcher.match_many(EVENTS * 20)
    matcher.match_many(EVENTS[:1] * 20)  # equal events are searched once
    matcher.match(EVENTS[0])  # by now compiled code reads dicts
    matcher.match({**EVENTS[0], "a": 77})  # what is computed from this value is not known yet
    matcher.match_many_json("\n".join([json.dumps(event, default=str) for event in EVENTS * 20]))
    matcher.match_many_json([json.dumps(event, default=str).encode() for event in EVENTS * 20])
    matcher.match_many(_columns())
    matcher.match_many(_columns().to_batches()[0])
    matcher.match(parse("a BETWEEN 1 AND 9 AND b IN (1, 3)"))
    matcher.match_many([parse("a > 5"), parse("s = 'word 7' AND c < 4")])


def _ask(matcher: Matcher) -> None:
    """What users ask besides `match`: the best, near misses, the indexes against a scan."""
    matcher.match(EVENTS[0], limit=2)
    matcher.match_many(EVENTS, limit=2, where="age > 3")
    matcher.near(EVENTS[0], 3)
    matcher.verify(EVENTS[:2])


def change(matcher: Matcher) -> None:
    """Add, replace and remove, one and many, with a match after each."""
    matcher.add("one", "a = 3 AND b > 7", priority=2, attributes={"age": 5})
    matcher.add("two", "a = 3 OR s = 'x' AND b > 7")
    matcher.match(EVENTS[0])
    matcher.replace("one", "a = 4 AND new = 1")
    matcher.remove("two")
    matcher.add_many([(f"more {i}", text) for i, text in enumerate(conjunctions(20, Random(2)))])
    matcher.match_many(EVENTS)
    matcher.explain("one", EVENTS[0])
    _ask(matcher)
    matcher.remove_many([f"more {i}" for i in range(0, 20, 2)])
    matcher.match_many(EVENTS)
    matcher.remove_many(["one", *[f"more {i}" for i in range(1, 20, 2)]])


def _save_and_load(matcher: Matcher) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for mmap in (True, False):
            matcher.save(Path(folder) / f"snapshot {mmap}")
            loaded = type(matcher).load(Path(folder) / f"snapshot {mmap}", mmap=mmap)
            match(loaded)
            change(loaded)
            loaded.renumber()


def whole_life(matcher: Matcher, texts: list[str]) -> None:
    """From the first subscription to the last: all verbs, and what they do when memory is full."""
    matcher.add("first", texts[0])
    matcher.match(EVENTS[0])
    matcher.add_many(list(enumerate(texts)))
    match(matcher)
    change(matcher)
    matcher.stats()
    matcher.draw()
    _save_and_load(matcher)
    matcher.remove_many(range(0, len(texts), 2))  # more than half are gone: compact
    matcher.remove_many(range(1, len(texts), 4))
    matcher.match_many(EVENTS)
    matcher.add_many([(f"again {i}", text) for i, text in enumerate(texts[:100])])
    matcher.add("computed", "a + 1 > 3 AND lower(s) = 'word 7'")
    match(matcher)


def context_life(matcher: Matcher, n: int) -> None:
    """The same for subscriptions that refer to contexts, whose values change."""
    texts = ("a < ctx.x", "b BETWEEN ctx.x - 5 AND ctx.x + 5 AND a > 1", "ctx.y = 3 AND a <> 2",
             "s = ctx.name AND ctx.y > 1", "ctx.x > 3 OR ctx.y < 2 AND a = 1")  # fmt: skip
    matcher.set_context_many(pa.table({"context": ["user 1"], "x": [3]}))
    matcher.add_many([(i, texts[i % len(texts)], f"user {i % 20}") for i in range(n)])
    matcher.add("plain", "a = 1")
    match(matcher)
    for turn in range(30):
        users = {f"user {u}": {"x": (turn * u) % 9, "y": turn % 5} for u in range(20)}
        matcher.set_context("user 1", {"x": turn, "name": f"word {turn}"}, flips=True)
        matcher.set_context_many(users, flips=turn % 2 == 0)
        matcher.match_many(EVENTS)
    updates = [("user 1", {"x": 1})]
    between = ContextChange(1, partial(matcher.set_context_many, updates), updates)
    matcher.find(matcher.encode(EVENTS), [between])
    matcher.add("late", texts[1], context="user 3")
    matcher.explain("late", EVENTS[0])
    _save_and_load(matcher)
    matcher.remove_context("user 2", flips=True)
    matcher.remove_many(range(0, n, 2))
    match(matcher)
