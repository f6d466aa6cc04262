"""CIF: the context-aware information filter, two input streams and four components.

Idea.    Context management (`store`) holds the values.  Every attribute that profiles test has an
         index, and a profile is in those on its most selective ones.  They find profiles whose
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
         are chosen and built at the first match after values or profiles have doubled.  Requests to
         deescalate are carried out after the batch of events that made them.  `auto` weighs recent
         updates and false positives, not all since the start.  The merge counts in a compiled
         loop; `merge="bitmap"` does it with compressed bitmaps, as the paper does.
Cost.    Match: the candidates of the indexes, tested until one predicate fails.  Update: one cell,
         and the indexes only when the value leaves its safe range.  About 40 bytes a predicate and
         60 an index entry.

Layout   see profile_kernels (profiles), index.marker_kernels (indexes), store (values)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.context.agile import new_structure, renewed, roomier
from matchwood.context.agile_kernels import (
    AGILE,
    BOX_LEVEL,
    GBU,
    NO_INDEX,
    SKIP_LIST,
)
from matchwood.context.choice import EVERY, choose_attributes, no_choice
from matchwood.context.cif_build import ends_of, structure_for
from matchwood.context.cif_config import CifConfig
from matchwood.context.cif_kernels import N_EVENTS, Lists, Search, absorb_notes, filter_batch
from matchwood.context.policy_kernels import (
    DECAY,
    P_ASKED,
    P_KIND,
    P_PROFILES,
    P_UPDATES,
    RENT,
    RESTLESS,
)
from matchwood.context.profile_kernels import Profiles
from matchwood.context.profiles import (
    Compiled,
    append,
    compile_slots,
    meanings,
    no_profiles,
)
from matchwood.context.store import ContextStore
from matchwood.context.update_kernels import (
    DEESCALATED,
    ESCALATED,
    N_LOOSE,
    N_PROFILES,
    UPDATES,
    box_entries,
    deescalate_entries,
    enter,
    leave,
    make_nodes,
    update_cells,
)
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step, check_slots
from matchwood.index.core.protocol import ANY, Hits
from matchwood.index.core.scratch import Part, Scratch, new_version
from matchwood.index.stabbing.interval_skip_list import with_identifiers
from matchwood.index.stabbing.interval_skip_list_kernels import LEVELS
from matchwood.index.stabbing.marker_kernels import KIND, NODES

REQUESTS = 4096
NOTES = 2**16
"""Finds and false positives that a scratch can note before its owner absorbs them."""
SWEEP = 96
"""Entries that an event at rest brings nearer to their values: 100,000 take some 1,000 events."""
SWEEP_AFTER = 64
"""One escalation in so many entries begins a new round."""
SPARE_NODES = 64
"""Nodes that are never worth looking for those that no range ends at any more."""
_NO_CELLS = np.full((1, 1, 4), INT_MIN, np.int64)


class Cif(IndexFrame):
    """Owns profiles and indexes; the values are the store's."""

    name: ClassVar[str] = "cif"
    language: ClassVar[str] = ANY
    is_kept: ClassVar[bool] = True
    Config: ClassVar[type[IndexConfig]] = CifConfig
    mode: ClassVar[int] = NO_INDEX

    # -- the frame ---------------------------------------------------------------------------

    def _clear(self) -> None:
        self._slots: set[int] = set()
        self._pending: list[int] = []
        self._is_stale = True
        self.work = np.zeros(4, np.int64)
        self._policy = self._new_policy()
        self._requests = np.empty(REQUESTS, np.int32)
        self._before = np.zeros(LEVELS, np.int64)
        self._drop_layout()

    def _drop_layout(self) -> None:
        """Forget profiles and indexes, and the links to them that lie beside the values."""
        if self._store is not None and self._store.follower is self:
            self._store.reset_safety()
        self.choice = no_choice()
        self.profiles: Profiles = no_profiles()
        self.structure = new_structure(0, 1)
        self._scope = np.zeros((0, 2), np.int64)
        self._profile_of = np.full(16, -1, np.int32)
        self._version = new_version()
        self._built_with = (0, 0)
        self._n_dead = 0
        self._types_version = -1
        self._most_nodes = SPARE_NODES
        self._swept, self._swept_work = 0, (0, 0)

    def _new_policy(self) -> np.ndarray:
        return np.ones(7) * (np.arange(7) == P_PROFILES)

    contexts: ContextStore | None = None
    """The values that profiles refer to; set by the owner, None while no subscription has any."""

    @property
    def _store(self) -> ContextStore | None:
        return self.contexts

    @property
    def profile_of(self) -> np.ndarray:
        """Profile by slot, -1: none."""
        return self._profile_of

    @property
    def predicates(self) -> Any:
        """The layout of the predicate table."""
        return self._table.predicates.layout

    @property
    def cells(self) -> np.ndarray:
        """The values of the contexts."""
        return _NO_CELLS if self._store is None else self._store.cells

    def _add(self, slots: np.ndarray) -> None:
        new = slots.tolist()
        self._slots.update(new)
        self._pending += new

    def _remove(self, slots: np.ndarray) -> None:
        gone = set(slots.tolist())
        self._slots -= gone
        self._pending = [slot for slot in self._pending if slot not in gone]
        if self._is_stale:
            return
        inside = slots[slots < len(self._profile_of)]
        chosen = self._profile_of[inside]
        self._profile_of[inside] = -1
        chosen = chosen[chosen >= 0]
        leave(
            self.profiles, self.structure, self.cells, chosen, self.choice.width, self.mode,
            self._scope,
        )  # fmt: skip
        self._n_dead += len(chosen)
        if self._n_dead > 64 + len(self._slots) // 4:
            self._is_stale = True

    def _thaw(self) -> None:
        pass

    def forget_layout(self) -> None:
        """Keys have moved, or types have become known: build anew at the next match."""
        self._is_stale = True

    # -- building ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Bring profiles and indexes up to date with all that was inserted."""
        store = self._store
        if store is not None and store.follower is not self:
            store.follow_with(self)
            self._is_stale = True
        version = -1 if store is None else store.attributes.version
        n_values = 0
        if not self._is_stale:
            n, values = self._built_with
            has_doubled = len(self._slots) > 2 * n + 64
            if self.mode != NO_INDEX and store is not None and self.work[UPDATES] > self._look_at:
                self._look_at = int(self.work[UPDATES]) + 4 * len(store) + 64
                n_values = store.n_values
                has_doubled |= n_values > 2 * values + 16
            if has_doubled or version != self._types_version:
                self._is_stale = True
        try:
            if self._is_stale:
                self._build()
            elif self._pending:
                self._take_compiled(self._compile(self._pending))
                self._pending = []
        except BaseException:  # half of it is done: none of it counts
            self._is_stale = True
            raise

    _look_at = 0

    def _compile(self, slots: list[int] | np.ndarray) -> Compiled:
        return compile_slots(
            self._table, np.array(slots, np.int32), meanings(self._table, self._store)
        )

    def _build(self) -> None:
        store = self._store
        self._drop_layout()
        if not self._slots:
            return
        slots = np.array(sorted(self._slots), np.int32)
        compiled = self._compile(slots)
        n_values = 0 if store is None else store.n_values
        self._built_with = (len(slots), n_values)
        self._policy[P_PROFILES] = len(slots)
        self._types_version = -1 if store is None else store.attributes.version
        if self.mode != NO_INDEX:
            rows = np.full(len(compiled.slots), -1, np.int32)
            if store is not None:
                linked = store.is_linked(compiled.slots)
                rows[linked] = store.slot_row[compiled.slots[linked]]
            self.choice = choose_attributes(compiled, rows, self.cells, self.config.indexes)
            if self.choice.width:
                self.structure = structure_for(compiled, self.choice, self.config.structure)
                self._scope = self._scopes()
        self._is_stale = False
        self._pending = []
        self._take_compiled(compiled)

    def _scopes(self) -> np.ndarray:
        """Of partial indexes: first and last key that each holds."""
        scope = np.empty((self.choice.n_lists, 2), np.int64)
        scope[:, 0], scope[:, 1] = INT_MIN, INT_MAX
        return scope

    def _take_compiled(self, compiled: Compiled) -> None:
        """Append profiles and put them into the indexes."""
        if not len(compiled.slots):
            return
        first = int(self.profiles.count[N_PROFILES])
        self.profiles = append(self.profiles, compiled, self.choice, self._store)
        last = int(self.profiles.count[N_PROFILES])
        top = int(compiled.slots.max()) + 1
        if top > len(self._profile_of):
            fresh = np.full(max(top, 2 * len(self._profile_of)), -1, np.int32)
            fresh[: len(self._profile_of)] = self._profile_of
            self._profile_of = fresh
        self._profile_of[compiled.slots] = np.arange(first, last)
        n = self.choice.width
        if not n:
            return
        self.structure = with_identifiers(self.structure, len(self.profiles.entry))
        if first == 0 and self.structure.count[KIND] == SKIP_LIST:
            n_lists = self.choice.n_lists
            for k, ends in enumerate(ends_of(self.profiles, self.cells, last, n, n_lists)):
                self._repeat(
                    lambda done, k=k, ends=ends: make_nodes(
                        self.structure, k, ends, done, self._before
                    ),
                    0, len(ends),
                )  # fmt: skip
        self._repeat(
            lambda done: enter(
                self.profiles, self.structure, self.cells, done, last, n, self.mode,
                self._scope, self._before,
            ),
            first, last,
        )  # fmt: skip
        if self.mode == GBU and self.structure.count[KIND] == SKIP_LIST:
            self._repeat(
                lambda done: box_entries(
                    self.profiles, self.structure, self.cells, done, last, n, BOX_LEVEL,
                    self.mode, self._scope,
                ),
                first, last,
            )  # fmt: skip
        if first == 0:
            self._most_nodes = SPARE_NODES + 3 * int(self.structure.count[NODES])

    def _repeat(self, step: Any, done: int, last: int) -> None:
        """Call a step until it comes to the end, making room whenever it stops."""
        while True:
            done = step(done)
            if done == last:
                return
            self.structure = roomier(self.structure)

    # -- updates -----------------------------------------------------------------------------

    def update(self, rows: np.ndarray, cols: np.ndarray, keys: np.ndarray) -> None:
        """Write keys into cells and let the indexes follow."""
        n = self.choice.width
        self._repeat(
            lambda done: update_cells(
                self.profiles, self.structure, self.cells, rows, cols, keys, done, n, self.mode,
                self._scope, self._before, self._policy, self.work,
            ),
            0, len(keys),
        )  # fmt: skip
        self._give_back_nodes()

    def _give_back_nodes(self) -> None:
        """Nodes stay when the ranges that ended there leave; when they are two in three, all are
        made anew.  So many were made since the last time that the work is theirs.
        """
        if self.structure.count[NODES] > self._most_nodes:
            self.structure = renewed(
                self.structure, self.choice.n_lists, self.profiles.listed, self._before
            )
            self._most_nodes = SPARE_NODES + 3 * int(self.structure.count[NODES])

    def note_updates(self, n: int) -> None:
        """So many values were changed."""
        self._policy[P_UPDATES] += n

    # -- matching ----------------------------------------------------------------------------

    def new_part(self) -> Part:
        part = Part()
        part.arrays = _new_search(0)
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

    def search_in(self, scratch: Scratch) -> Search:
        """What a search writes to, long enough for the profiles that there are now."""
        part, size = scratch.of(self), len(self.profiles.slot)
        if part.version != self._version or len(part.arrays.seen) < size:
            is_other, noted = part.version != self._version, part.arrays
            part.arrays = _new_search(size)
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
                x, self.profiles.wrong, self.profiles.spent, self._policy, self._requests, self.work
            )
            self._deescalate()
            self._sweep(n_events)

    def _sweep(self, n_events: int) -> None:
        """While values rest, bring all K(i) nearer to k(i), some entries for every event.

        A false positive finds one entry; after a burst of updates all of them are too large.  A
        round that changes nothing is the last one until indexes have escalated again.
        """
        if self._policy[P_KIND] != RENT or self._policy[P_UPDATES] * (1.0 - DECAY) > (
            RESTLESS * self._policy[P_PROFILES]
        ):
            return
        n = self.choice.width * int(self.profiles.count[N_PROFILES])
        if self._swept >= n:  # a round is over
            is_exact = int(self.work[DEESCALATED]) == self._swept_work[1]
            if is_exact and int(self.work[ESCALATED]) - self._swept_work[0] <= n // SWEEP_AFTER:
                return
            self._swept, self._swept_work = 0, tuple(self.work[:2].tolist())
        last = min(n, self._swept + SWEEP * n_events)
        self._deescalate_all(np.arange(self._swept, last, dtype=np.int32))
        self._swept = last

    @property
    def n_attributes(self) -> int:
        """One more than the highest attribute id that a profile asks for."""
        known = 0 if self._store is None else len(self._store.attributes)
        return max(self._table.n_attributes, known)

    @property
    def _uses_bitmaps(self) -> bool:
        return bool(self.config.merge == "bitmap" and self.choice.width)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        search, choice = self.search_in(scratch), self.choice
        lists = Lists(choice.of_attr, choice.every, choice.width)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = filter_batch(
                self.profiles, self.structure, self.cells, lists, self.mode == AGILE, search,
                events, first, stamp, scratch.event, scratch.entry,
                self._table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _deescalate(self) -> None:
        asked = int(self._policy[P_ASKED])
        if not asked:
            return
        chosen = self._requests[:asked].copy()
        self._policy[P_ASKED] = 0
        self._deescalate_all(chosen)

    def _deescalate_all(self, chosen: np.ndarray) -> None:
        n = self.choice.width
        self._repeat(
            lambda done: deescalate_entries(
                self.profiles, self.structure, self.cells, chosen, done, n, self.mode,
                self._scope, self._before, self.work,
            ),
            0, len(chosen),
        )  # fmt: skip
        self._give_back_nodes()

    def _match_bitmaps(self, events: EventBatch, scratch: Scratch) -> Hits:
        """Merge by compressed bitmaps: one per index, with the profiles that it does not hold."""
        from matchwood.context.bitmap_merge import match_bitmaps

        return match_bitmaps(self, events, scratch)

    # -- saying ------------------------------------------------------------------------------

    def _structure(self) -> dict[str, Any]:
        self.settle()
        arrays = (*self.profiles, *self.structure)
        done = dict(zip(("escalated", "deescalated", "updates", "false_positives"),
                        self.work.tolist(), strict=True))  # fmt: skip
        return {
            "index_attributes": [each for each in self.choice.attrs.tolist() if each != EVERY],
            "unindexed": int(self.profiles.count[N_LOOSE]),
            "nodes": int(self.structure.count[NODES]),
            **done,
            "bytes": sum(array.nbytes for array in arrays),
        }

    def draw(self) -> str:
        self.settle()
        p, choice = self.profiles, self.choice
        lines = [f"{self.name}: {self._n_live} profiles, {int(p.count[N_LOOSE])} loose"]
        live = p.slot[: int(p.count[N_PROFILES])] >= 0
        n_entries = choice.width * len(live)
        held = np.repeat(live, choice.width) & (p.entry[:n_entries, 1] > 0)
        sizes = np.bincount(p.listed[:n_entries][held], minlength=choice.n_lists)
        for k, attr in enumerate(choice.attrs.tolist()):
            branch = "└──" if k == choice.n_lists - 1 else "├──"
            what = "the context alone" if attr == EVERY else f"attribute {attr}"
            lines.append(f"{branch} index on {what}: {sizes[k]} profiles")
        return "\n".join(lines)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"slots": np.array(sorted(self._slots), np.int32)}

    @classmethod
    def check(
        cls,
        table: ExpressionTable,
        slots: np.ndarray,
        layout: Mapping[str, np.ndarray],
        **config: Any,
    ) -> None:
        check_slots(layout, slots, len(table.layout.kind))

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._slots = set(layout["slots"].tolist())
        self._is_stale = True


def _new_search(n_profiles: int) -> Search:
    """What a search writes to; memory that is not touched costs nothing."""
    return Search(
        clock=np.zeros(1, np.int64),
        seen=np.zeros(n_profiles, np.uint8),
        found=np.empty(n_profiles, np.int32),
        candidates=np.empty(n_profiles, np.int32),
        tested=np.zeros(1, np.int64),
        noted=np.empty((NOTES, 2), np.int32),
        count=np.zeros(3, np.int64),
    )
