"""Postings: lists of expressions that carry what verification needs, in one arena.

Idea.    Conjunctive indexes differ in how they reach candidates; here is what all of them end in.
         A list is one piece of memory.  An entry is a slot and the predicates that are not yet
         known to hold, one behind the other, the rarest attribute first: testing a candidate reads
         forwards and touches nothing else.
Source.  DESIGN 5; the l-nodes of BE-Tree, the clusters of Propagation, the leaves of the others.
Cost.    8 bytes an entry and 8 a predicate (16 or 24: sets); segments are 11 % larger on average.
         Appending copies an entry 5 times at most in all; removing reads and closes up its list.

A predicate takes one to three words:

    63  61 60      46 45      23 22      0  63          0  63          0
    [kind] [attribute][low      ][high    ] [word        ] [word        ]

    INTERVAL   low <= x <= high                           both as offsets; one word
    INSIDE     bit x - low of the words is set            IN over 128 neighbouring keys, two words
                                                          or, beyond 64, three
    OUTSIDE    no bit x - low of the words is set         <>, NOT IN
    WIDE       the id and the attribute, words = hull     an interval that does not fit
    WIDE_SET   the same                                   a set: asks the predicate table

x is the *offset* of the event's key: its distance from the attribute's origin, plus one, within 23
bits; 0 stands for all keys before the origin, PAST for all behind.  Only ends that have an offset
of their own are written as offsets, so the comparison is exact.

    lists[i] = (START, USED, ROOM, N)

    word  ... [5|slot 7][cell  ][cell  ][3|slot 2][cell  ] .......  next segment
              ^START     1 to 3 words                     ^+USED  ^+ROOM

Layout   (L lists)
         word    int64[]     arena of segments; a free segment's first word is the next free one
         lists   int32[L,4]  START, USED and ROOM in words, N entries; all 0 without a segment
         free    int64[128]  first free segment of each size class, -1 for none
         origin  int64[A]    key with offset 1, by attribute; MAX_KEY: not yet known
         count   int64[2]    TOP: words handed out, FREED: words among them in free segments

A list is removed from by its owner's slot -> list map.  What a path subsumes is left out of the
entry by `push(..., skip)` and `copy_entry(..., without)`.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.arrays import grown
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.posting_kernels import FREED, N_CLASSES, TOP, PostingLayout, compact

_SMALL = 256


def new_postings(n_lists: int = 4) -> PostingLayout:
    return PostingLayout(
        word=np.zeros(_SMALL, np.int64),
        lists=np.zeros((n_lists, 4), np.int32),
        free=np.full(N_CLASSES, -1, np.int64),
        origin=np.full(4, MAX_KEY, np.int64),
        count=np.zeros(2, np.int64),
    )


def with_words(postings: PostingLayout, n_lists: int) -> PostingLayout:
    """A larger arena; closed up instead when a good part of it is free segments."""
    if postings.count[FREED] * 4 > postings.count[TOP]:
        return closed_up(postings, n_lists, slack=0.25)
    size = len(postings.word)
    return postings._replace(word=grown(postings.word, size + max(size, _SMALL) // 4 + _SMALL))


def closed_up(postings: PostingLayout, n_lists: int, slack: float = 0.0) -> PostingLayout:
    """All segments one behind the other, each of the class of its list, no free ones."""
    fresh = np.zeros(int(postings.count[TOP]), np.int64)
    top = compact(postings, n_lists, fresh)
    size = top + int(slack * top) + (_SMALL if slack else 0)
    fresh.resize(size, refcheck=False)  # in place, where a copy would touch all of it again
    return postings._replace(word=fresh)


def with_attributes(postings: PostingLayout, n_attributes: int) -> PostingLayout:
    return postings._replace(origin=grown(postings.origin, n_attributes, int(MAX_KEY)))
