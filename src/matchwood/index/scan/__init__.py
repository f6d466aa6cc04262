"""Scan: test every expression, stop each at the first predicate that decides it.

Idea.    Expressions lie one after the other in columns.  A conjunction is left at its first
         predicate that does not hold.  A tree is a list of leaves, each knowing where to go next
         when it holds and when it does not, so no leaf is tested that cannot matter, and there is
         no stack.
Source.  SCAN of the BE-Tree paper (section 7.2) and of the A-Tree paper; the definition of correct.
Differs. Trees are compiled to jumps instead of being walked.
Cost.    Match O(expressions), about one predicate each.  Memory 24 bytes a predicate (32 in trees)
         and 12 an expression.  Deleted records are skipped until they are a fifth, then closed up.

Layout   (n records, m inline predicates; one set of arrays for conjunctions, one for trees)
         slot     int32[n]     expression, -1 when deleted
         start    int64[n+1]   slice of predicates that belongs to a record
         attr     int32[m]     |
         lo, hi   int64[m]     | inline predicate, see verify_kernels
         ref      int32[m]     |
         on_true, on_false int32[m]   trees only: next leaf of the record, or MATCH, or FAIL
"""
