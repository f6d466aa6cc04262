"""ABE-Gen: arbitrary trees that share subexpressions.

Idea.    A tree grows from its root: a node is AND, OR, NOT, XOR or XNOR, and at the full depth a
         predicate.  A child is not drawn afresh: its rank in a pool of subexpressions is, by Zipf's
         law, and everything below follows from the rank.  Popular ranks are popular
         subexpressions.
Source.  A-Tree, section 6.1 and Table 3.
Rules.   The defaults: 1M trees; 40 % AND, 40 % OR, 10 % NOT, 5 % XOR, 5 % XNOR; exponent 0.6;
         1,000 dimensions of 100 values; events of 20 attributes.  Depth 3 and 4 children, which
         the table's bold print has lost here: section 6.4.1 says that a tree becomes at most
         4^4 = 256 conjunctions, and AND of 4 ORs of 4 predicates is that tree.
Chosen   where the paper is silent: every AND and OR has exactly `children` children; roots are not
         shared; a pool for every depth, of a size that makes the sharing of the defaults the
         paper's 4.33 for subexpressions; 64 % equalities, 10 % <>, 5 % each of < <= > >=, 3 %
         BETWEEN, 3 % IN, which makes it some 18 for predicates (paper: 18.35); BETWEEN covers 12 %
         of the values on average; attributes and values of events are even, and every event has
         event_size attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.workload.abegen_kernels import write_trees
from matchwood.workload.abegen_presets import PRESETS, SWEEPS
from matchwood.workload.draws import Draws
from matchwood.workload.tree_workload import TreeWorkload
from matchwood.workload.trees import TreeRows, room_for


class Rules(NamedTuple):
    """What the kernel needs to know."""

    row_key: np.uint64
    pool_key: np.uint64
    depth: int
    children: int
    operators: np.ndarray  # running sums of AND, OR, NOT, XOR, XNOR
    pool: int
    exponent: float
    n_attributes: int
    attribute_exponent: float
    cardinality: int
    range_size: float


@dataclass(frozen=True, kw_only=True)
class ABEGen(TreeWorkload):
    """Arbitrary trees with shared subexpressions (A-Tree paper).

    depth               of all trees; 1: a predicate
    children            of AND and OR
    operators           shares of AND, OR, NOT, XOR and XNOR
    exponent            of Zipf's law for subexpressions; 0: none is shared
    pool                distinct subexpressions of every depth
    n_attributes        dimensions of the space
    attribute_exponent  of Zipf's law for the attributes of predicates; 0: even
    cardinality         values of an attribute: 0 .. cardinality - 1
    range_size          average share of the values that BETWEEN covers
    event_size          attributes of an event
    """

    name: ClassVar[str] = "abegen"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sweeps: ClassVar[Mapping[str, tuple[Mapping[str, Any], ...]]] = SWEEPS

    depth: int = 3
    children: int = 4
    operators: tuple[float, ...] = (0.4, 0.4, 0.1, 0.05, 0.05)
    exponent: float = 0.6
    pool: int = 890_000
    attribute_exponent: float = 0.0
    cardinality: int = 100
    range_size: float = 0.12

    def __post_init__(self) -> None:
        object.__setattr__(self, "operators", tuple(self.operators))
        self._expect(1 <= self.depth <= 12, "a depth from 1 to 12")
        self._expect(2 <= self.children <= 64, "2 to 64 children")
        self._expect(
            len(self.operators) == 5
            and all(share >= 0 for share in self.operators)
            and abs(sum(self.operators) - 1) < 1e-9,
            "five shares of operators that add up to 1",
        )
        self._expect(self.exponent >= 0 and self.attribute_exponent >= 0, "exponents from 0")
        self._expect(1 <= self.pool < 2**53, "a pool of 1 or more")
        self._expect(2 <= self.cardinality <= 2**31, "a cardinality from 2 to 2^31")
        self._expect(0 < self.range_size <= 0.5, "a share of values as range_size, up to a half")
        self._expect(0 <= self.event_size <= self.n_attributes, "event_size up to n_attributes")

    def trees(self, first: int, last: int) -> TreeRows:
        """Rows first .. last - 1 as drawn, with all five operators."""
        draws = Draws(self.seed, "abegen/subscriptions", np.zeros(1))
        rules = Rules(
            draws.bits("rows")[0, 0], draws.bits("pool")[0, 0], self.depth, self.children,
            np.cumsum(self.operators), self.pool, float(self.exponent), self.n_attributes,
            float(self.attribute_exponent), self.cardinality, float(self.range_size),
        )  # fmt: skip
        room = room_for(last - first, 24)
        size = self.depth * max(self.children, 2) + 1
        stack, depths = np.empty(size, np.uint64), np.empty(size, np.int64)
        done = 0
        while True:
            done = write_trees(rules, first, last, done, stack, depths, room)
            if done == last - first:
                return room.rows()
            room = room.grown()

    def n_values(self, attributes: np.ndarray) -> int:
        return self.cardinality
