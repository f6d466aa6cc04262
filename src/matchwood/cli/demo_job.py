"""The demo without Spark: generate, add, match, check; every figure is measured in this run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.cli.demo_check import matches_in_sqlite
from matchwood.cli.screen import progress
from matchwood.engine.answers.explain import Explanation
from matchwood.engine.matcher import Matcher
from matchwood.kernel.arrays import offsets_of
from matchwood.kernel.jit import compile_seconds
from matchwood.workload.bookshop import Bookshop, offer_events
from matchwood.workload.bookshop_offers import offers

CHUNK = 2000
PREFIX = "reader-"
SAMPLE = 1000
"""Subscriptions, and events, that SQLite is asked about."""


@dataclass
class Demo:
    """What the demo found."""

    seed: int
    subscriptions: int = 0
    conjunctions: int = 0
    predicates: int = 0
    events: int = 0
    matches: int = 0
    bytes_per_subscription: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    check: dict[str, Any] = field(default_factory=dict)
    per_event: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    busiest: list[tuple[str, int, str]] = field(default_factory=list)
    hit: Explanation | None = None
    miss: Explanation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        counts = self.per_event
        return {
            "seed": self.seed,
            "subscriptions": self.subscriptions,
            "conjunctions": self.conjunctions,
            "distinct_predicates": self.predicates,
            "events": self.events,
            "matches": self.matches,
            "matches_per_event": {
                "mean": round(float(counts.mean()), 2),
                "median": float(np.median(counts)),
                "largest": int(counts.max()),
                "without": int((counts == 0).sum()),
            },
            "bytes_per_subscription": self.bytes_per_subscription,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "subscriptions_per_second": round(self.subscriptions / self.seconds["add"], 1),
            "events_per_second": round(self.events / self.seconds["match"], 1),
            "check": self.check,
            "busiest": [{"id": i, "matches": n, "expr": text} for i, n, text in self.busiest],
            "explained": [each.to_dict() for each in (self.hit, self.miss) if each is not None],
        }

    def note_stats(self, matcher: Matcher) -> None:
        """Take over what a matcher says about its subscriptions."""
        stats = matcher.stats()
        self.subscriptions = len(matcher)
        self.conjunctions, self.predicates = stats["conjunctions"], stats["predicates"]
        self.bytes_per_subscription = stats["bytes_per_subscription"]

    def note_busiest(self, matches: np.ndarray, prefix: str, text_of: Callable[[int], str]) -> None:
        """Keep the three subscriptions of most matches; `matches` by number."""
        for n in np.argsort(-matches, kind="stable")[:3].tolist():
            self.busiest.append((f"{prefix}{n}", int(matches[n]), text_of(n)))


class Clock:
    """Seconds by name.

    compiling_apart  those spent compiling are counted as "compile"; else they are part of the steps
    """

    def __init__(self, seconds: dict[str, float], compiling_apart: bool) -> None:
        self._seconds, self._is_apart = seconds, compiling_apart
        if compiling_apart:
            self._seconds["compile"] = 0.0

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start, compiled = time.perf_counter(), compile_seconds()
        yield
        self._seconds[name] = time.perf_counter() - start
        if self._is_apart:
            compiled = compile_seconds() - compiled
            self._seconds["compile"] += compiled
            self._seconds[name] -= compiled


def run(n_subscriptions: int, n_events: int, seed: int) -> Demo:
    demo, shop = Demo(seed), Bookshop(seed)
    clock = Clock(demo.seconds, compiling_apart=True)
    with clock("generate"):
        texts = list(_shown("writing wishes", n_subscriptions, shop.subscription))
        events = offers(seed, np.arange(n_events))
    with clock("start"):
        _warm_up(texts[0], events.slice(0, 1))
    matcher = Matcher()
    with clock("add"), progress("adding") as advance:
        matcher.add_many([(f"{PREFIX}{n}", text) for n, text in enumerate(texts)], progress=advance)
    with clock("match"):
        offsets, ids = _match(matcher, events)
    with clock("check"):
        demo.check = _check(texts, events, offsets, ids, Random(seed))
    _count(demo, matcher, texts, offsets, ids)
    _explain(demo, matcher, texts, events, offsets, ids)
    return demo


def _shown(what: str, n: int, draw: Callable[[], Any]) -> Iterable[Any]:
    with progress(what) as advance:
        for done in range(n):
            yield draw()
            if done % CHUNK == 0:
                advance(done, n)


def _warm_up(text: str, events: pa.Table) -> None:
    """Load or compile the kernels, so that what follows measures work."""
    matcher = Matcher()
    matcher.add_many([(0, text), (1, "a = 1 OR b = 'x'")])
    matcher.match_many(events)


def _match(matcher: Matcher, events: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and ids of all events, matched in chunks so that progress can be shown."""
    counts, ids = [], []
    with progress("matching") as advance:
        for first in range(0, len(events), CHUNK):
            found = matcher.match_many(events.slice(first, CHUNK))
            counts.append(np.diff(found.offsets))
            ids.append(found.ids)
            advance(min(first + CHUNK, len(events)), len(events))
    return offsets_of(np.concatenate(counts)), np.concatenate(ids)


def _check(
    texts: list[str], events: pa.Table, offsets: np.ndarray, ids: np.ndarray, random: Random
) -> dict[str, Any]:
    """Compare a sample with SQLite: every chosen subscription on every chosen event."""
    rows = random.sample(range(len(events)), min(SAMPLE, len(events)))
    held = [ids[offsets[row] : offsets[row + 1]].tolist() for row in rows]
    matched = {int(id_[len(PREFIX) :]) for each in held for id_ in each}
    chosen = drawn_subscriptions(random, matched, len(texts), SAMPLE)
    ours: dict[str, set[int]] = {f"{PREFIX}{n}": set() for n in sorted(chosen)}
    for number, each in enumerate(held):
        for id_ in each:
            if id_ in ours:
                ours[id_].add(number)
    asked = offer_events(events.take(pa.array(rows)))
    theirs = matches_in_sqlite([texts[n] for n in sorted(chosen)], asked)
    pairs = list(zip(ours.values(), theirs, strict=True))
    return {
        "against": "SQLite",
        "pairs": len(rows) * len(chosen),
        "matches": sum([len(other) for _, other in pairs]),
        "differences": sum([len(mine ^ other) for mine, other in pairs]),
    }


def drawn_subscriptions(random: Random, matched: set[int], n: int, size: int) -> set[int]:
    """Numbers of the subscriptions to check, of n.

    Half of them are drawn among those that matched one of the events, so that matches are checked
    as well as their absence.
    """
    chosen = set(random.sample(sorted(matched), min(size // 2, len(matched))))
    others = [each for each in range(n) if each not in chosen]
    return chosen | set(random.sample(others, min(size - len(chosen), len(others))))


def _count(
    demo: Demo, matcher: Matcher, texts: list[str], offsets: np.ndarray, ids: np.ndarray
) -> None:
    demo.note_stats(matcher)
    demo.events, demo.matches = len(offsets) - 1, len(ids)
    demo.per_event = np.diff(offsets)
    numbers = np.array([int(id_[len(PREFIX) :]) for id_ in ids.tolist()], np.int64)
    demo.note_busiest(np.bincount(numbers, minlength=len(texts)), PREFIX, texts.__getitem__)


def _explain(
    demo: Demo,
    matcher: Matcher,
    texts: list[str],
    events: pa.Table,
    offsets: np.ndarray,
    ids: np.ndarray,
) -> None:
    """One match, and one wish for the same author that the offer does not meet."""
    matched = np.flatnonzero(np.diff(offsets))
    if not len(matched):
        return
    row = int(matched[0])
    held = ids[offsets[row] : offsets[row + 1]].tolist()
    (event,) = offer_events(events.slice(row, 1))
    demo.hit = matcher.explain(held[0], event)
    same_author = by_author_of(event)
    for n, text in enumerate(texts):
        if same_author in text and f"{PREFIX}{n}" not in held:
            demo.miss = matcher.explain(f"{PREFIX}{n}", event)
            return


def by_author_of(event: Mapping[str, Any]) -> str:
    """The predicate that asks for the author of an offer."""
    author = event["author"].replace("'", "''")
    return f"author = '{author}'"
