"""Baselines: the methods that the papers compare theirs with.

counting       SIFT: count satisfied predicates                      BE-Tree paper, section 7.2
k_index        posting lists by number of predicates                 BE-Tree and PS-Tree papers
gryphon        a decision tree over attributes                       BE-Tree paper
propagation    access predicates and clusters by attribute sets      BE-Tree and PS-Tree papers
op_index       lists by rarest attribute and operator                PS-Tree paper
interval_id, dewey_id   every tree on its own, leaves by position    A-Tree paper
bop            bottom-up over the predicates' parents                A-Tree paper
bdd            binary decision diagrams                              A-Tree paper
translation    disjunctive normal form, each part a conjunction      A-Tree paper
r_tree         an R-tree from a library, for two ranges              VCR report

All of them are static (`index.core.static`): built in bulk, searched, and built again at the first
search after a change.  A snapshot keeps none of them, since the expression table is enough.
"""
