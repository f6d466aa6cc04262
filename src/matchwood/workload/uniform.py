"""Uniform: attributes, values and ranges all drawn evenly.

Idea.    The plainest workload: conjunctions of equalities and ranges over integers a0, a1, ...
         Every statistic follows from the parameters by a one-line formula, so it suits checking a
         harness; the papers' own generators have skew, derivation and matching probabilities.
Matches. A predicate meets a random event with probability
         event_size / n_attributes * (equality / cardinality + (1 - equality) * width)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.workload.draws import Draws
from matchwood.workload.interface import IntegerWorkload
from matchwood.workload.tables import coded, entry_table, predicate_table


@dataclass(frozen=True, kw_only=True)
class Uniform(IntegerWorkload):
    """Evenly drawn conjunctions and events.

    n_attributes    how many attributes there are
    cardinality     values of an attribute: 0 .. cardinality - 1
    min_predicates  fewest and
    max_predicates  most predicates of a subscription, each number equally likely
    equality        share of predicates that are equalities; the others are ranges
    width           share of the values that a range covers
    event_size      attributes of an event
    """

    name: ClassVar[str] = "uniform"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 10_000, "n_events": 200},
        "small": {"n_subscriptions": 1_000_000, "n_events": 200},
    }

    n_attributes: int = 20
    cardinality: int = 1_000
    min_predicates: int = 5
    max_predicates: int = 5
    equality: float = 0.2
    width: float = 0.5
    event_size: int = 15

    def __post_init__(self) -> None:
        self._expect(1 <= self.min_predicates <= self.max_predicates, "1 <= min <= max predicates")
        self._expect(self.max_predicates <= self.n_attributes, "at most n_attributes predicates")
        self._expect(0 <= self.event_size <= self.n_attributes, "event_size up to n_attributes")
        self._expect(1 <= self.cardinality <= 2**31, "a cardinality from 1 to 2^31")
        self._expect(0 <= self.equality <= 1, "a share of equalities from 0 to 1")
        self._expect(0 <= self.width <= 1, "a share of values as width, from 0 to 1")

    def subscriptions(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "uniform/subscriptions", rows)
        choices = self.max_predicates - self.min_predicates + 1
        count = self.min_predicates + draws.below("count", choices)[:, 0]
        attribute = draws.distinct("attribute", self.n_attributes, count)
        most = attribute.shape[1]
        is_range = draws.unit("operator", most) >= self.equality
        covered = max(1, round(self.width * self.cardinality))
        low = draws.below(
            "low", np.where(is_range, self.cardinality - covered + 1, self.cardinality), most
        )
        used = attribute >= 0
        is_range, low = is_range[used], low[used]
        ends = np.stack([low, low + covered - 1], axis=1)
        return predicate_table(
            np.repeat(rows, count),
            coded(attribute[used], self.names),
            coded(is_range, ["=", "BETWEEN"]),
            1 + is_range,
            pa.array(ends[np.stack([np.ones_like(is_range), is_range], axis=1)]),
        )

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "uniform/events", rows)
        size = np.full(len(rows), self.event_size)
        attribute = draws.distinct("attribute", self.n_attributes, size)
        value = draws.below("value", self.cardinality, attribute.shape[1])
        return entry_table(
            np.repeat(rows, size), coded(attribute.ravel(), self.names), pa.array(value.ravel())
        )
