"""Expressions and events as integers, without an engine: what indexes and tables are tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
from hypothesis import settings

from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch, encode_events
from matchwood.encode.expression_kernels import CONJUNCTION, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import resolve
from matchwood.encode.schema import Schema
from matchwood.index.core.protocol import ANY, CONJUNCTIONS, Hits
from matchwood.lang.nodes import And, Expr
from naive import matches
from strategies import OPEN, Event, expression, predicate, workload

KINDS = {CONJUNCTIONS: (CONJUNCTION,), ANY: (CONJUNCTION, TREE)}
"""The expressions that an index of each language is given."""

N_SHARED = 2 * settings.default.max_examples
"""How many worlds tests share; every one of them meets every index in the long run."""


class World:
    """An expression table with its attributes; slot i holds `exprs[i]`, None when released."""

    def __init__(self, schema: Mapping[str, str] | None = None) -> None:
        declared = {name: kind for name, kind in (schema or {}).items() if kind != OPEN}
        self.attributes = Attributes(Schema(declared))
        self.table = ExpressionTable()
        self.exprs: list[Expr | None] = []
        self._known: dict[tuple[int, int], bool] = {}

    def store(self, exprs: Sequence[Expr], slots: Sequence[int] | None = None) -> np.ndarray:
        """Encode expressions, into free slots when these are given; returns all slots used."""
        self._known.clear()
        first = len(self.exprs)
        at = np.array(range(first, first + len(exprs)) if slots is None else slots, np.int32)
        self.exprs += [None] * (int(at.max(initial=-1)) + 1 - first)
        batch = LeafBatch()
        for slot, expr in zip(at.tolist(), exprs, strict=True):
            batch.add(expr)
            self.exprs[slot] = expr
        leaves = resolve(batch, self.attributes, self.table)
        starts = np.array(batch.expr_start, np.int64)
        self.table.encode(leaves, starts, np.array(batch.code, np.int32), at)
        return at

    def release(self, slots: np.ndarray) -> None:
        self.table.release(slots)
        for slot in slots.tolist():
            self.exprs[slot] = None

    def speaking(self, language: str, slots: np.ndarray | None = None) -> np.ndarray:
        """Those slots whose expressions an index of this language is given."""
        among = np.arange(len(self.exprs), dtype=np.int32) if slots is None else slots
        return among[np.isin(self.table.layout.kind[among], KINDS[language])]

    def expected(self, held: np.ndarray, raw: Sequence[Event]) -> list[list[int]]:
        """By event, those of the slots that match; what the naive evaluator says is kept."""
        answers = []
        for event in raw:
            slots = []
            for slot in held.tolist():
                place = slot, id(event)
                if place not in self._known:
                    self._known[place] = matches(self.exprs[slot], event)
                if self._known[place]:
                    slots.append(slot)
            answers.append(slots)
        return answers

    def events(self, events: Any) -> EventBatch:
        encoded = encode_events(self.attributes, events)
        assert encoded.errors == {}
        return encoded.batch


def found(hits: Hits) -> list[list[int]]:
    """Slots by event, ascending; fails when one comes twice."""
    per_event = [
        hits.slots[begin:end].tolist()
        for begin, end in zip(hits.offsets[:-1], hits.offsets[1:], strict=True)
    ]
    assert all(len(set(slots)) == len(slots) for slots in per_event)
    return [sorted(slots) for slots in per_event]


def small_world(
    seed: int, n_expressions: int = 24, n_events: int = 12
) -> tuple[World, EventBatch, list[Event]]:
    """Conjunctions and trees in equal parts, and events beside them."""
    rng = Random(seed)
    types, _, events = workload(rng, 0, n_events)
    world = World(types)
    world.store(mixed_expressions(rng, types, n_expressions))
    return world, world.events(events), events


@cache
def open_world(number: int) -> tuple[World, EventBatch, list[Event]]:
    """A world whose attributes nothing declares: predicates and values of every kind."""
    rng = Random(number)
    types = {"x": OPEN, "y": OPEN, "user.age": OPEN}
    _, _, events = workload(rng, 0, 16, schema_=types)
    world = World(types)
    world.store(mixed_expressions(rng, types, 40))
    return world, world.events(events), events


def shared_world(seed: int) -> tuple[World, EventBatch, list[Event]]:
    """A small world that many tests look at and none may change: making it is most of the work."""
    return _shared_world(seed % N_SHARED)


@cache
def _shared_world(number: int) -> tuple[World, EventBatch, list[Event]]:
    return small_world(number)


def mixed_expressions(rng: Random, types: Mapping[str, str], n: int) -> list[Expr]:
    return [
        conjunction(rng, types) if rng.random() < 0.5 else expression(rng, types, rng.randint(1, 8))
        for _ in range(n)
    ]


def conjunction(rng: Random, types: Mapping[str, str]) -> Expr:
    leaves = [predicate(rng, types) for _ in range(rng.randint(1, 3))]
    return leaves[0] if len(leaves) == 1 else And(tuple(leaves))
