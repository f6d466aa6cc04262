r"""A-Tree: trees of predicates, put together where they are equal.

Idea.    Every expression is a tree of AND and OR over predicates.  Equal subtrees are one node, so
         a million expressions become one graph: predicates below, expressions above.  An event
         makes some predicates true; from them truth climbs, level by level, each node once for all
         expressions that share it.
Source.  A-Tree (Ji and Jacobsen, SIGMOD 2021): structure 4.1, sharing and algorithms 1 to 5 in 4.2,
         matching and its optimisations in 5.
Differs. NOT, XOR and XNOR never get here: zero suppression (5.2.1) is the normal form of all
         expressions; `three_valued` is the version before that.  Ids are sums of mixed node
         numbers over one operator's elements instead of sums and products of 64 bits, and equal ids
         are compared element by element.  The use count is the number of expressions and of parents
         of the other operator, which the lists of parents know.  Searches look at search_limit
         parents of a child at most.  Algorithm 3 asks the parents of every child; here of the child
         with the fewest and of those with few.  The predicate phase is `stabbing`, the segment tree
         that section 5 names first.  See docs/decisions/0011 and 0018.
Cost.    Match O(satisfied predicates + their parents + nodes that become true).  Insert: a few
         lookups a subexpression.  Memory 27 bytes a node, 4 to 8 for the table, 8 to 10 a link,
         12 a node that has parents, 4 an expression, and the predicate index.

    level 4         18 AND S1                                 Figure 6 (c) of the paper:
                     /   \                                    S1 to S6 are its expressions
    level 3   16 AND S4   \      17 AND S2      15 OR S3
               /  \        \      /     \        /   \
    level 2   4   11 OR    12 OR S5   13 OR    11     4       14 AND S6
                  / | \     /  \       /  \                     /  \
    level 1      1  2  3   5    6     7    8                   9    10

Access.  An AND waits for its first child alone, the rarest: only there it is in the active part of
         the list of parents, and only from there is it looked at.  An OR is in that of all its
         children.  Whatever changes children sees to that (`links.change_children`); what must
         always hold is in `tests/index/a_tree_checks.py`.

Files    blocks           what a node is made of: parents, children, slots
         nodes, links     the table of inner nodes; children, access and levels
         insert, share    expressions come: equal parts are found, others made
         delete           expressions go
         match, search    an event climbs; a batch of them
         index            the owner

Layout   (M node ids, P predicate ids, S slots)
         hot       int32[M, 2]  TELL, SLOT: what matching reads; see `blocks`
         node      int32[M, 3]  UP, DOWN, ID
         level     int16[M]     1 for a leaf, else one more than the highest child
         op        int8[M]      FREE, LEAF, AND, OR
         rarity    uint8[M]     -12 log2 of the share of events it is expected to hold for
         leaf_of   int32[P]     node of a predicate, or -1
         root_of   int32[S]     node of an expression, or -1
         table     int32[2^k]   inner nodes by ID, open addressing, at most three quarters full; of
                                a snapshot it is made at the first change
         word      int32[]      blocks of parents, children and slots
         free      int32[128]   first free block of each size class
         count     int64[9]     HIGH, NEXT_FREE, N_NODES, N_LEAVES, TOP, FREED, MAX_LEVEL, HAS_TOPS,
                                SEED
         hull      int64[A, 2]  outermost constants of an attribute, for rarity
"""
