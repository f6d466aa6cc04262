"""BE-Tree: cut the space by one attribute, then by halves of its domain, and so on.

Idea.    All expressions begin in one leaf.  A leaf that grows too large is cut by an attribute
         that many of its expressions test; those are then sorted into halves of halves of its
         domain.  A leaf there that grows too large is cut again, by another attribute.  An event
         follows only its own attributes and only the halves that hold its values.
Source.  Sadoghi and Jacobsen, "BE-Tree", SIGMOD 2011: Figures 1 to 3, Algorithms 1 to 6, Table 1,
         sections 4.2 (capacity), 4.3 (rules, invariance) and 5 (rank, recycling).
Differs. Keys are 64-bit, so a p-node halves the span of the interval ends it knows and as much on
         either side, and levels of the grid that separate nothing have no bucket; a half is made
         when something goes there.
         An extended l-node grows by a quarter at least.  The window is checked for the tree as a
         whole (`windows = "node"`: for each p-node).
         See docs/decisions/0004-be-tree-what-the-paper-leaves-open.md.
Cost.    Insert and delete O(predicates * depth); a path has each attribute once and at most 64
         buckets of it.  Match O(nodes reached + candidates).  Memory: postings, and per c-node 72
         bytes, per p-node 56, per slot 8; 80 to 100 bytes an expression of 7
         predicates in all.

Layout   (C c-nodes, P p-nodes, A attributes, S slots; free nodes among them; c-node 0 is the root)

         c-node ── l-node: postings list of the same number
           └── p-directory: attribute -> p-node
                                           └── c-directory: bucket of the whole domain
                                                 ├── bucket of its lower half, a c-node
                                                 └── bucket of its upper half, a c-node

         c          int32[C,9]  OWNER UP LEFT RIGHT HEAD N_DIR CAP SPLIT TODO, see the kernels
         span       int64[C,2]  the bucket: first and last key; ends of the grid are open
         p          int32[P,6]  ATTR HOME TOP_BUCKET NEXT PREV BELOW, see the kernels
         grid       int64[P,2]  the domain that the p-node halves
         directory  int32[2^k]  p-nodes by (HOME, ATTR): open addressing, at most half full; not
                                in a snapshot
         attr_span  int64[A,2]  smallest and largest finite interval end of an attribute
         attr_n     int64[A]    expressions that test it
         leaf_of    int32[S]    the c-node that holds an expression, -1 for none
         todo       int32[C]    stack of c-nodes to relieve; empty between calls, like
         pending    int32[S]    stack of expressions to insert again
         count      int64[9]    see the kernels
         postings               see `postings.py`
"""
