"""Tree to tree: the rewritings that bring every expression to one normal form.

    nnf        negations into the predicates, XOR / XNOR into AND / OR
    simplify   constants folded, nesting flattened
    dnf        an OR of conjunctions, after an estimate
    merge      predicates on one attribute become one (on key intervals, compiled)
    cost       what each of them will cost

All but `merge` work on the tree; merging needs to know which values are equal and which come next,
so it works on the keys of encoded predicates (`merge_kernels`, called by the expression table).
"""

from matchwood.forms.cost import dnf_terms, nnf_leaves
from matchwood.forms.dnf import dnf
from matchwood.forms.nnf import nnf
from matchwood.forms.simplify import simplify

__all__ = ["dnf", "dnf_terms", "nnf", "nnf_leaves", "simplify"]
