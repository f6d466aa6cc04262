"""The attributes of `ads`: 22 of the session and the user, and 100 of what the user likes.

An attribute is a list of values in order.  Words (`region`) are tested with =, IN and NOT IN;
levels (`age`, `interest_music`), whose order means something, with ranges too.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

_COUNTRIES = (
    "US CN DE GB FR JP IN BR CA AU IT ES MX KR NL SE CH PL TR AT BE DK NO FI IE PT CZ GR HU RO "
    "AR CL CO ZA EG NG KE SG MY TH ID VN PH NZ IL AE SA UA"
)
_WORDS = {
    "channel": "mobile pc tablet app tv console",
    "region": _COUNTRIES,
    "position": "top side footer inline splash feed search cart checkout product video popup",
    "language": "en zh de fr ja es pt it ko nl sv pl tr ar hi ru th vi",
    "gender": "female male other",
    "os": "android ios windows macos linux other",
    "browser": "chrome safari edge firefox samsung opera other",
    "weekday": "mon tue wed thu fri sat sun",
    "connection": "wifi cable 5g 4g 3g",
    "login": "guest member premium business",
    "referrer": "search social direct mail partner affiliate news",
    "device_brand": "apple samsung xiaomi huawei google oppo vivo lenovo dell hp asus sony other",
    "campaign_group": " ".join([f"g{i:02}" for i in range(40)]),
    "payment": "card invoice transfer wallet cash none",
}
_LEVELS = {
    "hour": (0, 24),
    "age": (13, 90),
    "visits": (0, 60),
    "cart_value": (0, 99),
    "account_months": (0, 99),
    "orders": (0, 60),
    "price_level": (0, 20),
    "minutes_on_site": (0, 90),
}
_TOPICS = (
    "music sport travel books games cars garden fashion shoes jewelry beauty health food wine "
    "coffee kitchen furniture tools toys baby pets phones computers cameras audio film art "
    "theatre photo bikes running hiking skiing fishing camping yoga football tennis golf watches "
    "bags office school stationery crafts science history finance property insurance"
)
"""Fifty topics: a user's interests, and what the user bought."""


class AdAttribute(NamedTuple):
    name: str
    values: tuple[str, ...]
    is_level: bool
    weight: float
    """How often subscriptions and events have it, compared with the others."""


@cache
def attributes() -> tuple[AdAttribute, ...]:
    """All 122, the most popular first."""
    named = [(name, tuple(words.split()), False) for name, words in _WORDS.items()]
    for name, (low, high) in _LEVELS.items():
        named.append((name, _levels(low, high), True))
    session = [AdAttribute(*each, 1 / (1 + i) ** 0.5) for i, each in enumerate(named)]
    liked = [f"{what}_{topic}" for topic in _TOPICS.split() for what in ("interest", "bought")]
    topics = [AdAttribute(name, _levels(0, 50), True, 1 / (5 + i)) for i, name in enumerate(liked)]
    return tuple(sorted([*session, *topics], key=lambda each: -each.weight))


def presence(mean: float) -> np.ndarray:
    """The chance of each attribute to be in an event, `mean` in all; no attribute is certain."""
    weights = np.array([each.weight for each in attributes()])
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _chances(weights, middle).sum() < mean else (low, middle)
    return _chances(weights, high)


def _chances(weights: np.ndarray, scale: float) -> np.ndarray:
    return np.minimum(0.98, weights * scale)


def _levels(low: int, high: int) -> tuple[str, ...]:
    """Numbers of two digits, so that the order of strings is theirs."""
    return tuple([f"{level:02}" for level in range(low, high)])
