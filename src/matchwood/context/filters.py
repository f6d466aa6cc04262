"""The five filters: one CIF, five answers to the question what an update does to the indexes.

no_index   there are none: every subscription is tested                    section 4.1, figure 3
eager      they follow at once and exactly                            section 4.2, figure 4
partial    they follow inside a scope; all outside it is tested       section 4.3
gbu        they follow when a value leaves the box of its leaf        section 4.4
agile      they escalate, and deescalate after false positives        section 5, figure 8
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from matchwood.context.agile_kernels import AGILE, EAGER, GBU, NO_INDEX, PARTIAL
from matchwood.context.choice import EVERY
from matchwood.context.cif import Cif
from matchwood.context.cif_config import BOTTOM_UP, POLICIES, AgileConfig, GbuConfig, PartialConfig
from matchwood.context.policy_kernels import (
    DECAY,
    FIXED,
    P_KIND,
    P_LIMIT,
    P_MEMBERS,
    P_UPDATES,
    RENT,
    RESTLESS,
)
from matchwood.encode.keys import WrongValue
from matchwood.index.core.config import IndexConfig


class NoIndex(Cif):
    """All the work is the postfilter's."""

    name: ClassVar[str] = "no_index"
    mode: ClassVar[int] = NO_INDEX


class Eager(Cif):
    """Indexes are exact at all times."""

    name: ClassVar[str] = "eager"
    mode: ClassVar[int] = EAGER


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
        for k, attr in enumerate(self.choice.attrs.tolist()):
            if attr == EVERY:
                continue
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
    Config: ClassVar[type[IndexConfig]] = GbuConfig

    @property
    def _is_bottom_up(self) -> bool:
        return bool(self.config.updates == BOTTOM_UP)


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

    @property
    def _mode_of_updates(self) -> int:
        """Exact where values rest: an escalation would be undone by the events that follow."""
        policy = self._policy
        is_restless = policy[P_UPDATES] * (1.0 - DECAY) > RESTLESS * policy[P_MEMBERS]
        return EAGER if policy[P_KIND] == RENT and not is_restless else AGILE
