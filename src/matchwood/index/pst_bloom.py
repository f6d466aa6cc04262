"""PSTBloom: an access predicate leads to candidates, a signature sieves them, the rest is verified.

Idea.    Every attribute's keys are divided into disjoint spaces.  An expression hangs on its most
         selective predicate and is listed in each space that this meets.  An event's value falls
         into one space of an attribute; what is listed there is a candidate.  A signature beside
         each record tells at a glance that most candidates miss something else.
Source.  PS-Tree, sections 3.3 (selectivity), 4 (predicate spaces) and 5 (Algorithms 4 and 5).
Differs. Signatures lie beside the records, over what an expression needs, not in the leaves, over
         the ids that need them: the same question, answered by a word that is being read anyway
         (docs/decisions/0008-predicate-spaces.md has the numbers).  So only access predicates
         divide an attribute.  A space is split when it holds `space_size` records; an expression
         whose access predicate is not a union of spaces keeps it for verification.  A predicate
         that meets more than `max_records` spaces is listed in a coarse division of its attribute.
Cost.    Match O(attributes log spaces + records of their spaces + verification of what passes).
         Memory 12 bytes a record (1 for an equality, `max_records` at most), 8 a predicate and 16
         an expression, 40 a space.  Insert and delete O(records + what a split or a join moves).

Layout   (A attributes, S slots, N spaces)
         space_*      see space_kernels: dimension 2a is the fine division of attribute a, 2a + 1
                      the coarse one
         record_*     see column_lists, by space: item = ref of an entry, mark = its signature
         entry_*      see entry_kernels
         home_ref        int32[S]   where the entry of an expression is, NONE
         home_access     int32[S]   its access predicate; ~predicate: in the coarse division
         home_space_seen int32[N]   sampled events that fell into a space (the event counter)
         home_count      int64[2]   HIGH, FREE: space ids
         statistics_*    see access_kernels
         signature_*     see signature_kernels
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.arrays import doubled, grown, named, taken, writable
from matchwood.encode.events import EventBatch
from matchwood.forms.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.index import entry_kernels
from matchwood.index.access_kernels import (
    ENOUGH,
    EVENT_SIZE,
    SEEN,
    USES,
    Statistics,
    carry_seen,
    choose_all,
    cost_all,
    note_all,
)
from matchwood.index.column_lists import ColumnStore
from matchwood.index.config import IndexConfig
from matchwood.index.counting_kernels import count_uses
from matchwood.index.entry_kernels import Entries
from matchwood.index.frame import IndexFrame, Step
from matchwood.index.id_list_kernels import NO_BLOCK
from matchwood.index.pst_bloom_build_kernels import (
    count_records,
    demote_wide,
    fill_all,
    lay_cuts,
    reserve_spaces,
)
from matchwood.index.pst_bloom_kernels import (
    COARSE,
    DONE,
    ENTRIES_FULL,
    HIGH,
    IDS_FULL,
    NO_ACCESS,
    NONE,
    RECORDS_FULL,
    SPACES_FULL,
    Homes,
    Limits,
    Records,
    delete_all,
    insert_more,
)
from matchwood.index.pst_bloom_match_kernels import Scratch, match_bloom
from matchwood.index.pst_cuts import make_cuts
from matchwood.index.pst_draw import draw_spaces
from matchwood.index.signature_kernels import CELLS, Signatures
from matchwood.index.space_kernels import Spaces
from matchwood.index.verify_kernels import COUNTERS

ODDS, OPERATORS = "odds", "operators"
SIGNATURE_BITS = (0, 64, 128, 256)
_SMALL = 64
_OFTEN = 0.5
"""An attribute that more events have than this share is no news: its bits stand for keys."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    signature_bits   bits that sieve candidates: 0, 64, 128 or 256; more let fewer pass in vain and
                     cost 8 bytes a record for every 64
    space_size       records that a space holds before it is split; 0 splits at every end, as the
                     paper does; more saves memory where an attribute has few expressions
    max_spaces       spaces of an attribute; more tell more values apart
    max_records      spaces that an expression is listed in; an access predicate that meets more
                     goes to the coarse division of its attribute
    ranking          of predicates before events have been seen: by their "odds", or by their
                     "operators" as in section 3.3
    learn_every      every so many events are counted; 0: none
    window           counted events after which all counts are halved
    """

    signature_bits: int = 64
    space_size: int = 16
    max_spaces: int = 1024
    max_records: int = 24
    ranking: str = ODDS
    learn_every: int = 16
    window: int = 65_536

    def __post_init__(self) -> None:
        bits = ", ".join(map(str, SIGNATURE_BITS))
        self._expect("signature_bits", self.signature_bits in SIGNATURE_BITS, f"one of {bits}")
        self._expect_integer("space_size", 0)
        self._expect_integer("max_spaces", 1, 2**24)
        self._expect_integer("max_records", 1)
        self._expect("ranking", self.ranking in (ODDS, OPERATORS), f"{ODDS!r} or {OPERATORS!r}")
        self._expect_integer("learn_every", 0)
        self._expect_integer("window", 64)


class PSTBloom(IndexFrame):
    """Owns the spaces, the records in them and the entries that records point to."""

    name: ClassVar[str] = "pst_bloom"
    Config = Config

    def _clear(self) -> None:
        self._spaces = ColumnStore(
            Spaces, 2 * _SMALL, cut=np.empty(0, np.int64), uses=np.empty(0, np.int32)
        )
        marks = np.empty((0, self.config.signature_bits // 64), np.int64)
        self._records = ColumnStore(Records, _SMALL, mark=marks)
        self._entries = Entries(
            word=np.zeros(256, np.int64),
            origin=np.full(_SMALL, MAX_KEY, np.int64),
            free=np.full(entry_kernels.N_CLASSES, -1, np.int64),
            count=np.zeros(2, np.int64),
            skipped=np.zeros(1, np.int64),
        )
        self._homes = Homes(
            ref=np.full(_SMALL, NONE, np.int32),
            access=np.full(_SMALL, NO_ACCESS, np.int32),
            space_seen=np.zeros(_SMALL, np.int32),
            count=np.array([0, NONE], np.int64),
        )
        self._statistics = Statistics(
            uses=np.zeros(_SMALL, np.int64),
            lo=np.full(_SMALL, MAX_KEY, np.int64),
            hi=np.full(_SMALL, MIN_KEY, np.int64),
            values=np.zeros(_SMALL, np.int64),
            seen=np.zeros(_SMALL, np.int64),
            total=np.zeros(2, np.int64),
        )
        self._signatures = Signatures(
            low=np.zeros(_SMALL, np.int64),
            scale=np.zeros(_SMALL, np.float64),
            absent=np.zeros(self.config.signature_bits // 64, np.int64),
        )
        self._scratch: Any = Scratch(
            posted=np.full(_SMALL, -1, np.int64),
            found=np.empty(2 * _SMALL, np.int64),
            picks=np.empty(_SMALL, np.int32),
            seen=np.empty(0, np.int64),
            clock=np.zeros(2, np.int64),
            work=np.zeros(len(COUNTERS), np.int64),
            sieve=np.zeros(3, np.int64),
        )

    @property
    def _limits(self) -> Limits:
        c = self.config
        return Limits(c.space_size, c.max_spaces, c.max_records, int(c.ranking == OPERATORS))

    # ── inserting ───────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        """All statistics are known before any choice is made."""
        self._make_places(slots)
        self._note(slots)
        self._choose_signatures()
        self._homes.access[slots] = self._chosen(slots)[0]
        self._fill_chosen(slots)

    def _note(self, slots: np.ndarray) -> None:
        table = self._table
        p = table.predicates.layout
        note_all(self._statistics, table.layout, p, slots, 1)
        uses = np.zeros(len(p.attr), np.int32)
        count_uses(table.layout, slots, uses)
        values = np.bincount(p.attr[uses > 0])
        self._statistics.values[: len(values)] = values

    def _chosen(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best access predicate of each slot, and what it costs."""
        table = self._table
        access, cost = np.empty(len(slots), np.int32), np.empty(len(slots))
        choose_all(
            self._statistics, self._spaces.lists, self._homes.space_seen, table.layout,
            table.predicates.layout, slots, self._limits.ranking, access, cost,
        )  # fmt: skip
        return access, cost

    def _fill_chosen(self, slots: np.ndarray) -> None:
        """Fill an index without spaces with expressions whose access predicates are chosen."""
        c = self.config
        self._lay_cuts(self._homes.access[slots], c.space_size, c.max_spaces, 0)
        self._fill_records(slots)
        self._trim_words()

    def _fill_records(self, slots: np.ndarray) -> None:
        """Fill spaces that have no records; fine divisions are made, coarse ones follow."""
        c, table, homes = self.config, self._table, self._homes
        p = table.predicates.layout
        if demote_wide(self._spaces.lists, homes, p, slots, self._limits):
            wide = homes.access[slots]
            self._lay_cuts(~wide[wide < 0], c.space_size, COARSE, 1)
            homes = self._homes
        n_records = np.zeros(int(homes.count[HIGH]), np.int64)
        first_place = np.empty(len(slots), np.int64)
        count_records(self._spaces.lists, homes, p, slots, n_records, first_place)
        half = n_records // 2 + (n_records == 1)
        self._records.make_room(int((n_records + half).sum()))
        reserve_spaces(self._records.lists, n_records)
        words = 3 * int(table.layout.size[slots].sum(dtype=np.int64)) + 2 * len(slots) + 64
        self._make_words(words + words // 4)
        # expressions that are reached together lie side by side
        fill_all(
            self._spaces.lists, self._records.lists, self._homes, self._entries, self._signatures,
            self._statistics, table.layout, p, slots[np.argsort(first_place, kind="stable")],
        )  # fmt: skip
        self._records.trim(unused=0.02, growth=0.01)

    def _lay_cuts(self, access: np.ndarray, space_size: int, most: int, division: int) -> None:
        p = self._table.predicates.layout
        is_open = self._spaces.lists.room[2 * p.attr[access] + division] != NO_BLOCK
        if is_open.all():
            return
        found = make_cuts(p, access[~is_open], space_size, most, division)
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
                self._spaces.lists, self._records.lists, self._homes, self._entries,
                self._signatures, self._statistics, table.layout, table.predicates.layout,
                self._limits, slots, done, chosen,
            )  # fmt: skip
            if full != DONE:
                self._grow(full, int(table.layout.size[slots[done]]))

    def _grow(self, full: int, size: int) -> None:
        """Make room where an insertion (of an expression of this size) found none."""
        if full == ENTRIES_FULL:
            self._make_words(max(4 * size + _SMALL, len(self._entries.word) // 4))
        elif full == SPACES_FULL:
            self._spaces.make_room(2 * int(self._spaces.lists.size.max(initial=0)) + 8)
        elif full == IDS_FULL:
            self._make_ids(2 * len(self._homes.space_seen))
        elif full == RECORDS_FULL:
            self._records.make_room(2 * int(self._records.lists.size.max(initial=0)) + 8)

    # ── deleting ────────────────────────────────────────────────────────────────────────────────

    def _remove(self, slots: np.ndarray) -> None:
        table = self._table
        delete_all(
            self._spaces.lists, self._records.lists, self._homes, self._entries, self._statistics,
            table.layout, table.predicates.layout, slots,
        )  # fmt: skip
        if self._is_sparse:
            self._build_again()
        self._records.trim()
        self._spaces.trim()

    @property
    def _is_sparse(self) -> bool:
        top, freed = self._entries.count.tolist()
        return top > 1024 and freed > 0.75 * top

    def _held(self) -> np.ndarray:
        return np.flatnonzero(self._homes.ref != NONE).astype(np.int32)

    def _build_again(self) -> None:
        """The same expressions and counts, chosen and laid out anew."""
        held = self._held()
        access = self._chosen(held)[0]
        before, seen, counted = self._spaces.lists, self._homes.space_seen, self._statistics
        sieve = self._scratch.sieve
        self._clear()
        self._scratch.sieve[:] = sieve
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

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def _stepper(self, events: EventBatch) -> Step:
        board, table = self._board, self._table
        events, is_plain = self._prepared(events)
        every = self.config.learn_every

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_bloom(
                self._spaces.lists, self._records.lists, self._homes, self._entries,
                self._signatures, self._statistics, table.layout, table.predicates.layout,
                self._scratch, every, is_plain, events, first, stamp, board.event, board.entry,
                offsets, out, counters,
            )  # fmt: skip
            self._forget()
            return done

        return step

    def _prepared(self, events: EventBatch) -> tuple[EventBatch, bool]:
        """Events, and whether all of them have values alone; scratch is ready for them."""
        is_plain = events.lo is events.hi or bool((events.lo == events.hi).all())
        self._make_scratch(events, is_plain)
        return events._replace(more=events.more[:0]) if is_plain else events, is_plain

    def _forget(self) -> None:
        """Halve all counts at the end of a window, so that what is long ago counts little."""
        if self._statistics.total[SEEN] > self.config.window:
            self._statistics.total[SEEN] //= 2
            np.floor_divide(self._statistics.seen, 2, out=self._statistics.seen)
            np.floor_divide(self._homes.space_seen, 2, out=self._homes.space_seen)

    def _make_scratch(self, events: EventBatch, is_plain: bool) -> None:
        x = self._scratch
        attributes = max(self._table.n_attributes, int(events.attr.max(initial=-1)) + 1)
        if len(x.posted) < attributes:
            x = x._replace(posted=np.full(doubled(_SMALL, attributes), -1, np.int64))
        if len(x.found) < 2 * len(x.posted):
            x = x._replace(found=np.empty(2 * len(x.posted), np.int64))
        if len(x.picks) <= self._n_live:
            x = x._replace(picks=np.empty(doubled(_SMALL, self._n_live + 1), np.int32))
        if not is_plain and len(x.seen) < len(self._homes.ref):
            x = x._replace(seen=np.zeros(len(self._homes.ref), np.int64))
        self._scratch = x

    # ── learning ────────────────────────────────────────────────────────────────────────────────

    def rebalance(self, factor: float = 2.0) -> int:
        """Move expressions whose access predicate holds `factor` times as often as another one.

        What is known about events decides; returns how many were moved.  Where half of all would
        move, the index is built again from what it has learnt.
        """
        if not self._n_live:
            return 0
        self._thaw()
        held = self._held()
        access, cost = self._chosen(held)
        is_better = cost * factor < self._costs(held)
        moving = held[is_better]
        if 2 * len(moving) > len(held):
            self._build_again()
        elif len(moving):
            self._remove(moving)
            self._make_places(moving)
            self._homes.access[moving] = access[is_better]
            note_all(self._statistics, self._table.layout, self._table.predicates.layout, moving, 1)
            self._insert(moving, chosen=True)
        return len(moving)

    def _costs(self, slots: np.ndarray) -> np.ndarray:
        """What the access predicate of each slot costs, by what is known now."""
        access = self._homes.access[slots]
        return self._cost_of(np.where(access < 0, ~access, access))

    def _cost_of(self, preds: np.ndarray) -> np.ndarray:
        cost = np.empty(len(preds))
        cost_all(
            self._statistics, self._spaces.lists, self._homes.space_seen,
            self._table.predicates.layout, preds, self._limits.ranking, cost,
        )  # fmt: skip
        return cost

    def _choose_signatures(self) -> None:
        """Attributes that nearly every event has get bits for their keys."""
        x = self._statistics
        if x.total[SEEN] >= ENOUGH:
            often = x.seen > _OFTEN * x.total[SEEN]
        else:
            named = EVENT_SIZE * x.uses / max(int(x.total[USES]), 1)
            often = named / (1 + named) > _OFTEN
        often &= x.lo < x.hi
        self._signatures.low[often] = x.lo[often]
        length = x.hi[often].astype(np.float64) - x.lo[often].astype(np.float64) + 1.0
        self._signatures.scale[often] = CELLS / length

    # ── for people ──────────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        tried, passed, held = self._scratch.sieve.tolist()
        access = self._homes.access[self._homes.ref != NONE]
        return {
            "spaces": int(self._spaces.lists.size.sum(dtype=np.int64)),
            "records": self._records.n_ids,
            "wide": int((access < 0).sum()),
            "signature_false_positives": (passed - held) / max(1, tried - held),
            "events_counted": int(self._statistics.total[SEEN]),
            "bytes": self._nbytes,
        }

    @property
    def _nbytes(self) -> int:
        parts = (self._entries, self._homes, self._statistics, self._signatures)
        own = sum([array.nbytes for part in parts for array in part])
        return own + self._spaces.nbytes + self._records.nbytes

    def draw(self) -> str:
        return draw_spaces(self.name, self._n_live, self._spaces.lists, self._records.lists)

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────

    def _arrays(self) -> dict[str, np.ndarray]:
        top = int(self._entries.count[entry_kernels.TOP]) + entry_kernels.AHEAD
        return {
            **self._spaces.layout("space"),
            **self._records.layout("record"),
            **named(self._entries._replace(word=self._entries.word[:top]), "entry_"),
            **named(self._homes, "home_"),
            **named(self._statistics, "statistics_"),
            **named(self._signatures, "signature_"),
        }

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._spaces.take(layout, "space")
        self._records.take(layout, "record")
        self._entries = taken(Entries, layout, "entry_")
        homes = taken(Homes, layout, "home_")
        # matching counts events, so these are always the matcher's own
        self._homes = homes._replace(space_seen=homes.space_seen.copy())
        self._statistics = Statistics(*[a.copy() for a in taken(Statistics, layout, "statistics_")])
        signatures = taken(Signatures, layout, "signature_")
        self._signatures = signatures._replace(absent=signatures.absent.copy())

    def _thaw(self) -> None:
        self._spaces.thaw()
        self._records.thaw()
        self._entries = writable(self._entries)
        self._homes = writable(self._homes)
        self._signatures = writable(self._signatures)

    # ── memory ──────────────────────────────────────────────────────────────────────────────────

    def _make_places(self, slots: np.ndarray) -> None:
        """A place for every slot and attribute."""
        h, x, s = self._homes, self._statistics, self._signatures
        n = doubled(len(h.ref), int(slots.max()) + 1)
        self._homes = h._replace(ref=grown(h.ref, n, NONE), access=grown(h.access, n, NO_ACCESS))
        a = doubled(len(x.uses), self._table.n_attributes)
        self._spaces.make_lists(2 * a)
        self._entries = self._entries._replace(origin=grown(self._entries.origin, a, int(MAX_KEY)))
        self._statistics = x._replace(
            uses=grown(x.uses, a),
            lo=grown(x.lo, a, int(MAX_KEY)),
            hi=grown(x.hi, a, int(MIN_KEY)),
            values=grown(x.values, a),
            seen=grown(x.seen, a),
        )
        self._signatures = s._replace(low=grown(s.low, a), scale=grown(s.scale, a))

    def _open_dimensions(self, dims: np.ndarray) -> None:
        """Give dimensions without cuts one space each."""
        dims = np.unique(dims)
        dims = dims[self._spaces.lists.room[dims] == NO_BLOCK]
        n = len(dims)
        self._spaces.make_room(2 * n)
        self._make_ids(int(self._homes.count[HIGH]) + n)
        cuts = np.full(n, MIN_KEY)
        lay_cuts(self._spaces.lists, self._records.lists, self._homes, dims, np.arange(n + 1), cuts)

    def _make_ids(self, n: int) -> None:
        """Ids for so many spaces."""
        self._records.make_lists(n)
        n = len(self._records.lists.size)
        self._homes = self._homes._replace(space_seen=grown(self._homes.space_seen, n))

    def _make_words(self, n: int) -> None:
        """Room for so many more words of entries."""
        top = int(self._entries.count[entry_kernels.TOP])
        word = np.zeros(top + n, np.int64)  # memory that is not touched costs nothing yet
        word[:top] = self._entries.word[:top]
        self._entries = self._entries._replace(word=word)

    def _trim_words(self) -> None:
        top = int(self._entries.count[entry_kernels.TOP])
        word = self._entries.word[: top + top // 64 + _SMALL].copy()
        self._entries = self._entries._replace(word=word)
