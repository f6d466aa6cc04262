"""QGrams: strings as conjunctions of equalities, a real workload from any text.

Idea.    Every string is a subscription and an event: see `qgrams_text`.  Events are the first
         strings, so an event matches its own subscription, and those made of q-grams that it has.
Source.  BE-Tree, section 7.1 (Real Dataset) and Table 3, the last four columns.
Chance.  With a match probability the strings only supply base expressions: `joined` strings, cut
         after event_size attributes, are a base and an event, and subscriptions derive from bases
         as in BEGen, over letters instead of integers.  `< '{'` is true of all letters.
Differs. DBLP is not shipped: without a file, authors and titles are invented (`qgrams_corpus`).
         The paper's events of 16 predicates, twice an author's, are not explained; hence `joined`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.errors import MatchwoodError
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.workload.begen_bases import Bases, accident, kept_share, number_of_bases
from matchwood.workload.begen_operators import CLASSES, NAMES, accepted_share, range_widths
from matchwood.workload.begen_survey import Rules, Survey
from matchwood.workload.dblp import ELEMENTS
from matchwood.workload.draws import Draws
from matchwood.workload.interface import Workload
from matchwood.workload.qgrams_strings import Strings, open_strings
from matchwood.workload.qgrams_text import LETTERS
from matchwood.workload.tables import coded, entry_table, predicate_table

_SAMPLE = 300
"""Bases, each compared with each, that estimate accidental matches."""

_AUTHORS = {"source": "authors", "predicates": 8, "event_size": 16, "joined": 3}
_TITLES = {"source": "titles", "predicates": 30, "event_size": 43, "joined": 2}
_CHANCE = {"match_probability": 0.01, "min_predicates": 4}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {**_AUTHORS, "n_subscriptions": 10_000},
    "small": {**_AUTHORS, "n_subscriptions": 100_000},
    "authors": {**_AUTHORS, "n_subscriptions": 760_000},
    "titles": {**_TITLES, "n_subscriptions": 250_000},
    "authors-match-probability": {**_AUTHORS, **_CHANCE, "n_subscriptions": 400_000},
    "titles-match-probability": {**_TITLES, **_CHANCE, "n_subscriptions": 150_000},
}
"""Table 3, columns 9 to 12."""


def _sizes(*values: int) -> tuple[Mapping[str, Any], ...]:
    return tuple({"n_subscriptions": value} for value in values)


_CHANCES: tuple[Mapping[str, Any], ...] = tuple(
    {"operators": operators, "match_probability": probability}
    for operators in ("low", "med", "high")
    for probability in (0.0001, 0.001, 0.01, 0.03, 0.05, 0.09)
)

SWEEPS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "authors": _sizes(100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 760_000),
    "titles": _sizes(50_000, 100_000, 150_000, 200_000, 250_000),
    "authors-match-probability": _CHANCES,
    "titles-match-probability": _CHANCES,
}
"""Points of each column, see `begen_presets`."""


@dataclass(frozen=True, kw_only=True)
class QGrams(Workload):
    """Strings as conjunctions of q-grams (BE-Tree paper).

    source             authors or titles (invented), or the path of a DBLP file (.xml, .xml.gz), or
                       of a text with one string a line
    kind               what to read from a DBLP file: authors or titles
    q                  letters of a q-gram
    match_probability  share of subscriptions that match an event, on average; None: every string is
                       a subscription, and the parameters below have no effect
    joined             strings that make a base, and
    event_size         attributes after which it is cut
    predicates, min_predicates, equality, operators, range_size      as in BEGen
    """

    name: ClassVar[str] = "qgrams"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sweeps: ClassVar[Mapping[str, tuple[Mapping[str, Any], ...]]] = SWEEPS

    source: str = "authors"
    kind: str = "authors"
    q: int = 3
    match_probability: float | None = None
    joined: int = 3
    event_size: int = 16
    predicates: float = 8
    min_predicates: int = 1
    equality: float = 0.3
    operators: str = "med"
    range_size: float = 0.12

    def __post_init__(self) -> None:
        self._expect(2 <= self.q <= 5, "q-grams of 2 to 5 letters")
        self._expect(self.kind in ELEMENTS, f"a kind among {', '.join(ELEMENTS)}")
        self._expect(self.joined >= 1, "at least one string in a base")
        self._expect(
            1 <= self.min_predicates <= self.predicates <= self.event_size,
            "1 <= min_predicates <= predicates <= event_size",
        )
        self._expect(self.operators in CLASSES, f"operators among {', '.join(CLASSES)}")
        self._expect(0 <= self.equality <= 1, "a share of equalities from 0 to 1")
        self._expect(0 < self.range_size <= 1, "a share of letters as range_size, from 0 to 1")
        self._expect(
            self.match_probability is None or 0 < self.match_probability <= 1,
            "a match probability from 0 to 1, or None",
        )

    @property
    def names(self) -> list[str]:
        """All attributes, in the order of their numbers."""
        return ["".join(letters) for letters in product(LETTERS, repeat=self.q - 1)]

    def schema(self) -> Schema:
        return Schema(dict.fromkeys(self.names, "string"))

    def strings(self) -> Strings:
        return _strings(self.source, self.kind, self.seed, self.q)

    def bases(self, numbers: np.ndarray) -> Bases:
        """Joined strings, each attribute once, cut after event_size attributes."""
        whole = self.strings().grams(
            (numbers[:, None] * self.joined + np.arange(self.joined)).ravel()
        )
        start = whole.start[:: self.joined]
        base = np.repeat(np.arange(len(numbers)), np.diff(start))
        key = base * len(LETTERS) ** (self.q - 1) + whole.attr
        first = np.sort(np.unique(key, return_index=True)[1])
        start = np.searchsorted(base[first], np.arange(len(numbers) + 1))
        sizes = np.minimum(np.diff(start), self.event_size)
        at = first[slices(start[:-1], sizes)]
        return Bases(offsets_of(sizes), whole.attr[at], whole.value[at])

    @property
    def n_bases(self) -> int | None:
        """Base expressions, row i being derived from number i % n_bases; None: strings as such."""
        return None if self.match_probability is None else _n_bases(_sizeless(self))

    def subscriptions(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        if self.match_probability is None:
            found = self.strings().grams(rows)
            n = np.diff(found.start)
            op = n_values = np.ones(len(found.attr), np.int64)
            attr, op, values = found.attr, op - 1, found.value
        else:
            n, derived = _survey(_sizeless(self)).rows(first, last)
            attr, op, n_values, values = derived
        names = coded(attr, self.names)
        return predicate_table(np.repeat(rows, n), names, coded(op, NAMES), n_values, _text(values))

    def events(self, first: int, last: int) -> pa.Table:
        """Event i is string i, or with a match probability base i, and then all over again."""
        rows = np.arange(first, last)
        n = self.n_bases
        found = self.strings().grams(rows) if n is None else self.bases(rows % n)
        names = coded(found.attr, self.names)
        return entry_table(np.repeat(rows, np.diff(found.start)), names, _text(found.value))


def _text(values: np.ndarray) -> pa.Array:
    """Letters; the signs beside a and z stand for bounds that every letter keeps."""
    signs = pa.array([chr(ord("a") + i) for i in range(-1, len(LETTERS) + 1)])
    return signs.take(pa.array(values + 1))


def _sizeless(workload: QGrams) -> QGrams:
    return replace(workload, n_subscriptions=1, n_events=1)


@lru_cache(maxsize=2)
def _strings(source: str, kind: str, seed: int, q: int) -> Strings:
    return Strings(open_strings(source, kind, seed), q)


@lru_cache(maxsize=32)
def _n_bases(workload: QGrams) -> int:
    assert workload.match_probability is not None
    c, size = len(LETTERS), workload.event_size
    accepted = accepted_share(workload.operators, workload.equality, c, workload.range_size)
    chance = accident(
        _shared(replace(workload, match_probability=None, operators="med")),
        size,
        kept_share(size, workload.predicates, workload.min_predicates),
        workload.min_predicates,
        (accepted * c - 1) / (c - 1),  # of a letter that is not the base's
    )
    found = number_of_bases(workload.match_probability, chance)
    if not found:
        raise MatchwoodError(
            f"workload 'qgrams': expected a match probability above {chance:.2g}, which is what "
            f"short subscriptions match by accident, found {workload.match_probability:.2g}: "
            "raise min_predicates"
        )
    return found


@lru_cache(maxsize=8)
def _shared(workload: QGrams) -> dict[tuple[int, int], float]:
    """How often two bases have so many q-grams in common, and so many more attributes."""
    bases = workload.bases(np.arange(_SAMPLE))
    letter = np.full((_SAMPLE, len(workload.names)), -1, np.int8)
    letter[np.repeat(np.arange(_SAMPLE), np.diff(bases.start)), bases.attr] = bases.value
    pairs: dict[tuple[int, int], float] = {}
    share = 2 / (_SAMPLE * (_SAMPLE - 1))
    for i in range(1, _SAMPLE):
        both = (letter[:i] >= 0) & (letter[i] >= 0)
        same = (both & (letter[:i] == letter[i])).sum(axis=1)
        for pair in zip(same.tolist(), (both.sum(axis=1) - same).tolist(), strict=True):
            pairs[pair] = pairs.get(pair, 0) + share
    return pairs


@lru_cache(maxsize=2)
def _survey(workload: QGrams) -> Survey:
    n = workload.n_bases
    assert n is not None
    bases = workload.bases(np.arange(n))
    key = Draws(workload.seed, "qgrams/subscriptions", np.zeros(1)).bits("key")[0, 0]
    keep = kept_share(workload.event_size, workload.predicates, workload.min_predicates)
    operators = np.array(CLASSES[workload.operators], np.int64)
    widths = range_widths(len(LETTERS), workload.range_size)
    fewest, equality = workload.min_predicates, float(workload.equality)
    rules = Rules(key, len(LETTERS), keep, fewest, equality, operators, *widths)
    return Survey(rules, workload.event_size, lambda rows: (bases, rows % n))
