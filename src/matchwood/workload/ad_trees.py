"""Ad trees: expressions in the shape of the display advertisements of A-Tree's section 6.2.

Idea.    The data set is not public; what the paper says of it is reproduced.  An advertisement
         picks its targeting from a pool of its depth; a node of level l holds a node of level
         l - 1 of the other operator and some predicates, all picked from pools by Zipf's law.
         So whole expressions, subexpressions of every level and predicates are shared.
Source.  A-Tree, section 6.2 and Figure 7: depth 1 to 9, 1 to 56 predicates, 122 dimensions, events
         of about 20 attributes, sharing from 68.76 on level 1 down to 2.88 on level 9, Zipf
         distributed.
Differs. Figure 7's values between are not printed; they are taken to fall by the same factor from
         level to level.  The paper's counts give 48 predicates an expression on average, hardly
         less than its maximum; here it is some 14, and the pool of predicates is smaller
         accordingly.
Chosen   where the paper is silent: depths are even; seven of eight roots are AND; predicates of one
         node test different attributes; 40 % equalities, 35 % IN, 20 % BETWEEN, 5 % NOT IN;
         attributes have 2 to 20,000 values, in even steps of the logarithm.

Rows depend on `population`, the number of expressions for which the sharing is as stated: pools
grow with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.workload.ad_trees_kernels import LOWEST_MOST, count_sharing, write_ad_trees
from matchwood.workload.draws import Draws
from matchwood.workload.tree_workload import TreeWorkload
from matchwood.workload.trees import TreeRows, room_for

LEVELS = 9
SHARING = tuple(68.76 * (2.88 / 68.76) ** (level / 8) for level in range(LEVELS))
"""How often a subexpression of level 1 to 9 occurs on average (Figure 7a)."""

_POOL_SHARES = (0.211, 0.0212, 0.0281, 0.0371, 0.048, 0.0604, 0.0711, 0.0731, 0.0688)
"""Pools by level, as shares of the population: found by trying until the sharing was right."""


class Rules(NamedTuple):
    """What the kernels need to know."""

    row_key: np.uint64
    pool_key: np.uint64
    depths: np.ndarray  # running sums
    pool: np.ndarray  # by level
    exponent: float
    or_roots: float
    n_attributes: int
    attribute_exponent: float
    cardinality: np.ndarray  # by attribute


@dataclass(frozen=True, kw_only=True)
class AdTrees(TreeWorkload):
    """Advertisements with shared targeting (A-Tree paper).

    population          expressions for which the sharing is as in Figure 7
    exponent            of Zipf's law for expressions, subexpressions and predicates
    n_attributes        dimensions of the space
    attribute_exponent  of Zipf's law for the attributes of predicates
    event_size          attributes of an event
    or_roots            share of expressions that are an OR
    """

    name: ClassVar[str] = "ad_trees"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 10_000, "population": 10_000},
        "small": {"n_subscriptions": 100_000, "population": 100_000},
        "default": {},
        "paper": {"n_subscriptions": 1_392_196, "population": 1_392_196},
    }

    population: int = 1_000_000
    exponent: float = 0.6
    n_attributes: int = 122
    attribute_exponent: float = 0.5
    or_roots: float = 0.125

    def __post_init__(self) -> None:
        self._expect(self.population >= 1_000, "a population from 1,000")
        self._expect(self.exponent >= 0 and self.attribute_exponent >= 0, "exponents from 0")
        self._expect(self.n_attributes >= 2 * LOWEST_MOST, "28 attributes or more")
        self._expect(0 <= self.event_size <= self.n_attributes, "event_size up to n_attributes")
        self._expect(0 <= self.or_roots <= 1, "a share of ORs from 0 to 1")

    @property
    def cardinalities(self) -> np.ndarray:
        """The number of values of each attribute."""
        u = Draws(self.seed, "ad_trees/attributes", np.arange(self.n_attributes)).unit(
            "cardinality"
        )
        return (2 * 10_000.0 ** u[:, 0]).astype(np.int64)

    def rules(self) -> Rules:
        draws = Draws(self.seed, "ad_trees/subscriptions", np.zeros(1))
        pools = [0, *(max(16, int(share * self.population)) for share in _POOL_SHARES)]
        return Rules(
            draws.bits("rows")[0, 0], draws.bits("pool")[0, 0],
            np.cumsum(np.full(LEVELS, 1 / LEVELS)), np.array(pools, np.int64),
            float(self.exponent), float(self.or_roots), self.n_attributes,
            float(self.attribute_exponent), self.cardinalities,
        )  # fmt: skip

    def sharing(self) -> np.ndarray:
        """Occurrences of a subexpression, by level from 1, on average over all rows."""
        rules = self.rules()
        seen = np.zeros((LEVELS + 1, int(rules.pool.max()) + 2), bool)
        total, distinct = np.zeros(LEVELS + 1, np.int64), np.zeros(LEVELS + 1, np.int64)
        chosen = np.empty((LOWEST_MOST, 2), np.int64)
        count_sharing(rules, self.n_subscriptions, seen, chosen, total, distinct)
        return total[1:] / np.maximum(distinct[1:], 1)

    def trees(self, first: int, last: int) -> TreeRows:
        """Rows first .. last - 1."""
        rules, room = self.rules(), room_for(last - first, 20)
        chosen = np.empty((LOWEST_MOST, 2), np.int64)
        done = 0
        while True:
            done = write_ad_trees(rules, first, last, done, chosen, room)
            if done == last - first:
                return room.rows()
            room = room.grown()

    def n_values(self, attributes: np.ndarray) -> np.ndarray:
        return self.cardinalities[attributes]
