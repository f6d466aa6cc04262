"""CIF: the context-aware information filter, two input streams and four components.

Idea.    Context management (`store`) holds the values.  Every attribute that members test has an
         index, and a member is in those on its most selective ones.  They find members whose
         ranges hold the event's key; a merge keeps those that all their indexes have found; a
         postfilter tests what is left in the context as it is, so an index may be wrong on the safe
         side.  What an update does to the indexes is the only difference between `no_index`,
         `eager`, `partial`, `gbu` and `agile`.
Source.  The AGILE paper: section 3 (components), figures 3, 4 and 8, section 5.5 (policies),
         section 6.1 (choices: two indexes, bitmaps, short circuit).
Differs. A tree is held under the hull of leaves without which it cannot be TRUE (`cover_kernels`),
         where the paper unites the answers of its conjunctions; what has no such leaves in few
         indexes is a candidate for every event.  What the context alone decides is part of an
         entry's range: all keys or none.  Indexes
         are chosen and built at the first match after values or members have doubled.  Requests to
         deescalate are carried out after the batch of events that made them.  `auto` weighs recent
         updates and false positives, not all since the start.  The merge counts in a compiled
         loop; `merge="bitmap"` does it with compressed bitmaps, as the paper does.
Cost.    Match: the candidates of the indexes, tested until one predicate fails.  Update: one cell,
         and the indexes only when the value leaves its safe range.  About 40 bytes a predicate and
         60 an index entry.

Layout   see member_kernels (subscriptions), index.marker_kernels (indexes), store (values)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.context.agile_kernels import (
    AGILE,
    NO_INDEX,
)
from matchwood.context.choice import EVERY
from matchwood.context.cif_config import CifConfig
from matchwood.context.cif_indexes import MemberIndexes
from matchwood.context.cif_kernels import (
    FALSE_POSITIVE,
    FIND,
    NOTHING,
    absorb_notes,
    filter_batch,
)
from matchwood.context.cif_layout_kernels import (
    MINE,
    N_EVENTS,
    VIEW,
    Filter,
    Lists,
    Mine,
    Search,
    View,
)
from matchwood.context.member_kernels import N_LOOSE, N_MEMBERS
from matchwood.context.policy_kernels import (
    DECAY,
    P_ASKED,
    P_KIND,
    P_MEMBERS,
    P_UPDATES,
    RENT,
    RESTLESS,
)
from matchwood.context.update_kernels import ESCALATED, UPDATES, WIDENED
from matchwood.encode.events import EventBatch
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import BoundStep, Saved, check_slots
from matchwood.index.core.protocol import ANY, Hits
from matchwood.index.core.scratch import Part, Scratch
from matchwood.index.stabbing.marker_kernels import NODES, VISITED
from matchwood.kernel.arrays import bytes_of

REQUESTS = 4096
NOTES = 2**16
"""Finds and false positives that a scratch can note before its owner absorbs them."""
SWEEP = 96
"""Entries that an event at rest brings nearer to their values: 100,000 take some 1,000 events."""
SWEEP_AFTER = 2
"""One escalation in so many entries begins a new round; fewer are left to false positives."""


class Cif(MemberIndexes):
    """Searches subscriptions, learns from what was found, and says when indexes are built again."""

    name: ClassVar[str] = "cif"
    language: ClassVar[str] = ANY
    is_kept: ClassVar[bool] = True
    Config: ClassVar[type[IndexConfig]] = CifConfig
    LAYOUT = VIEW
    SEARCH = MINE

    # -- the frame ---------------------------------------------------------------------------

    def _clear(self) -> None:
        self._slots: set[int] = set()
        self._pending: list[int] = []
        self._is_stale = True
        self.work = np.zeros(5, np.int64)
        self._policy = self._new_policy()
        self._requests = np.empty(REQUESTS, np.int32)
        self._drop_layout()

    def _new_policy(self) -> np.ndarray:
        return np.ones(7) * (np.arange(7) == P_MEMBERS)

    def _add(self, slots: np.ndarray) -> None:
        new = slots.tolist()
        self._slots.update(new)
        self._pending += new

    def _remove(self, slots: np.ndarray) -> None:
        gone = set(slots.tolist())
        self._slots -= gone
        self._pending = [slot for slot in self._pending if slot not in gone]
        if not self._is_stale:
            self._leave(slots)

    def _thaw(self) -> None:
        pass

    # -- building ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Bring subscriptions and indexes up to date with all that was inserted."""
        store = self._store
        if store is not None and store.follower is not self:
            store.follow_with(self)
            self._is_stale = True
        if self.is_settled:
            return
        try:
            if self._is_stale:
                self._build()
            elif self._pending:
                self._take_compiled(self._compile(self._pending))
                self._pending = []
        except BaseException:  # half of it is done: none of it counts
            self._is_stale = True
            raise
        self._unbind()

    @property
    def is_settled(self) -> bool:
        """Whether all that was inserted can be found as it is; else `settle` comes first."""
        store = self._store
        if self._is_stale or (store is not None and store.follower is not self):
            return False
        version = -1 if store is None else store.attributes.version
        n, values = self._built_with
        has_doubled = len(self._slots) > 2 * n + 64
        if self.mode != NO_INDEX and store is not None and self.work[UPDATES] > self._look_at:
            self._look_at = int(self.work[UPDATES]) + 4 * len(store) + 64
            has_doubled |= store.n_values > 2 * values + 16
        if has_doubled or version != self._types_version:
            self._is_stale = True
        return not (self._is_stale or self._pending)

    _look_at = 0

    # -- updates -----------------------------------------------------------------------------

    # -- matching ----------------------------------------------------------------------------

    def new_part(self) -> Part:
        part = Part()
        part.arrays = _new_search(0, 0)
        return part

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        """See `protocol`; values may not change meanwhile, and `settle` comes first."""
        scratch.begin()
        if self._uses_bitmaps:
            hits = self._match_bitmaps(events, scratch)
        else:
            hits = scratch.run(events, self.n_attributes, self._stepper(events, scratch))
        scratch.end()
        return hits

    @property
    def layout_version(self) -> tuple[int, int]:
        """Other numbers when subscriptions were laid out anew, or more were appended."""
        return self._version, int(self.members.count[N_MEMBERS])

    @staticmethod
    def new_search(n_members: int) -> Search:
        """What a search that asks no index writes to."""
        return _new_search(n_members, 0)

    def search_in(self, scratch: Scratch) -> Search:
        """What a search writes to, long enough for the subscriptions that there are now."""
        part, size = scratch.of(self), len(self.members.slot)
        if part.version != self._version or len(part.arrays.seen) < size:
            is_other, noted = part.version != self._version, part.arrays
            part.arrays = _new_search(size, self.choice.n_lists)
            part.version = self._version
            if not is_other:  # the same entries: what was noted about them still holds
                part.arrays = part.arrays._replace(noted=noted.noted, count=noted.count)
        arrays: Search = part.arrays
        return arrays

    def _learn(self, part: Part) -> None:
        """Let the policy decide about false positives, and deescalate what it asks for."""
        x = part.arrays
        if part.version != self._version:
            x.count[:] = 0
        elif x.count[N_EVENTS]:
            n_events = int(x.count[N_EVENTS])
            absorb_notes(
                x, self.members.wrong, self.members.spent, self._policy, self._requests, self.work
            )
            self._deescalate()
            self._sweep(n_events)

    def _sweep(self, n_events: int) -> None:
        """While values rest, bring all K(i) nearer to k(i), some entries for every event.

        A false positive finds one entry; after a burst of updates all of them are too large, and
        every event reads those that have a range of their own.  A round that finds none of these,
        and in which few were escalated, is the last one until there are.
        """
        if self._policy[P_KIND] != RENT or self._policy[P_UPDATES] * (1.0 - DECAY) > (
            RESTLESS * self._policy[P_MEMBERS]
        ):
            return
        n = self.choice.width * int(self.members.count[N_MEMBERS])
        if self._swept >= n:  # a round is over
            escalated, widened = int(self.work[ESCALATED]), int(self.work[WIDENED])
            has_few = escalated - self._swept_work[0] <= n // SWEEP_AFTER
            if has_few and widened == self._swept_work[1]:
                return
            self._swept, self._swept_work = 0, (escalated, widened)
        last = min(n, self._swept + SWEEP * n_events)
        self._deescalate_all(np.arange(self._swept, last, dtype=np.int32), is_whole=True)
        self._swept = last

    @property
    def n_attributes(self) -> int:
        """One more than the highest attribute id that a subscription asks for."""
        known = 0 if self._store is None else len(self._store.attributes)
        return max(self._table.n_attributes, known)

    @property
    def _uses_bitmaps(self) -> bool:
        return bool(self.config.merge == "bitmap" and self.choice.width)

    def _view(self) -> View:
        choice = self.choice
        return View(
            self.members, self.structure, self.cells, choice.of_attr, choice.every_width,
            self.predicates,
        )  # fmt: skip

    def _stepper(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        search = self.search_in(scratch)
        return self._bound_step(
            filter_batch, events, scratch, lambda: Mine(search, scratch.board), self._notes
        )

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """As `IndexFrame.alone`; None for the merge by bitmaps."""
        return None if self._uses_bitmaps else self._stepper(events, scratch)

    def filter(self) -> Filter:
        """What a search reads."""
        lists = Lists(self.choice.of_attr, self.choice.every, self.choice.width)
        return Filter(self.members, self.structure, self.cells, lists, self._notes)

    @property
    def _notes(self) -> int:
        """What the policy wants to know of a search."""
        if self.mode != AGILE:
            return NOTHING
        return FIND if self._policy[P_KIND] == RENT else FALSE_POSITIVE

    def _deescalate(self) -> None:
        asked = int(self._policy[P_ASKED])
        if not asked:
            return
        chosen = self._requests[:asked].copy()
        self._policy[P_ASKED] = 0
        self._deescalate_all(chosen)

    def _match_bitmaps(self, events: EventBatch, scratch: Scratch) -> Hits:
        """Merge by compressed bitmaps: one per index, with what the index does not hold."""
        from matchwood.context.bitmap_merge import match_bitmaps

        return match_bitmaps(self, events, scratch)

    # -- saying ------------------------------------------------------------------------------

    def _structure(self) -> dict[str, Any]:
        self.settle()
        names = "escalated", "deescalated", "updates", "false_positives", "widened"
        done = dict(zip(names, self.work.tolist(), strict=True))
        return {
            "index_attributes": [each for each in self.choice.attrs.tolist() if each != EVERY],
            "unindexed": int(self.members.count[N_LOOSE]),
            "nodes": int(self.structure.count[NODES]),
            "visited": int(self.structure.count[VISITED]),
            **done,
            "bytes": bytes_of(self.members, self.structure),
        }

    def draw(self) -> str:
        self.settle()
        p, choice = self.members, self.choice
        lines = [f"{self.name}: {self._n_live} subscriptions, {int(p.count[N_LOOSE])} loose"]
        live = p.slot[: int(p.count[N_MEMBERS])] >= 0
        n_entries = choice.width * len(live)
        held = np.repeat(live, choice.width) & (p.entry[:n_entries, 1] > 0)
        sizes = np.bincount(p.listed[:n_entries][held], minlength=choice.n_lists)
        for k, attr in enumerate(choice.attrs.tolist()):
            branch = "└──" if k == choice.n_lists - 1 else "├──"
            what = "the context alone" if attr == EVERY else f"attribute {attr}"
            lines.append(f"{branch} index on {what}: {sizes[k]} subscriptions")
        return "\n".join(lines)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"slots": np.array(sorted(self._slots), np.int32)}

    @classmethod
    def _check(cls, saved: Saved) -> None:
        check_slots("slots", saved)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._slots = set(layout["slots"].tolist())
        self._is_stale = True


def _new_search(n_members: int, n_lists: int) -> Search:
    """What a search writes to; memory that is not touched costs nothing."""
    return Search(
        clock=np.zeros(1, np.int64),
        key=np.zeros((n_lists, 3), np.int64),
        seen=np.zeros(n_members, np.uint8),
        found=np.empty(n_members, np.int32),
        candidates=np.empty(n_members, np.int32),
        tested=np.zeros(1, np.int64),
        noted=np.empty((NOTES, 2), np.int32),
        count=np.zeros(3, np.int64),
    )
