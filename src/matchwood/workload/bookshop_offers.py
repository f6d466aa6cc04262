"""Books on offer as columns: a row depends on the seed and its number alone.

    genre author title format language seller.country     texts, the n-th in proportion to 1 / n
    price pages rating discount seller.sales              numbers
    used damaged signed                                   flags
    listed_at published                                   a timestamp and a date

What a seller did not say is null: a rating in 30 of 100 offers, a discount in 70, whether a book
that is not used is damaged, and whether it is signed in 90.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.workload.draws import Draws

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
    "The", "A", "My", "Last", "First", "Little", "Secret", "Lost", "Letters from", "Return to",
)  # fmt: skip
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
    "Jansen", "Keller", "Lindqvist", "Moreau", "Novak", "O'Brien", "Petrov", "Quinn", "Rossi",
    "Sato", "Thorne",
)  # fmt: skip
AUTHORS = tuple(f"{given} {family}" for family in FAMILY for given in GIVEN)
TITLES = tuple(f"{opening} {thing}" for opening in OPENINGS for thing in THINGS)

TODAY = np.datetime64("2026-06-01T00:00:00", "us")
MINUTE = np.timedelta64(60_000_000, "us")
MOST_SALES = 10**9


def offers(seed: int, rows: np.ndarray) -> pa.Table:
    """The offers of these numbers, a column per attribute, null where it is absent."""
    draws = Draws(seed, "offer", rows)

    def unit(column: str) -> np.ndarray:
        return draws.unit(column)[:, 0]

    def below(column: str, n: int) -> np.ndarray:
        return draws.below(column, n)[:, 0]

    def popular(column: str, values: Sequence[str]) -> pa.Array:
        shares = np.cumsum(1 / np.arange(1, len(values) + 1))
        return _named(np.searchsorted(shares, unit(column) * shares[-1], side="right"), values)

    is_used = unit("used") < 0.4
    days = (-4000 * np.log1p(-unit("published"))).astype(np.int64)
    sales = np.minimum((1 - unit("seller.sales")) ** (-1 / 0.7), MOST_SALES).astype(np.int64)
    columns: dict[str, Any] = {
        "genre": popular("genre", GENRES),
        "author": popular("author", AUTHORS),
        "title": _named(below("title", len(TITLES)), TITLES),
        "format": popular("format", FORMATS),
        "language": popular("language", LANGUAGES),
        "seller.country": popular("seller.country", COUNTRIES),
        "price": np.round(np.exp(2.9 + 0.6 * _normal(draws.unit("price", 2))), 2),
        "pages": 40 + below("pages", 1160),
        "rating": _some(np.round(_triangular(unit("rating"), 1, 5, 4.2), 1), unit("rated") < 0.7),
        "discount": _some(5 + 5 * below("discount", 14), unit("discounted") < 0.3),
        "seller.sales": sales,
        "used": is_used,
        "damaged": _some(unit("damaged") < 0.2, is_used),
        "signed": _some(np.ones(len(rows), bool), unit("signed") < 0.1),
        "listed_at": pa.array(TODAY - below("listed_at", 60 * 24 * 365) * MINUTE).cast(
            pa.timestamp("us", "UTC")
        ),
        "published": TODAY.astype("datetime64[D]") - days,
    }
    return pa.table(columns)


def _named(code: np.ndarray, values: Sequence[str]) -> pa.Array:
    return pa.array(values, pa.string()).take(pa.array(code))


def _some(values: np.ndarray, is_there: np.ndarray) -> pa.Array:
    return pa.array(values, mask=~is_there)


def _normal(unit: np.ndarray) -> np.ndarray:
    """Box and Muller: one normal number from two uniform ones."""
    found: np.ndarray = np.sqrt(-2 * np.log1p(-unit[:, 0])) * np.cos(2 * np.pi * unit[:, 1])
    return found


def _triangular(unit: np.ndarray, low: float, high: float, mode: float) -> np.ndarray:
    peak = (mode - low) / (high - low)
    rising = low + (high - low) * np.sqrt(unit * peak)
    falling = high - (high - low) * np.sqrt((1 - unit) * (1 - peak))
    found: np.ndarray = np.where(unit < peak, rising, falling)
    return found
