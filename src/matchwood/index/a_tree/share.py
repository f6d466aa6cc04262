"""How often the nodes of an A-Tree occur in its expressions."""

from __future__ import annotations

from matchwood.index.a_tree.blocks import N_ALL, NOTHING, PARENTS, UP, n_slots, parent_at
from matchwood.kernel.jit import kernel


@kernel
def count_occurrences(x, order, occurrences):
    """A node occurs once for each of its expressions and wherever a parent occurs.

    `order` holds every node after its parents.
    """
    for v in order:
        total = float(n_slots(x, v))
        up = x.node[v, UP]
        if up != NOTHING:
            for i in range(up + PARENTS, up + PARENTS + x.word[up + N_ALL]):
                total += occurrences[parent_at(x, i)]
        occurrences[v] = total
