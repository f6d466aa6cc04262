"""PSTBloom: an access predicate leads to candidates, a signature sieves them, the rest is verified.

Idea.    Every attribute's keys are divided into disjoint spaces.  An expression hangs on its most
         selective predicate and is listed in each space that this meets.  An event's value falls
         into one space of an attribute; what is listed there is a candidate.  A signature with
         each record tells at a glance that most candidates miss something else.
Source.  PS-Tree, sections 3.3 (selectivity), 4 (predicate spaces) and 5 (Algorithms 4 and 5).
Differs. Signatures are stored with the records, over what an expression needs, not in the leaves,
         over the ids that need them: the same question, answered by a word that is being read
         anyway (docs/decisions/0008-predicate-spaces.md has the numbers; with `signatures="leaves"`
         they are as published, see `leaf_filters`).  So only access predicates divide an attribute.
         A space is split when it holds `space_size` records; an expression whose access predicate
         is not a union of spaces keeps it for verification.  A predicate that meets more than
         `max_records` spaces is listed in a coarse division of its attribute.
Cost.    Match O(attributes log spaces + records of their spaces + verification of what passes).
         Memory 12 bytes a record (1 for an equality, `max_records` at most), 8 a predicate and 16
         an expression, 40 a space.  Insert and delete O(records + what a split or a join moves).

Layout   (A attributes, S slots, N spaces)
         space_*      see spaces: dimension 2a is the fine division of attribute a, 2a + 1
                      the coarse one
         record_*     see column_lists, by space: item = ref of an entry, mark = its signature
         entry_*      see entries
         home_ref        int32[S]   where the entry of an expression is, NONE
         home_access     int32[S]   its access predicate; ~predicate: in the coarse division
         home_space_seen int32[N]   sampled events that fell into a space (the event counter)
         home_count      int64[2]   HIGH, FREE: space ids
         statistics_*    see access
         signature_*     see signatures
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import BoundStep, Saved, Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.pst.access import (
    ENOUGH,
    SEEN,
    USES,
    carry_seen,
    choose_all,
    cost_all,
    note_used,
)
from matchwood.index.pst.bloom_build import (
    count_records,
    demote_wide,
    fill_all,
    lay_cuts,
    reserve_spaces,
)
from matchwood.index.pst.bloom_change import (
    COARSE,
    DONE,
    delete_all,
    insert_more,
)
from matchwood.index.pst.bloom_check import check_bloom
from matchwood.index.pst.bloom_match import MINE, VIEW, Mine, View, match_bloom
from matchwood.index.pst.cuts import make_cuts
from matchwood.index.pst.frame import OFTEN, PSTFrame
from matchwood.index.pst.leaf_filter_kernels import (
    NOT_THERE,
    LeafSieve,
    Leaves,
    match_leaves,
    sign_leaves,
)
from matchwood.index.pst.leaf_filters import LEAVES, RECORDS, BloomConfig, make_leaves
from matchwood.index.pst.records import (
    HIGH,
)
from matchwood.index.pst.signatures import CELLS
from matchwood.index.pst.spaces import Spaces
from matchwood.index.stabbing.odds_kernels import presences_of
from matchwood.kernel.id_list_kernels import NO_BLOCK


class Division(NamedTuple):
    """Spaces, and which predicate leads to each expression; see `PSTBloom.divide`."""

    spaces: Spaces
    access: np.ndarray  # int32, for each slot: a predicate; ~predicate: in the coarse division
    costs: np.ndarray  # float64, by predicate; inf: no expression has it
    uses: np.ndarray  # int64, by attribute: predicates on it


class PSTBloom(PSTFrame):
    """Chooses access predicates, lists expressions by them, sieves and verifies."""

    name: ClassVar[str] = "pst_bloom"
    is_kept: ClassVar[bool] = True
    LAYOUT = VIEW
    SEARCH = MINE
    Config: ClassVar[type[IndexConfig]] = BloomConfig

    _leaves: Leaves | None = None
    """Filters of leaves; None: to be made at the next search that needs them."""

    @property
    def _has_leaves(self) -> bool:
        return bool(getattr(self.config, "signatures", RECORDS) == LEAVES)

    @property
    def _mark_words(self) -> int:
        return 0 if self._has_leaves else super()._mark_words

    def _clear(self) -> None:
        super()._clear()
        self._leaves = None

    def divide(self, slots: np.ndarray) -> Division:
        """Choose access predicates and divide their attributes, in an index without expressions.

        Nothing is listed: for structures that keep what they find in spaces in their own way.
        """
        self._make_places(slots)
        costs = self._costs(self._note(slots))
        self._homes.access[slots] = self._chosen(slots, costs)[0]
        self._lay_cuts(self._homes.access[slots], self.config.space_size, self.config.max_spaces, 0)
        self._demote_wide(slots)
        uses = self._statistics.uses
        return Division(self._spaces.lists, self._homes.access[slots], costs, uses)

    def _fill(self, slots: np.ndarray) -> None:
        """All statistics are known before any choice is made."""
        self._make_places(slots)
        uses = self._note(slots)
        self._choose_signatures()
        self._homes.access[slots] = self._chosen(slots, self._costs(uses))[0]
        self._fill_chosen(slots)

    def _note(self, slots: np.ndarray) -> np.ndarray:
        """Count the predicates of new expressions; returns their uses."""
        p, uses = self._table.predicates.layout, uses_of(self._table, slots)
        note_used(self._statistics, p, uses)
        values = np.bincount(p.attr[uses > 0])
        self._statistics.values[: len(values)] = values
        return uses

    def _costs(
        self, uses: np.ndarray, known: Any = None, known_seen: np.ndarray | None = None
    ) -> np.ndarray:
        """What each predicate that some expressions have (`uses_of`) costs, by its id.

        `known` are the spaces whose event counters are known_seen, when these are not its own:
        another division, when all is made anew.  A predicate of many expressions is looked at
        once, and in the table's order: half the time of asking for every expression.
        """
        preds = np.flatnonzero(uses)
        costs, cost = np.full(len(uses), np.inf), np.empty(len(preds))
        cost_all(
            self._statistics, self._spaces.lists if known is None else known,
            self._homes.space_seen if known_seen is None else known_seen,
            self._table.predicates.layout, preds, self._limits.ranking, cost,
        )  # fmt: skip
        costs[preds] = cost
        return costs

    def _chosen(self, slots: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best access predicate of each slot, and what it costs."""
        access, cost = np.empty(len(slots), np.int32), np.empty(len(slots))
        choose_all(costs, self._table.layout, slots, access, cost)
        return access, cost

    def _fill_chosen(self, slots: np.ndarray) -> None:
        """Fill an index without spaces with expressions whose access predicates are chosen."""
        c = self.config
        self._lay_cuts(self._homes.access[slots], c.space_size, c.max_spaces, 0)
        self._fill_records(slots)
        self._trim_words()
        self._leaves = None
        if self._has_leaves:
            self._made_leaves()

    def _fill_records(self, slots: np.ndarray) -> None:
        """Fill spaces that have no records; fine divisions are made, coarse ones follow."""
        self._demote_wide(slots)
        table, homes = self._table, self._homes
        p = table.predicates.layout
        n_records = np.zeros(int(homes.count[HIGH]), np.int64)
        order = np.empty(len(slots), np.int64)
        count_records(self._spaces.lists, homes, table.layout, p, slots, n_records, order)
        half = n_records // 2 + (n_records == 1)
        self._records.make_room(int((n_records + half).sum()))
        reserve_spaces(self._records.lists, n_records)
        words = 3 * int(table.layout.size[slots].sum(dtype=np.int64)) + 2 * len(slots) + 64
        self._make_words(words + words // 4)
        fill_all(
            self._division, self._signatures, table.layout, p,
            slots[np.argsort(order, kind="stable")],
        )  # fmt: skip
        self._records.trim(unused=0.02, growth=0.01)

    def _demote_wide(self, slots: np.ndarray) -> None:
        """Send expressions with a wide access predicate to coarse divisions, and make these."""
        p = self._table.predicates.layout
        if demote_wide(self._spaces.lists, self._homes, p, slots, self._limits):
            wide = self._homes.access[slots]
            self._lay_cuts(~wide[wide < 0], self.config.space_size, COARSE, 1)

    def _lay_cuts(self, access: np.ndarray, space_size: int, most: int, division: int) -> None:
        p = self._table.predicates.layout
        is_open = self._spaces.lists.room[2 * p.attr[access] + division] != NO_BLOCK
        if is_open.all():
            return
        max_points = 0 if division else self.config.max_points
        found = make_cuts(p, access[~is_open], space_size, most, max_points, division)
        n = np.diff(found.first)
        self._spaces.make_room(int((n + n // 2 + 2).sum()))
        self._make_ids(int(self._homes.count[HIGH]) + len(found.cuts))
        lay_cuts(self._spaces.lists, self._records.lists, self._homes, *found)

    def _add(self, slots: np.ndarray) -> None:
        self._make_places(slots)
        self._insert(slots, chosen=False)

    def _insert(self, slots: np.ndarray, chosen: bool) -> None:
        done, table = 0, self._table
        while done < len(slots):
            done, full = insert_more(
                self._division, self._signatures, self._statistics, self._tables, self._limits,
                slots, done, chosen,
            )  # fmt: skip
            if full != DONE:
                self._grow(full, int(table.layout.size[slots[done]]))
        if self._leaves is not None and len(slots) < self._n_live // 4:
            p = table.predicates.layout
            sign_leaves(self._leaves, table.layout, p, self._homes.access, slots)
        else:
            self._leaves = None

    def _remove(self, slots: np.ndarray) -> None:
        table = self._table
        delete_all(self._division, self._statistics, table.layout, table.predicates.layout, slots)
        if self._is_sparse:
            self._build_again()
        self._records.trim()
        self._spaces.trim()

    def _build_again(self) -> None:
        """The same expressions and counts, chosen and laid out anew."""
        held = self._held()
        access = self._chosen(held, self._costs(uses_of(self._table, held)))[0]
        before, seen, counted = self._spaces.lists, self._homes.space_seen, self._statistics
        sieve = self._sieve
        self._clear()
        self._sieve = sieve
        self._make_places(held)
        self._statistics.seen[: len(counted.seen)] = counted.seen
        self._statistics.total[SEEN] = counted.total[SEEN]
        self._note(held)
        self._choose_signatures()
        self._fill_again(held, access, before, seen)
        carry_seen(before, seen, self._spaces.lists, self._homes.space_seen)

    def _fill_again(
        self, held: np.ndarray, access: np.ndarray, spaces: Any, space_seen: np.ndarray
    ) -> None:
        """Fill an empty index; the spaces that were there know the events."""
        self._homes.access[held] = access
        self._fill_chosen(held)

    def _view(self) -> Any:
        table = self._table
        return View(
            self._spaces.lists, self._records.lists, self._entries, self._signatures,
            table.layout, table.predicates.layout,
        )  # fmt: skip

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        events, is_plain, learns, search = self._prepared(events, scratch)
        every = self.config.learn_every if learns else 0
        if self._has_leaves:
            at = np.full(len(search.posted), NOT_THERE, np.int64)
            sieve = LeafSieve(self._made_leaves(), self._homes.access, at)
            return scratch.step(match_leaves, events, self._view(), sieve, search, every, is_plain)
        return self._bound_step(
            match_bloom, events, scratch, lambda: Mine(search, scratch.board), every, is_plain
        )

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """As `IndexFrame.alone`; it does not learn from them."""
        if self._has_leaves:
            return None
        events, _, _, search = self._prepared(events, scratch)
        return self._bound_step(
            match_bloom, events, scratch, lambda: Mine(search, scratch.board), 0, True
        )

    def _made_leaves(self) -> Leaves:
        if self._leaves is None:
            c: Any = self.config
            access = self._homes.access
            self._leaves = make_leaves(self._table, self._held(), access, c.leaf_bits, c.max_spaces)
        return self._leaves

    @property
    def nbytes(self) -> int:
        leaves = () if self._leaves is None else self._leaves
        return super().nbytes + sum(array.nbytes for array in leaves)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        self._leaves = None

    @classmethod
    def _check(cls, saved: Saved) -> None:
        is_in_leaves = getattr(saved.config, "signatures", RECORDS) == LEAVES
        bits = 0 if is_in_leaves else saved.config.signature_bits
        check_bloom(saved.table, saved.slots, saved.layout, bits)

    def rebalance(self, factor: float = 2.0) -> int:
        """Move expressions that other access predicates would reach `factor` times less often.

        What is known about events decides; returns how many were moved.  Where half of all would
        move, the index is built again from what it has learnt.
        """
        if not self._n_live:
            return 0
        self._thaw()
        held = self._held()
        moving = held[self._better(held, factor)]
        if 2 * len(moving) > len(held):
            self._build_again()
        elif len(moving):
            self._move(moving)
        return len(moving)

    def _better(self, held: np.ndarray, factor: float) -> np.ndarray:
        """Which expressions would be reached `factor` times less often by another predicate."""
        costs = self._costs(uses_of(self._table, held))
        best, access = self._chosen(held, costs)[1], self._homes.access[held]
        is_better: np.ndarray = best * factor < costs[np.where(access < 0, ~access, access)]
        return is_better

    def _move(self, slots: np.ndarray) -> None:
        """Take expressions out and choose again where they hang."""
        uses = uses_of(self._table, slots)
        access = self._chosen(slots, self._costs(uses))[0]
        self._remove(slots)
        self._make_places(slots)
        self._homes.access[slots] = access
        note_used(self._statistics, self._table.predicates.layout, uses)
        self._insert(slots, chosen=True)

    def _choose_signatures(self) -> None:
        """Attributes that nearly every event has get bits for their keys."""
        x = self._statistics
        if x.total[SEEN] >= ENOUGH:
            often = x.seen > OFTEN * x.total[SEEN]
        else:
            often = presences_of(x.uses, x.total[USES]) > OFTEN
        often &= x.lo < x.hi
        self._signatures.low[often] = x.lo[often]
        length = x.hi[often].astype(np.float64) - x.lo[often].astype(np.float64) + 1.0
        self._signatures.scale[often] = CELLS / length
