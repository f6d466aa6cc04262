"""PSTBloom and PSTHash: conjunctions found through predicate spaces (PS-Tree paper, section 5).

Idea.    The constants of all predicates on an attribute divide its keys into *spaces*.  An event's
         value falls into one space of each attribute, so the expressions filed under that space are
         the only ones it can satisfy there.  Each conjunction is filed under few of its predicates,
         those that hold most seldom (`access`).

             attribute x    |   space 3   |   space 4   |   space 5   |
             x in 20..30    [-------------------------)
             event x = 24                    ^ space 4: look at what is filed there

         `bloom` files a conjunction under one access predicate and lets a signature of a few bits
         (`signatures`) rule out most candidates before they are verified; `hash` files it under a
         combination of spaces of two or more attributes (`keys`, `space_hash`).

Skipped  A predicate whose spaces it fills exactly is not verified: reaching one of them proves
         it, as long as the cuts at its ends stand (see `bloom_change`: uses).  What must always
         hold is in `tests/index/pst_checks.py`.

Files    frame            what both share: spaces, records, entries, statistics of events
         bloom, hash      the two indexes, each with its own page
         spaces, cuts     how an attribute is divided, one by one and in bulk
         access, ahead    which predicate of an expression holds most seldom
         records          expressions by space, with their signatures
         entries          what verification needs of an expression, in one arena
         *_build, *_change, *_match, *_check*   kernels of bulk building, of single changes, of
                          searching, and of checking a snapshot
"""
