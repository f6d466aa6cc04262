"""How often expressions use each predicate."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.kernel.jit import kernel


def uses_of(table: Any, slots: np.ndarray) -> np.ndarray:
    """int32 by predicate: how often the expressions of a table in these slots use it."""
    uses = np.zeros(len(table.predicates.layout.attr), np.int32)
    count_uses(table.layout, slots, uses)
    return uses


@kernel
def count_uses(expressions, slots, uses):
    """How often expressions use each predicate."""
    for slot in slots:
        start = expressions.start[slot]
        for k in range(start, start + expressions.size[slot]):
            if expressions.code[k] >= 0:  # not an operator
                uses[expressions.code[k]] += 1
