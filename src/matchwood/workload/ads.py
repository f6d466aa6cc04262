"""Ads: conditions of advertisements as subscriptions, sessions of users as events.

Idea.    An advertisement names the sessions it is shown in: channel, region, position, age,
         interests.  A session has some of these attributes.  Few attributes are named by nearly
         all advertisements, and most by few: a dense workload.
Source.  PS-Tree, sections 7.1 and 7.4: 3 million subscriptions of 1 to 56 predicates, 8 on average,
         over 122 dimensions; events of 20 pairs on average.
Differs. The data of the shop are not public.  This generator keeps every number that is published;
         attributes, values and their shares are invented (`ads_attributes`).
Chosen   where the paper is silent: sizes fall off geometrically; low values are more popular than
         high ones; words are tested with = (50 %), IN (40 %) and NOT IN, levels with >= and <=
         (50 %), BETWEEN (35 %) and =.  All values are strings; numbers have two digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.workload.ads_attributes import attributes, presence
from matchwood.workload.begen_draw_kernels import draw_distinct
from matchwood.workload.draws import Draws
from matchwood.workload.interface import Workload
from matchwood.workload.tables import coded, entry_table, predicate_table

_OPERATORS = ["=", "IN", "NOT IN", ">=", "<=", "BETWEEN"]
_EQ, _IN, _NOT_IN, _GE, _LE, _BETWEEN = range(6)
_MOST_VALUES = 4
_SKEW = 1.5
_STEPS = (4, 12, 24)
"""Rows are drawn together by size, so that a short one costs little."""


@dataclass(frozen=True, kw_only=True)
class Ads(Workload):
    """Advertisements and sessions (PS-Tree paper).

    predicates      of a subscription, on average
    max_predicates  most of a subscription
    event_size      attributes of an event, on average
    """

    name: ClassVar[str] = "ads"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 10_000},
        "small": {"n_subscriptions": 100_000},
        "default": {"n_subscriptions": 3_000_000},
    }

    predicates: float = 8
    max_predicates: int = 56
    event_size: float = 20

    def __post_init__(self) -> None:
        n = len(attributes())
        self._expect(1 <= self.max_predicates <= n, f"max_predicates from 1 to {n}")
        self._expect(
            1 < self.predicates < (1 + self.max_predicates) / 2,
            "predicates between 1 and the middle of 1 .. max_predicates",
        )
        self._expect(1 <= self.event_size < n / 2, f"event_size from 1 to {n // 2}")

    @property
    def names(self) -> list[str]:
        return [each.name for each in attributes()]

    def schema(self) -> Schema:
        return Schema(dict.fromkeys(self.names, "string"))

    def subscriptions(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "ads/subscriptions", rows)
        rising = np.cumsum(_sizes(self.predicates, self.max_predicates))
        sizes = 1 + np.searchsorted(rising[:-1], draws.unit("size")[:, 0] * rising[-1])
        attr = self._attributes(rows, sizes)
        row = np.repeat(rows, sizes)
        each = Draws(self.seed, "ads/predicates", row * len(attributes()) + attr)
        op, n_values, values = _predicates(each, attr)
        return predicate_table(
            row, coded(attr, self.names), coded(op, _OPERATORS), n_values, _text(values)
        )

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "ads/events", rows)
        n = len(attributes())
        has = draws.unit("has", n) < presence(self.event_size)[None, :]
        event, attr = np.nonzero(has)
        each = Draws(self.seed, "ads/entries", (event + first) * n + attr)
        value = _value(each.unit("value")[:, 0], attr)
        return entry_table(event + first, coded(attr, self.names), _text(_base()[attr] + value))

    def _attributes(self, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Different attributes for each row by weight, one row after the other."""
        rising = np.cumsum([each.weight for each in attributes()])
        key = Draws(self.seed, "ads/subscriptions", np.zeros(1)).bits("attribute")[0, 0]
        start = np.cumsum(sizes) - sizes
        found = np.empty(int(sizes.sum()), np.int64)
        for narrow, wide in zip((0, *_STEPS), (*_STEPS, self.max_predicates), strict=True):
            at = np.flatnonzero((sizes > narrow) & (sizes <= wide))
            drawn = np.empty((len(at), wide), np.int64)
            draw_distinct(key, rows[at], rising, drawn)
            used = np.arange(wide)[None, :] < sizes[at][:, None]
            found[(start[at][:, None] + np.arange(wide)[None, :])[used]] = drawn[used]
        return found


def _predicates(draws: Draws, attr: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operator, number of values and the values' codes, one predicate for each attribute."""
    is_level, n = _is_level()[attr], _cardinality()[attr]
    words = np.array([0.5, 0.9, 1.0, 1.0, 1.0])
    levels = np.array([0.15, 0.15, 0.15, 0.40, 0.65])
    u = draws.unit("operator")[:, 0]
    op = np.where(is_level, np.searchsorted(levels, u, "right"), np.searchsorted(words, u, "right"))
    value = _value(draws.unit("value")[:, 0], attr)
    n_values = np.ones(len(attr), np.int64)
    is_list = (op == _IN) | (op == _NOT_IN)
    n_values[is_list] = (
        2 + draws.below("listed", np.minimum(n - 1, _MOST_VALUES - 1)[:, None])[is_list, 0]
    )
    step = 1 + draws.below("step", np.maximum(1, (n - 1) // (_MOST_VALUES - 1))[:, None])[:, 0]
    lists = (value[:, None] + step[:, None] * np.arange(_MOST_VALUES)[None, :]) % n[:, None]
    is_range = op == _BETWEEN
    n_values[is_range] = 2
    width = draws.below("width", np.maximum(1, n // 3)[:, None])[:, 0]
    lists[is_range, 1] = np.minimum(value + width, n - 1)[is_range]
    listed = np.arange(_MOST_VALUES)[None, :] < n_values[:, None]
    return op, n_values, (_base()[attr][:, None] + lists)[listed]


def _value(u: np.ndarray, attr: np.ndarray) -> np.ndarray:
    """A value's number in its attribute; the first ones are the most popular."""
    found: np.ndarray = (u**_SKEW * _cardinality()[attr]).astype(np.int64)
    return found


def _text(codes: np.ndarray) -> pa.Array:
    return pa.array([value for each in attributes() for value in each.values]).take(pa.array(codes))


@cache
def _sizes(mean: float, most: int) -> np.ndarray:
    """Shares of the sizes 1 .. most: geometric, with this mean."""
    size = np.arange(1, most + 1)
    low, high = 0.0, 1.0
    for _ in range(60):
        ratio = (low + high) / 2
        shares = ratio**size
        low, high = (ratio, high) if (shares * size).sum() < mean * shares.sum() else (low, ratio)
    return high**size


@cache
def _cardinality() -> np.ndarray:
    return np.array([len(each.values) for each in attributes()])


@cache
def _base() -> np.ndarray:
    """Where an attribute's values begin in the list of all values."""
    return np.cumsum(_cardinality()) - _cardinality()


@cache
def _is_level() -> np.ndarray:
    return np.array([each.is_level for each in attributes()])
