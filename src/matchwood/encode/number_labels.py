"""The constants of a number dictionary as arrays, which ints and doubles are searched in."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.dictionary import OrderedDictionary
from matchwood.encode.exact import Exact
from matchwood.encode.keys import INT_MAX, INT_MIN, NAN


class NumberLabels(NamedTuple):
    """A number dictionary as arrays, for exact searching with ints and with doubles.

    A constant c that an int column cannot hold stands as the smallest int above it, and is never
    equal; likewise for doubles.  So `v >= c` is decided by one search, `v = c` by one more look.
    """

    labels: np.ndarray
    int_ceil: np.ndarray
    int_exact: np.ndarray
    float_ceil: np.ndarray
    float_exact: np.ndarray
    nan_key: int
    gap: int  # the key of all numbers where there is no constant but NaN


def number_labels(dictionary: OrderedDictionary) -> NumberLabels:
    """The arrays of a dictionary."""
    labels = dictionary.labels()
    last = int(labels[-1]) if len(labels) else -1
    ints = dictionary.measures()
    if ints is not None and len(ints):
        floats, are_whole = ints.astype(np.float64), np.ones(len(ints), bool)
        return NumberLabels(labels, ints, are_whole, floats, are_whole, last + 1, 0)
    constants = [each for each in dictionary.values if each is not NAN]
    found = plain_ceilings(constants) or ceilings(constants)
    nan_key = dictionary.label_of.get(NAN, last + 1)
    gap = 0 if constants else dictionary.gap(0)
    return NumberLabels(labels[: len(constants)], *found, nan_key, gap)


Ceilings = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of ascending constants: `int_ceil`, `int_exact`, `float_ceil` and `float_exact`."""


def ceilings(constants: Sequence[Any]) -> Ceilings:
    ints = [_ceil_int(each) for each in constants]
    floats = [_ceil_float(each) for each in constants]
    return (
        np.array([c for c, _ in ints if c <= INT_MAX], np.int64),
        np.array([e for c, e in ints if c <= INT_MAX], bool),
        np.array([c for c, _ in floats], np.float64),
        np.array([e for _, e in floats], bool),
    )


def plain_ceilings(constants: Sequence[Any]) -> Ceilings | None:
    """The same in a few passes; None unless all are doubles and ints that doubles are equal to."""
    kinds = set(map(type, constants))
    if not kinds <= {int, float}:
        return None
    try:
        floats = np.array(constants, np.float64)
    except OverflowError:
        return None
    if kinds == {int} and max(-constants[0], constants[-1]) < 2**53:
        is_whole = np.ones(len(floats), bool)
        return floats.astype(np.int64), is_whole, floats, is_whole
    large = np.flatnonzero(np.abs(floats) >= 2.0**53)
    if any(type(constants[at]) is int for at in large.tolist()):
        return None
    ceil, n = np.ceil(floats), int(np.searchsorted(floats, 2.0**63))
    is_low = floats[:n] < INT_MIN
    int_ceil = np.where(is_low, 0.0, ceil[:n]).astype(np.int64)
    int_ceil[is_low] = INT_MIN
    is_whole = (ceil[:n] == floats[:n]) & ~is_low
    return int_ceil, is_whole, floats, np.ones(len(floats), bool)


def _ceil_int(constant: Any) -> tuple[int, bool]:
    if isinstance(constant, Exact):
        return max(int(constant.value.to_integral_value(ROUND_CEILING)), INT_MIN), False
    if isinstance(constant, float):
        if constant >= 2.0**63:
            return INT_MAX + 1, False
        if constant < INT_MIN:
            return INT_MIN, False
        rounded = int(np.ceil(constant))
        return rounded, rounded == constant
    clipped = max(constant, INT_MIN)
    return clipped, clipped == constant


def _ceil_float(constant: Any) -> tuple[float, bool]:
    if isinstance(constant, Exact):
        nearest, is_above = constant.nearest, constant.is_above_nearest
        return float(np.nextafter(nearest, np.inf)) if is_above else nearest, False
    nearest = float(constant)
    if nearest < constant:
        return float(np.nextafter(nearest, np.inf)), False
    return nearest, nearest == constant
