"""Gates: what the context alone says about a profile, whatever the event."""

from __future__ import annotations

import numpy as np

from matchwood.context.cif import Cif
from matchwood.context.gate_kernels import open_gates


def are_open(cif: Cif, slots: np.ndarray) -> np.ndarray:
    """Which subscriptions can match as far as their context decides.

    A subscription that no index holds (it is always or never true) never changes.
    """
    cif.settle()
    profile_of = cif.profile_of
    held = slots < len(profile_of)
    profile = np.where(held, profile_of[np.where(held, slots, 0)], -1)
    found = np.zeros(len(slots), bool)
    open_gates(cif.profiles, profile, cif.cells, cif.predicates, found)
    return found
