"""Which values exist: an event of predicates stands for values, not for keys.

Keys are wider than their types: no boolean has the key 2, no double lies between infinity and NaN,
no string between 'a' and 'a' + NUL.  A value exists when an event of values can carry it:

| type            | values                                                                     |
|-----------------|----------------------------------------------------------------------------|
| bool            | FALSE, TRUE                                                                |
| int             | 64 bits                                                                    |
| date, timestamp | every key: Arrow carries days and microseconds beyond the years 1 to 9999  |
| float           | doubles: -infinity .. infinity without -0.0, then NaN                      |
| number          | -infinity .. infinity, decimals between any two of them, then NaN          |
| string          | from '' on; 'a' + NUL is right after 'a', nothing is right before 'a'      |
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from matchwood.encode.keys import INT_MAX, INT_MIN, NAN, DictionaryKeys, Keys, float_key

Interval = tuple[int, int]

_KEY_DOMAINS: dict[str, tuple[Interval, ...]] = {
    "bool": ((0, 1),),
    "float": (
        (float_key(-math.inf), float_key(-5e-324)),
        (float_key(0.0), float_key(math.inf)),
        (float_key(math.nan), float_key(math.nan)),
    ),
}
"""The keys that values have, for types whose keys are no labels; where missing, every key."""


class Range(NamedTuple):
    """The values from `low` to `high`, without an end that is open; `high` None: all above."""

    low: Any
    high: Any
    low_is_open: bool = False
    high_is_open: bool = False

    @property
    def is_empty(self) -> bool:
        if self.high is None or self.low < self.high:
            return False
        return bool(self.low > self.high) or self.low_is_open or self.high_is_open

    @property
    def is_single(self) -> bool:
        """Whether it is one value."""
        return self.high is not None and bool(self.low == self.high)


def existing(keys: Keys | None, intervals: tuple[Interval, ...]) -> list[Range]:
    """The values of key intervals: in a dictionary by its constants, else by the keys."""
    if isinstance(keys, DictionaryKeys):
        found = [_range(keys, lo, hi) for lo, hi in intervals]
        return [each for each in found if each is not None and not each.is_empty]
    domain = _KEY_DOMAINS.get(keys.type if keys is not None else "", ((INT_MIN, INT_MAX),))
    return [
        Range(max(lo, first), min(hi, last))
        for lo, hi in intervals
        for first, last in domain
        if lo <= last and first <= hi
    ]


def _range(keys: DictionaryKeys, lo: int, hi: int) -> Range | None:
    """The values between two keys, each of which is a label or next to one; None if there are none.

    An end that is not in the range becomes the next value inside of it, if the type has one.
    """
    least, most = ("", None) if keys.type == "string" else (-math.inf, NAN)
    value_of = keys.dictionary.value_of
    low, high, low_is_open, high_is_open = least, most, False, False
    if lo != INT_MIN:
        low = value_of(lo)
        if low is None:
            bound = value_of(lo - 1)
            if bound is most:
                return None
            low = value_after(keys.type, bound)
            low, low_is_open = (bound, True) if low is None else (low, False)
    if hi != INT_MAX:
        high = value_of(hi)
        if high is None:
            bound = value_of(hi + 1)
            if bound == least:
                return None
            high = value_before(keys.type, bound)
            high, high_is_open = (bound, True) if high is None else (high, False)
    return Range(low, high, low_is_open, high_is_open)


def value_after(type_: str, value: Any) -> Any:
    """The number or string right after a value; None when there is none."""
    if type_ == "string":
        return value + "\0"
    return NAN if value == math.inf else None


def value_before(type_: str, value: Any) -> Any:
    """The number or string right before a value; None when there is none."""
    if type_ == "string":
        return value[:-1] if value.endswith("\0") else None
    return math.inf if value is NAN else None


def without_empty_gaps(keys: DictionaryKeys, lo: int, hi: int) -> list[Interval]:
    """A key interval without the gaps of a dictionary that hold no value.

    Those are the gaps between a constant and the value right after it, when that is a constant.
    """

    def after(value: Any) -> Any:
        return value_after(keys.type, value)

    def before(value: Any) -> Any:
        return value_before(keys.type, value)

    labels = keys.dictionary.label_of
    found = []
    for first, second in sorted(
        [(labels[x], labels[after(x)]) for x in keys.dictionary.adjacent(after, before)]
    ):
        if lo <= first and second <= hi:
            found.append((lo, first))
            lo = second
    return [*found, (lo, hi)]
