"""Gates: what the context alone says about a subscription, whatever the event."""

from __future__ import annotations

import numpy as np

from matchwood.context.cif import Cif
from matchwood.context.gate_kernels import open_gates


def are_open(cif: Cif, slots: np.ndarray) -> np.ndarray:
    """Which subscriptions can match as far as their context decides.

    A subscription that no index holds (it is always or never true) never changes.
    """
    cif.settle()
    member_of = cif.member_of
    held = slots < len(member_of)
    member = np.where(held, member_of[np.where(held, slots, 0)], -1)
    found = np.zeros(len(slots), bool)
    open_gates(cif.members, member, cif.cells, cif.predicates, found)
    return found
