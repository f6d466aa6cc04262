"""What generators of trees have in common: even events over numbered attributes, rows as trees."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from matchwood.encode.leaves import LeafBatch
from matchwood.workload.draws import Draws
from matchwood.workload.interface import IntegerWorkload
from matchwood.workload.tables import coded, entry_table
from matchwood.workload.trees import TreeRows, leaf_batch, text_table


@dataclass(frozen=True, kw_only=True)
class TreeWorkload(IntegerWorkload):
    """A generator says `trees` and how many values an attribute has.

    event_size  attributes of an event
    """

    n_subscriptions: int = 1_000_000
    event_size: int = 20

    @abstractmethod
    def trees(self, first: int, last: int) -> TreeRows:
        """Rows first .. last - 1 as drawn."""

    @abstractmethod
    def n_values(self, attributes: np.ndarray) -> int | np.ndarray:
        """How many values attributes have."""

    def subscriptions(self, first: int, last: int) -> pa.Table:
        return text_table(self.trees(first, last), self.names, first)

    def leaf_rows(self, first: int, last: int) -> LeafBatch:
        return leaf_batch(self.trees(first, last), self.names)

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, f"{self.name}/events", rows)
        size = np.full(len(rows), self.event_size)
        attribute = draws.distinct("attribute", self.n_attributes, size)
        value = draws.below("value", self.n_values(attribute), attribute.shape[1])
        return entry_table(
            np.repeat(rows, size), coded(attribute.ravel(), self.names), pa.array(value.ravel())
        )
