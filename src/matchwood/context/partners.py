"""The five filters: one CIF, five answers to the question what an update does to the indexes.

no_index   there are none: every profile is tested                    section 4.1, figure 3
eager      they follow at once and exactly                            section 4.2, figure 4
partial    they follow inside a scope; all outside it is tested       section 4.3
gbu        they follow when a value leaves the box of its leaf        section 4.4
agile      they escalate, and deescalate after false positives        section 5, figure 8
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.context.agile_kernels import AGILE, EAGER, GBU, NO_INDEX, PARTIAL
from matchwood.context.cif import POLICIES, Cif, CifConfig
from matchwood.context.cif_kernels import FIXED, P_KIND, P_LIMIT, RENT
from matchwood.encode.keys import WrongValue
from matchwood.index.config import IndexConfig


class NoIndex(Cif):
    """All the work is the postfilter's."""

    name: ClassVar[str] = "no_index"
    mode: ClassVar[int] = NO_INDEX


class Eager(Cif):
    """Indexes are exact at all times."""

    name: ClassVar[str] = "eager"
    mode: ClassVar[int] = EAGER


@dataclass(frozen=True, kw_only=True)
class PartialConfig(CifConfig):
    """A partial index holds what lies in its scope."""

    low: float | None = None
    high: float | None = None
    """The scope, from low to high, the same for every indexed attribute of numbers; None: open."""


class Partial(Cif):
    """Exact inside the scope, nothing outside it."""

    name: ClassVar[str] = "partial"
    mode: ClassVar[int] = PARTIAL
    Config: ClassVar[type[IndexConfig]] = PartialConfig

    def _scopes(self) -> np.ndarray:
        scope = super()._scopes()
        store = self._store
        if store is None:
            return scope
        for k, attr in enumerate(self.attrs.tolist()):
            keys = store.attributes.all[attr].keys
            for side, bound in enumerate((self.config.low, self.config.high)):
                if bound is not None and keys is not None:
                    with suppress(WrongValue):  # not an attribute of numbers: its scope is open
                        scope[k, side] = keys.key(bound)
        return scope


class Gbu(Cif):
    """Boxes around leaves absorb updates that stay near."""

    name: ClassVar[str] = "gbu"
    mode: ClassVar[int] = GBU


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


class Agile(Cif):
    """Accuracy where it pays, entry by entry."""

    name: ClassVar[str] = "agile"
    mode: ClassVar[int] = AGILE
    Config: ClassVar[type[IndexConfig]] = AgileConfig

    def _new_policy(self) -> np.ndarray:
        policy: np.ndarray = super()._new_policy()
        config: Any = self.config
        kind = POLICIES[config.policy]
        policy[P_KIND] = kind
        limits = {FIXED: config.false_positives, RENT: config.rent}
        policy[P_LIMIT] = limits.get(kind, config.constant)
        return policy
