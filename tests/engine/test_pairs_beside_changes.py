"""Random subscriptions against the definition of correct while two threads change them.

A search may see any state that a subscription had while it ran, and no other.  Pairs of a
subscription and an event are counted by their evaluations: 10 million in the long profile.
"""

from __future__ import annotations

import os
import threading
from itertools import count
from random import Random
from typing import Any, NamedTuple

import pytest

import matchwood as mw
import strategies
from inside import plan_parts
from matchwood.engine import matching
from matchwood.engine.segments import tiers
from matchwood.lang.nodes import Expr
from naive import matches

IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
PAIRS = int(os.environ.get("MATCHWOOD_PAIRS", 10_000_000 if IS_LONG else 20_000))
PLAIN = ("bool", "float", "int", "number")
IDS, SEARCHES, CHANGERS = 120, 100, 2


class State(NamedTuple):
    """An expression that a subscription had, None: it was not there."""

    begin: int
    expr: Expr | None
    end: list[int]
    """When the change was over that ended it; empty until then."""


class World:
    """A matcher, and the states that each of its subscriptions had."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.schema = strategies.schema(self.rng)
        if seed % 2 == 0:  # compiled code reads such events, one by one
            plain = {name: kind for name, kind in self.schema.items() if kind in PLAIN}
            self.schema = plain or {"x": "int"}
        self.clock = count(1)
        self.matcher = mw.Matcher(schema=self.schema)
        self.states: dict[int, list[State]] = {}
        self.failed: list[BaseException] = []
        self.is_over = threading.Event()
        self.n_changes = 0
        for id_ in range(IDS):
            expr = strategies.expression(self.rng, self.schema) if id_ % 3 else None
            self.states[id_] = [State(0, expr, [])]
            if expr is not None:
                self.matcher.add(id_, expr)

    def change(self, number: int) -> None:
        """One of the changers: replaces, removes and adds what is its own, in batches."""
        rng = Random(self.rng.random() + number)
        try:
            while not self.is_over.is_set():
                ids = rng.sample(range(number, IDS, CHANGERS), rng.randrange(1, 12))
                new = {
                    id_: strategies.expression(rng, self.schema) if rng.random() < 0.6 else None
                    for id_ in ids
                }
                begin = next(self.clock)
                for id_, expr in new.items():
                    self.states[id_].append(State(begin, expr, []))
                self._carry_out(new)
                end = next(self.clock)
                for id_ in ids:
                    self.states[id_][-2].end.append(end)
                self.n_changes += len(ids)
        except BaseException as error:  # noqa: BLE001 - told by the searching thread
            self.failed.append(error)

    def _carry_out(self, new: dict[int, Expr | None]) -> None:
        with self.matcher.batch() as batch:
            for id_, expr in new.items():
                if expr is not None:
                    batch.replace(id_, expr)
                elif self.states[id_][-2].expr is not None:
                    batch.remove(id_)

    def check(self, event: dict[str, Any], found: list[Any], began: int, ended: int) -> int:
        """Raise where an answer cannot be; returns how many pairs were evaluated."""
        ids = set(found)
        assert len(ids) == len(found)
        n = 0
        for id_, states in self.states.items():
            seen = [
                each
                for each in list(states)
                if each.begin <= ended and (not each.end or each.end[0] >= began)
            ]
            truths = {each.expr is not None and matches(each.expr, event) for each in seen}
            n += sum(each.expr is not None for each in seen)
            if (id_ in ids) not in truths:
                shown = [str(each.expr) for each in seen]
                raise AssertionError(
                    f"{id_} {'holds' if id_ in ids else 'misses'}: {shown} {event}"
                )
        return n

    def run(self) -> int:
        threads = [threading.Thread(target=self.change, args=(k,)) for k in range(CHANGERS)]
        for each in threads:
            each.start()
        n = 0
        try:
            for number in range(SEARCHES):
                events = [strategies.event(self.rng, self.schema) for _ in range(1 + number % 3)]
                if len(events) == 1:
                    plan_parts(self.matcher)
                began = next(self.clock)
                if len(events) == 1:
                    found = [self.matcher.match(events[0])]
                else:
                    found = self.matcher.match_many(events).to_pylist()
                ended = next(self.clock)
                for event, ids in zip(events, found, strict=True):
                    n += self.check(event, ids, began, ended)
        finally:
            self.is_over.set()
            for each in threads:
                each.join()
        for error in self.failed:
            raise error
        return n


@pytest.mark.slow
def test_no_answer_is_of_a_state_that_never_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "HEAD_MOST", 24)
    monkeypatch.setattr(tiers, "RECENT_MOST", 9)
    search, compiled = matching.single_ids, []

    def single_ids(*asked: Any) -> list[Any] | None:
        found = search(*asked)
        compiled.append(found is not None)
        return found

    monkeypatch.setattr(matching, "single_ids", single_ids)
    n_pairs = n_changes = n_worlds = 0
    while n_pairs < PAIRS:
        world = World(n_worlds)
        n_pairs += world.run()
        n_changes += world.n_changes
        n_worlds += 1
        if n_worlds % 50 == 0 or n_pairs >= PAIRS:
            told = f"{n_pairs:,} pairs, {n_changes:,} changes meanwhile, {n_worlds} matchers"
            print(told, flush=True)
    assert n_changes
    assert sum(compiled) > len(compiled) / 20  # dicts that were searched in the compiled way
