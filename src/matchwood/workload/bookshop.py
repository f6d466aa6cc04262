"""A bookshop to show Matchwood with: readers' wishes as texts, and books on offer as events.

Wishes follow nine templates, from a plain conjunction to nested OR and NOT, and use every kind of
operator.  Popular genres and authors are asked for more often, and are on offer more often.  All
derives from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from matchwood.workload.bookshop_offers import (
    AUTHORS,
    COUNTRIES,
    FORMATS,
    GENRES,
    LANGUAGES,
    OPENINGS,
    THINGS,
    offers,
)

Event = dict[str, Any]
T = TypeVar("T")

QUOTED_AUTHORS = tuple(author.replace("'", "''") for author in AUTHORS)
"""As texts write them: an apostrophe is doubled."""

TODAY = datetime(2026, 6, 1, tzinfo=UTC)
DRAWN_TOGETHER = 256
"""Events that are drawn at once."""


class Bookshop:
    """Draws subscriptions and events.

    >>> shop = Bookshop(seed=1)
    >>> shop.subscription() == Bookshop(seed=1).subscription()
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._events: list[Event] = []
        self._n_events = 0
        self._popularity: dict[int, list[float]] = {}
        self._templates: tuple[Callable[[], str], ...] = (
            self._budget, self._collector, self._fan, self._two_genres, self._bargain,
            self._unreviewed, self._gift, self._title, self._reading_list,
        )  # fmt: skip

    def at(self, name: str) -> Bookshop:
        """Draw subscriptions from a seed of this name: the next one depends on nothing else."""
        self._random.seed(name)
        return self

    def subscription(self) -> str:
        """The text of one reader's wish."""
        return self._random.choice(self._templates)()

    def event(self) -> Event:
        """One book on offer; what a seller did not say is absent."""
        if not self._events:
            rows = self._n_events + np.arange(DRAWN_TOGETHER)
            self._events = offer_events(offers(self._seed, rows))[::-1]
            self._n_events += DRAWN_TOGETHER
        return self._events.pop()

    # -- the templates -----------------------------------------------------------------------

    def _budget(self) -> str:
        low = self._random.randrange(5, 40)
        high = low + self._random.randrange(2, 12)
        return (
            f"genre = {self._genre()} AND author = {self._author()} "
            f"AND price BETWEEN {low} AND {high} AND NOT format = {_quoted(self._popular(FORMATS))}"
        )

    def _collector(self) -> str:
        cents = self._random.choice((0, 50, 95, 99))
        return (
            f"(signed OR format = 'leather') AND author IN ({self._several(self._author)}) "
            f"AND price <= {self._random.randrange(15, 120)}.{cents:02} AND damaged IS NULL"
        )

    def _fan(self) -> str:
        return (
            f"author = {self._author()} AND language = {self._language()} "
            f"AND listed_at >= TIMESTAMP '{self._timestamp()}' "
            "AND format NOT IN ('ebook', 'audiobook')"
        )

    def _two_genres(self) -> str:
        return (
            f"(genre = {self._genre()} OR genre = {self._genre()}) "
            f"AND price < {self._random.randrange(5, 15)} AND rating >= {self._rating()} "
            f"AND NOT used AND seller.country = {_quoted(self._popular(COUNTRIES))} "
            f"AND language = {self._language()}"
        )

    def _bargain(self) -> str:
        return (
            f"discount >= {self._random.randrange(40, 75, 5)} "
            f"AND genre IN ({self._several(self._genre)}) "
            f"AND (NOT used OR (damaged = FALSE AND price < {self._random.randrange(4, 12)})) "
            f"AND seller.sales > {self._random.randrange(10, 1000)}"
        )

    def _unreviewed(self) -> str:
        return (
            f"rating IS NULL AND published >= DATE '{self._day()}' AND genre = {self._genre()} "
            f"AND language = {self._language()} AND pages > {self._random.randrange(300, 1000)}"
        )

    def _gift(self) -> str:
        low = self._random.randrange(20, 60)
        return (
            f"format IN ('hardcover', 'box set', 'leather') AND price BETWEEN {low} AND {low + 10} "
            f"AND rating >= {self._rating()} AND genre <> {self._genre()} "
            f"AND author IN ({self._several(self._author)})"
        )

    def _title(self) -> str:
        opening, thing = self._random.choice(OPENINGS), self._random.choice(THINGS)
        pattern = self._random.choice((f"{opening} %", f"%{thing}", f"{opening} {thing[:3]}%"))
        return (
            f"title LIKE '{pattern}' AND NOT (used OR format = 'audiobook') "
            f"AND author = {self._author()} AND price < {self._random.randrange(8, 30)}"
        )

    def _reading_list(self) -> str:
        wishes = [
            f"(author = {self._author()} AND genre = {self._genre()} "
            f"AND price < {self._random.randrange(5, 25)})"
            for _ in range(self._random.randrange(2, 4))
        ]
        return f"language IN ({self._several(self._language)}) AND ({' OR '.join(wishes)})"

    # -- values ------------------------------------------------------------------------------

    def _popular(self, values: tuple[T, ...]) -> T:
        """The n-th of many is drawn in proportion to 1 / n."""
        weights = self._popularity.get(len(values))
        if weights is None:
            weights = list(accumulate([1 / (n + 1) for n in range(len(values))]))
            self._popularity[len(values)] = weights
        return self._random.choices(values, cum_weights=weights)[0]

    def _several(self, draw: Callable[[], str]) -> str:
        return ", ".join(dict.fromkeys([draw() for _ in range(self._random.randrange(2, 5))]))

    def _genre(self) -> str:
        return _quoted(self._popular(GENRES))

    def _author(self) -> str:
        return _quoted(self._random.choice(QUOTED_AUTHORS))

    def _language(self) -> str:
        return _quoted(self._popular(LANGUAGES))

    def _rating(self) -> str:
        return f"{self._random.randrange(30, 49) / 10}"

    def _timestamp(self) -> str:
        since = TODAY - timedelta(hours=self._random.randrange(1, 24 * 120))
        return f"{since:%Y-%m-%d %H:%M:%S}"

    def _day(self) -> str:
        return f"{TODAY - timedelta(days=self._random.randrange(30, 2000)):%Y-%m-%d}"


def _quoted(text: str) -> str:
    return f"'{text}'"


def offer_events(table: pa.Table) -> list[Event]:
    """Offers as nested events, without what is absent."""
    found: list[Event] = []
    for row in table.to_pylist():
        event: Event = {"seller": {}}
        for name, value in row.items():
            outer, _, inner = name.partition(".")
            if isinstance(value, datetime):
                value = value.replace(tzinfo=UTC)
            if inner:
                event[outer][inner] = value
            elif value is not None:
                event[name] = value
        found.append(event)
    return found
