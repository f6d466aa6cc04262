"""What can be set for the five context filters."""

from __future__ import annotations

from dataclasses import dataclass

from matchwood.context.agile import STRUCTURES
from matchwood.context.policy_kernels import ALWAYS, AUTO, FIXED, RENT
from matchwood.index.core.config import IndexConfig

POLICIES = {"always": ALWAYS, "fixed": FIXED, "auto": AUTO, "rent": RENT}


@dataclass(frozen=True, kw_only=True)
class CifConfig(IndexConfig):
    """What can be set for every filter."""

    indexes: int = 2
    """AttI: indexes that a subscription is in, those on its most selective attributes.  More rule
    out more candidates and cost more updates."""
    structure: str = "auto"
    """interval_skip_list, search_tree or hash_table; auto takes a hash table for equalities."""
    merge: str = "count"
    """count: in a compiled loop; bitmap: compressed bitmaps."""

    def __post_init__(self) -> None:
        self._expect_integer("indexes", 0, 7)
        self._expect("structure", self.structure in (*STRUCTURES, "auto"),
                     "auto, interval_skip_list, search_tree or hash_table")  # fmt: skip
        self._expect("merge", self.merge in ("count", "bitmap"), "count or bitmap")


@dataclass(frozen=True, kw_only=True)
class PartialConfig(CifConfig):
    """A partial index holds what lies in its scope."""

    low: float | None = None
    high: float | None = None
    """The scope, from low to high, the same for every indexed attribute of numbers; None: open."""


BOTTOM_UP, TOP_DOWN = "bottom_up", "top_down"


@dataclass(frozen=True, kw_only=True)
class GbuConfig(CifConfig):
    """How an entry that has left its boxes gets to others."""

    updates: str = TOP_DOWN
    """bottom_up: from where it is, as published: along neighbours, and up no further than to the
    first range that holds the new value.  top_down: from the top of the index."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("updates", self.updates in (BOTTOM_UP, TOP_DOWN), "bottom_up or top_down")


@dataclass(frozen=True, kw_only=True)
class AgileConfig(CifConfig):
    """When a false positive deescalates its entry."""

    policy: str = "rent"
    """always: every time.  fixed: every `false_positives`-th time.  auto: every F-th time, with F =
    `constant` * updates / false positives.  rent: when this very entry has had so many since it was
    escalated: `rent` while values change all the time, down to one when they rest."""
    false_positives: int = 1000
    constant: float = 3000.0
    rent: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("policy", self.policy in POLICIES, "always, fixed, auto or rent")
        self._expect_integer("false_positives", 1)
        self._expect_number("constant", 0.0, 1e12)
        self._expect_integer("rent", 1, 255)
