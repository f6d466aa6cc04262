"""Which searches go block by block, and the step of one (`groups`, `match_groups`).

Events one by one wait for the memory of every block that they reach.  From some thousand events on
each block is reached several times, so it is worth it to put visits in the order of blocks first.
It is not where events have many of the attributes, because most members of a block would be tested
all the same, nor where most members lie in columns, which answer for 64 at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.blocks.build import Structure
from matchwood.index.blocks.draw import members_in
from matchwood.index.blocks.groups import MARK_WORDS, MARKS, TOGETHER, Group
from matchwood.index.blocks.match import match_blocks
from matchwood.index.blocks.match_groups import gather_group, match_group
from matchwood.index.blocks.words import MOST_MEMBERS

MOST_EVENTS = 2**14
"""Events of a group."""

LEAST_VISITS = 5
"""Visits of a block, on average, from which searching block by block is worth it."""

SPARSE = 8
"""An event has at most one of so many attributes, or marks of attributes."""


def is_for_groups(built: Structure, events: EventBatch, least_words: int) -> bool:
    """Whether searching block by block is likely to be worth it."""
    if len(built.blocks.word) < least_words:
        return False
    n, n_entries, n_blocks = events.n_events, len(events.attr), len(built.blocks.gate)
    of_group = n_entries * min(n, MOST_EVENTS) // max(n, 1)
    if 2 * of_group < LEAST_VISITS * n_blocks or not of_group:  # an entry reaches two spaces
        return False
    n_marks = min(int(np.count_nonzero(built.codes.n)), MARKS)
    if SPARSE * n_entries > n_marks * n:
        return False
    n_members, n_rows = members_in(built.blocks)
    return 2 * n_rows > n_members


def by_groups(built: Structure, events: EventBatch) -> Callable[..., int]:
    """What matches a batch group by group, and events one by one where that is not worth it.

    kernel(bound, mine, query, first, stamp), as `match_blocks`.
    """
    group, n_events = _new_group(built, events), events.n_events
    gathered, is_over = (0, 0), False

    def kernel(bound: Any, mine: Any, query: Any, first: int, stamp: int) -> int:
        nonlocal gathered, is_over
        bound_to = (bound, mine, query)
        while first < n_events:
            if first >= gathered[1] and not is_over:
                gathered = (first, gather_group(*bound_to, group, first, LEAST_VISITS))
                is_over = gathered[1] == first
            if is_over:
                return match_blocks(*bound_to, first, stamp)
            first = match_group(*bound_to, group, gathered[0], first, gathered[1])
            if first < gathered[1]:  # no room
                return first
        return first

    return kernel


def _new_group(built: Structure, events: EventBatch) -> Group:
    n, n_entries = events.n_events, len(events.attr)
    most = min(n, MOST_EVENTS)
    visits = 4 * (n_entries * most // n + MARKS)
    found = visits + TOGETHER * MOST_MEMBERS
    record = np.empty(most * (MARK_WORDS + 4) + n_entries * most // n, np.int64)
    return Group(
        code=np.empty(n_entries, np.int32),
        visit=np.empty(visits, np.int64),
        listed=np.empty(visits, np.int32),
        block_end=np.empty(len(built.blocks.gate) + 1, np.int32),
        record=record,
        tag=record.view(np.int32),
        record_start=np.empty(most + 1, np.int32),
        mark=np.empty(MARK_WORDS, np.int64),
        head=np.empty(MARKS + 1, np.int16),
        after=np.empty(MOST_MEMBERS + 1, np.int16),
        met=np.empty(TOGETHER * MARK_WORDS + 1, np.int64),
        met_at=np.empty(TOGETHER * MARK_WORDS + 1, np.int64),
        tried=np.empty(TOGETHER * MOST_MEMBERS + 1, np.int64),
        event=np.empty(found, np.int32),
        entry=np.empty(found, np.int64),
        by_event=np.empty(found, np.int64),
        event_end=np.empty(most + 1, np.int64),
    )
