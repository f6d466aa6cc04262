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

Event = dict[str, Any]
T = TypeVar("T")

GENRES = (
    "crime", "fantasy", "romance", "classics", "history", "science fiction", "biography",
    "children", "cookery", "poetry", "travel", "horror", "art", "philosophy", "nature",
    "politics", "short stories", "drama", "music", "mathematics", "humour", "essays",
    "religion", "comics",
)  # fmt: skip
FORMATS = ("paperback", "hardcover", "ebook", "audiobook", "leather", "box set")
LANGUAGES = ("en", "de", "fr", "es", "it", "pl", "sv", "ja")
COUNTRIES = ("GB", "US", "DE", "FR", "ES", "IT", "PL", "SE", "NL", "IE", "CA", "JP")
OPENINGS = (
    "The",
    "A",
    "My",
    "Last",
    "First",
    "Little",
    "Secret",
    "Lost",
    "Letters from",
    "Return to",
)
THINGS = (
    "Garden", "River", "Winter", "Orchard", "Harbour", "Library", "Mountain", "Mirror", "Voyage",
    "Summer", "Island", "House", "Forest", "Clock", "Painter", "Road", "Daughter", "Sea",
)  # fmt: skip
GIVEN = (
    "Ada", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Klara",
    "Leo", "Maria", "Nils", "Olga", "Paul", "Rosa", "Stefan", "Thea", "Viktor",
)  # fmt: skip
FAMILY = (
    "Abbot", "Berger", "Castle", "Dumont", "Eriksson", "Fischer", "Grant", "Holm", "Ivanova",
    "Jansen", "Keller", "Lindqvist", "Moreau", "Novak", "O''Brien", "Petrov", "Quinn", "Rossi",
    "Sato", "Thorne",
)  # fmt: skip
AUTHORS = tuple(f"{given} {family}" for family in FAMILY for given in GIVEN)
"""As texts write them: an apostrophe is doubled."""

TODAY = datetime(2026, 6, 1, tzinfo=UTC)


class Bookshop:
    """Draws subscriptions and events.

    >>> shop = Bookshop(seed=1)
    >>> shop.subscription() == Bookshop(seed=1).subscription()
    True
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._popularity: dict[int, list[float]] = {}
        self._templates: tuple[Callable[[], str], ...] = (
            self._budget, self._collector, self._fan, self._two_genres, self._bargain,
            self._unreviewed, self._gift, self._title, self._reading_list,
        )  # fmt: skip

    def at(self, place: str) -> Bookshop:
        """Draw as if from a seed of this name: what is drawn next depends on nothing else."""
        self._random.seed(place)
        return self

    def subscription(self) -> str:
        """The text of one reader's wish."""
        return self._random.choice(self._templates)()

    def event(self) -> Event:
        """One book on offer; what a seller did not say is absent."""
        random = self._random
        is_used = random.random() < 0.4
        event: Event = {
            "genre": self._popular(GENRES),
            "author": self._popular(AUTHORS).replace("''", "'"),
            "title": f"{random.choice(OPENINGS)} {random.choice(THINGS)}",
            "format": self._popular(FORMATS),
            "language": self._popular(LANGUAGES),
            "price": round(random.lognormvariate(2.9, 0.6), 2),
            "pages": random.randrange(40, 1200),
            "used": is_used,
            "seller": {
                "country": self._popular(COUNTRIES),
                "sales": int(random.paretovariate(0.7)),
            },
            "listed_at": TODAY - timedelta(minutes=random.randrange(60 * 24 * 365)),
            "published": (TODAY - timedelta(days=int(random.expovariate(1 / 4000)))).date(),
        }
        if random.random() < 0.7:
            event["rating"] = round(random.triangular(1, 5, 4.2), 1)
        if random.random() < 0.3:
            event["discount"] = random.randrange(5, 75, 5)
        if is_used:
            event["damaged"] = random.random() < 0.2
        if random.random() < 0.1:
            event["signed"] = True
        return event

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
            f"AND listed_at >= TIMESTAMP '{self._moment()}' "
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
        return _quoted(self._random.choice(AUTHORS))

    def _language(self) -> str:
        return _quoted(self._popular(LANGUAGES))

    def _rating(self) -> str:
        return f"{self._random.randrange(30, 49) / 10}"

    def _moment(self) -> str:
        moment = TODAY - timedelta(hours=self._random.randrange(1, 24 * 120))
        return f"{moment:%Y-%m-%d %H:%M:%S}"

    def _day(self) -> str:
        return f"{TODAY - timedelta(days=self._random.randrange(30, 2000)):%Y-%m-%d}"


def _quoted(text: str) -> str:
    return f"'{text}'"
