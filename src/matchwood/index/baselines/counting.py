"""Counting index: a conjunction matches once all of its predicates have been seen.

Idea.    Find the predicates that the event satisfies, each once for all expressions that share it.
         Walk the posting list of each, counting per expression how many are still to be seen.
         None left: a match.
Source.  SIFT (Yan and Garcia-Molina 1999), as used in section 7.2 (2) of the BE-Tree paper.
Differs. Ranges are found by stabbing, not enumerated, so memory does not grow with cardinality, and
         inequality has the strong semantics at no extra price.  Dynamic.
Cost.    Match O(satisfied predicates + their postings).  Insert and delete O(log) per predicate and
         one move of memory in its posting list.  Memory 4 bytes a posting (at most half as much
         again in unused room), 13 a predicate, and the stabbing tree; a matcher 2 an expression.

Layout   (P predicate ids, S slots)
         posts     lists[P]   slots of the expressions that use a predicate (see id_lists)
         stabbing             which predicates an event satisfies (see stabbing)
         counter   [S, 2]     scratch.  LEFT: base + predicates still to be seen; NEED: predicates.
                              Every event has a base above all counters before it, so they are set
                              back only when they come to the limit of their type: uint8 for
                              expressions of up to 30 predicates (half the time of int32), int32
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.counting_kernels import (
    NEED,
    POSTS_FULL,
    count_batch,
    count_uses,
    post_all,
    post_more,
    unpost,
)
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import doubled
from matchwood.kernel.id_lists import IdListStore

SHORT = 32
"""Up to this width, one more than the predicates of an expression, counters are bytes."""


class Counting(IndexFrame):
    """Owns the posting lists, the stabbing tree and the counters."""

    name: ClassVar[str] = "counting"

    def _clear(self) -> None:
        self._stabbing = StabbingTree()
        self._posts = IdListStore(16)
        self._width = 2
        self._counter: np.ndarray | None = None
        self._clock = np.zeros(1, np.int64)
        self._opened = np.empty((64, 2), np.int64)

    def _fill(self, slots: np.ndarray) -> None:
        """Lists get the room they need, the tree is made once."""
        slots = np.sort(slots)
        self._note(slots)
        uses = np.zeros(len(self._table.predicates.layout.attr), np.int32)
        count_uses(self._table.layout, slots, uses)
        self._stabbing.build(self._table, uses)
        self._posts = IdListStore(len(uses))
        self._posts.make_room(int((uses + uses // 2 + (uses == 1)).sum(dtype=np.int64)))
        post_all(self._table.layout, slots, uses, self._posts.lists)

    def _add(self, slots: np.ndarray) -> None:
        slots = np.sort(slots)  # ascending slots are appended
        self._note(slots)
        stabbing, posts = self._stabbing, self._posts
        stabbing.make_ids(self._table)
        posts.make_lists(len(self._table.predicates.layout.attr))
        done = 0
        while done < len(slots):
            done, full = post_more(
                self._table.layout, self._table.predicates.layout, slots, done, posts.lists,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
            )  # fmt: skip
            if done < len(slots):
                (posts if full == POSTS_FULL else stabbing.on_node).grow()
        stabbing.settle(self._table)

    def _remove(self, slots: np.ndarray) -> None:
        stabbing = self._stabbing
        unpost(
            self._table.layout, self._table.predicates.layout, slots, self._posts.lists,
            stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
        )  # fmt: skip
        stabbing.settle(self._table)
        self._posts.trim()

    def _stepper(self, events: EventBatch) -> Step:
        board, stabbing, table = self._board, self._stabbing, self._table
        scratch = stabbing.scratch_for(events)
        counter = self._counters()
        if len(self._opened) < len(scratch.found):
            self._opened = np.empty((len(scratch.found), 2), np.int64)
        limit = int(np.iinfo(counter.dtype).max)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = count_batch(
                self._posts.lists, counter, self._clock, self._width, limit, self._opened,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        return {
            "postings": self._posts.n_ids,
            **self._stabbing.stats(),
            "bytes": self._posts.nbytes + self._stabbing.nbytes,
        }

    def draw(self) -> str:
        lengths = self._posts.lists.size
        longest = int(lengths.max(initial=0))
        return (
            f"counting\n├── {len(self._stabbing)} predicates over "
            f"{len(self._stabbing.segments.cut)} segments\n"
            f"└── {self._posts.n_ids} postings of {self._n_live} conjunctions, "
            f"the longest list {longest}"
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        width = np.array([self._width], np.int64)
        return {"width": width, **self._posts.layout("post"), **self._stabbing.layout()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._width = int(layout["width"][0])
        self._posts.take(layout, "post")
        self._stabbing.take(layout)

    def _counters(self) -> np.ndarray:
        """The counters, made when they are first needed."""
        if self._counter is None:
            sizes = self._table.layout.size
            dtype = np.uint8 if self._width <= SHORT else np.int32
            self._counter = np.zeros((len(sizes), 2), dtype)
            self._counter[:, NEED] = np.minimum(sizes, self._width)  # other slots are not ours
            self._clock[0] = 0
        return self._counter

    def _note(self, slots: np.ndarray) -> None:
        sizes = self._table.layout.size[slots]
        width = doubled(self._width, int(sizes.max()) + 1)
        if width != self._width or self._counter is None or int(slots.max()) >= len(self._counter):
            self._counter = None
        else:
            self._counter[slots, NEED] = sizes
        self._width = width

    def _thaw(self) -> None:
        self._posts.thaw()
        self._stabbing.thaw()
