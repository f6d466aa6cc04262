"""PSTHash: several access predicates at once lead to candidates, by a hash table.

Idea.    As in PSTBloom, attributes are divided into spaces.  An expression hangs on its N most
         selective predicates, and is put into a hash table under every combination of spaces that
         these meet.  An event's values fall into one space of each attribute; all N of them
         together are looked up, and what is found satisfies N predicates already.
Source.  PS-Tree, section 6 (Algorithms 6 and 7).
Differs. Two wide predicates would be put under the product of their spaces: a predicate that makes
         more than `max_records` combinations is left to verification, and the next one tried.
         What keeps fewer than two access predicates is held PSTBloom's way, signatures included.
         Each space knows its members, so that a split finds what has to be copied.  An event of
         so many attributes that its combinations outnumber the members of its spaces tests these.
Cost.    Match O(C(attributes, N) lookups, or the members of its spaces if these are fewer, +
         candidates).  Memory 26 to 51 bytes a combination (16 a cell, at most 5 of 8 in use), 4 for
         every space and access predicate, 8 a predicate and 24 an expression.  A split copies the
         combinations of the space's members.

Layout   (S slots, N access predicates; everything of `pst_bloom`, and)
         keyed_access    int32[S, N]  access predicates by attribute
         keyed_arity     int8[S]      how many; 0: the expression is in records
         keyed_by_arity  int64[N+1]   expressions of each arity (1: in records)
         keyed_demoted   int64[1]     expressions that had a predicate too wide
         member_*        see id_lists: refs by space
         hash_*          see space_hash
         group_*         see id_lists: refs under one key
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.pst.bloom import PSTBloom
from matchwood.index.pst.bloom_change import DONE
from matchwood.index.pst.draw import draw_spaces
from matchwood.index.pst.frame import Config as BloomConfig
from matchwood.index.pst.hash_build import choose_all_keys, fill_keyed, order_keyed
from matchwood.index.pst.hash_change import (
    delete_keyed,
    insert_keyed,
)
from matchwood.index.pst.hash_match import BLOCK, MINE, VIEW, HashSearch, Mine, View, match_hash
from matchwood.index.pst.keys import HASH_FULL, MEMBERS_FULL, Keyed, Keys, Odometer
from matchwood.index.pst.records import NO_ACCESS
from matchwood.index.pst.space_hash import (
    GROUPS_FULL,
    ITEMS_FULL,
    NODES_FULL,
    PLACES_FULL,
    TAKEN,
    SpaceHash,
)
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.id_lists import IdListStore
from matchwood.kernel.word_map_kernels import move_cells

_SMALL = 64
PLACES = 2.4
"""Places for each key when many come at once: a lookup then looks at one and a half."""


@dataclass(frozen=True, kw_only=True)
class Config(BloomConfig):
    """What can be set; the rest as in `pst_bloom`.

    n_access      access predicates of an expression: more find fewer candidates, cost more memory
                  and more lookups
    max_records   combinations of spaces that an expression is put under; a predicate that would
                  make more is left to verification
    """

    n_access: int = 2
    max_records: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_integer("n_access", 1, 127)


def reached_by(
    slots: np.ndarray, keyed: Keyed, access: np.ndarray, costs: np.ndarray
) -> np.ndarray:
    """How likely an event reaches each expression: by all its access predicates together."""
    alone, is_keyed = access[slots], keyed.arity[slots] > 0
    preds = np.where(alone < 0, ~alone, alone)
    preds[is_keyed] = 0
    found = np.where(is_keyed, 1.0, costs[preds])
    for d in range(keyed.access.shape[1]):
        has = keyed.arity[slots] > d
        found[has] *= costs[keyed.access[slots[has], d]]
    return found


class PSTHash(PSTBloom):
    """Owns the hash table and the members of spaces, in addition to what PSTBloom owns."""

    name: ClassVar[str] = "pst_hash"
    is_kept: ClassVar[bool] = False
    LAYOUT = VIEW
    SEARCH = MINE
    Config = Config
    OWNED: ClassVar = {
        **PSTBloom.OWNED,
        "_keyed": "keyed_",
        "_hash": "hash_",
        "_members": "member_",
        "_groups": "group_",
    }

    def _clear(self) -> None:
        super()._clear()
        n = self.config.n_access
        self._keyed = Keyed(
            access=np.zeros((_SMALL, n), np.int32),
            arity=np.zeros(_SMALL, np.int8),
            by_arity=np.zeros(n + 1, np.int64),
            demoted=np.zeros(1, np.int64),
        )
        self._members = IdListStore(_SMALL)
        self._groups = IdListStore(_SMALL)
        self._hash = SpaceHash(
            cell=np.zeros((_SMALL, 2), np.int64),
            chain=np.zeros(_SMALL, np.int32),
            node=np.zeros(_SMALL, np.int32),
            count=np.array([0, 0, 0, -1, -1], np.int64),
        )
        self._odometer = Odometer(
            position=np.zeros(n, np.int64),
            piece=np.zeros(n, np.int64),
            last=np.zeros(n, np.int64),
            prefix=np.zeros(n + 1, np.int64),
            key=np.zeros(n + 1, np.int64),
            cost=np.zeros(_SMALL, np.float64),
            first=np.zeros(self.config.max_records, np.int64),
            second=np.zeros(self.config.max_records, np.int64),
        )
        self._entries = self._entries._replace(skipped=np.zeros(n, np.int64))

    @property
    def _keys(self) -> Keys:
        """The arrays as they are now, for kernels that change them."""
        members, groups = self._members.lists, self._groups.lists
        return Keys(self._keyed, members, self._hash, groups, self._odometer)

    # ── inserting ───────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        self._make_places(slots)
        self._note(slots)
        self._choose_signatures()
        self._fill_keyed(slots, self._spaces.lists, self._homes.space_seen)

    def _fill_again(
        self, held: np.ndarray, access: np.ndarray, spaces: Any, space_seen: np.ndarray
    ) -> None:
        self._fill_keyed(held, spaces, space_seen)

    def _fill_keyed(self, slots: np.ndarray, known: Any, known_seen: np.ndarray) -> None:
        """Choose access predicates twice: to know where to cut, and by what the cuts make of them.

        A predicate that meets too many spaces is then left out, and another one may take its place.
        """
        c, keyed, homes = self.config, self._keyed, self._homes
        p = self._table.predicates.layout
        costs = self._costs(uses_of(self._table, slots), known, known_seen)
        self._choose_keys(slots, costs)
        arity = keyed.arity[slots]
        is_part = np.arange(c.n_access)[None, :] < arity[:, None]
        wanted = [keyed.access[slots][is_part], homes.access[slots[arity == 0]]]
        self._lay_cuts(np.concatenate(wanted), c.space_size, c.max_spaces, 0)
        n_combinations = self._choose_keys(slots, costs)
        arity, homes = keyed.arity[slots], self._homes
        alone, several = slots[arity == 0], slots[arity > 0]
        if len(alone):
            self._open_dimensions(2 * p.attr[homes.access[alone]].astype(np.int64))
            self._fill_records(alone)
            keyed.by_arity[1] += len(alone)
        is_part = np.arange(c.n_access)[None, :] < keyed.arity[several][:, None]
        self._open_dimensions(2 * p.attr[keyed.access[several][is_part]].astype(np.int64))
        self._make_room_for(several)
        self._make_hash(int(PLACES * n_combinations))
        order = np.empty(len(several), np.int64)
        order_keyed(self._spaces.lists, keyed, self._table.layout, p, several, order)
        self._put_all(several[np.argsort(order, kind="stable")])
        self._trim()

    def _choose_keys(self, slots: np.ndarray, costs: np.ndarray) -> int:
        """Access predicates for all slots; returns how many combinations they make."""
        keyed, homes = self._keyed, self._homes
        keyed.arity[slots], keyed.demoted[0] = 0, 0
        homes.access[slots] = NO_ACCESS
        n: int = choose_all_keys(
            self._spaces.lists, homes, keyed, self._odometer, costs, self._tables, self._limits,
            slots,
        )  # fmt: skip
        return n

    def _put_all(self, slots: np.ndarray) -> None:
        done, table = 0, self._table
        while done < len(slots):
            done, full = fill_keyed(
                self._division, self._keys, table.layout, table.predicates.layout, slots, done
            )
            if full != DONE:
                self._grow(full, int(table.layout.size[slots[done]]))

    def _add(self, slots: np.ndarray) -> None:
        self._make_places(slots)
        done, table = 0, self._table
        while done < len(slots):
            done, full = insert_keyed(
                self._division, self._keys, self._signatures, self._statistics, self._tables,
                self._limits, slots, done,
            )  # fmt: skip
            if full != DONE:
                self._grow(full, int(table.layout.size[slots[done]]))

    # ── deleting ────────────────────────────────────────────────────────────────────────────────

    def _remove(self, slots: np.ndarray) -> None:
        table = self._table
        delete_keyed(
            self._division, self._keys, self._statistics, table.layout, table.predicates.layout,
            slots,
        )  # fmt: skip
        if self._is_sparse:
            self._build_again()
        self._records.trim()
        self._spaces.trim()
        self._members.trim()
        self._groups.trim()
        if len(self._hash.cell) > _SMALL and 6 * self._hash.count[TAKEN] < len(self._hash.cell):
            self._make_hash(2 * int(self._hash.count[TAKEN]) + _SMALL)

    def _better(self, held: np.ndarray, factor: float) -> np.ndarray:
        """Which expressions would be reached `factor` times less often by other predicates."""
        spaces, homes = self._spaces.lists, self._homes
        costs = self._costs(uses_of(self._table, held))
        trial = Keyed(*[np.zeros_like(array) for array in self._keyed])
        others = homes._replace(access=np.full_like(homes.access, NO_ACCESS))
        choose_all_keys(
            spaces, others, trial, self._odometer, costs, self._tables, self._limits, held
        )
        now = reached_by(held, self._keyed, homes.access, costs)
        return reached_by(held, trial, others.access, costs) * factor < now

    def _move(self, slots: np.ndarray) -> None:
        self._remove(slots)
        self._add(slots)

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def _new_search(self) -> HashSearch:
        n = self.config.n_access
        return HashSearch(
            **super()._new_search()._asdict(),
            waiting=np.zeros(BLOCK, np.int64),
            chosen=np.zeros(n + 1, np.int64),
            prefix=np.zeros(n + 1, np.int64),
        )

    def _view(self) -> Any:
        table = self._table
        return View(
            self._spaces.lists, self._records.lists, self._entries, self._signatures, self._keyed,
            self._members.lists, self._hash, self._groups.lists,
            table.layout, table.predicates.layout,
        )  # fmt: skip

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        events, is_plain, learns, search = self._prepared(events, scratch)
        every = self.config.learn_every if learns else 0
        return self._bound_step(
            match_hash, events, scratch, lambda: Mine(search, scratch.board), every, is_plain
        )

    def alone(self, events: EventBatch, scratch: Scratch) -> None:
        """None: its view is not that of `PSTBloom`, and no segment has one."""

    # ── for people ──────────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        by_arity = self._keyed.by_arity.tolist()
        return {
            **super()._structure(),
            "places": int(self._hash.count[TAKEN]),
            "members": self._members.n_ids,
            "by_arity": {n: by_arity[n] for n in range(1, len(by_arity))},
            "demoted": int(self._keyed.demoted[0]),
        }

    def draw(self) -> str:
        by_arity = [f"{n} in {k} dimensions" for k, n in enumerate(self._keyed.by_arity) if n]
        lists = self._records.lists
        n_spaces = len(lists.size)
        sizes = lists.size + self._members.lists.size[:n_spaces]
        head, *rest = draw_spaces(
            self.name, self._n_live, self._spaces.lists, lists._replace(size=sizes)
        ).split("\n")
        return "\n".join([f"{head}; {', '.join(by_arity) or 'nothing held'}", *rest])

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        held = self._held()
        self._make_cost(int(self._table.layout.size[held].max(initial=0)))

    # ── memory ──────────────────────────────────────────────────────────────────────────────────

    def _make_places(self, slots: np.ndarray) -> None:
        super()._make_places(slots)
        n, x = len(self._homes.ref), self._keyed
        if n > len(x.arity):
            self._keyed = x._replace(access=grown(x.access, n), arity=grown(x.arity, n))
        self._make_cost(int(self._table.layout.size[slots].max()))

    def _make_cost(self, longest: int) -> None:
        cost = grown(self._odometer.cost, doubled(_SMALL, longest))
        self._odometer = self._odometer._replace(cost=cost)

    def _make_ids(self, n: int) -> None:
        super()._make_ids(n)
        self._members.make_lists(len(self._homes.space_seen))

    def _make_room_for(self, slots: np.ndarray) -> None:
        """Room for the entries of many expressions."""
        words = 3 * int(self._table.layout.size[slots].sum(dtype=np.int64)) + 2 * len(slots)
        self._make_words(words + words // 4 + _SMALL)

    def _grow(self, full: int, size: int) -> None:
        if full < MEMBERS_FULL:
            super()._grow(full, size)
        elif full == MEMBERS_FULL:
            self._members.grow(2 * int(self._members.lists.size.max(initial=0)) + 8)
        elif full == HASH_FULL + PLACES_FULL:
            self._make_hash(2 * int(self._hash.count[TAKEN]) + _SMALL)
        elif full == HASH_FULL + GROUPS_FULL:
            self._groups.make_lists(2 * len(self._groups.lists.size))
            chain = grown(self._hash.chain, len(self._groups.lists.size))
            self._hash = self._hash._replace(chain=chain)
        elif full == HASH_FULL + ITEMS_FULL:
            self._groups.grow(2 * int(self._groups.lists.size.max(initial=0)) + 8)
        elif full == HASH_FULL + NODES_FULL:
            self._hash = self._hash._replace(node=grown(self._hash.node, 2 * len(self._hash.node)))

    def _make_hash(self, places: int) -> None:
        before = self._hash
        self._hash = before._replace(cell=np.zeros((max(places, _SMALL), 2), np.int64))
        move_cells(before.cell, self._hash.cell)

    def _trim(self) -> None:
        """After many came at once: what they need, and little more."""
        self._trim_words()
        self._members.trim(unused=0.02, growth=0.01)
        self._groups.trim(unused=0.02, growth=0.01)
        wanted = max(_SMALL, int(PLACES * self._hash.count[TAKEN]))
        if len(self._hash.cell) > 1.2 * wanted:
            self._make_hash(wanted)
