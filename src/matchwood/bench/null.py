"""Null: the index that does nothing, to show what calling an index costs by itself.

It takes any expression, holds none and matches none.  Its answers are wrong on purpose and are not
checked; it stands outside the registry, where no matcher can choose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.protocol import ANY, Hits
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import COUNTERS, EVENTS


class Null:
    """Takes everything, finds nothing."""

    name: ClassVar[str] = "null"
    language: ClassVar[str] = ANY
    Config = IndexConfig

    def __init__(self, n: int) -> None:
        self._n = n

    @classmethod
    def build(cls, table: ExpressionTable, slots: np.ndarray) -> Self:
        return cls(len(slots))

    def __len__(self) -> int:
        return self._n

    def insert(self, slots: np.ndarray) -> None:
        self._n += len(slots)

    def delete(self, slots: np.ndarray) -> None:
        self._n -= len(slots)

    def settle(self) -> None:
        """Nothing is missing."""

    def absorb(self, scratch: Scratch) -> None:
        """Nothing was learned."""

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        counters = np.zeros(len(COUNTERS), np.int64)
        counters[EVENTS] = events.n_events
        return Hits(np.zeros(events.n_events + 1, np.int64), np.empty(0, np.int32), counters)

    def stats(self) -> dict[str, Any]:
        return {"index": self.name, "bytes": 0}

    def draw(self) -> str:
        return "null"

    def layout(self) -> dict[str, np.ndarray]:
        return {"n": np.array([self._n])}

    @classmethod
    def restore(cls, table: ExpressionTable, layout: Mapping[str, np.ndarray]) -> Self:
        return cls(int(layout["n"][0]))
