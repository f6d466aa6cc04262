"""Settings of the `vcr` index."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar

from matchwood.index.core.config import IndexConfig

AUTO = "auto"
SIMPLE, OVERLAPPED = "simple", "overlapped"
TABLE, HASH, CHAINS = "table", "hash", "chains"


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """Settings.

    attributes     the two attributes, x and y; a Matcher takes their names
    cells          grid points of x and of y, at most.  More: fewer ids to test, more VCRs
    sides          longest sides of a VCR, powers of two.  Longer: fewer pieces, more to look at
    decomposition  "simple", or "overlapped": fewer activated VCRs, more ids read twice.  Auto:
                   simple with a table, overlapped with a hash, as in the paper's figures 7 and 8
    lists          "table" of all VCRs, or "hash" of the activated ones: less memory, more time;
                   "chains" is the paper's hash, of a fixed number of places, for comparison
    places         of the paper's hash: a prime number; more of them make chains shorter
    most_vcrs      what would be cut into more pieces is held elsewhere
    """

    attribute_settings: ClassVar[tuple[str, ...]] = ("attributes",)

    attributes: Any = AUTO
    cells: Any = AUTO
    sides: Any = AUTO
    decomposition: str = AUTO
    lists: str = AUTO
    places: int = 1_800_017
    most_vcrs: int = 256

    def __post_init__(self) -> None:
        for name, what in (
            ("attributes", "two attributes"),
            ("cells", "two numbers from 1 to 2^20"),
            ("sides", "two powers of two up to 64"),
        ):
            value = getattr(self, name)
            if value == AUTO:
                continue
            is_pair = isinstance(value, (list, tuple)) and len(value) == 2
            self._expect(name, is_pair and _fits(name, *value), f'{what}, or "auto",')
            object.__setattr__(self, name, tuple(value))
        self._expect_one("decomposition", AUTO, SIMPLE, OVERLAPPED)
        self._expect_one("lists", AUTO, TABLE, HASH, CHAINS)
        self._expect_integer("places", 1, 2**31 - 1)
        self._expect("places", _is_prime(self.places), "a prime number")
        self._expect_integer("most_vcrs", 1, 2**16)


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, isqrt(n) + 1))


def _fits(name: str, first: Any, second: Any) -> bool:
    are_ints = type(first) is int and type(second) is int
    if name == "attributes":
        return are_ints and first >= 0 and second >= 0 and first != second
    if name == "cells":
        return are_ints and 1 <= min(first, second) <= max(first, second) <= 2**20
    return are_ints and all(side in (1, 2, 4, 8, 16, 32, 64) for side in (first, second))
