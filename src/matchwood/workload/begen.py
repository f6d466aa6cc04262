"""BEGen: subscriptions derived from events, so that they match as often as asked for.

Idea.    In a space of 400 attributes, independent subscriptions and events would never meet.  So
         base expressions, conjunctions of equalities, are drawn first; they are the events.  Each
         subscription keeps some predicates of one base and widens some of those, so it matches
         that event.  The fewer bases, the more subscriptions match an event.
Source.  BE-Tree, section 7.1, Tables 2 and 3.
Rules.   From `i = v` (Table 2b; c is the cardinality, values are 0 .. c - 1, all draws even):
             <>       another value
             < <=     a last value from v .. c - 1       > >=   a first value from 0 .. v
             IN       2 to 6 values, v among them        NOT IN 2 to 6 values, v not among them
             BETWEEN  a range with v in it, range_size * c values long on average
Differs. The table's `i < v1 where v1 >= v` would let v1 = v through and lose v: here v1 > v.
         No two subscriptions are alike (the paper: unlikely); a row that would repeat an earlier
         one is drawn again.  The number of bases allows for accidental matches (`begen_bases`).
Chosen   where the paper is silent: values are even under both distributions; every event has
         event_size attributes; the size of a subscription is binomial, and never below
         min_predicates; widths of ranges are even around their average; without a match
         probability every subscription has a base of its own; Zipf's exponent is 2, because then
         an event satisfies some predicate of 81 % of all subscriptions, and the paper reports 80
         to 90 % (with exponent 1 it would be 49 %).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.errors import MatchwoodError
from matchwood.lang.nodes import Expr
from matchwood.workload.begen_bases import (
    DISTRIBUTIONS,
    UNIFORM,
    ZIPF,
    Bases,
    Shape,
    accident,
    draw_bases,
    kept_share,
    number_of_bases,
    shared_attributes,
)
from matchwood.workload.begen_operators import (
    CLASSES,
    NAMES,
    accepted_share,
    conjunctions,
    range_widths,
)
from matchwood.workload.begen_presets import PRESETS, SWEEPS
from matchwood.workload.begen_survey import Rules, Survey, derive_all
from matchwood.workload.draws import Draws
from matchwood.workload.interface import IntegerWorkload
from matchwood.workload.tables import coded, entry_table, predicate_table

_KEPT_BASES = 200_000
"""Up to so many bases are drawn once; more are drawn with the rows that need them."""


@dataclass(frozen=True, kw_only=True)
class BEGen(IntegerWorkload):
    """Subscriptions derived from events (BE-Tree paper).

    n_attributes       dimensions of the space
    cardinality        values of an attribute: 0 .. cardinality - 1
    predicates         of a subscription, on average
    min_predicates     fewest of a subscription
    event_size         attributes of an event
    equality           share of predicates that stay equalities (1 - Pr_trans)
    operators          class of operators that the others become: min, low, med, high
    range_size         average share of the values that BETWEEN covers
    match_probability  share of subscriptions that match an event, on average; None: as it comes
    distribution       of attributes: uniform or zipf
    exponent           of Zipf's law
    event_equality     share of an event's predicates that stay equalities in `event_expressions`
    """

    name: ClassVar[str] = "begen"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sweeps: ClassVar[Mapping[str, tuple[Mapping[str, Any], ...]]] = SWEEPS

    n_subscriptions: int = 1_000_000
    n_attributes: int = 400
    cardinality: int = 48
    predicates: float = 7
    min_predicates: int = 1
    event_size: int = 15
    equality: float = 0.3
    operators: str = "med"
    range_size: float = 0.12
    match_probability: float | None = 0.01
    distribution: str = UNIFORM
    exponent: float = 2.0
    event_equality: float = 0.3

    def __post_init__(self) -> None:
        self._expect(1 <= self.event_size <= self.n_attributes, "event_size up to n_attributes")
        self._expect(
            1 <= self.min_predicates <= self.predicates <= self.event_size,
            "1 <= min_predicates <= predicates <= event_size",
        )
        self._expect(2 <= self.cardinality <= 2**31, "a cardinality from 2 to 2^31")
        shares = (self.equality, self.event_equality)
        self._expect(all(0 <= each <= 1 for each in shares), "shares of equalities from 0 to 1")
        self._expect(self.operators in CLASSES, f"operators among {', '.join(CLASSES)}")
        self._expect(
            self.operators != "min" or self.equality == 1, "equality = 1 with operators = 'min'"
        )
        self._expect(0 < self.range_size <= 1, "a share of values as range_size, from 0 to 1")
        self._expect(
            self.match_probability is None or 0 < self.match_probability <= 1,
            "a match probability from 0 to 1, or None",
        )
        self._expect(
            self.distribution in DISTRIBUTIONS, f"distribution among {', '.join(DISTRIBUTIONS)}"
        )
        self._expect(self.exponent >= 0, "an exponent from 0")

    @property
    def shape(self) -> Shape:
        exponent = self.exponent if self.distribution == ZIPF else 0.0
        return Shape(self.n_attributes, self.cardinality, self.event_size, exponent)

    @property
    def keep(self) -> float:
        """The paper's Pr_pred: the chance that a predicate of an event stays in a subscription."""
        return kept_share(self.event_size, self.predicates, self.min_predicates)

    @property
    def n_bases(self) -> int | None:
        """Base expressions, row i being derived from number i % n_bases; None: from number i."""
        if self.match_probability is None:
            return None
        accepted = accepted_share(self.operators, self.equality, self.cardinality, self.range_size)
        pairs = shared_attributes(self.shape)
        chance = accident(pairs, self.event_size, self.keep, self.min_predicates, accepted)
        found = number_of_bases(self.match_probability, chance)
        if not found:
            raise MatchwoodError(
                f"workload 'begen': expected a match probability above {chance:.2g}, which is "
                f"what short subscriptions match by accident, found {self.match_probability:.2g}: "
                "raise min_predicates"
            )
        return found

    def rules(self) -> Rules:
        key = Draws(self.seed, "begen/subscriptions", np.zeros(1)).bits("key")[0, 0]
        narrow, wide = range_widths(self.cardinality, self.range_size)
        operators = np.array(CLASSES[self.operators], np.int64)
        keep, fewest, equality = self.keep, self.min_predicates, float(self.equality)
        return Rules(key, self.cardinality, keep, fewest, equality, operators, narrow, wide)

    def bases(self, first: int, last: int) -> Bases:
        """Base expressions first .. last - 1."""
        return draw_bases(self.seed, self.shape, np.arange(first, last))

    def subscriptions(self, first: int, last: int) -> pa.Table:
        n, found = _survey(replace(self, n_subscriptions=1, n_events=1)).rows(first, last)
        return predicate_table(
            np.repeat(np.arange(first, last), n),
            coded(found.attr, self.names),
            coded(found.op, NAMES),
            found.n_values,
            pa.array(found.values),
        )

    def events(self, first: int, last: int) -> pa.Table:
        """Event i is base i, and after the last base the first one comes again."""
        rows = np.arange(first, last)
        n = self.n_bases
        bases = draw_bases(self.seed, self.shape, rows if n is None else rows % n)
        return entry_table(
            np.repeat(rows, self.event_size), coded(bases.attr, self.names), pa.array(bases.value)
        )

    def event_expressions(self, first: int, last: int) -> list[Expr]:
        """The same events with predicates instead of values, widened by the rules above.

        They match what the events with values match, and more.
        """
        key = Draws(self.seed, "begen/events", np.zeros(1)).bits("key")[0, 0]
        rules = self.rules()._replace(key=key, keep=1.0, equality=float(self.event_equality))
        rows = np.arange(first, last)
        n = self.n_bases
        bases = draw_bases(self.seed, self.shape, rows if n is None else rows % n)
        found = derive_all(rules, bases, first)
        return conjunctions(np.full(len(rows), self.event_size), found, self.names)


@lru_cache(maxsize=2)
def _survey(workload: BEGen) -> Survey:
    """Kept because a row needs those before it; the sizes of the workload play no part."""
    n = workload.n_bases
    if n is not None and n <= _KEPT_BASES:
        kept = workload.bases(0, n)
        return Survey(workload.rules(), workload.event_size, lambda rows: (kept, rows % n))

    def bases_of(rows: np.ndarray) -> tuple[Bases, np.ndarray]:
        numbers = rows if n is None else rows % n
        return draw_bases(workload.seed, workload.shape, numbers), np.arange(len(rows))

    return Survey(workload.rules(), workload.event_size, bases_of)
