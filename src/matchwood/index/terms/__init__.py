"""Terms: any expression reached by leaves that it cannot do without, the rest tested by bits.

Idea.    An expression is an OR of terms; a term is one predicate, which gives access, and a rest.
         Of an AND the operand that holds most seldom gives access and the others are the rest; of
         an OR every operand does.  An event first finds all predicates (leaves) that it satisfies
         and sets a bit for each.  Terms without a rest match at once: their slots are copied.  The
         rests of the others are tested against the bits.

             S1  (a OR b) AND c      leaf a   group c      S1
             S2  a OR d                       sure         S2
             S3  b AND c             leaf b   group c      S1 S3      one test for both
                                     leaf d   sure         S2

         Leaves are numbered so that those which hold together are neighbours: x <= 1, x <= 2, ...
         So an event has few runs of leaves.  What follows from all runs of a node of a segment tree
         is one piece of memory.

Source.  Access predicates: Propagation (Fabret et al. 2001) and PS-Tree; on demand from the operand
         that is rarest: A-Tree, section 5.2.2.  Segment trees: Bentley 1977.  Tests that jump over
         what is decided: short-circuit code, as compilers write it.
Differs. From A-Tree: no nodes between leaves and expressions, so nothing is visited but the leaves
         that hold and the terms that they reach; equal rests of one leaf are tested once, other
         parts that expressions share are not.  An expression has at most as many terms as leaves:
         only access is distributed over OR, so nothing grows as in a disjunctive normal form.
         Many conjunctions of several predicates are given to `blocks`, which has rows of bits for
         them (`conjunctions`); terms have the others.
         Immutable: changes go through `StaticFrame`, which builds all terms anew.
Cost.    Match O(attributes x log codes + runs + slots given + steps of rests tested).  Build
         O(tokens + terms log terms).  Memory 4 bytes a term without a rest, 4 to 16 with one, 8 a
         step, 4 a leaf; for a node 24 bytes, 8 to 24 for each of its runs, and 4 for each slot that
         it has a copy of, at most 16 of a run.

Layout   codes    cut points of every attribute, as of `blocks` (`blocks.words.Codes`)
         tree     what follows from the nodes of segment trees (`words.Tree`)
         terms    slots and rests that nodes refer to (`words.Terms`)

Files    words    arrays, and the steps of rests
         conjunctions   which of them are verified by `blocks`
         odds     how likely an event satisfies a predicate
         split    expressions into terms
         leaves   leaves on the nodes of segment trees
         pieces   what follows from a node, written side by side
         match    searching
         check_layout, check   what a snapshot must be
         build, index, draw    the owner
"""
